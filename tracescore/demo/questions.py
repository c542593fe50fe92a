"""What the sample app is asked, and its canned answers: for every question one of each kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

AnswerKind = Literal["good", "off_topic", "half", "unfaithful", "refused"]
"""What an answer was built to be. It goes into no telemetry: the scores have to find out by themselves."""
KINDS: tuple[AnswerKind, ...] = get_args(AnswerKind)

KIND_NAMES: Mapping[AnswerKind, str] = {
    "good": "good",
    "off_topic": "off-topic",
    "half": "half-answered",
    "unfaithful": "unfaithful",
    "refused": "refused",
}


@dataclass(frozen=True, slots=True)
class DemoQuestion:
    """A question of two parts to one of the services, the document that answers it, and an answer of each kind."""

    service: str
    document: str
    text: str
    answers: Mapping[AnswerKind, str]


QUESTIONS = (
    DemoQuestion(
        "shop",
        "shop/returns",
        "How long do I have to return something, and can I send it back if I have already opened it?",
        {
            "good": "You have 30 days from delivery to return an item. You can send back opened items too, as long as "
            "they are clean and complete.",
            "off_topic": "Gift cards are sent by email within an hour, for any amount between 10 and 500 euros.",
            "half": "You have 30 days from delivery to return an item.",
            "unfaithful": "You have 90 days from delivery to return an item. Opened items can never be sent back, "
            "and every return costs 15 euros.",
            "refused": "I'm sorry, I don't have any information about that.",
        },
    ),
    DemoQuestion(
        "hr",
        "hr/annual-leave",
        "How many days of annual leave do I get, and how many can I carry over into next year?",
        {
            "good": "Full-time employees get 28 days of annual leave a year. Up to five unused days can be carried "
            "over into the next year.",
            "off_topic": "Trains are booked in second class, and in first class for journeys of more than four hours.",
            "half": "Full-time employees get 28 days of annual leave a year.",
            "unfaithful": "Full-time employees get 35 days of annual leave a year. Up to 12 unused days can be "
            "carried over into the next year.",
            "refused": "I could not find anything about this in the handbook. Please ask the HR department.",
        },
    ),
    DemoQuestion(
        "bank",
        "bank/fixed-saver",
        "What interest does the two-year fixed saver pay, and can I take money out early?",
        {
            "good": "The two-year fixed saver pays 3.1 percent interest a year. You cannot take money out before the "
            "end of the term.",
            "off_topic": "If your card is lost, you can block it in the app at any hour of the day.",
            "half": "The two-year fixed saver pays 3.1 percent interest a year.",
            "unfaithful": "The two-year fixed saver pays 5.4 percent interest a year. You can take money out early "
            "for a penalty of 25 euros.",
            "refused": "Unfortunately I am not able to answer this question.",
        },
    ),
    DemoQuestion(
        "shop",
        "shop/delivery",
        "What does express delivery cost, and when will my parcel arrive?",
        {
            "good": "Express delivery costs 9.90 euros. If you order before 2 pm, your parcel will arrive on the next "
            "working day.",
            "off_topic": "Our hand tools are made of forged steel, and we have been selling them since 1962.",
            "half": "Express delivery costs 9.90 euros.",
            "unfaithful": "Express delivery costs 24.50 euros. Your parcel will arrive within six hours, even on "
            "Sundays.",
            "refused": "Sorry, I can't help with that. Please contact our support team.",
        },
    ),
    DemoQuestion(
        "hr",
        "hr/illness",
        "When do I have to report that I am ill, and from which day do I need a doctor's note?",
        {
            "good": "Report that you are ill to your line manager before 9 am on the first day. You need a doctor's "
            "note from the fourth calendar day.",
            "off_topic": "The company pays 400 euros once for a desk and a chair at home.",
            "half": "You have to report that you are ill before 9 am on the first day of absence.",
            "unfaithful": "You have to report that you are ill before 11 am on the second day. You need a doctor's "
            "note from the tenth day, issued by the company doctor.",
            "refused": "I don't know. The documents I was given do not say.",
        },
    ),
    DemoQuestion(
        "bank",
        "bank/mortgage",
        "Can I pay back part of my mortgage early, and is there a fee for it?",
        {
            "good": "Yes, once a year you can pay back up to 10 percent of the original mortgage early. There is no "
            "fee for it.",
            "off_topic": "Transfers within the euro area arrive within ten seconds.",
            "half": "Yes, once a year you can pay back up to 10 percent of the original mortgage early.",
            "unfaithful": "Yes, you can pay back up to 40 percent of your mortgage early every month. There is a fee "
            "of 300 euros for it.",
            "refused": "I'm afraid I can't answer that with the information I have.",
        },
    ),
    DemoQuestion(
        "shop",
        "shop/warranty",
        "How long is the warranty on power tools, and who pays for the shipping of a repair?",
        {
            "good": "Power tools have a warranty of three years. We pay for the shipping of a repair, in both "
            "directions.",
            "off_topic": "You can enter one discount code per order at the checkout.",
            "half": "Power tools have a warranty of three years from the date of purchase.",
            "unfaithful": "Power tools have a warranty of eight years. You pay for the shipping of a repair yourself, "
            "which is 19 euros.",
            "refused": "I'm sorry, I could not find that in our help centre.",
        },
    ),
    DemoQuestion(
        "hr",
        "hr/remote-work",
        "How many days a week can I work from home, and do I get money for a desk?",
        {
            "good": "You can work from home up to three days a week, in agreement with your team. You get 400 euros "
            "once for a desk and a chair.",
            "off_topic": "Receipts for hotels have to be scanned and attached to the travel report.",
            "half": "You can work from home up to three days a week, in agreement with your team.",
            "unfaithful": "You can work from home on one day a week, on Fridays. You get 1,500 euros every year for a "
            "desk and a lamp.",
            "refused": "Unfortunately there is no information about this available to me.",
        },
    ),
    DemoQuestion(
        "bank",
        "bank/cards",
        "How do I block a lost card, and how long does the new card take?",
        {
            "good": "Block a lost card in the app or by calling 0800 555 0142. The new card takes four working days "
            "by post.",
            "off_topic": "Interest on savings is credited at the end of each year.",
            "half": "You can block a lost card in the app or by calling 0800 555 0142.",
            "unfaithful": "You have to visit a branch with your passport to block a lost card. The new card takes "
            "three weeks and costs 45 euros.",
            "refused": "Sorry, I am unable to answer this. A colleague will get back to you.",
        },
    ),
    DemoQuestion(
        "shop",
        "shop/gift-cards",
        "Do gift cards expire, and can I use one together with a discount code?",
        {
            "good": "Gift cards do not expire. You can use a gift card together with one discount code per order.",
            "off_topic": "Standard delivery takes three to five working days within Germany, Austria and Switzerland.",
            "half": "No, gift cards do not expire.",
            "unfaithful": "Gift cards expire after 12 months. You can use a gift card together with up to seven "
            "discount codes per order.",
            "refused": "I don't have an answer to that, I'm sorry.",
        },
    ),
    DemoQuestion(
        "hr",
        "hr/travel",
        "By when do I have to hand in travel expenses, and what is the limit for a hotel?",
        {
            "good": "Travel expenses have to be handed in within 30 days after the end of the trip. The limit for a "
            "hotel is 140 euros a night.",
            "off_topic": "Anyone who falls ill keeps their full pay for six weeks.",
            "half": "Travel expenses have to be handed in within 30 days after the end of the trip.",
            "unfaithful": "Travel expenses have to be handed in within 6 months after the trip. The limit for a hotel "
            "is 310 euros a night.",
            "refused": "I am sorry, but I cannot find an answer in the handbook.",
        },
    ),
    DemoQuestion(
        "bank",
        "bank/transfers",
        "How much does a transfer to the United States cost, and how long does it take?",
        {
            "good": "A transfer to the United States costs 12 euros. It takes two to three working days.",
            "off_topic": "The smallest deposit for a fixed saver is 1,000 euros.",
            "half": "A transfer to the United States costs 12 euros.",
            "unfaithful": "A transfer to the United States costs 35 euros. It takes up to nine working days and needs "
            "a form from the branch.",
            "refused": "I don't know the answer to this question.",
        },
    ),
)
"""In order of services, so that any few in a row are of different ones."""
