"""Kinds of answers that people meet first, each in many wordings and both directions, on the real model."""

from __future__ import annotations

import pytest

from tests.local_judge import NEEDS_MODEL, credits_of, factual, faithfulness, judge, relevance
from tracescore.errors import JudgeError
from tracescore.judge.embedded.sentences import claims

pytestmark = [pytest.mark.anyio, *NEEDS_MODEL]

GOOD, BAD = (0.75, 1.0), (0.0, 0.25)


def within(value: float | None, bounds: tuple[float, float]) -> bool:
    """Whether there is a value, and it lies between."""
    return value is not None and bounds[0] <= value <= bounds[1]


HEATED, COLD = "The pool is heated all year round.", "The pool is not heated."
DOGS, NO_DOGS = "Dogs are allowed in the garden.", "Dogs are not allowed in the garden."
OPENED = "Opened items cannot be returned. Sealed items can be returned within 30 days."
MAY_DOGS = "Are dogs allowed in the garden?"
REPLIES = [
    ("Is the pool heated?", "Yes, the pool is heated.", HEATED, GOOD),
    ("Is the pool heated?", "Yes, all year round.", HEATED, GOOD),
    ("Is the pool heated?", "Yes. It is heated all year round.", HEATED, GOOD),
    ("Is the pool heated?", "Yes, all year round.", COLD, BAD),
    ("Is the pool heated?", "No, it isn't heated.", COLD, GOOD),
    ("Is the pool heated?", "No, it isn't heated.", HEATED, BAD),
    ("Is the pool heated?", "No, the pool is heated.", HEATED, BAD),
    ("Is the pool heated?", "No. The pool is not heated.", HEATED, BAD),
    (MAY_DOGS, "Yes, on a leash.", DOGS + " They must be on a leash.", GOOD),
    (MAY_DOGS, "Yes, on a leash.", NO_DOGS + " Cats on a leash are.", BAD),
    (MAY_DOGS, "No, dogs are not allowed.", NO_DOGS, GOOD),
    (MAY_DOGS, "No, dogs are not allowed.", DOGS, BAD),
    (MAY_DOGS, "Of course, dogs are welcome.", NO_DOGS, BAD),
    (MAY_DOGS, "Certainly, in the garden.", NO_DOGS, BAD),
    (MAY_DOGS, "Nope, in the garden they are not allowed.", DOGS, BAD),
    (MAY_DOGS, "Yes – in the garden.", "In the garden dogs are prohibited.", BAD),
    ("Can I return opened items?", "Yes, within 30 days.", OPENED, BAD),
    ("Can I return opened items?", "No, only sealed items.", OPENED, GOOD),
    ("Can I return sealed items?", "Yes, within 30 days.", OPENED, GOOD),
    ("Can I return sealed items?", "No, they cannot be returned.", OPENED, BAD),
    (
        "Does the ticket include the museum?",
        "No, only the garden.",
        "The ticket includes the garden and the museum.",
        BAD,
    ),
    ("Is delivery free?", "No, it costs 5 euros.", "Delivery costs 5 euros. Collection in the shop is free.", GOOD),
    ("Sind Hunde im Garten erlaubt?", "Ja, an der Leine.", "Hunde sind im Garten an der Leine erlaubt.", GOOD),
    (
        "Sind Hunde im Garten erlaubt?",
        "Ja, an der Leine.",
        "Hunde sind im Garten nicht erlaubt, auch nicht an der Leine.",
        BAD,
    ),
    ("Sind Hunde im Garten erlaubt?", "Nein, Hunde sind nicht erlaubt.", "Hunde sind im Garten erlaubt.", BAD),
    ("La piscine est-elle chauffée ?", "Non, elle n'est pas chauffée.", "La piscine est chauffée toute l'année.", BAD),
    ("La piscine est-elle chauffée ?", "Oui, toute l'année.", "La piscine est chauffée toute l'année.", GOOD),
    ("¿Está permitido fumar en la terraza?", "Sí, en la terraza.", "No está permitido fumar en la terraza.", BAD),
    ("È permesso fumare in terrazza?", "Sì, in terrazza.", "Non è permesso fumare in terrazza.", BAD),
    ("É permitido fumar na varanda?", "Sim, na varanda.", "Não é permitido fumar na varanda.", BAD),
    ("Is roken toegestaan op het terras?", "Ja, op het terras.", "Roken is niet toegestaan op het terras.", BAD),
]


@pytest.mark.parametrize(("question", "answer", "context", "bounds"), REPLIES)
async def test_a_yes_or_no_that_opens_an_answer_is_part_of_what_it_claims(
    question: str, answer: str, context: str, bounds: tuple[float, float]
) -> None:
    assert within(await faithfulness(question, answer, [context]), bounds)


@pytest.mark.parametrize(
    ("question", "answer", "reference", "bounds"),
    [
        ("Is the pool heated?", "Yes, the pool is heated.", "No, the pool is not heated.", BAD),
        ("Is the pool heated?", "Yes, all year.", "No, the pool is not heated.", BAD),
        ("Is the pool heated?", "Yes, all year.", "No, it is cold.", BAD),
        ("Is the pool heated?", "No, it is cold.", "Yes, to 28 degrees.", BAD),
        ("Is the pool heated?", "Yes, it is.", "Yes, the pool is heated.", GOOD),
        ("Is the pool heated?", "No, the pool is not heated.", "No.", GOOD),
        ("Is the pool heated?", "No, the pool is not heated.", "The pool is not heated.", GOOD),
        ("Is the pool heated?", "Yes, the pool is heated.", "The pool is not heated.", BAD),
        ("How long can I keep it?", "Sure, you can keep it for 30 days.", "30 days", GOOD),
        ("Ist das Becken beheizt?", "Ja, das ganze Jahr.", "Nein, das Becken ist nicht beheizt.", BAD),
        ("Ist das Becken beheizt?", "Nein, das Becken ist nicht beheizt.", "Nein.", GOOD),
        ("La piscine est-elle chauffée ?", "Oui, elle est chauffée.", "Non.", BAD),
    ],
)
async def test_a_yes_or_no_that_opens_an_answer_is_held_against_the_reference(
    question: str, answer: str, reference: str, bounds: tuple[float, float]
) -> None:
    assert within(await factual(question, answer, reference), bounds)


TWO_PARTS = [
    (
        "Wie lange ist die Rückgabefrist, und gilt sie auch für geöffnete Artikel?",
        "Die Rückgabefrist beträgt 30 Tage. Geöffnete Artikel sind ausgeschlossen.",
        [1, 1],
    ),
    (
        "Wie lange ist die Rückgabefrist, und gilt sie auch für geöffnete Artikel?",
        "30 Tage, und ja, sie gilt auch für geöffnete Artikel.",
        [1, 1],
    ),
    (
        "Wie lange ist die Rückgabefrist, und gilt sie auch für geöffnete Artikel?",
        "Sie können Artikel binnen 30 Tagen zurückgeben.",
        [1, 0],
    ),
    ("Was kostet der Versand und wie lange dauert er?", "Der Versand kostet 5 Euro und dauert drei Tage.", [1, 1]),
    ("Was kostet der Versand und wie lange dauert er?", "Der Versand kostet 5 Euro.", [1, 0]),
    ("Was kostet der Versand und wie lange dauert er?", "Er dauert drei Tage.", [0, 1]),
    (
        "Wann öffnet das Museum und was kostet der Eintritt?",
        "Das Museum öffnet um 10 Uhr. Der Eintritt kostet 8 Euro.",
        [1, 1],
    ),
    ("Wann öffnet das Museum und was kostet der Eintritt?", "Das Museum öffnet um 10 Uhr.", [1, 0]),
    (
        "Wie hoch ist die Gebühr, und bis wann muss ich zahlen?",
        "Die Gebühr beträgt 40 Euro und ist bis zum 3. Mai zu zahlen.",
        [1, 1],
    ),
    ("Wie hoch ist die Gebühr, und bis wann muss ich zahlen?", "Die Gebühr beträgt 40 Euro.", [1, 0]),
    (
        "Wo kann ich parken, und ist das Parken kostenlos?",
        "Sie können hinter dem Haus parken. Das Parken ist kostenlos.",
        [1, 1],
    ),
    (
        "Wer leitet das Büro und wie erreiche ich es?",
        "Das Büro wird von Anna Berg geleitet. Sie erreichen es unter 0221 555.",
        [1, 1],
    ),
    ("Darf ich Hunde mitbringen und gibt es einen Aufzug?", "Hunde sind erlaubt. Einen Aufzug gibt es nicht.", [1, 1]),
    ("Darf ich Hunde mitbringen und gibt es einen Aufzug?", "Hunde sind erlaubt.", [1, 0]),
    (
        "Quel est le délai de retour et combien coûte l'envoi ?",
        "Le délai de retour est de 30 jours. L'envoi coûte 5 euros.",
        [1, 1],
    ),
    ("Quel est le délai de retour et combien coûte l'envoi ?", "L'envoi coûte 5 euros.", [0, 1]),
    ("Combien coûte le billet et où puis-je l'acheter ?", "Le billet coûte 12 euros. Il s'achète au guichet.", [1, 1]),
    ("Combien coûte le billet et où puis-je l'acheter ?", "Le billet coûte 12 euros.", [1, 0]),
    ("Quand ouvre le musée et est-il gratuit ?", "Le musée ouvre à 10 heures. Il est gratuit.", [1, 1]),
    ("¿Cuánto cuesta el envío y cuánto tarda?", "El envío cuesta 5 euros y tarda tres días.", [1, 1]),
    ("¿Cuánto cuesta el envío y cuánto tarda?", "El envío cuesta 5 euros.", [1, 0]),
    ("¿Cuándo abre el museo y cuánto cuesta la entrada?", "El museo abre a las 10. La entrada cuesta 8 euros.", [1, 1]),
    ("¿Cuándo abre el museo y cuánto cuesta la entrada?", "La entrada cuesta 8 euros.", [0, 1]),
    (
        "Quanto costa la spedizione e quanto tempo ci vuole?",
        "La spedizione costa 5 euro e ci vogliono tre giorni.",
        [1, 1],
    ),
    ("Quanto costa la spedizione e quanto tempo ci vuole?", "La spedizione costa 5 euro.", [1, 0]),
    ("Quando apre il museo e quanto costa il biglietto?", "Il museo apre alle 10. Il biglietto costa 8 euro.", [1, 1]),
    ("Quanto custa o envio e quanto tempo demora?", "O envio custa 5 euros e demora três dias.", [1, 1]),
    ("Quanto custa o envio e quanto tempo demora?", "O envio custa 5 euros.", [1, 0]),
    ("Quando abre o museu e quanto custa o bilhete?", "O museu abre às 10 horas. O bilhete custa 8 euros.", [1, 1]),
    ("Wat kost de verzending en hoe lang duurt het?", "De verzending kost 5 euro en duurt drie dagen.", [1, 1]),
    ("Wat kost de verzending en hoe lang duurt het?", "De verzending kost 5 euro.", [1, 0]),
    (
        "Wanneer opent het museum en wat kost een kaartje?",
        "Het museum opent om 10 uur. Een kaartje kost 8 euro.",
        [1, 1],
    ),
]


@pytest.mark.parametrize(("question", "answer", "expected"), TWO_PARTS)
async def test_two_parts_are_told_apart_in_seven_languages(question: str, answer: str, expected: list[int]) -> None:
    found = await credits_of(question, answer)
    assert len(found) == 2
    assert [credit >= 0.75 if wanted else credit <= 0.25 for credit, wanted in zip(found, expected, strict=True)] == [
        True,
        True,
    ]


EXPLAINED = [
    (
        "How does the caching layer work?",
        "Requests are first looked up in memory; on a miss the value is read from disk and stored.",
        "Employees may work from home on two days a week.",
    ),
    (
        "Why is the sky blue?",
        "Air molecules scatter short wavelengths of light more strongly than long ones.",
        "The museum opens at nine on weekdays.",
    ),
    (
        "Explain how photosynthesis works.",
        "Plants absorb light with chlorophyll and use its energy to turn carbon dioxide and water into sugar.",
        "Our gardeners work from Monday to Friday.",
    ),
    (
        "How does a heat pump work?",
        "It moves heat from outside air into the house by compressing a refrigerant.",
        "The warranty covers the boiler for two years.",
    ),
    (
        "Explain how the voting system works.",
        "Voters rank the candidates, and the last one is removed until somebody has a majority.",
        "The library has a new reading room.",
    ),
    (
        "Why do leaves turn red?",
        "The green pigment breaks down in autumn, so other pigments become visible.",
        "The park is open until dusk.",
    ),
    (
        "How does a vaccine protect people?",
        "It shows the immune system a harmless piece of the virus, and antibodies are formed.",
        "Visitors can leave their coats at the entrance.",
    ),
    (
        "Describe how the billing process works.",
        "Usage is metered every hour, and an invoice is issued on the first of the month.",
        "The canteen serves soup and salads.",
    ),
    ("Why did the train stop?", "A tree had fallen on the track near the station.", "Tickets are sold at the kiosk."),
    (
        "How is glass made?",
        "Sand is melted with soda and lime in a furnace and then cooled.",
        "The choir meets on Thursdays.",
    ),
    (
        "What is a heat pump?",
        "A machine that moves warmth from a cold place to a warm one.",
        "The library lends novels.",
    ),
]


@pytest.mark.parametrize(("question", "good", "other"), EXPLAINED)
async def test_an_explanation_is_relevant_and_complete_and_another_matter_is_not(
    question: str, good: str, other: str
) -> None:
    relevant = await relevance(question, good)
    assert relevant >= 0.4
    assert await relevance(question, other) <= relevant - 0.25
    assert within((await credits_of(question, good))[0], (0.5, 1))
    assert within((await credits_of(question, other))[0], BAD)


@pytest.mark.parametrize(
    ("question", "answer", "low", "high"),
    [
        ("When are you open?", "Monday to Saturday, 10am to 7pm.", 0.5, 1),
        ("When are you open?", "Mon-Fri 9:00-17:00, Sat 10:00-14:00.", 0.5, 1),
        ("What are your opening hours?", "Tuesday to Sunday from 9.30 to 18.00, closed on Mondays.", 0.5, 1),
        (
            "When does the course take place?",
            "Every Tuesday and Thursday, 6:15 pm to 8 pm, until the end of June.",
            0.5,
            1,
        ),
        ("How much is a ticket?", "12 euros for adults, 6 euros for children, free under six.", 0.5, 1),
        ("How long does it take?", "Between two and three working days, in December up to five.", 0.5, 1),
        ("Wann haben Sie geöffnet?", "Montag bis Samstag, 10 bis 19 Uhr.", 0.5, 1),
        ("Quand êtes-vous ouverts ?", "Du lundi au samedi, de 10 h à 19 h.", 0.5, 1),
        ("How big is the file?", "25 MB, or 40 MB with images.", 0.5, 1),
        ("What does the deluxe plan cost?", "9 euros a month or 90 euros a year.", 0.5, 1),
        ("When are you open?", "Oak, ash and larch.", 0, 0.3),
        ("How much is a ticket?", "Trams, buses and ferries.", 0, 0.3),
        ("When are you open?", "25 kilograms.", 0, 0.3),
        ("How long does it take?", "Maps of the coast.", 0, 0.3),
    ],
)
async def test_a_bare_list_of_what_is_asked_for_is_relevant(
    question: str, answer: str, low: float, high: float
) -> None:
    assert within(await relevance(question, answer), (low, high))


PLANS = "The Basic plan costs 5 euros. The Pro plan costs 9 euros."
PUMP = "Replace the filter first, then the gasket."


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("| Plan | Price |\n|---|---|\n| Basic | 5 euros |\n| Pro | 9 euros |", 2),
        ("| Plan | Price |\n| :--- | ---: |\n| Basic | 5 euros |", 1),
        ("Plan | Price\n--- | ---\nBasic | 5 euros\nPro | 9 euros", 2),
        ("Here are the plans:\n\n| Plan | Price |\n|------|-------|\n| Basic | 5 euros |\n\nPrices include tax.", 2),
        ("|Step|What to replace|\n|-|-|\n|1|Filter|\n|2|Gasket|\n|3|Oil|", 3),
        ("+------+-------+\n| Plan | Price |\n+------+-------+\n| Basic | 5 euros |\n+------+-------+", 1),
        ("| Tarif | Preis |\n|:---:|:---:|\n| Basis | 5 Euro |", 1),
        ("| | Basic | Pro |\n|---|---|---|\n| Price | 5 | 9 |", 1),
        ("| Basic | 5 euros |\n| Pro | 9 euros |", 2),
        ("The fee is 5 euros.\n---\nThe limit is 9.", 2),
        ("A heading\n=========\nThe limit is 9.", 1),
    ],
)
def test_the_header_of_a_table_claims_nothing(text: str, count: int) -> None:
    assert len(claims(text)) == count


@pytest.mark.parametrize(
    ("answer", "context", "bounds"),
    [
        ("| Plan | Price |\n|---|---|\n| Basic | 5 euros |\n| Pro | 9 euros |", PLANS, GOOD),
        ("| Plan | Price |\n|---|---|\n| Basic | 7 euros |\n| Pro | 8 euros |", PLANS, BAD),
        ("| Step | What to replace |\n|---|---|\n| 1 | Filter |\n| 2 | Gasket |", PUMP, GOOD),
        ("| # | Replace |\n|---|---|\n| 1 | Impeller |\n| 2 | Battery |", PUMP, (0, 0.5)),
    ],
)
async def test_the_rows_of_a_table_are_what_it_claims(answer: str, context: str, bounds: tuple[float, float]) -> None:
    assert within(await faithfulness("?", answer, [context]), bounds)


RETURNS = (
    "Returns are accepted within 30 days of the purchase. Refunds are paid to the card that was used.",
    "Parcels up to 20 kg are delivered within three working days. The fee is 6.50 euros.",
)


@pytest.mark.parametrize(
    "answer",
    [
        "asdf qwer zxcv uiop hjkl",
        "Blorf snarg the wibble of flonk.",
        "lkjsdf lkjsdf lkj 3lkj sdflkj",
        "xxxxxxxxxxx",
        "Purple monkey dishwasher.",
        "Lorem ipsum dolor sit amet, consectetur adipiscing elit.",
        "qwerty asdfgh returnz dayz",
        "a b c d e f g h",
        "The the the the of of.",
        "ñandu krzt ölf bnmx",
        "fjdksla; fjdksla; fjdksla",
        "Colorless green ideas sleep furiously.",
        "hdjf 8237 sdkjh 2873 jsdhf",
        "Bla bla bla. Blub blub.",
    ],
)
async def test_gibberish_is_not_supported(answer: str) -> None:
    assert within(await faithfulness("How long is the return window?", answer, RETURNS), (0, 0.1))
    assert within(await relevance("How long is the return window?", answer), (0, 0.3))


@pytest.mark.parametrize("question", ["a?", "x", "B?", "?", "q.", "…", "Y ?", "- a", "(z)", "I?"])
@pytest.mark.parametrize("answer", ["b", "The pool is heated."])
async def test_a_question_of_one_letter_asks_nothing(question: str, answer: str) -> None:
    with pytest.raises(JudgeError, match="no_questions"):
        await judge().session("key").relevance(question, answer)
    assert (await judge().session("key").required_parts(question, ())).parts == ()


@pytest.mark.parametrize("answer", ["b", "x.", "Q", "- z", "?"])
async def test_an_answer_of_one_letter_deals_with_no_question_that_asks_for_more(answer: str) -> None:
    assert within(await relevance("What is the limit for parcels?", answer), BAD)
