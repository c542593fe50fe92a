"""The operations of an OpenAI-compatible judge, bound to one interaction."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast

from tracescore.embedder import Embedder
from tracescore.errors import JudgeError
from tracescore.judge import replies
from tracescore.judge.cache import Cache
from tracescore.judge.chat import ALL_SPENT, Ask, Chat
from tracescore.judge.epoch import Epochs
from tracescore.judge.operations import (
    MAX_EVIDENCE,
    MAX_TEXT,
    Claims,
    RequiredParts,
    ReverseQuestions,
    RubricChoice,
    Verdict,
    Vocabulary,
    check_length,
)
from tracescore.judge.prompt import Operation, Prompt, Prompts, encode, tokens
from tracescore.judge.replies import Drop
from tracescore.judge.rubric import Rubric, fitted
from tracescore.judge.sentences import split
from tracescore.judge.usefulness import Usefulness
from tracescore.judge.verification import Verification
from tracescore.model import Message, Usage
from tracescore.runtime import gather

T = TypeVar("T")

_ROOM = 1_024
"""Tokens of a reply apart from its items: white space, and some thinking aloud."""
_ROOM_PER_QUESTION = 100
_TEXT_BATCH = 3_000
"""Tokens of text per request for claims."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What all sessions of a judge have in common."""

    chat: Chat
    prompts: Prompts
    epochs: Epochs
    cache: Cache[tuple[Any, str]]
    count_drop: Callable[[Drop, int], None]
    embedder: Embedder | None
    deadline: float
    max_input: int
    clock: Callable[[], float]


class OpenAISession:
    """See `operations.Session`. Answers by two different models make every further operation fail."""

    def __init__(self, shared: Shared, key: str, *, remembered: bool = True) -> None:
        self._shared = shared
        self._prompts = shared.prompts.by_name
        self._key = key
        self._use_remembered = remembered
        self._epoch = shared.epochs.number
        self._deadline = shared.clock() + shared.deadline
        self._spending = shared.chat.spending()
        self._models: set[str] = set()
        self._noted = False
        self._own: Cache[Any] = Cache(size=64)

    @property
    def usage(self) -> Usage:
        """What has been spent so far."""
        return self._spending.usage

    @property
    def epoch(self) -> int:
        """The judge epoch frozen when the session was opened."""
        return self._epoch

    def caveat(self, *texts: str) -> str:
        """None: what a language model knows of a language cannot be told from the text."""
        del texts
        return ""

    async def reverse_questions(self, answer: str, n: int) -> ReverseQuestions:
        """Asked once per interaction, whichever measures want it."""
        self._fits(answer)
        ask = partial(
            self._asking,
            "reverse_questions",
            self._prompts["reverse_questions"],
            {"answer": answer, "count": n},
            "questions",
            partial(replies.read_questions, answer=answer, n=n),
            _ROOM + n * _ROOM_PER_QUESTION,
        )
        return cast("ReverseQuestions", await self._own.get(("reverse_questions", answer, n), ask))

    async def relevance(self, question: str, answer: str) -> None:
        """A language model writes questions instead."""

    async def required_parts(self, question: str, history: Sequence[Message]) -> RequiredParts:
        """Remembered for the next interaction with this question and history."""
        turns = [{"role": turn.role, "text": turn.text} for turn in history if turn.text.strip()]
        while turns and sum(tokens(turn["text"]) for turn in turns) + tokens(question) > self._shared.max_input:
            del turns[0]
        self._fits(question)
        texts = [turn["text"] for turn in turns]
        ask = partial(
            self._asking,
            "required_parts",
            self._prompts["required_parts"],
            {"history": turns, "question": question},
            "parts",
            partial(replies.read_parts, question=question, history=texts),
            _ROOM + tokens(question),
        )
        return await self._remembered(("required_parts", question, *((t["role"], t["text"]) for t in turns)), ask)

    async def claims(self, question: str, text: str) -> Claims:
        """Remembered for the next text of the same wording. A long text is read in several requests."""
        check_length(text, most=MAX_TEXT)
        sentences = {f"t{number}": sentence for number, sentence in enumerate(split(text), 1)}
        if not sentences:
            return Claims()
        calls = [partial(self._claims_of, question, batch) for batch in _text_batches(sentences)]

        async def ask() -> Claims:
            found = await gather(calls)
            return Claims((claim for claims in found for claim in claims), sum(claims.uncovered for claims in found))

        return await self._remembered(("claims", question, text), ask)

    async def _claims_of(self, question: str, sentences: Mapping[str, str]) -> Claims:
        """The claims of one batch; of sentences that the reply leaves out it is asked about once more."""
        self._fits(question, *sentences.values())
        texts, dropped, uncovered = await self._read_claims(question, sentences)
        if uncovered:
            try:
                more, also_dropped, uncovered = await self._read_claims(question, sentences, uncovered)
            except JudgeError as error:
                if error.reason == "judge_mixed" or error.detail == ALL_SPENT:
                    raise
            else:
                texts, dropped = texts + more, dropped + also_dropped
        self._shared.count_drop("unanchored", dropped)
        self._shared.count_drop("uncovered", len(uncovered))
        return Claims(texts, len(uncovered))

    async def _read_claims(
        self, question: str, sentences: Mapping[str, str], only: Sequence[str] = ()
    ) -> replies.ReadClaims:
        rows = [{"id": name, "text": sentence} for name, sentence in sentences.items()]
        data = {"question": question, "sentences": rows} | ({"only": list(only)} if only else {})
        wanted = {name: sentences[name] for name in only or sentences}
        room = _ROOM + 2 * sum(tokens(sentence) for sentence in wanted.values())
        read = partial(replies.read_claims, sentences=wanted, question=question)
        return await self._asking("claims", self._prompts["claims"], data, "claims", read, room)

    async def verify(
        self, statements: Sequence[str], evidence: Sequence[str], vocabulary: Vocabulary, question: str = ""
    ) -> tuple[Verdict | None, ...]:
        """Statements go out in an order drawn from the interaction's key; what is missing is asked for once more."""
        evidence = [text for text in evidence if text.strip()]
        if not evidence or any(not statement.strip() for statement in statements):
            raise ValueError("verify: evidence and statements must not be blank")
        check_length(*evidence, most=MAX_EVIDENCE)
        order = list(range(len(statements)))
        random.Random(f"{self._key} {vocabulary.name}").shuffle(order)  # noqa: S311 - an order, not a secret
        named = {f"s{place}": statements[index] for place, index in enumerate(order, 1)}
        asking = partial(self._asking, "verify", self._shared.prompts.verify(vocabulary))
        verification = Verification(asking, self._shared.count_drop, evidence, vocabulary, question)
        await verification.choose_windows(named, self._shared.max_input, self._shared.embedder)
        verdicts = await verification.run(named)
        by_index = {index: verdicts.get(f"s{place}") for place, index in enumerate(order, 1)}
        return tuple(by_index[index] for index in range(len(statements)))

    async def usefulness(
        self, passages: Sequence[str], question: str, answer: str, reference: str = ""
    ) -> tuple[Verdict | None, ...]:
        """Passages go out in an order drawn from the interaction's key, so that their rank tells nothing."""
        if not passages or any(not passage.strip() for passage in passages):
            raise ValueError("usefulness: passages must be there, and not blank")
        check_length(*passages, most=MAX_EVIDENCE)
        order = list(range(len(passages)))
        random.Random(f"{self._key} passages").shuffle(order)  # noqa: S311 - an order, not a secret
        named = {f"s{place}": passages[index] for place, index in enumerate(order, 1)}
        asking = partial(self._asking, "verify", self._shared.prompts.verify(Vocabulary.USEFULNESS))
        around = {"question": question, "answer": answer, "reference": reference}
        shared = self._shared
        verdicts = await Usefulness(asking, shared.count_drop, around, shared.max_input).run(named)
        places = {index: f"s{place}" for place, index in enumerate(order, 1)}
        return tuple(verdicts.get(places[index]) for index in range(len(passages)))

    async def choose(self, rubric: Rubric, texts: Mapping[str, Any]) -> RubricChoice:
        """Remembered for the next interaction with these texts."""
        shared, prompt = self._shared, rubric.prompt
        more = max(0, tokens(prompt.instructions) - shared.prompts.longest)
        data = await fitted(texts, shared.max_input - more, shared.embedder)
        ask = partial(self._asking, "rubric", prompt, data, "choice", rubric.read, _ROOM)
        return await self._remembered(("rubric", prompt.mark, encode(data)), ask)

    # ---------------------------------------------------------------- how operations ask

    async def _remembered(self, key: Hashable, ask: Callable[[], Awaitable[T]]) -> T:
        """Asks once per interaction, and not at all when this epoch's model was asked before."""
        epochs, asked = self._shared.epochs, False

        async def with_model() -> tuple[T, str]:
            nonlocal asked
            asked = True
            value = await ask()
            return value, self._spending.models[-1]

        async def shared() -> T:
            # While another model is answering, remembered answers would not be its own.
            if not epochs.settled or not self._use_remembered:
                return await ask()
            value, model = await self._shared.cache.get((self._epoch, key), with_model)
            if model not in (self._models or {epochs.model}):
                return await ask()
            self._check_models(model)
            if not asked:
                self._spending.remember()
            return cast("T", value)

        return cast("T", await self._own.get(key, shared))

    async def _asking(
        self,
        operation: Operation,
        prompt: Prompt,
        data: Mapping[str, Any],
        key: str,
        read: Callable[[Mapping[str, Any]], T],
        room: int,
    ) -> T:
        def read_own(found: Mapping[str, Any]) -> T:
            found, echoed = replies.without_examples(found, key, prompt, data)
            self._shared.count_drop("example", echoed)
            if echoed and not found[key]:
                raise JudgeError("judge_unreadable", f"{key}: an example of the prompt instead of a reply")
            return read(found)

        ask = Ask(operation, prompt, data, key, read_own, room, self._deadline)
        try:
            value = await self._shared.chat.ask(ask, self._spending)
        except JudgeError:
            self._check_models()
            raise
        self._check_models()
        return value

    def _check_models(self, remembered: str | None = None) -> None:
        """Tells the epochs who answers this interaction; JudgeError when it is more than one model."""
        answering = self._spending.models
        if answering and not self._noted:
            self._noted = True
            self._shared.epochs.note(answering[0])
        self._models.update(answering if remembered is None else (remembered,))
        if len(self._models) > 1:
            raise JudgeError("judge_mixed", "different models answered for one interaction")

    def _fits(self, *texts: str) -> None:
        size, most = sum(tokens(text) for text in texts), self._shared.max_input
        if size > most:
            raise JudgeError("judge_input_too_long", f"about {size} tokens; at most {most} (judge.max_input_tokens)")


def _text_batches(sentences: Mapping[str, str]) -> list[dict[str, str]]:
    batches: list[dict[str, str]] = [{}]
    size = 0
    for name, sentence in sentences.items():
        size += tokens(sentence)
        if batches[-1] and size > _TEXT_BATCH:
            batches.append({})
            size = tokens(sentence)
        batches[-1][name] = sentence
    return batches
