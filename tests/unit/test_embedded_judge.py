"""The embedded judge on its real model: the worked examples, their kind in other domains, and what it must never do."""

from __future__ import annotations

import subprocess
import sys

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.local_judge import NEEDS_MODEL, credits_of, embedder, factual, faithfulness, judge, relevancy, rows
from tracescore.config import EmbeddedJudgeConfig
from tracescore.errors import JudgeError, UsageError
from tracescore.judge.embedded import EmbeddedJudge
from tracescore.judge.operations import Vocabulary
from tracescore.model import Message

pytestmark = [pytest.mark.anyio, *NEEDS_MODEL]

FILES = ["embedded_paraphrases.jsonl", "embedded_held_out.jsonl"]
ENOUGH = 16
"""Of 20 in each file and kind."""


async def test_an_answer_about_another_matter_scores_clearly_below_a_good_one() -> None:
    question = "How do I reset my password?"
    other = await relevancy(
        question,
        "Our security team enforces a 90-day password rotation policy and requires 12-character minimums.",
    )
    good = await relevancy(question, "You can reset your password with the link on the sign-in page.")
    terse = await relevancy(question, "Click 'Forgot password' on the sign-in page and follow the link in the email.")
    assert other is not None
    assert good is not None
    assert terse is not None
    assert good - other >= 0.2
    assert terse - other >= 0.2


async def test_half_an_answer_is_half_complete() -> None:
    question = "What is the return window, and does it cover opened items?"
    assert await credits_of(question, "You can return items within 30 days of purchase.") == [1, 0]
    assert await credits_of(question, "You can return items within 30 days. Opened items are not covered.") == [1, 1]


@pytest.mark.parametrize(
    "context", ["The current federal funds rate is 4 percent.", "The Fed kept the federal funds rate at 4 percent."]
)
async def test_an_answer_can_be_faithful_and_wrong(context: str) -> None:
    question, answer = "What is the current federal funds rate?", "The rate is 4 percent."
    assert await faithfulness(question, answer, [context]) == 1
    assert await factual(question, answer, "5.5 percent") == 0
    assert await factual(question, answer, "The current federal funds rate is 5.5 percent.") == 0
    assert await factual(question, answer, "4%") == 1


@pytest.mark.parametrize("file", FILES)
async def test_relevancy_tells_good_answers_from_others_in_other_domains(file: str) -> None:
    right = 0
    for row in rows(file, "relevancy"):
        good, other = await relevancy(row["question"], row["good"]), await relevancy(row["question"], row["off_topic"])
        right += good is not None and other is not None and good - other >= 0.1
    assert right >= ENOUGH


@pytest.mark.parametrize("file", FILES)
async def test_halves_get_half_and_whole_answers_all_in_other_domains(file: str) -> None:
    found = rows(file, "completeness")
    halves = [await credits_of(row["question"], row["half"]) == row["credits"] for row in found]
    wholes = [await credits_of(row["question"], row["full"]) == [1, 1] for row in found]
    assert sum(halves) >= ENOUGH
    assert sum(wholes) >= ENOUGH


@pytest.mark.parametrize("file", FILES)
async def test_numbers_are_faithful_to_the_context_and_wrong_beside_the_reference_in_other_domains(file: str) -> None:
    right = 0
    for row in rows(file, "numbers"):
        faithful = await faithfulness(row["question"], row["answer"], [row["context"]])
        right += faithful == 1 and await factual(row["question"], row["answer"], row["reference"]) == 0
        assert await factual(row["question"], row["answer"], row["answer"]) == 1
    assert right >= ENOUGH


SCRIPTS = {
    "en": "Opened items can be returned within 30 days. Dr. Smith paid $3.50. It was late!",
    "de": "Geöffnete Artikel können z. B. binnen 30 Tagen zurückgegeben werden. Am 3. Mai ist geschlossen.",
    "zh": "开封的商品可以在30天内退货。运费由我们承担！请联系客服。",
    "ja": "開封した商品は30日以内に返品できます。送料は当社が負担します。",
    "ar": "يمكنك إرجاع المنتجات خلال 30 يومًا. الشحن مجاني. هذا كل شيء!",
    "hi": "आप 30 दिनों में सामान लौटा सकते हैं। डाक खर्च हम देते हैं।",
    "ru": "Товар можно вернуть в течение 30 дней. Доставка бесплатна.",
}


@pytest.mark.parametrize("text", SCRIPTS.values(), ids=SCRIPTS.keys())
async def test_identical_texts_score_one_in_every_script(text: str) -> None:
    assert await faithfulness("?", text, ["Something else.", text]) == 1
    assert await factual("?", text, text) == 1


@pytest.mark.parametrize(
    ("text", "other"),
    [(SCRIPTS["en"], "The museum was founded in 1893."), (SCRIPTS["de"], "Das Museum stammt von 1893.")],
)
async def test_a_text_is_not_supported_by_one_about_something_else(text: str, other: str) -> None:
    assert await faithfulness("?", text, [other]) == 0


@pytest.mark.parametrize("script", ["zh", "ja", "ar", "hi", "ru"])
async def test_what_no_rule_decides_outside_latin_script_is_no_number(script: str) -> None:
    session = judge().session("key")
    with pytest.raises(JudgeError, match="unsupported_language"):
        await session.verify([SCRIPTS[script]], ["The museum was founded in 1893."], Vocabulary.SUPPORT)
    with pytest.raises(JudgeError, match="unsupported_language"):
        await session.verify(["?" + SCRIPTS[script]], [SCRIPTS[script]], Vocabulary.COVERAGE)
    with pytest.raises(JudgeError, match="unsupported_language"):
        await session.relevance(SCRIPTS[script], SCRIPTS[script])


ALPHABETS = {
    "latin": st.characters(categories=["L", "N", "Zs"], max_codepoint=0x24F),
    "cjk": st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF),
    "kana": st.characters(min_codepoint=0x3041, max_codepoint=0x30FF),
    "arabic": st.characters(categories=["L", "N"], min_codepoint=0x600, max_codepoint=0x6FF),
    "devanagari": st.characters(categories=["L", "M", "N"], min_codepoint=0x900, max_codepoint=0x97F),
}


@pytest.mark.parametrize("alphabet", ALPHABETS.values(), ids=ALPHABETS.keys())
@settings(max_examples=10)
@given(data=st.data())
def test_any_text_is_supported_by_itself(alphabet: st.SearchStrategy[str], data: st.DataObject) -> None:
    words = st.text(alphabet, min_size=1, max_size=8)
    sentence = st.lists(words, min_size=1, max_size=6).map(" ".join).filter(lambda s: any(map(str.isalnum, s)))
    text = ". ".join(data.draw(st.lists(sentence, min_size=1, max_size=3))) + "."
    assert anyio.run(faithfulness, "?", text, [text]) == 1


async def test_quotes_stand_in_the_evidence() -> None:
    contexts = ["The cat sat.  It was **late** [1].", "1. Prices rose by\n3 percent. - The end"]
    session = judge().session("key")
    for vocabulary in Vocabulary:
        for verdict in await session.verify(["Prices rose 3 percent.", "It was late."], contexts, vocabulary, "?"):
            assert verdict is not None
            assert verdict.value in vocabulary.value
            assert any(verdict.quote in context for context in contexts)


@pytest.mark.parametrize(
    ("claim", "context", "verdict"),
    [
        ("Opened items are covered.", "Opened items are not covered by the policy.", "contradicted"),
        ("Opened items are not covered.", "Opened items are covered by the policy.", "contradicted"),
        ("Pets are prohibited.", "Pets are allowed.", "contradicted"),
        ("Pets are not allowed.", "Pets are prohibited.", "supported"),
        ("The fee is 5 euros.", "The fee is 7 euros.", "contradicted"),
        ("It weighs 2,000 g.", "It weighs 2 kg.", "supported"),
        ("It opened on 14 May 1932.", "It opened on May 14, 1932.", "supported"),
        ("It closes at 17:30.", "It closes at 5:30 pm.", "supported"),
        ("The band is led by Maria Lopez.", "The band is led by Anna Berg.", "not_found"),
        ("Bananas grow on Mars.", "The museum opens at nine.", "not_found"),
    ],
)
async def test_what_differs_in_a_number_a_name_or_a_negation_is_not_supported(
    claim: str, context: str, verdict: str
) -> None:
    (found,) = await judge().session("key").verify([claim], [context], Vocabulary.SUPPORT)
    assert found is not None
    assert found.value == verdict


@pytest.mark.parametrize(
    ("answer", "reference", "expected"),
    [("Yes.", "Yes, it is.", 1), ("Yes.", "No.", 0), ("No", "No, it is not covered.", 1), ("Yes", "It is covered.", 1)],
)
async def test_a_bare_yes_or_no_is_read_with_the_question(answer: str, reference: str, expected: float) -> None:
    assert await factual("Is it covered?", answer, reference) == expected


async def test_a_short_answer_is_read_with_the_question() -> None:
    context = "The parliament consists of 179 members elected for four years."
    assert await faithfulness("How many seats does the parliament have?", "179 seats.", [context]) == 1
    assert await faithfulness("How many seats does the parliament have?", "169 seats.", [context]) == 0


async def test_an_abstention_covers_nothing() -> None:
    question = "What is the return window, and does it cover opened items?"
    answer = "I don't know whether the return window covers opened items."
    assert await credits_of(question, answer) == [0, 0]
    assert await relevancy(question, answer) == 0


async def test_a_later_turn_needs_a_judge_that_reads_history() -> None:
    with pytest.raises(JudgeError) as error:
        await judge().session("key").required_parts("And opened ones?", [Message("user", "Can I return items?")])
    assert error.value.reason == "needs_history"


async def test_blank_texts_give_nothing_and_no_error() -> None:
    session = judge().session("key")
    assert (await session.reverse_questions(" \n", 3)).questions == ()
    assert (await session.required_parts("  ", ())).parts == ()
    assert await session.claims("", "") == ()
    for vocabulary in Vocabulary:
        assert await session.verify([], ["text"], vocabulary) == ()
        (verdict,) = await session.verify(["A statement."], [], vocabulary)
        assert verdict is not None
        assert verdict.value != vocabulary.value[0]


async def test_it_is_ready_at_once_and_free() -> None:
    assert judge().ready
    await judge().probe()
    session = judge().session("key")
    await session.claims("", "One. Two.")
    assert (judge().name, session.epoch, session.usage.cost, session.usage.calls) == ("embedded-v2", 0, 0.0, 0)


async def test_long_evidence_is_searched_and_not_read_whole() -> None:
    passages = [f"Paragraph {i} speaks about weather station {i} and its rain gauge." for i in range(2000)]
    passages.insert(1234, "The lighthouse keeper was called Edda Storm.")
    with anyio.fail_after(30):
        (verdict,) = (
            await judge().session("key").verify(["The lighthouse keeper was Edda Storm."], passages, Vocabulary.SUPPORT)
        )
    assert verdict is not None
    assert (verdict.value, verdict.quote) == ("supported", passages[1234])


def test_an_embedder_elsewhere_is_refused_with_what_to_change() -> None:
    class Elsewhere:
        name = "text-embedding-3-small"

    with pytest.raises(UsageError) as error:
        EmbeddedJudge(EmbeddedJudgeConfig(), Elsewhere())  # type: ignore[arg-type]
    assert str(error.value) == (
        "judge: the embedded judge works with an embedder of kind minilm or sentence_transformers; "
        "got text-embedding-3-small; set embedder.kind: minilm, or judge.kind: openai"
    )


def test_the_rules_are_imported_without_a_model() -> None:
    parts = "tracescore.judge.embedded, tracescore.embedder.minilm, tracescore.embedder.sentence_transformers"
    code = f"import sys, {parts}; print('torch' in sys.modules or 'onnxruntime' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


async def test_the_judge_does_not_hold_up_the_event_loop() -> None:
    passages = [f"Sentence number {i} tells of harbour {i}." for i in range(40)]
    ticks = 0
    async with anyio.create_task_group() as tasks:

        async def tick() -> None:
            nonlocal ticks
            while True:
                await anyio.sleep(0.001)
                ticks += 1

        tasks.start_soon(tick)
        await judge().session("key").verify(["A harbour."], passages, Vocabulary.SUPPORT)
        tasks.cancel_scope.cancel()
    assert ticks > 3


@pytest.mark.parametrize(
    "text", ["one" + " " * 60_000 + "two.", "Introduction " + "." * 10_000 + " 3", "...", "。", "!!!"]
)
async def test_runs_of_blanks_and_marks_are_read_like_one(text: str) -> None:
    session = judge().session("k")
    await session.reverse_questions(text, 3)
    await session.claims("What?", text)
    assert len((await session.required_parts(text, ())).parts) <= 2


HOSTILE = " ".join(f"about {n} days and {n}.5 %" for n in range(40_000))
"""A megabyte of numbers, all different, without the end of a sentence."""


class Counting:
    """The model's thread, which counts what is done there."""

    name = "counting"
    identity = None

    def __init__(self) -> None:
        self.steps = 0
        self.began = anyio.Event()
        self.encode = embedder().encode

    async def run(self, work):
        self.steps += 1
        if self.steps > 3:
            self.began.set()
        return await embedder().run(work)


async def test_an_endless_text_holds_nobody_up() -> None:
    thread = Counting()
    async with anyio.create_task_group() as tasks:
        session = EmbeddedJudge(EmbeddedJudgeConfig(), thread).session("long")
        tasks.start_soon(session.verify, ["The fee is 5 %."] * 50, [HOSTILE], Vocabulary.SUPPORT)
        await thread.began.wait()
        before = thread.steps
        assert await faithfulness("?", "It is late.", ["It is late."]) == 1
        assert thread.steps - before < 20
        tasks.cancel_scope.cancel()
    given_up = thread.steps
    await embedder().run(lambda: None)
    assert thread.steps == given_up


async def test_what_cannot_be_compared_one_by_one_is_refused() -> None:
    session = judge().session("k")
    with pytest.raises(JudgeError, match="judge_input_too_long: at most 1000 claims expected; got 1001"):
        await session.claims("What?", "".join(f"Fact {n}. " for n in range(1_001)))
    with pytest.raises(JudgeError, match="judge_input_too_long: at most 100 parts expected; got 101"):
        await session.required_parts("".join(f"What is {n}? " for n in range(101)), ())
    with pytest.raises(JudgeError, match="judge_input_too_long: at most 5000 characters expected of a question"):
        await session.required_parts("word " * 2_000, ())
    with pytest.raises(JudgeError, match="judge_input_too_long: at most 5000 characters expected of a question"):
        await session.verify(["Yes."], ["It is."], Vocabulary.SUPPORT, "Is it? " * 1_000)


async def test_a_text_that_would_hold_up_everybody_is_refused() -> None:
    with pytest.raises(JudgeError, match="judge_input_too_long: at most 100000 characters expected; got 100001"):
        await judge().session("k").claims("What?", "a" * 100_001)
