"""What holds for every reply, every text and every set of verdicts."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.scripted import ScriptedSession, interaction
from tracescore.errors import JudgeError
from tracescore.evaluators.answer_correctness import AnswerCorrectness
from tracescore.evaluators.completeness import Completeness
from tracescore.evaluators.faithfulness import Faithfulness
from tracescore.judge.operations import Vocabulary
from tracescore.judge.prompt import encode
from tracescore.judge.replies import (
    NEEDS_NO_QUOTE,
    Quotable,
    parse,
    read_claims,
    read_parts,
    read_questions,
    read_verdicts,
)
from tracescore.judge.sentences import ABBREVIATIONS, split
from tracescore.judge.windows import passages
from tracescore.model import Score, Unscored

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
SCRIPTS = {
    "chinese": ("\u4e00", "\u9fa5", "\u3002"),
    "japanese": ("\u3041", "\u30fa", "\u3002"),
    "arabic": ("\u0621", "\u064a", "\u061f "),
    "hindi": ("\u0904", "\u0939", "\u0964 "),
    "cyrillic": ("\u0410", "\u044f", ". "),
    "latin": ("a", "z", ". "),
}
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=10,
)
PROSE = st.text(st.characters(exclude_characters="{}<>[]`", exclude_categories=["Cs"]), max_size=40)


@st.composite
def texts_of_a_script(draw: st.DrawFn) -> tuple[str, int]:
    """A text of some sentences in one script, none of an initial or abbreviation, and their number."""
    first, last, end = SCRIPTS[draw(st.sampled_from(sorted(SCRIPTS)))]
    letters = st.characters(min_codepoint=ord(first), max_codepoint=ord(last), categories=["L"])
    words = st.text(letters, min_size=2, max_size=12).filter(lambda word: word.casefold() not in ABBREVIATIONS)
    sentences = draw(st.lists(words, min_size=1, max_size=6))
    return "".join(sentence + end for sentence in sentences), len(sentences)


@given(texts_of_a_script())
def test_sentences_are_counted_right_in_every_script(case: tuple[str, int]) -> None:
    text, count = case
    assert len(list(split(text))) == count


@given(st.text(max_size=300))
def test_splitting_loses_no_character(text: str) -> None:
    def plain(parts: Iterable[str]) -> str:
        return "".join("".join(parts).split())

    assert plain(split(text)) == plain([text])
    assert plain(split(f"{text} " * 20)) == plain([text] * 20)
    assert plain(passages([text], size=5)) == plain([text])


@given(ANY_JSON, PROSE, PROSE)
def test_an_object_is_found_in_any_prose(value: Any, before: str, after: str) -> None:
    reply = {"field": value}
    assert parse(f"{before}{json.dumps(reply)}{after}", "field")[0] == reply


@given(st.text(max_size=200) | ANY_JSON.map(json.dumps), st.sampled_from(["verdicts", "claims"]))
def test_whatever_the_judge_says_the_only_error_is_a_judge_error(text: str, key: str) -> None:
    with contextlib.suppress(JudgeError):
        parse(text, key)


@given(
    st.dictionaries(st.sampled_from(["verdicts", "claims", "parts", "questions", "noncommittal", "words"]), ANY_JSON)
)
def test_whatever_the_fields_hold_the_only_error_is_a_judge_error(reply: dict[str, Any]) -> None:
    for read in (
        lambda: read_verdicts(reply, ["s1"], Quotable(["e"]), Vocabulary.SUPPORT),
        lambda: read_claims(reply, {"t1": "A."}),
        lambda: read_parts(reply, "Q?", ["h"]),
        lambda: read_questions(reply, "A.", 3),
    ):
        with contextlib.suppress(JudgeError):
            read()


IDS = ["s1", "s2", "s3", "s4"]
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.sampled_from([*IDS, "s9", ""]),
            "verdict": st.sampled_from(["supported", "contradicted", "not_found", "covered", "90", 1, None]),
            "quote": st.sampled_from(["the sky", "the sea", "", 3]),
        }
    ),
    max_size=8,
)


@given(ROWS)
def test_each_id_has_one_verdict_that_was_on_offer_or_a_reason(rows: list[dict[str, Any]]) -> None:
    found, drops = read_verdicts({"verdicts": rows}, IDS, Quotable(["under the sky"]), Vocabulary.SUPPORT)
    assert set(found) | (set(drops) & set(IDS)) == set(IDS)
    assert not set(found) & set(drops)
    for name, verdict in found.items():
        assert verdict.value in Vocabulary.SUPPORT.value
        assert verdict.value in NEEDS_NO_QUOTE or verdict.quote == "the sky"
        assert {row["verdict"] for row in rows if row["id"] == name} == {verdict.value}


@given(st.text(max_size=200))
def test_encoded_text_is_one_line_and_comes_back(text: str) -> None:
    line = encode({"text": text})
    assert json.loads(line)["text"] == text.encode("utf-8", "replace").decode()
    assert len(line.split("\n")) == 1


@given(TEXT.filter(str.strip))
def test_every_text_is_a_perfect_answer_to_itself(text: str) -> None:
    score = asyncio.run(
        AnswerCorrectness(None, (1, 0)).evaluate(interaction(answer=text, reference=text), ScriptedSession())
    )
    assert isinstance(score, Score)
    assert score.value == 1.0


WORDS = {
    Vocabulary.COVERAGE: ["missing", "partial", "covered"],
    Vocabulary.SUPPORT: ["not_found", "supported"],
}
"""From worse to better."""


def _evaluate(vocabulary: Vocabulary, words: list[str | None]) -> Score | Unscored:
    names = [f"statement {n}" for n in range(len(words))]
    verdicts = {vocabulary: words}
    if vocabulary is Vocabulary.COVERAGE:
        return asyncio.run(Completeness().evaluate(interaction(), ScriptedSession(parts=names, verdicts=verdicts)))
    session = ScriptedSession(questions=["q?"], claims={"A.": names}, verdicts=verdicts)
    return asyncio.run(Faithfulness().evaluate(interaction(), session))


@given(st.sampled_from(sorted(WORDS, key=str)), st.data())
def test_the_bounds_of_an_incomplete_score_hold_whatever_the_missing_verdicts_are(vocabulary, data) -> None:
    words = data.draw(st.lists(st.sampled_from([*WORDS[vocabulary], None]), min_size=1, max_size=6))
    filled = [word or data.draw(st.sampled_from(WORDS[vocabulary])) for word in words]
    complete, partial = _evaluate(vocabulary, filled), _evaluate(vocabulary, words)
    assert isinstance(complete, Score)
    if isinstance(partial, Unscored):
        assert partial.lo - 1e-12 <= complete.value <= partial.hi + 1e-12
    else:
        assert partial == complete
    assert complete.value == sum(item.credit or 0.0 for item in complete.items) / len(complete.items)


@given(st.sampled_from(sorted(WORDS, key=str)), st.data())
def test_a_better_verdict_never_lowers_a_score(vocabulary, data) -> None:
    order = WORDS[vocabulary]
    words = data.draw(st.lists(st.sampled_from(order), min_size=1, max_size=6))
    place = data.draw(st.integers(0, len(words) - 1))
    better = [*words[:place], order[-1], *words[place + 1 :]]
    worse_score, better_score = _evaluate(vocabulary, list(words)), _evaluate(vocabulary, list(better))
    assert isinstance(worse_score, Score)
    assert isinstance(better_score, Score)
    assert worse_score.value <= better_score.value
