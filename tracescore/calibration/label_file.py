"""LABELS.jsonl: what the service hands out and `tracescore calibrate` reads, and what that prints.

A line is a label (measure, score, label; judged and labelled, the verdicts on the same parts or claims; pi_score and
pi_label, the probabilities of being scored and of being drawn for a label), or sums over the scores of the same time
that nobody labelled (measure, unlabelled). All may carry judge, epoch, service, environment and context_source: lines
that differ in one of them are never put together.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from tracescore.calibration.correction import ANSWERS, JUDGED, Calibration, GroupScores, Label, LabelGroup, calibrate
from tracescore.drift.weighted_sums import WeightedSums
from tracescore.errors import UsageError
from tracescore.exporters.prometheus.label_values import label_value
from tracescore.formulas import MeanEstimate
from tracescore.model import Measure

_LARGEST_SUM = 1e30
"""More than any service can have added up; the squares of what is larger are no numbers."""


def label_line(group: LabelGroup, label: Label, **more: Any) -> dict[str, Any]:
    """The line of a label; `more` tells people which answer it was."""
    return {**group._asdict(), "score": label.score, "label": label.label, "judged": label.judged,
            "labelled": label.labelled, "pi_score": label.pi_score, "pi_label": label.pi_label, **more}  # fmt: skip


def sums_line(group: LabelGroup, unlabelled: WeightedSums) -> dict[str, Any]:
    """The line of the scores that nobody labelled."""
    return {**group._asdict(), "unlabelled": unlabelled._asdict()}


def read_labels(lines: Iterable[bytes]) -> dict[LabelGroup, GroupScores]:
    """The labels and scores of a file, by group; UsageError names the first line that is wrong, and why."""
    samples: dict[LabelGroup, GroupScores] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = orjson.loads(line)
            group = _group(row)
            sample = samples.setdefault(group, GroupScores())
            if "unlabelled" in row:
                sample.unlabelled = sample.unlabelled.merged(_sums(row["unlabelled"]))
            else:
                sample.labels.append(_label(row, group.measure))
        except ValueError as error:  # orjson's is one
            raise UsageError(f"line {number}: {error}") from None
    return samples


def _group(row: Any) -> LabelGroup:
    if not isinstance(row, Mapping):
        raise ValueError("an object with measure, score and label expected")  # noqa: TRY004 - told like all others
    if row.get("measure") not in tuple(ANSWERS):
        raise ValueError(f"measure: one of {', '.join(ANSWERS)} expected; got {_shown(row, 'measure')}")
    for name in LabelGroup._fields:
        wanted = int if name == "epoch" else str
        if name in row and (not isinstance(row[name], wanted) or isinstance(row[name], bool)):
            raise ValueError(f"{name}: {'a number' if wanted is int else 'a text'} expected; got {_shown(row, name)}")
    return LabelGroup(**{name: row[name] for name in LabelGroup._fields if name in row})


def _label(row: Mapping[str, Any], measure: Measure) -> Label:
    judged, labelled = (_verdicts(row, name) for name in ("judged", "labelled"))
    if len(judged) != len(labelled):
        raise ValueError(f"judged and labelled: as many of each expected; got {len(judged)} and {len(labelled)}")
    for name, said, known in (("judged", judged, JUDGED.get(measure, ())), ("labelled", labelled, ANSWERS[measure])):
        if unknown := [each for each in said if each not in known]:
            raise ValueError(f"{name}: of {', '.join(known) or 'nothing'} expected; got {unknown[0][:40]!r}")
    pi_score, pi_label = (_probability(row, name) for name in ("pi_score", "pi_label"))
    return Label(_number(row, "score"), _number(row, "label"), judged, labelled, pi_score, pi_label)


def _verdicts(row: Mapping[str, Any], name: str) -> tuple[str, ...]:
    said = row.get(name, [])
    if not isinstance(said, list) or not all(isinstance(each, str) for each in said):
        raise ValueError(f"{name}: a list of verdicts expected; got {_shown(row, name)}")
    return tuple(said)


def _number(row: Mapping[str, Any], name: str) -> float:
    value = row.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(f"{name}: a number from 0 to 1 expected; got {_shown(row, name)}")
    return float(value)


def _probability(row: Mapping[str, Any], name: str) -> float | None:
    if row.get(name) is None:
        return None
    if _number(row, name) < 1e-9:
        raise ValueError(f"{name}: a probability above 0 expected; got {_shown(row, name)}")
    return _number(row, name)


def _sums(given: Any) -> WeightedSums:
    known = isinstance(given, Mapping) and set(given) == set(WeightedSums._fields)
    if not known or not all(_is_sum(each) for each in given.values()):
        raise ValueError(f"unlabelled: the sums {', '.join(WeightedSums._fields)} expected; got {str(given)[:40]!r}")
    return WeightedSums(**given)


def _is_sum(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _LARGEST_SUM


def _shown(row: Mapping[str, Any], name: str) -> str:
    return repr(str(row[name])[:40]) if name in row else "nothing"


def calibrated(samples: Mapping[LabelGroup, GroupScores]) -> list[tuple[LabelGroup, Calibration]]:
    """What the labels say, group by group; groups without labels say nothing."""
    return [(group, found) for group, sample in sorted(samples.items()) if (found := calibrate(sample))]


def as_row(group: LabelGroup, found: Calibration) -> dict[str, Any]:
    """One group as plain JSON data, with the counts of verdicts as a list."""
    plain = dataclasses.asdict(dataclasses.replace(found, confusion={}))
    del plain["confusion"]
    counts = [{"judged": said, "labelled": people, "count": n} for (said, people), n in found.confusion.items()]
    return {**group._asdict(), **plain, "verdicts": counts}


def report(told: Sequence[tuple[LabelGroup, Calibration]]) -> Iterator[str]:
    """What `tracescore calibrate` prints, line by line."""
    if not told:
        yield "The file holds no labels."
    for group, found in told:
        where = " ".join(label_value(part) for part in (group.service, group.environment, group.context_source) if part)
        judge = f", judge {label_value(group.judge)}" if group.judge else ""
        yield f"{group.measure}{f' of {where}' if where else ''}{judge}" + (
            f" epoch {group.epoch}" if group.epoch else ""
        )
        yield f"  labelled answers {found.labels} (effective {found.difference.effective_count:.0f})"
        off = found.difference
        kind = "too kind" if off.lower > 0 else "too strict" if off.upper < 0 else "no certain difference"
        yield f"  judge {found.judge:.3f}, people {found.people:.3f}: off by {_with_limits(off, sign=True)}, {kind}"
        if found.corrected is not None:
            yield f"  corrected mean {_with_limits(found.corrected)}"
        else:
            yield f"  no corrected mean: {found.why_not}"
        yield from _agreement_lines(group.measure, found)


def _agreement_lines(measure: Measure, found: Calibration) -> Iterator[str]:
    if found.agreement is None:
        return
    yield f"  verdicts: agree {_with_limits(found.agreement)}"
    people = list(ANSWERS[measure])
    yield f"    {'judge says':14}" + "".join(f"{f'people: {each}':>24}" for each in people)
    for judged in JUDGED[measure]:
        yield f"    {judged:14}" + "".join(f"{found.confusion.get((judged, each), 0):24,}" for each in people)


def _with_limits(known: MeanEstimate, *, sign: bool = False) -> str:
    plus = "+" if sign else ""
    return f"{known.mean:{plus}.3f} ({known.lower:{plus}.3f} to {known.upper:{plus}.3f} at 95 %)"
