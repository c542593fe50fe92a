"""What the sample app knows: an invented shop's help centre, an invented firm's handbook, an invented bank's rates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Document:
    """One page of a knowledge base."""

    id: str
    text: str


SHOP = (
    Document(
        "shop/returns",
        "Items can be returned within 30 days of delivery. Opened items are accepted as long as they are clean and "
        "complete. Earphones and software cannot be returned once the seal is broken. Refunds reach the original "
        "payment method within five working days after the parcel has arrived at our warehouse.",
    ),
    Document(
        "shop/delivery",
        "Standard delivery costs 3.90 euros and takes three to five working days; it is free for orders above 49 "
        "euros. Express delivery costs 9.90 euros. Express orders placed before 2 pm arrive on the next working day. "
        "We deliver to Germany, Austria and Switzerland.",
    ),
    Document(
        "shop/warranty",
        "Power tools have a warranty of three years from the date of purchase, hand tools of ten years. During the "
        "warranty we pay for the shipping of a repair in both directions. Batteries are wearing parts and are covered "
        "for six months.",
    ),
    Document(
        "shop/gift-cards",
        "Gift cards do not expire. They can be bought for any amount between 10 and 500 euros and are sent by email "
        "within an hour. A gift card can be used together with one discount code per order. A discount code cannot be "
        "used to buy a gift card.",
    ),
)

HANDBOOK = (
    Document(
        "hr/annual-leave",
        "Full-time employees get 28 days of annual leave a year. Up to five unused days can be carried over into the "
        "next year and have to be taken by the end of March. Leave is requested in the staff portal and approved by "
        "the line manager.",
    ),
    Document(
        "hr/illness",
        "Anyone who is ill reports it to their line manager before 9 am on the first day of absence. A doctor's note "
        "is needed from the fourth calendar day. Pay continues in full for six weeks.",
    ),
    Document(
        "hr/remote-work",
        "Employees may work from home up to three days a week, in agreement with their team. The company pays 400 "
        "euros once for a desk and a chair at home. Working from abroad is possible for up to 20 days a year and "
        "needs the consent of the HR department.",
    ),
    Document(
        "hr/travel",
        "Travel expenses have to be handed in within 30 days after the end of the trip, with all receipts. Hotels are "
        "paid up to a limit of 140 euros a night. Trains are booked in second class, and in first class for journeys "
        "of more than four hours.",
    ),
)

BANK = (
    Document(
        "bank/fixed-saver",
        "The one-year fixed saver pays 2.6 percent interest a year, the two-year fixed saver 3.1 percent. Money "
        "cannot be taken out before the end of the term. The smallest deposit is 1,000 euros. Interest is credited "
        "at the end of each year.",
    ),
    Document(
        "bank/mortgage",
        "Once a year, up to 10 percent of the original mortgage can be paid back early. There is no fee for this. "
        "Whatever goes beyond 10 percent is charged at 1 percent of the amount. Early repayments are announced in "
        "writing two weeks ahead.",
    ),
    Document(
        "bank/cards",
        "A lost card can be blocked at any hour in the app or by calling 0800 555 0142. The new card is sent by post "
        "and takes four working days. Replacing a lost card costs nothing; a second replacement within a year costs "
        "8 euros.",
    ),
    Document(
        "bank/transfers",
        "Transfers within the euro area are free and arrive within ten seconds. A transfer to the United States costs "
        "12 euros and takes two to three working days. The daily limit for transfers in the app is 10,000 euros.",
    ),
)


@dataclass(frozen=True, slots=True)
class DemoService:
    """One of the sample services: its releases, its route and what it knows."""

    name: str
    releases: tuple[str, ...]
    route: str
    documents: tuple[Document, ...]


SERVICES: Mapping[str, DemoService] = {
    "shop": DemoService("shop-help", ("2.3.0", "2.4.0"), "/help/ask", SHOP),
    "hr": DemoService("hr-assistant", ("1.8.1",), "/handbook/questions", HANDBOOK),
    "bank": DemoService("bank-chat", ("5.0.2", "5.1.0"), "/chat/messages", BANK),
}
