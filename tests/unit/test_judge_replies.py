"""Reading replies: what is tolerated, what is refused, and that nothing is guessed."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

import pytest

from tests.costs import grows_in_step
from tracescore.errors import JudgeError
from tracescore.judge.operations import Verdict, Vocabulary
from tracescore.judge.quotes import Quotable
from tracescore.judge.replies import (
    NEEDS_NO_QUOTE,
    parse,
    read_claims,
    read_parts,
    read_questions,
    read_verdicts,
)
from tracescore.judge.sentences import split
from tracescore.judge.windows import passages

GOOD = {"verdicts": [{"id": "s1", "quote": "q", "verdict": "supported"}]}
TEXT = json.dumps(GOOD)
OTHER = json.dumps({"verdicts": [{"id": "s1", "quote": "q", "verdict": "not_found"}]})


def refused(text: str, key: str = "verdicts") -> JudgeError:
    with pytest.raises(JudgeError) as error:
        parse(text, key)
    return error.value


@pytest.mark.parametrize(
    ("text", "repaired"),
    [
        (TEXT, False),
        (f"  {TEXT}\n", False),
        (f"```json\n{TEXT}\n```", False),
        (f"```\n{TEXT}\n```", False),
        (f"Here is the result:\n```json\n{TEXT}\n```\nHope this helps!", True),
        (f"Sure! {TEXT}", True),
        (f"{TEXT} That is all.", True),
        (f"<think>First {OTHER}, but no.</think>{TEXT}", True),
        (f"<think>\n{{unfinished\n</think>\n```json\n{TEXT}\n```", True),
        (f"They ask about {{s1}}, so ...</think>{TEXT}", True),
        (f"<thinking>a</thinking><reasoning>b</reasoning>{TEXT}", True),
        (f"{TEXT}\n{TEXT}", True),
        (f'{{"note": "a draft without the field"}} {TEXT}', True),
        (json.dumps(GOOD["verdicts"]), True),
        (f"```json\n{json.dumps(GOOD['verdicts'])}\n```", True),
    ],
)
def test_an_object_is_found_whatever_stands_around_it(text: str, repaired: bool) -> None:
    found, _ = parse(text, "verdicts")
    assert found == GOOD
    if not text.startswith(("```", "[")):
        assert parse(text, "verdicts")[1] is repaired


def test_tags_inside_strings_are_text() -> None:
    value = {"verdicts": [{"id": "s1", "quote": "use <think> and </think> and {", "verdict": "supported"}]}
    assert parse(json.dumps(value), "verdicts") == (value, False)
    assert parse(f"Reply: {json.dumps(value)}", "verdicts") == (value, True)


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("", "the reply is empty"),
        (" \n", "the reply is empty"),
        ("I think it is supported.", "no complete JSON object with 'verdicts' in 24 characters"),
        (TEXT[:-3], f"no complete JSON object with 'verdicts' in {len(TEXT) - 3} characters"),
        (f"{OTHER}\n{TEXT}", "the reply holds 2 different objects"),
        (f"<think>{TEXT}", "a reasoning block does not end"),
        (f"{OTHER}</think>{TEXT}", "the reply holds 2 different objects"),
        (f"<think>They say </think>{OTHER} but no.</think>{TEXT}", "the reply holds 2 different objects"),
        ('{"verdicts": [], "verdicts": [1]}', "the reply repeats a key"),
        ('{"verdicts": [{"id": "s1", "verdict": "missing", "verdict": "covered"}]}', "the reply repeats a key"),
        ('{"verdicts": NaN}', "the reply holds NaN"),
        ('{"score": 90}', "no complete JSON object with 'verdicts' in 13 characters"),
        ("{" * 1000, "the reply holds too many broken objects"),
        ('{"verdicts": ' + "[" * 100_000, "no complete JSON object with 'verdicts' in 100013 characters"),
        ('{"a": 1}' * 100_000, "the reply has 800000 characters"),
    ],
)
def test_a_reply_that_cannot_be_read_is_refused_without_repeating_it(text: str, detail: str) -> None:
    error = refused(text)
    assert (error.reason, error.detail) == ("judge_unreadable", detail)


@pytest.mark.parametrize("text", ["I'm sorry, but I can't help with that.", "I cannot judge this text.", "Sorry, no."])
def test_a_refusal_in_plain_words_is_a_refusal(text: str) -> None:
    assert refused(text).reason == "judge_refused"


# ---------------------------------------------------------------- verdicts


def verdicts(rows, ids=("s1", "s2"), evidence=("the sky is blue",), vocabulary=Vocabulary.SUPPORT):
    return read_verdicts({"verdicts": rows}, ids, Quotable(evidence), vocabulary)


SKY = {"quote": "sky is blue", "verdict": "supported"}


def test_verdicts_are_matched_by_id_in_any_order() -> None:
    found, drops = verdicts([{"id": "s2", "verdict": "not_found", "quote": ""}, {"id": "s1", **SKY}])
    assert found == {"s1": Verdict("supported", "sky is blue"), "s2": Verdict("not_found")}
    assert drops == {}


@pytest.mark.parametrize(
    ("rows", "drops"),
    [
        ([], {"s1": "missing", "s2": "missing"}),
        ([{"id": "s1", **SKY}], {"s2": "missing"}),
        ([{"id": "s1", **SKY}, {"id": "s3", **SKY}], {"s2": "missing", "s3": "unknown_id"}),
        ([{"id": "s1", **SKY}, {"id": "s2", "verdict": "90", "quote": ""}], {"s2": "unknown_verdict"}),
        ([{"id": "s1", **SKY}, {"id": "s2", "verdict": 1, "quote": ""}], {"s2": "unknown_verdict"}),
        ([{"id": "s1", **SKY}, {"id": "s2", "verdict": True}], {"s2": "unknown_verdict"}),
        ([{"id": "s1", **SKY}, {"id": "s2", "verdict": "covered", "quote": "sky"}], {"s2": "unknown_verdict"}),
        ([{"id": "s1", **SKY}, {"id": "s2"}], {"s2": "unknown_verdict"}),
        (
            [{"id": "s1", **SKY}, {"id": "s2", **SKY}, {"id": "s2", "verdict": "not_found", "quote": ""}],
            {"s2": "conflicting"},
        ),
        ([{"id": "s1", **SKY}, {"id": "s2", "verdict": "supported", "quote": ""}], {"s2": "evidence_unverified"}),
        (
            [{"id": "s1", **SKY}, {"id": "s2", "verdict": "supported", "quote": "sky is green"}],
            {"s2": "evidence_unverified"},
        ),
        ([{"id": "s1", **SKY}, "s2: supported"], {"s2": "missing", "": "unknown_id"}),
    ],
)
def test_a_verdict_that_does_not_count_says_why(rows, drops) -> None:
    found, dropped = verdicts(rows)
    assert dropped == drops
    assert set(found) == {"s1", "s2"} - set(drops)


def test_a_verdict_given_twice_alike_counts_once() -> None:
    found, drops = verdicts([{"id": "s1", **SKY}, {"id": "s1", **SKY}], ids=("s1",))
    assert (found, drops) == ({"s1": Verdict("supported", "sky is blue")}, {})


@pytest.mark.parametrize("word", ["Not Found", "NOT_FOUND", " not-found "])
def test_the_case_of_a_verdict_does_not_matter(word: str) -> None:
    assert verdicts([{"id": "S1", "verdict": word}], ids=("s1",))[0] == {"s1": Verdict("not_found")}


@pytest.mark.parametrize("rows", [{"s1": SKY, "s2": "not_found"}, {"s1": SKY, "s2": {"verdict": "not_found"}}])
def test_verdicts_may_be_a_mapping_of_ids(rows) -> None:
    assert verdicts(rows)[0] == {"s1": Verdict("supported", "sky is blue"), "s2": Verdict("not_found")}


@pytest.mark.parametrize("rows", [None, "supported", 1])
def test_verdicts_of_another_type_are_refused(rows) -> None:
    with pytest.raises(JudgeError, match="verdicts: a list expected"):
        verdicts(rows)


def test_a_quote_that_does_not_stand_in_the_evidence_is_not_shown() -> None:
    rows = [{"id": "s1", "verdict": "contradicted", "quote": "invented"}]
    assert verdicts(rows, ids=("s1",))[0] == {"s1": Verdict("contradicted", "")}


@pytest.mark.parametrize("vocabulary", list(Vocabulary))
def test_every_verdict_that_gives_credit_needs_a_quote(vocabulary: Vocabulary) -> None:
    for word in vocabulary.value:
        found, _ = verdicts([{"id": "s1", "verdict": word, "quote": "no"}], ("s1",), ("yes",), vocabulary)
        assert bool(found) is (word in NEEDS_NO_QUOTE)
    assert vocabulary.value[0] not in NEEDS_NO_QUOTE


# ---------------------------------------------------------------- questions, parts and claims


def test_questions_are_stripped_blank_ones_left_out_and_not_more_than_asked_for() -> None:
    reply = {"questions": [" a? ", "", "b?", "c?"], "noncommittal": False, "words": ""}
    assert read_questions(reply, "answer", 2).questions == ("a?", "b?")


def test_a_noncommittal_flag_needs_words_of_the_answer() -> None:
    reply = {"questions": [], "noncommittal": True, "words": "i DO NOT know"}
    assert read_questions(reply, "Well, I do not  know.", 3).words == "i DO NOT know"
    with pytest.raises(JudgeError, match="words: they do not stand in the answer"):
        read_questions(reply, "It is 4 percent.", 3)


@pytest.mark.parametrize("flag", ["true", 1, 0, None, "yes"])
def test_a_flag_is_true_or_false(flag) -> None:
    with pytest.raises(JudgeError, match="noncommittal: true or false expected"):
        read_questions({"questions": ["a?"], "noncommittal": flag}, "answer", 3)


@pytest.mark.parametrize("questions", [None, "a?", [1], [{"question": "a?"}]])
def test_questions_are_texts(questions) -> None:
    with pytest.raises(JudgeError, match=r"questions: a (list|text) expected"):
        read_questions({"questions": questions}, "answer", 3)


def test_without_a_history_the_question_stands_alone_as_it_is() -> None:
    reply = {"standalone": "something else?", "parts": ["a", "a", "b"]}
    assert read_parts(reply, "Q?", []).standalone == "Q?"
    assert read_parts(reply, "Q?", ["earlier"]).standalone == "something else?"
    assert read_parts(reply, "Q?", []).parts == ("a", "b")


def test_a_follow_up_without_a_stand_alone_question_is_refused() -> None:
    with pytest.raises(JudgeError, match="standalone: empty"):
        read_parts({"standalone": " ", "parts": ["a"]}, "And in winter?", ["When is it open?"])


def test_claims_that_no_sentence_makes_are_left_out_and_counted() -> None:
    rows = [{"from": "t1", "text": "a"}, {"from": "t9", "text": "b"}, {"text": "c"}, {"from": "T1 ", "text": "a"}]
    assert read_claims({"claims": rows}, {"t1": "A."}) == (("a",), 2, ())
    with pytest.raises(JudgeError, match="no claim names a sentence"):
        read_claims({"claims": rows[1:3]}, {"t1": "A."})


def test_a_sentence_is_read_when_a_claim_is_from_it_or_it_is_listed_as_without_one() -> None:
    sentences = {"t1": "A.", "t2": "B.", "t3": "Hello!", "t4": "***", "t5": "C."}
    reply = {"claims": [{"from": ["t1", "t2"], "text": "a"}], "without": ["T3 "]}
    assert read_claims(reply, sentences) == (("a",), 0, ("t5",))
    assert read_claims(reply | {"without": "t3, t5"}, sentences).uncovered == ()
    assert read_claims(reply | {"without": None}, sentences).uncovered == ("t3", "t5")


def test_a_text_may_make_no_claims() -> None:
    assert read_claims({"claims": []}, {"t1": "Hello!"}) == ((), 0, ("t1",))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("One. Two! Three?", 3),
        ("\u4eca\u65e5\u306f\u6674\u308c\u3002\u660e\u65e5\u306f\u96e8\u3002", 2),
        ("\u9000\u8d27\u671f\u9650\u4e3a30\u5929\u3002\u9700\u8981\u53d1\u7968\uff01", 2),
        (
            "\u064a\u0645\u0643\u0646\u0643. \u0647\u0644 \u062a\u0631\u064a\u062f\u061f \u0646\u0639\u0645.",
            3,
        ),
        ("\u092f\u0939 \u0939\u0948\u0964 \u0935\u0939 \u0925\u093e\u0964", 2),
        ("Das kostet 3,50 Euro. Gut!", 2),
        ("no end", 1),
        (" \n ", 0),
    ],
)
def test_sentences_are_found_in_any_script(text: str, count: int) -> None:
    sentences = list(split(text))
    assert len(sentences) == count
    assert "".join("".join(sentences).split()) == "".join(text.split())


@pytest.mark.parametrize("shape", [" ", "a\n", "?!.", "e.g. ", "A. ", "a", "Ab. "], ids=repr)
def test_cutting_evidence_grows_in_step_with_it(shape: str) -> None:
    assert grows_in_step(lambda size: partial(passages, [(shape * size)[:size]]), 20_000)


@pytest.mark.parametrize("shape", [" ", "\n", "...", "[...", "`", '\\"', ", "], ids=repr)
def test_reading_a_reply_grows_in_step_with_it(shape: str) -> None:
    def reading(size: int) -> Callable[[], object]:
        filler = (shape * size)[:size]
        texts = Quotable(["the sky is blue"])
        return lambda: (parse(f"```json{filler}{TEXT}{filler}x```{TEXT}", "verdicts"), texts.holds(f"the{filler}blue"))

    assert grows_in_step(reading, 10_000)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": ["\\ud83d", {"\\ud83d": "\\udc00"}]}',
        'So: {"a": ["\\ud83d", {"?": "\\ud83d"}]}',
        '["\\ud83d", {"?": "?"}]',
    ],
)
def test_half_a_character_pair_in_a_reply_becomes_a_question_mark(text: str) -> None:
    assert parse(text, "a")[0] == {"a": ["?", {"?": "?"}]}
