"""Three apps and what they are asked: what the week of `tests/seeded.py` is made of."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Known:
    """A question, its passages, a right answer and a worse one, sentence by sentence, and the parts of the question.

    The last sentence of the worse answer contradicts the passages; it leaves out the last part.
    """

    topic: str
    question: str
    passages: tuple[str, ...]
    good: str
    worse: str
    parts: tuple[str, ...]


@dataclass(frozen=True)
class App:
    """A service with its releases, each with the day on which it went live and the share of worse answers it gives."""

    service: str
    share: float
    releases: tuple[tuple[str, float, float], ...]
    known: tuple[Known, ...]
    routes: tuple[str, ...] = ("/ask",)
    states: dict[str, float] = field(default_factory=dict)
    """States other than complete, with the share of interactions that are in them."""


SHOP = (
    Known(
        "returns",
        "What is the return window, and does it cover opened items?",
        (
            "Items may be returned within 30 days of delivery. The parcel must carry the return label.",
            "Opened items can be returned for store credit when they are complete.",
            "Our warehouse is closed on Sundays and public holidays.",
        ),
        "You can return items within 30 days of delivery. Opened items are refunded as store credit.",
        "You can return items within 30 days of delivery. Opened items are refunded in cash.",
        ("What is the return window?", "Does it cover opened items?"),
    ),
    Known(
        "delivery",
        "How long does standard delivery take, and what does it cost?",
        (
            "Standard delivery takes five working days. Express delivery takes two.",
            "Standard delivery costs 4.90 euros and is free from an order value of 50 euros.",
        ),
        "Standard delivery takes five working days. It costs 4.90 euros, and nothing from 50 euros on.",
        "Standard delivery takes five working days. It is always free.",
        ("How long does standard delivery take?", "What does it cost?"),
    ),
    Known(
        "warranty",
        "Does the warranty of the Borealis desk cover scratches?",
        (
            "The Borealis desk comes with a warranty of five years against faults of material and workmanship.",
            "Scratches and other traces of use are not covered by any warranty.",
        ),
        "No. The warranty of five years covers faults of material and workmanship. Scratches are not covered.",
        "The warranty of the desk lasts five years. It also covers scratches.",
        ("Does the warranty cover scratches?",),
    ),
    Known(
        "payment",
        "Can I pay by invoice if I live in Austria?",
        (
            "Payment by invoice is offered to customers in Germany and Austria.",
            "The first order of a customer is limited to 200 euros when it is paid by invoice.",
        ),
        "Yes, customers in Austria can pay by invoice. The first order is limited to 200 euros.",
        "Yes, customers in Austria can pay by invoice. The first order is limited to 500 euros.",
        ("Is payment by invoice possible in Austria?",),
    ),
    Known(
        "account",
        "How do I change the e-mail address of my account and keep my orders?",
        (
            "The e-mail address of an account is changed under Settings, Profile.",
            "Orders belong to the account and stay with it when the address changes.",
        ),
        "Open Settings, then Profile, and enter the new address. Your orders stay with your account.",
        "Open Settings, then Profile, and enter the new address. Your old orders are deleted.",
        ("How is the address changed?", "What happens to the orders?"),
    ),
    Known(
        "stock",
        "When is the Fjord sofa in moss green available again?",
        (
            "The Fjord sofa in moss green is expected back in stock in the second week of January.",
            "Customers can be notified by e-mail as soon as an item is back.",
        ),
        "The Fjord sofa in moss green is expected in the second week of January.",
        "The Fjord sofa in moss green has been discontinued.",
        ("When is it available again?",),
    ),
)
PEOPLE = (
    Known(
        "leave",
        "How many days of leave do I have, and can I carry them over?",
        (
            "Full-time employees have 28 days of leave a year.",
            "Up to five days can be carried over until the end of March.",
        ),
        "You have 28 days of leave a year. Up to five days can be carried over until the end of March.",
        "You have 28 days of leave a year. All of them can be carried over.",
        ("How many days of leave are there?", "Can they be carried over?"),
    ),
    Known(
        "sickness",
        "From which day do I need a doctor's note?",
        ("A doctor's note is needed from the fourth day of illness. It is sent to the people team.",),
        "A doctor's note is needed from the fourth day of illness.",
        "A doctor's note is needed from the first day of illness.",
        ("From which day is a note needed?",),
    ),
    Known(
        "travel",
        "كيف أسجل نفقات السفر؟",
        ("تسجل نفقات السفر في بوابة الموظفين خلال ثلاثين يوما.",),
        "تسجل نفقات السفر في بوابة الموظفين خلال ثلاثين يوما.",
        "تسجل نفقات السفر بالبريد خلال أسبوع.",
        ("كيف تسجل النفقات؟",),
    ),
)
PLATFORM = (
    Known(
        "deployment",
        "Which flag of `platform deploy` skips the database migration?",
        (
            "`platform deploy --without-migration` deploys the new image and leaves the database as it is.",
            "A deployment runs the pending migrations before the new image takes traffic.",
        ),
        "`platform deploy --without-migration` leaves the database as it is.",
        "`platform deploy --skip-everything` leaves the database as it is.",
        ("Which flag skips the migration?",),
    ),
    Known(
        "errors",
        "What does https://console.platform.example/errors/PlatformIngressControllerCertificateRenewalFailedError"
        "BecauseTheIssuerDidNotAnswerInTime?retry=never&since=2026-11-30T08:00:00Z mean?",
        ("The certificate of the ingress controller could not be renewed because its issuer did not answer.",),
        "The certificate of the ingress could not be renewed: its issuer did not answer.",
        "The certificate of the ingress has been revoked by its owner.",
        ("What does the error mean?",),
    ),
    Known(
        "markup",
        "Why does the log show <img src=x onerror=window.owned=1> and </details><script>window.owned=1</script>?",
        ("The log of the gateway shows requests as they came, markup included. It is never rendered.",),
        "The log shows requests as they came, <b>markup</b> included.",
        "The log shows requests that the gateway has <i onclick=window.owned=1>cleaned</i>.",
        ("Why does the log show markup?",),
    ),
    Known(
        "limits",
        "How large may a request be, and who can raise the limit?",
        (
            "A request may hold 16 megabytes. " + "The limit is that of the gateway, which every request passes. " * 12,
            "The owners of a project can raise the limit to 64 megabytes.",
        ),
        "A request may hold 16 megabytes. The owners of a project can raise the limit.",
        "A request may hold 16 megabytes. Nobody can raise the limit.",
        ("How large may a request be?", "Who can raise the limit?"),
    ),
)
APPS = (
    App(
        "shop-assistant",
        0.6,
        (("2.3.1", 0.0, 0.08), ("2.3.2", 2.0, 0.08), ("2.4.0", 5.0, 0.6)),
        SHOP,
        ("/ask", "/chat"),
        {"no_contexts": 0.05, "truncated": 0.02},
    ),
    App("people-desk", 0.25, (("1.9", 0.0, 0.1),), PEOPLE, states={"no_answer": 0.04}),
    App(
        "platform-docs",
        0.15,
        (("build-8731", 0.0, 0.3), ("build-8802", 4.0, 0.25)),
        PLATFORM,
        states={"content_not_captured": 0.15},
    ),
)
