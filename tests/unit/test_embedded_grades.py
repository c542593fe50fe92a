"""What the embedded judge grades and what is clear to it, on its real model, and where it is known to be blind."""

from __future__ import annotations

import itertools

import pytest

from tests.local_judge import NEEDS_MODEL, credits_of, factual, faithfulness, judge, relevance
from tracescore.errors import JudgeError
from tracescore.judge.embedded.language import differ, is_latin, language
from tracescore.judge.embedded.verdicts import GOOD
from tracescore.judge.operations import Vocabulary

pytestmark = [pytest.mark.anyio, *NEEDS_MODEL]

SUBJECTS = [
    ("boarding fee", "euros"),
    ("storage temperature", "degrees"),
    ("deposit", "dollars"),
    ("maximum load", "kg"),
    ("notice period", "weeks"),
    ("tank volume", "litres"),
    ("interest rate", "percent"),
]
NUMBERS = [("4", "5.5"), ("12", "18"), ("30", "45")]


@pytest.mark.parametrize(("subject", "numbers"), [*itertools.product(SUBJECTS, NUMBERS)])
async def test_another_number_is_faithful_to_its_context_and_wrong_beside_the_reference(
    subject: tuple[str, str], numbers: tuple[str, str]
) -> None:
    (name, unit), (said, right) = subject, numbers
    question, answer = f"What is the current {name}?", f"The {name} is {said} {unit}."
    assert await faithfulness(question, answer, [f"The current {name} is {said} {unit}."]) == 1
    assert await factual(question, answer, f"{right} {unit}") == 0
    assert await factual(question, answer, f"{said} {unit}") == 1


THINGS = ["items", "parcels", "books", "tickets", "shoes", "lamps", "tools"]
ACTS = ["return", "exchange", "refund"]


@pytest.mark.parametrize(("thing", "act"), [*itertools.product(THINGS, ACTS)])
async def test_half_an_answer_is_half_complete_whatever_it_is_about(thing: str, act: str) -> None:
    question = f"What is the {act} window, and does it cover damaged {thing}?"
    assert await credits_of(question, f"You can {act} {thing} within 14 days of delivery.") == [1, 0]


@pytest.mark.parametrize(
    ("question", "answer", "reference", "low", "high"),
    [
        ("How long can I keep a book?", "You may keep it for 21 days.", "21 days.", 1, 1),
        ("How long can I keep a book?", "You may keep it for 14 days.", "21 days.", 0, 0),
        ("Is the sauna open to guests?", "Yes, guests may use the sauna.", "Yes.", 1, 1),
        ("Is the sauna open to guests?", "No, the sauna is not open to guests.", "Yes.", 0, 0),
        ("Is the sauna open to guests?", "Yes, guests may use the sauna.", "No.", 0, 0),
        ("Is the sauna open on Mondays?", "The sauna is closed on Mondays.", "No.", 1, 1),
        ("Who leads the choir?", "The choir is led by Mara Lind.", "Mara Lind", 1, 1),
        ("Who leads the choir?", "The choir is led by Jon Ek.", "Mara Lind", 0, 0.3),
        ("Which city is it in?", "It is in Cologne.", "Köln/Cologne/Colonia", 1, 1),
        ("Are vouchers refundable?", "Vouchers are refundable.", "Vouchers are non-refundable.", 0, 0),
        (
            "Why was the match off?",
            "It was cancelled because of heavy rain.",
            "Heavy rain led to the cancellation.",
            0.5,
            1,
        ),
    ],
)
async def test_short_references_are_read_with_their_question(
    question: str, answer: str, reference: str, low: float, high: float
) -> None:
    value = await factual(question, answer, reference)
    assert value is not None
    assert low <= value <= high


@pytest.mark.parametrize(
    ("question", "answer", "credit"),
    [
        ("How many kilograms is the limit?", "The limit is 25 kilograms.", 1),
        ("How many litres does the barrel hold?", "It holds 200 litres.", 1),
        ("How many litres does the barrel hold?", "The barrel is made of oak.", 0),
        ("How many miles is the trail?", "The trail is 12 miles long.", 1),
        ("Can I return an item?", "Returns are accepted within 30 days.", 1),
        ("How do I reset the modem?", "Unplug the modem, wait ten seconds and plug it in again.", 1),
        ("How do I bleed the radiator?", "**Bleeding the radiator**\n1. Turn the key\n2. Collect the water", 1),
        ("How do I count rows with the client?", "```python\nrows = client.count(table)\n```", 1),
    ],
)
async def test_a_part_is_covered_by_an_answer_of_the_kind_that_is_asked_for(
    question: str, answer: str, credit: float
) -> None:
    assert await credits_of(question, answer) == [credit]


ARTICLE = [
    "The harbour of Norrvik was rebuilt after the storm. Ferries leave for the islands every morning.",
    "The mayor opened the library on Monday. Its reading room holds ninety seats.",
    "A school in the valley closed for repairs. Pupils travel to the next town by bus.",
    "The town council voted on the budget. Roads and bridges get the largest share.",
    "Fishermen met in the old market hall. They asked for lower fees in winter.",
] * 3


async def test_a_claim_has_its_value_however_much_is_searched_beside_its_passage() -> None:
    passage = "The museum shop sells maps of the coast and opens at ten."
    for claim in ("The shop of the museum sells maps.", "The bakery sells bread.", "The museum shop opens at noon."):
        alone, among = await faithfulness("?", claim, [passage]), await faithfulness("?", claim, [*ARTICLE, passage])
        assert alone is not None
        assert among == pytest.approx(alone, abs=0.15)


async def test_words_that_stand_all_over_a_long_text_do_not_support_a_claim() -> None:
    value = await faithfulness("?", "The mayor closed the market hall in the valley.", ARTICLE)
    assert value is not None
    assert value < GOOD


ASKED = "How much does delivery of a parcel cost and how long does it take?"
TOLD = "Delivery costs 6.50 euros and takes three working days."


async def test_to_repeat_the_question_or_its_words_is_not_relevant() -> None:
    good = await relevance(ASKED, TOLD)
    for echo in (
        "You would like to know how much delivery of a parcel costs and how long it takes.",
        "Parcel delivery cost take long much.",
    ):
        assert await relevance(ASKED, echo) <= 0.1 < good - 0.3


async def test_a_right_short_answer_is_relevant() -> None:
    assert await relevance(ASKED, "6.50 euros; three working days.") >= 0.3


async def test_shortening_an_answer_to_the_sentence_that_deals_with_the_question_does_not_move_its_relevancy() -> None:
    whole = f"We have three depots. {TOLD} Parcels must be wrapped well. The office is in Halden."
    assert await relevance(ASKED, whole) == pytest.approx(await relevance(ASKED, TOLD), abs=1e-6)


@pytest.mark.parametrize(
    "padding",
    ["Maps of the coast are sold at the kiosk.", "Thank you for your patience."],
)
async def test_an_answer_about_something_else_gains_nothing_by_further_statements(padding: str) -> None:
    other = "Our museum shows boats from three centuries."
    assert await relevance(ASKED, f"{other} {padding}") <= await relevance(ASKED, other) + 0.1


@pytest.mark.parametrize(
    ("texts", "label"),
    [
        (("Vad kostar medlemskapet?", "Medlemskapet kostar 450 kronor om året och kan sägas upp när du vill."), True),
        (
            ("Ile kosztuje bilet?", "Bilet normalny kosztuje 12 złotych i jest ważny przez 24 godziny od skasowania."),
            True,
        ),
        (("What does it cost?", "It costs 450 crowns a year, and you can cancel it when you like."), False),
        (("Le petit-déjeuner est-il inclus ?", "Oui, le petit-déjeuner est inclus dans le prix de la chambre."), False),
        (("Wie lange?", "30 Tage."), False),
        (("Сколько стоит билет?", "Билет стоит 12 рублей и действует 24 часа с момента первой поездки."), False),
    ],
)
def test_scores_of_a_language_in_latin_script_that_the_rules_do_not_know_are_labelled_so(
    texts: tuple[str, ...], label: bool
) -> None:
    assert judge().session("key").caveat(*texts) == ("language_unknown" if label else "")


@pytest.mark.parametrize("padding", ["Great question! {}", "{} I hope this helps!", "{} The office is in Halden."])
async def test_what_stands_around_an_answer_does_not_move_its_relevancy(padding: str) -> None:
    assert await relevance(ASKED, padding.format(TOLD)) == pytest.approx(await relevance(ASKED, TOLD), abs=1e-6)


@pytest.mark.parametrize(
    ("claim", "passage", "reason"),
    [
        ("The dog bit the postman.", "The postman bit the dog.", "roles that are swapped"),
        ("Entry is free.", "Entry is free for members under 18.", "a condition that is dropped"),
        (
            "Three tickets at 4 euros cost 12 euros.",
            "A ticket is 4 euros; a group of three pays 12 euros in May.",
            "sums",
        ),
        ("All members may vote.", "Some members may vote.", "all and some"),
        ("Only adults may enter.", "Adults may enter.", "only"),
        (
            "The parcel arrived late because of snow.",
            "The parcel arrived late. There was snow.",
            "an added cause",
        ),
    ],
)
async def test_known_blind_spots_are_not_told_from_what_is_supported(claim: str, passage: str, reason: str) -> None:
    value = await faithfulness("?", claim, [passage])
    assert value is not None
    assert value >= 0.6, reason


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("She is older than her brother.", "Ann was born in 1950 and Bob in 1960."),
        ("The fee rose in 2020.", "The fee was 5 euros in 2019 and 7 euros in 2020."),
        ("The museum opens before noon.", "The museum opens at 10 am."),
    ],
)
async def test_what_must_be_inferred_counts_as_not_found(claim: str, passage: str) -> None:
    value = await faithfulness("?", claim, [passage])
    assert value is not None
    assert value < 0.5


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("The fee is not charged for the first year of use.", "en"),
        ("Die Gebühr wird für das erste Jahr nicht erhoben.", "de"),
        ("Les frais ne sont pas facturés pour la première année.", "fr"),
        ("La tarifa no se cobra en el primer año y los socios no pagan.", "es"),
        ("A taxa não é cobrada no primeiro ano para os sócios.", "pt"),
        ("Il costo non è previsto per il primo anno e gli iscritti non pagano.", "it"),
        ("De kosten worden in het eerste jaar niet in rekening gebracht.", "nl"),
        ("30 days", ""),
    ],
)
def test_a_language_is_told_by_its_function_words(text: str, code: str) -> None:
    assert (is_latin(text), language(text)) == (True, code)


def test_texts_differ_where_script_or_language_do() -> None:
    english = "The fee is not charged for the first year of use."
    assert differ(english, ["会员费为每年300元。"])
    assert differ(english, ["Die Gebühr wird für das erste Jahr nicht erhoben."])
    assert not differ("30 Tage", [english])


NEGATED = {
    "de": ("Hunde sind im Büro erlaubt.", "Hunde sind im Büro nicht erlaubt."),
    "fr": ("Les chiens sont admis au bureau.", "Les chiens ne sont pas admis au bureau."),
    "es": ("Los perros están admitidos en la oficina.", "Los perros no están admitidos en la oficina."),
    "pt": ("Os cães são admitidos no escritório.", "Os cães não são admitidos no escritório."),
    "it": ("I cani sono ammessi in ufficio.", "I cani non sono ammessi in ufficio."),
    "nl": ("Honden zijn toegestaan op kantoor.", "Honden zijn niet toegestaan op kantoor."),
}
COUNTED = {
    "de": ("Das dauert drei Tage.", "Das dauert 3 Tage.", "Das dauert 5 Tage."),
    "fr": ("Cela prend trois jours.", "Cela prend 3 jours.", "Cela prend 5 jours."),
    "es": ("Tarda tres días.", "Tarda 3 días.", "Tarda 5 días."),
    "pt": ("Demora três dias.", "Demora 3 dias.", "Demora 5 dias."),
    "it": ("Servono tre giorni.", "Servono 3 giorni.", "Servono 5 giorni."),
    "nl": ("Het duurt drie dagen.", "Het duurt 3 dagen.", "Het duurt 5 dagen."),
}


@pytest.mark.parametrize("code", NEGATED)
async def test_negations_and_numbers_are_known_in_seven_languages(code: str) -> None:
    said, denied = NEGATED[code]
    assert await faithfulness("?", said, [denied]) == 0
    in_words, same, other = COUNTED[code]
    assert await faithfulness("?", in_words, [same]) == 1
    assert await faithfulness("?", in_words, [other]) == 0


@pytest.mark.parametrize(
    "refusal",
    [
        "I could not locate anything about this in the knowledge base.",
        "Das weiß ich leider nicht.",
        "Je ne sais pas.",
        "No lo sé.",
        "Não sei.",
        "Mi dispiace, non lo so.",
        "Dat weet ik helaas niet.",
    ],
)
async def test_refusals_are_known_in_seven_languages(refusal: str) -> None:
    assert (await judge().session("key").reverse_questions(refusal, 3)).noncommittal


async def test_a_negation_outside_latin_script_is_no_number() -> None:
    with pytest.raises(JudgeError, match="unsupported_language"):
        await judge().session("key").verify(["犬は入れます。"], ["犬は入れません。"], Vocabulary.SUPPORT)


async def test_words_follow_from_the_credit() -> None:
    passages = ["The library lends novels, films and maps to members for a month."]
    statements = ["The library lends novels to members.", "Members borrow some maps of the coast.", "Cars are red."]
    words = {}
    for verdict in await judge().session("key").verify(statements, passages, Vocabulary.SUPPORT):
        assert verdict is not None
        words[verdict.value] = verdict.credit
        good, bad = verdict.credit >= 0.75, verdict.credit < 0.25
        assert verdict.value == ("supported" if good else "not_found" if bad else "uncertain")
    assert words["supported"] == 1
    assert words["not_found"] == 0
