"""Reports say the same in three formats, and texts of others cannot act in any of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.gold_runs import outcome, run
from tracescore.errors import UsageError
from tracescore.gold.compare import compare
from tracescore.gold.report import FORMATS, GoldReport, check_name, read_run, write

HOSTILE = (
    "<script>alert(1)</script> | a | [x](javascript:y) `code` **bold**\n# Title\n---",
    "]]></failure><testcase name='x'/>&amp;",
    "\x00\x1b[31m\ufffe",
    "half \ud800 a pair",
)
WRONG = outcome(1, 0.0, answer="no", claims=({"verdict": "FP", "text": "No."},))
DONE = run([], 4, outcomes=(outcome(0, 1.0, answer="yes"), WRONG, outcome(2, None, detail="no answer within 60 s")))
AGAINST = compare(DONE, [run([1.0, 1.0], 1)], "the pinned reference")
REPORT = GoldReport(DONE, 0.5, 0.02, AGAINST, ("factual: 0.500 is under 0.8",))


def files(report: GoldReport, folder: Path) -> dict[str, str]:
    for ending in FORMATS:
        write(report, folder / f"out{ending}")
    return {ending: (folder / f"out{ending}").read_text() for ending in FORMATS}


def test_every_format_names_the_items_and_why_the_check_failed(tmp_path: Path) -> None:
    text = files(REPORT, tmp_path)
    for words in ("factual: 0.500 is under 0.8", "i01", "no answer within 60 s", "timeout"):
        assert all(words in each.replace("\\", "") for each in text.values()), words
    assert "- i01 became wrong (1.00 to 0.00): q1" in text[".md"]
    assert "| factual | 0.500 |" in text[".md"]
    assert "- not in the reference: No." in text[".md"]


@pytest.mark.parametrize(
    ("failures", "counts", "item", "missing"),
    [
        (
            ("factual: 0.500 is under 0.8",),
            {"tests": "4", "failures": "2", "errors": "1", "skipped": "0"},
            "failure",
            "error",
        ),
        ((), {"tests": "3", "failures": "0", "errors": "0", "skipped": "1"}, "system-out", "skipped"),
    ],
)
def test_junit_fails_where_the_exit_status_does_and_nowhere_else(
    failures: tuple[str, ...], counts: dict[str, str], item: str, missing: str, tmp_path: Path
) -> None:
    root = ET.fromstring(files(replace(REPORT, failures=failures), tmp_path)[".xml"])
    assert {name: root.get(name) for name in counts} == counts
    said = {case.get("name"): [child.tag for child in case] for case in root.iter("testcase")}
    checks = {"factual": ["failure"]} if failures else {}
    assert said == checks | {"i00: q0": [], "i01: q1": [item], "i02: q2": [missing]}


def test_no_two_test_cases_of_junit_have_one_name(tmp_path: Path) -> None:
    checks = ("factual: 0.5 is under 0.8", "compare-with factual: fell from 0.9 to 0.5", "factual: 0.5 is under 0.9")
    alike = (replace(WRONG, id="a\x01", question="q"), replace(WRONG, id="a\x02", question="q"))
    root = ET.fromstring(files(GoldReport(replace(DONE, outcomes=alike), 0.5, 0.02, None, checks), tmp_path)[".xml"])
    names = [(case.get("classname"), case.get("name")) for case in root.iter("testcase")]
    assert len(set(names)) == len(names) == 5


def test_a_json_report_holds_the_run_that_a_later_one_is_compared_with(tmp_path: Path) -> None:
    content = json.loads(files(REPORT, tmp_path)[".json"])
    assert read_run(tmp_path / "out.json") == DONE
    assert content["measures"]["factual"]["mean"] == 0.5
    assert [flip["id"] for flip in content["comparison"]["flips"]] == ["i01"]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_text_of_others_stays_text(tmp_path: Path, hostile: str) -> None:
    bad = replace(WRONG, id=hostile, question=hostile, reference=hostile, answer=hostile, detail=hostile)
    other = replace(DONE.outcomes[2], id=f"{hostile}2", detail=hostile)
    named = replace(DONE, service=hostile, release=hostile, gold_set=hostile, outcomes=(bad, other))
    text = files(GoldReport(named, 0.1, 0.02, None, (hostile,)), tmp_path)
    root = ET.fromstring(text[".xml"])
    assert [case.tag for case in root.iter() if case.tag not in ("failure", "error")].count("testcase") == 3
    assert json.loads(text[".json"])["run"]["outcomes"][0]["question"].startswith(hostile[:4])
    assert "<script>" not in text[".md"].replace("\\<script\\>", "")
    assert sum(line.startswith("# ") for line in text[".md"].splitlines()) == 1
    for line in text[".md"].splitlines():
        assert line.isprintable()
        assert not line.startswith("---")


def test_a_name_that_tells_no_format_or_a_place_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--report: a name ending in \.md, \.json, \.xml expected; got 'out\.txt'"):
        check_name(Path("out.txt"))
    with pytest.raises(UsageError, match="cannot be written: No such file or directory"):
        write(REPORT, tmp_path / "nowhere" / "out.md")


@pytest.mark.parametrize("content", [b"{}", b"[]", b"no json", b'{"run": {"id": 1}}'])
def test_what_is_no_report_cannot_be_compared_with(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "old.json").write_bytes(content)
    with pytest.raises(UsageError, match=r"--compare-with: .*old\.json is not a report"):
        read_run(tmp_path / "old.json")
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_run(tmp_path / "no.json")
