"""A run as a file for people (Markdown), programs (JSON) and CI (JUnit XML).

Texts of items and answers are somebody else's: they are escaped for the format, and stand nowhere but here.
"""

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from pydantic import TypeAdapter, ValidationError

from tracescore.errors import UsageError
from tracescore.gold.compare import RIGHT, Comparison
from tracescore.gold.results import ItemOutcome, Run
from tracescore.net.wire import dumps_utf8

_READER = TypeAdapter(Run)
_LONGEST = 1_000
"""Characters of a text in Markdown."""
_WRONG = {"FP": "not in the reference", "missed": "left out", "contradicted": "contradicts the reference"}
"""Verdicts on claims that make an answer wrong, in words."""


@dataclass(frozen=True, slots=True)
class GoldReport:
    """A run, what it was compared with, and the checks it failed and other notes, a sentence each."""

    run: Run
    min_scored: float
    tolerance: float
    comparison: Comparison | None = None
    failures: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def wrong(self) -> list[ItemOutcome]:
        """Items that were answered wrongly, the worst first."""
        wrong = [each for each in self.run.outcomes if each.outcome == "scored" and _lead(each) < RIGHT]
        return sorted(wrong, key=_lead)

    def unmeasured(self) -> list[ItemOutcome]:
        """Items without correctness."""
        return [each for each in self.run.outcomes if each.outcome != "scored"]


def _lead(item: ItemOutcome) -> float:
    return item.values.get("factual", item.values.get("answer_correctness", 0.0))


def write(report: GoldReport, path: Path) -> None:
    """Writes the report in the format of the file's name; UsageError when it is none, or cannot be written."""
    text = FORMATS[check_name(path)](report)
    try:
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(f"--report: {path} cannot be written: {error.strerror}") from None


def check_name(path: Path) -> str:
    """The ending that tells the format; UsageError for another one."""
    ending = path.suffix.lower()
    if ending not in FORMATS:
        raise UsageError(f"--report: a name ending in {', '.join(FORMATS)} expected; got {str(path)!r}")
    return ending


def read_run(path: Path) -> Run:
    """The run of a JSON report; UsageError when it is none."""
    try:
        return _READER.validate_python(json.loads(path.read_bytes())["run"])
    except OSError as error:
        raise UsageError(
            f"--compare-with: PINNED, LAST or a report FILE.json expected; {path} cannot be read: {error.strerror}"
        ) from None
    except (ValueError, KeyError, TypeError, ValidationError):
        raise UsageError(f"--compare-with: {path} is not a report written by --report FILE.json") from None


def _markdown(report: GoldReport) -> str:
    return "\n".join(_lines(report)) + "\n"


def _lines(report: GoldReport) -> Iterator[str]:
    run = report.run
    verdict = "failed" if report.failures or run.state != "done" else "fine"
    yield f"# Gold set {_md(run.gold_set)}: {verdict}"
    yield ""
    yield from (f"- **{_md(failure)}**" for failure in report.failures)
    yield from (f"- {_md(note)}" for note in report.notes)
    yield f"- {_md(run.service)} {_md(run.release)}, judge {_md(run.judge)}, set {run.hash} ({run.size} items)"
    unscored, unanswered = run.count("unscored"), run.count("unanswered")
    yield f"- {run.count('scored')} scored, {unscored} unscored, {unanswered} unanswered"
    yield from (f"- {count} x {reason}" for reason, count in run.reasons().items())
    yield from ("", "| measure | mean | 95 % | scored | before | change | p |", "|---|---|---|---|---|---|---|")
    changes = report.comparison.changes if report.comparison else {}
    for measure, found in run.estimates(report.min_scored).items():
        interval = f"{found.lower:.3f} to {found.upper:.3f}"
        row = f"| {measure} | {found.mean:.3f} | {interval} | {found.scored} of {found.of} |"
        change = changes.get(measure)
        mark = " **dropped**" if change and change.fell(report.tolerance) else ""
        yield row + (
            f" {change.before:.3f} | {change.difference:+.3f}{mark} | {change.p:.4f} |" if change else " | | |"
        )
    if report.comparison:
        yield from _flips(report.comparison)
    for title, items in (("Wrong answers", report.wrong()), ("Not measured", report.unmeasured())):
        if items:
            yield from ("", f"## {title}")
            yield from (line for item in items for line in _item(item))


def _flips(comparison: Comparison) -> Iterator[str]:
    worse = sum(flip.worse for flip in comparison.flips)
    better = len(comparison.flips) - worse
    yield ""
    yield f"Against {_md(comparison.name)} ({comparison.runs} runs): {worse} items became wrong, {better} right."
    for flip in comparison.flips:
        said = "became wrong" if flip.worse else "became right"
        yield f"- {_md(flip.item.id)} {said} ({flip.before:.2f} to {flip.after:.2f}): {_md(flip.item.question)}"


def _item(item: ItemOutcome) -> Iterator[str]:
    values = ", ".join(f"{name} {value:.2f}" for name, value in item.values.items())
    yield from ("", f"### {_md(item.id)}", "")
    yield f"- question: {_md(item.question)}"
    yield f"- reference: {_md(item.reference)}"
    if item.answer is not None:
        yield f"- answer: {_md(item.answer) or '(blank)'}"
    if item.reason:
        yield f"- {item.reason}: {_md(item.detail)}"
    if values:
        yield f"- {values}"
    for claim in item.claims:
        if claim["verdict"] in _WRONG:
            yield f"- {_WRONG[claim['verdict']]}: {_md(claim['text'])}"


def _md(text: str) -> str:
    """One line of plain text, whatever it holds."""
    cut = text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
    shown = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in " ".join(cut.split()))
    return re.sub(r"([\\`*_\[\]<>|#~!$&])", r"\\\1", shown)


def _json(report: GoldReport) -> str:
    run, comparison = report.run, report.comparison
    content: dict[str, Any] = {
        "run": dataclasses.asdict(run),
        "measures": {name: dataclasses.asdict(each) for name, each in run.estimates(report.min_scored).items()},
        "by_tag": {
            tag: {name: each.mean for name, each in run.estimates(report.min_scored, tag).items()} for tag in run.tags()
        },
        "claims": run.claims(),
        "failures": report.failures,
        "comparison": None,
    }
    if comparison is not None:
        content["comparison"] = {
            "with": comparison.name,
            "runs": comparison.runs,
            "flip_p": comparison.flip_p,
            "changes": {
                name: dataclasses.asdict(each) | {"fell": each.fell(report.tolerance)}
                for name, each in comparison.changes.items()
            },
            "flips": [{"id": f.item.id, "before": f.before, "after": f.after} for f in comparison.flips],
        }
    return dumps_utf8(content, indent=True).decode()


def _junit(report: GoldReport) -> str:
    """A test case per item and one per check that failed.

    CI goes by the counts, so they agree with the exit status: a wrong item is a failure, and one that was not measured
    an error, only where a check failed; where all checks passed, the item is passed with its scores, or skipped.
    """
    run, wrong = report.run, report.wrong()
    cases = list(_cases(run.outcomes, {item.id for item in wrong}, report.failures))
    totals = {"tests": str(len(cases))}
    for total, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        totals[total] = str(sum(case.find(kind) is not None for case in cases))
    name = {"name": _xml(f"tracescore gold {run.gold_set}"), "time": f"{max(0.0, run.finished - run.started):.3f}"}
    root = ET.Element("testsuites", totals)
    ET.SubElement(root, "testsuite", name | totals).extend(cases)
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _cases(outcomes: Sequence[ItemOutcome], wrong: set[str], failures: Sequence[str]) -> Iterator[ET.Element]:
    taken: Counter[str] = Counter()
    for failure in failures:
        case = _case("checks", failure.partition(":")[0], taken)
        ET.SubElement(case, "failure", {"message": _xml(failure)})
        yield case
    for item in outcomes:
        case = _case("items", f"{item.id}: {item.question}", taken)
        if item.outcome != "scored":
            outcome = "error" if failures else "skipped"
            ET.SubElement(case, outcome, {"message": _xml(f"{item.reason}: {item.detail}")}).text = _xml(item.question)
        elif item.id in wrong:
            message = ", ".join(f"{name} {value:.2f}" for name, value in item.values.items())
            texts = (("question", item.question), ("reference", item.reference), ("answer", item.answer or ""))
            body = "\n".join(f"{name}: {text}" for name, text in texts)
            if failures:
                ET.SubElement(case, "failure", {"message": message}).text = _xml(body)
            else:
                ET.SubElement(case, "system-out").text = _xml(f"wrong answer: {message}\n{body}")
        yield case


def _case(group: str, name: str, taken: Counter[str]) -> ET.Element:
    """A case with a unique name: CI systems show only one of two cases with the same name."""
    name, classname = _xml(name), f"tracescore.gold.{group}"
    taken[name] += 1
    unique = f"{name} ({taken[name]})" if taken[name] > 1 else name
    return ET.Element("testcase", {"classname": classname, "name": unique})


def _xml(text: str) -> str:
    """Without what XML 1.0 cannot hold."""
    return re.sub("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\N{REPLACEMENT CHARACTER}", text)


FORMATS: dict[str, Callable[[GoldReport], str]] = {".md": _markdown, ".json": _json, ".xml": _junit}
"""Ending of the file -> what writes it."""
