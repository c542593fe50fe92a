"""What holds of gold sets and their requests whatever they are."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tracescore.errors import ConfigError, TargetFailed
from tracescore.formulas import mcnemar_p, sign_flip_p
from tracescore.gold.items import GoldItem, load
from tracescore.gold.targets.http import filled
from tracescore.gold.targets.paths import text_at, texts_at
from tracescore.gold.trace_ids import GoldTraceIds

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)
STEPS = st.lists(st.sampled_from(["a", "answer", "0", "1", "*"]), min_size=1, max_size=5).map(".".join)


@given(st.text(min_size=1), st.text(min_size=1))
def test_every_replica_with_the_salt_knows_a_gold_trace_and_no_other_does(salt: str, other: str) -> None:
    trace_id = bytes.fromhex(GoldTraceIds(salt).new())
    assert GoldTraceIds(salt).is_gold(trace_id)
    assert GoldTraceIds(other).is_gold(trace_id) == (salt == other)


@given(st.lists(st.binary(min_size=16, max_size=16), max_size=50))
def test_no_other_trace_is_taken_for_one(ids: list[bytes]) -> None:
    trace_ids = GoldTraceIds("salt")
    assert not any(trace_ids.is_gold(each) for each in ids)


@given(JSON, STEPS)
def test_a_path_leads_to_text_or_to_one_line_that_says_why_not(payload: object, path: str) -> None:
    for read in (text_at, texts_at):
        try:
            found = read(payload, path, "gold.target.answer")
        except TargetFailed as failed:
            said = failed
        else:
            assert isinstance(found, str) or all(isinstance(text, str) for text in found)
            continue
        assert said.reason == "no_answer"
        assert said.detail.isprintable()
        assert len(said.detail) < 600


@given(JSON, st.text())
def test_no_question_changes_the_form_of_a_request(template: object, question: str) -> None:
    def form(value: object) -> object:
        if isinstance(value, dict):
            return {key: form(inner) for key, inner in value.items()}
        return [form(inner) for inner in value] if isinstance(value, list) else type(value)

    assert form(filled(template, GoldItem("1", question, "r"))) == form(filled(template, GoldItem("1", "q", "r")))


@given(st.lists(JSON, max_size=4), st.sampled_from([".jsonl", ".yaml"]))
def test_any_file_is_read_whole_or_refused_with_lines(rows: list[object], ending: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"set{ending}"
        file.write_text("\n".join(map(json.dumps, rows)) if ending == ".jsonl" else json.dumps(rows))
        try:
            found = load(file)
        except ConfigError as error:
            problems = error.problems
        else:
            assert all(item.question.strip() and item.reference.strip() for item in found.items)
            return
        assert problems
        assert all(problem.startswith(f"{file}:") for problem in problems)


@given(st.lists(st.integers(-8, 8).map(lambda eighths: eighths / 8), max_size=30), st.sampled_from([0.25, 2.0, 64.0]))
def test_p_values_lie_above_0_and_do_not_depend_on_the_unit_of_the_weights(
    differences: list[float], unit: float
) -> None:
    p = sign_flip_p(differences, [1.0] * len(differences), draws=500)
    assert 0 < p <= 1
    assert sign_flip_p(differences, [unit] * len(differences), draws=500) == p


@given(st.integers(0, 60), st.integers(0, 60))
def test_one_more_item_that_got_worse_is_never_less_of_a_sign(worse: int, better: int) -> None:
    assert 0 < mcnemar_p(worse + 1, better) <= mcnemar_p(worse, better) <= 1
