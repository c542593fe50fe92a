"""What the embedded judge knows by rule: sentences, numbers, abstentions, parts. No model is needed here."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.costs import grows_in_step
from tracescore.judge.embedded.abstention import abstention
from tracescore.judge.embedded.agreement import equal, missing, rivals, same
from tracescore.judge.embedded.parts import required_parts
from tracescore.judge.embedded.quantities import quantities
from tracescore.judge.embedded.questions import pseudo_questions
from tracescore.judge.embedded.sentences import claims, key, sentences
from tracescore.judge.embedded.terms import is_negative, names, negated, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Dr. Smith paid $3.50 at 5 p.m. in the U.S. office. He left.", 2),
        ("It closed at 5 p.m. The shop is shut.", 2),
        ("J. R. R. Tolkien wrote it. It sold 1.5 million.", 2),
        ("Das kostet z.B. 3,50 €. Am 3. Mai 2024 öffnet der Laden.", 2),
        ("Version 2.0 is out. See https://a.b/c.d. E. coli is a bacterium.", 3),
        ('He said "Stop." Then he left!', 2),
        ("退货期为30天。可以退开封商品吗？不可以。", 3),
        ("返品期間は30日です。開封済みは不可です。", 2),
        ("يمكنك إرجاع المنتجات خلال 30 يومًا. هل يشمل ذلك؟ لا.", 3),
        ("आप 30 दिनों में लौटा सकते हैं। यह मुफ़्त है।", 2),
        ("Steps:\n1. Open Settings.\n2. Click Save\n- done", 4),
        ("a line that\ngoes on here. Next.", 2),
        ("it's good. it's popular.", 2),
    ],
)
def test_sentences_end_where_readers_of_the_language_see_them_end(text: str, expected: int) -> None:
    assert len(list(sentences(text))) == expected


HOSTILE = {
    "percentages": "5.5 %, ",
    "hedged numbers": "about 7 days ",
    "blanks": " ",
    "marks": "?!.",
    "marks and quotes": '.")',
    "abbreviations": "e.g. ",
    "initials": "A. ",
    "short sentences": "Ab. ",
    "lines that go on": "a\n",
    "no blank": "a",
    "citations": "[1]",
    "emphasis": "**a ",
    "joints": "what, how is ",
    "dates": "3 of May 2020 ",
    "negations": "not a ",
    "names": "aa Bb Cc ",
    "chinese": "什么，",
    "hindi marks": "।।x",
}


def read_in_every_way(text: str) -> None:
    claims(text)
    abstention(text)
    pseudo_questions(text, 3)
    required_parts(f"What? {text}")
    quantities.__wrapped__(text)
    for sentence in sentences(text):
        key(sentence), words(sentence), negated(sentence), names(sentence)


@pytest.mark.parametrize("shape", HOSTILE.values(), ids=HOSTILE.keys())
def test_reading_grows_in_step_with_the_text(shape: str) -> None:
    assert grows_in_step(lambda size: partial(read_in_every_way, (shape * size)[:size]), 5_000)


@given(st.text(max_size=40).map(lambda text: text * 80))
def test_no_sentence_is_too_long_to_be_compared_word_by_word(text: str) -> None:
    assert all(len(sentence) <= 1_000 for sentence in sentences(text))


def test_two_texts_full_of_numbers_are_compared_in_step_with_their_length() -> None:
    def comparing(count: int) -> Callable[[], object]:
        one, other = (" ".join(f"{n}.{part} kg" for n in range(count)) for part in (1, 2))
        assert missing(one, other)  # and both are read: what is measured is the comparison
        return lambda: (rivals(one, other), equal(one, other))

    assert grows_in_step(comparing, 100)


NUMBERS = st.sampled_from(
    ["4%", "four percent", "about 4 %", "3 kg", "2,000 g", "2 kg", "1.250", "1250", "12", "1 year"]
)


@given(st.lists(NUMBERS, max_size=5).map(", ".join), st.lists(NUMBERS, max_size=5).map(", ".join))
def test_the_equal_numbers_of_two_texts_are_those_that_say_the_same(a: str, b: str) -> None:
    found = {(x.start, y.start) for ours, theirs in equal(a, b) for x in ours for y in theirs}
    assert found == {(x.start, y.start) for x in quantities(a) for y in quantities(b) if same(x, y)}


@given(st.text())
def test_sentences_are_verbatim_and_in_order(text: str) -> None:
    start = 0
    for sentence in sentences(text):
        start = text.index(sentence, start) + len(sentence)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30 days.", ["30 days."]),
        ("Yes.", ["Yes."]),
        ("No refunds.", ["No refunds."]),
        ("Yes, 30 days.", ["Yes, 30 days."]),
        ("Yes. You have 30 days.", ["Yes. You have 30 days."]),
        ("Sure! You have 30 days [1]. Hope this helps!", ["You have 30 days."]),
        (
            "Here are the steps:\n1. Open **Settings**.\n2. Click Save. Anything else?",
            ["Open Settings.", "Click Save."],
        ),
    ],
)
def test_claims_are_what_can_be_true_or_false(text: str, expected: list[str]) -> None:
    assert list(claims(text)) == expected


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        ("4%", "four percent"),
        ("4 percent", "4.0 per cent"),
        ("2 weeks", "14 days"),
        ("12 months", "one year"),
        ("in 3 hours", "180 minutes"),
        ("$2.5m", "2,500,000 dollars"),
        ("₹1,250 crore", "12,500,000,000 rupees"),
        ("1.250 Euro", "€1,250"),
        ("40 pounds", "£40"),
        ("40 pounds", "40 lb"),
        ("5 pm", "17:00"),
        ("half past: 5:30 PM", "17:30"),
        ("14 May 1932", "1932-05-14"),
        ("14.05.1932", "May 14, 1932"),
        ("twenty-one seats", "21 seats"),
        ("about 400,000 people", "418,000 people"),
        ("the 1990s", "1990"),
        ("٣٠ يومًا", "30 days"),
        ("30天", "30 days"),
        ("25 MB", "0.025 GB"),
        ("one of them is the first", "nothing here"),
        ("four to six working days", "4 to 6 days"),
        ("the CR2032 battery", "no number"),
    ],
)
def test_one_number_in_another_spelling_is_stated(claim: str, evidence: str) -> None:
    assert missing(claim, evidence) == ()


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        ("4 percent", "14 percent"),
        ("4 percent", "5.5 percent"),
        ("3 km", "3 miles"),
        ("April 5", "April 6"),
        ("$20", "€20"),
        ("5 pm", "5 am"),
        ("1956", "1954"),
        ("7002 candies", "7,000 candies"),
        ("three months", "six months"),
        ("2 weeks", "2 months"),
    ],
)
def test_another_number_is_missing_and_a_rival_is_seen(claim: str, evidence: str) -> None:
    assert missing(claim, evidence)
    assert rivals(claim, evidence) or claim in ("3 km", "$20", "2 weeks")  # another unit is another kind


@given(st.text())
def test_any_text_states_its_own_numbers(text: str) -> None:
    assert missing(text, text) == ()


EVASIONS = [
    "I don't know.",
    "Not sure.",
    "I'm sorry, I cannot help with that.",
    "I'm sorry, but I can't answer that question based on the provided context.",
    "As an AI language model, I do not have access to that.",
    "The provided documents do not mention the return window.",
    "There is no information about this in the context.",
    "I'm not sure. Please contact support for more information.",
    "Unfortunately, I could not find any information regarding your question.",
    "This is not something I can discuss.",
    "Ich weiß es nicht.",
    "Es tut mir leid, aber ich kann diese Frage nicht beantworten.",
    "Je ne sais pas.",
    "Désolé, je ne peux pas répondre à cette question.",
    "No lo sé.",
    "Lo siento, no puedo ayudarte con eso.",
    "我不知道。",
    "抱歉，我无法回答这个问题。",
    "申し訳ありませんが、お答えできません。",
    "わかりません。",
    "모르겠습니다.",
    "لا أعرف.",
    "عذرًا، لا يمكنني المساعدة.",
    "मुझे नहीं पता।",
    "मुझे खेद है, मैं इसका उत्तर नहीं दे सकता।",
    "Извините, я не знаю.",
]
ANSWERS = [
    "I'm not entirely sure, but the return window is 30 days.",
    "I don't have the exact date, but it was released in 2007.",
    "As an AI language model, I have no live data. However, 28 games have been played in London.",
    "I'm sorry for the inconvenience. You can return the item within 30 days.",
    "Sorry to hear that! To reset your password, click Forgot password.",
    "You cannot return opened items.",
    "We do not ship to Canada.",
    "The warranty document does not cover accidental damage.",
    "No information is required to sign up.",
    "Unfortunately, the museum is closed on Mondays.",
    "30 days.",
    "No.",
    "Das Produkt kann nicht zurückgegeben werden.",
    "抱歉给您带来不便。退货期为30天。",
]


@pytest.mark.parametrize("answer", EVASIONS)
def test_evasions_are_recognised_with_the_words_that_show_it(answer: str) -> None:
    words_ = abstention(answer)
    assert words_
    assert words_ in answer


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_hedge_before_an_answer_and_a_plain_no_are_answers(answer: str) -> None:
    assert abstention(answer) == ""


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (
            "What is the return window, and does it cover opened items?",
            ["What is the return window", "does the return window cover opened items?"],
        ),
        ("Who wrote Hamlet and when was it first performed?", ["Who wrote Hamlet", "when was Hamlet first performed?"]),
        (
            "What is the boiling point of ethanol, and is it flammable?",
            ["What is the boiling point of ethanol", "is ethanol flammable?"],
        ),
        ("How do I reset my password?", ["How do I reset my password?"]),
        (
            "What is the name and address of the supplier?",
            ["What is the name of the supplier", "What is the address of the supplier"],
        ),
        ("How do I export and import contacts?", ["How do I export contacts", "How do I import contacts"]),
        ("When does the sale start and end?", ["When does the sale start", "When does the sale end"]),
        (
            "What are the fees, the interest rate and the minimum balance?",
            ["What are the fees", "What are the interest rate", "What are the minimum balance"],
        ),
        ("Where is the office? What are the opening hours?", ["Where is the office?", "What are the opening hours?"]),
        ("I lost my card. What should I do?", ["What should I do?"]),
        ("What are the terms and conditions?", ["What are the terms and conditions?"]),
        ("How does Romeo and Juliet end?", ["How does Romeo and Juliet end?"]),
        ("What is the difference between tea and coffee?", ["What is the difference between tea and coffee?"]),
        ("Which star is as bright as the Sun and is orbited by a planet?", 1),
        ("In 2024, how many people moved to Berlin?", 1),
        ("What is the age limit, and do children need a ticket?", 2),
        ("Wie lange ist die Rückgabefrist, und gilt sie auch für geöffnete Artikel?", 2),
        ("退货期是多久，是否包括已拆封的商品？", 2),
        ("ما هي مدة الإرجاع وهل تشمل المنتجات المفتوحة؟", 2),
    ],
)
def test_a_question_is_split_where_it_asks_for_more_than_one_thing(question: str, expected: list[str] | int) -> None:
    parts = required_parts(question)
    assert len(parts) == expected if isinstance(expected, int) else list(parts) == expected


@given(st.text())
def test_any_text_has_a_part_unless_it_is_blank_or_single_letters(text: str) -> None:
    parts = required_parts(text)
    assert all(part.strip() for part in parts)
    assert parts or not re.search(r"\w\w", text)


@pytest.mark.parametrize(
    ("answer", "question"),
    [
        ("You can reset your password by clicking the link.", "How can I reset my password?"),
        ("To change the oil, drain the old oil first.", "How do I change the oil?"),
        ("Click Export and choose CSV.", "How do I click Export and choose CSV?"),
        ("The ticket costs 5 dollars.", "How much does the ticket cost?"),
        ("The flight takes two hours.", "How long does the flight take?"),
        ("Your visa was refused because a page was missing.", "Why was my visa refused?"),
        ("If you lose your card, call us.", "What should I do if I lose my card?"),
        ("Eggs are rich in protein.", "Is it true that eggs are rich in protein?"),
    ],
)
def test_the_form_of_a_statement_tells_what_it_answers(answer: str, question: str) -> None:
    assert pseudo_questions(answer, 3) == (question,)


def test_no_more_questions_than_wanted_and_none_twice() -> None:
    assert len(pseudo_questions("One is odd. Two is even. Three is odd. Four is even.", 3)) == 3
    assert len(pseudo_questions("One is odd. One is odd.", 3)) == 1


def test_a_negation_bears_on_the_next_words_only() -> None:
    text = "Opened items are not covered, sealed items are."
    assert [words(text)[i].text for i in sorted(negated(text))] == ["covered"]
    assert is_negative(text)
    assert not is_negative("It is not only cheap but good.")


def test_names_are_told_by_capitals_where_nouns_have_none() -> None:
    assert [name.text for name in names("It was written by Tom Reed.")] == ["Tom", "Reed"]
    assert names("Der Preis ist ein Skandal.") == ()
    assert names("The Great Big Book Of Many Things") == ()
