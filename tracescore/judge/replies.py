"""From the text of a reply to typed values, or a JudgeError that says why not.

Tolerated, and counted as repaired: Markdown fences, reasoning blocks, words around the object, a bare list, a comma
before a closing bracket, an object around the object, and all of it once more as a JSON text.
Refused: two different objects, repeated keys, a cut-off object, values that were not on offer. Nothing is
clamped and nothing is guessed; error texts hold sizes and field names, never the reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from tracescore.errors import JudgeError
from tracescore.judge.operations import RequiredParts, ReverseQuestions, Verdict, Vocabulary
from tracescore.judge.prompt import Prompt, encode, text_of_item
from tracescore.judge.quotes import Quotable, fold
from tracescore.judge.scripts import is_translated

MAX_REPLY = 400_000
"""Characters; a longer reply is not read."""

Drop = Literal[
    "missing",
    "unknown_id",
    "unknown_verdict",
    "conflicting",
    "evidence_unverified",
    "unanchored",
    "uncovered",
    "example",
]
"""Why a statement came back without a verdict that counts; `unanchored` is a claim that no sentence makes,
`uncovered` a sentence of which the judge says nothing, and `example` an item that repeats an example of the prompt."""

NEEDS_NO_QUOTE = frozenset({"contradicted", "not_found", "missing", "FP", "missed"})
"""Verdicts that give no credit; all others count only with a quote that stands in the evidence."""

_TAG = r"(?:think|thinking|thought|reasoning)"
_MARK = re.compile(rf"\{{|<(/?){_TAG}>", re.IGNORECASE)
_FENCE = re.compile(r"\A```[\w-]*+(.*)```\Z", re.DOTALL)
_REFUSAL = re.compile(
    r"\W*(i['\u2019]?m (very )?sorry|i am sorry|sorry|i can(no|['\u2019])t|i am unable|as an ai)\b",
    re.IGNORECASE,
)
_AROUND = " \t\r\n.,:;!*`'\"()[]{}#"
"""What stands around an id or a verdict without being part of it."""
_COMMA = re.compile(r'"(?:[^"\\]|\\.)*+"?|,(?=\s*+[}\]])', re.DOTALL)
_MAX_STARTS = 200


def _unreadable(detail: str) -> JudgeError:
    return JudgeError("judge_unreadable", detail)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise _unreadable("the reply repeats a key")
    return dict(pairs)


def _no_constant(name: str) -> Any:
    raise _unreadable(f"the reply holds {name}")


_DECODER = json.JSONDecoder(object_pairs_hook=_distinct, parse_constant=_no_constant)


def parse(text: str, key: str) -> tuple[dict[str, Any], bool]:
    """The one object of a reply that has `key`, and whether the reply had to be repaired to find it.

    Its texts are such that any encoding can carry them: JSON can spell out half of a character pair.
    Raises JudgeError: judge_refused for a refusal in plain words, else judge_unreadable.
    """
    stripped = text.strip()
    if not stripped:
        raise _unreadable("the reply is empty")
    if len(stripped) > MAX_REPLY:
        raise _unreadable(f"the reply has {len(stripped)} characters")
    whole = _whole(stripped)
    if isinstance(whole, dict) and key in whole:
        return _clean(whole), False
    if isinstance(whole, str):
        return parse(whole, key)[0], True
    stripped = _without_commas(stripped)
    found = [item for outer in _objects(stripped) for item in (outer, *_inner(outer)) if key in item]
    if not found:
        bare = _whole(_outside_reasoning(stripped))
        if isinstance(bare, list):
            return {key: _clean(bare)}, True
        raise _nothing_found(stripped, key)
    if any(item != found[0] for item in found):
        raise _unreadable(f"the reply holds {len(found)} different objects")
    return _clean(found[0]), True


def _without_commas(text: str) -> str:
    """The text without the commas that stand before a closing bracket, outside of its quoted parts."""
    return _COMMA.sub(lambda match: match[0] if match[0] != "," else "", text)


def _inner(outer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The one object in an object that holds nothing else."""
    return [value for value in outer.values() if isinstance(value, dict)] if len(outer) == 1 else []


def _clean(value: Any) -> Any:
    """The value with a question mark for each half of a character pair."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_clean(key): _clean(item) for key, item in value.items()}
    return [_clean(item) for item in value] if isinstance(value, list) else value


def _nothing_found(text: str, key: str) -> JudgeError:
    if "{" not in text and _REFUSAL.match(text):
        return JudgeError("judge_refused", "the reply is a refusal in plain words")
    return _unreadable(f"no complete JSON object with {key!r} in {len(text)} characters")


def _whole(text: str) -> Any:
    """The text as one JSON value; None when it is anything else."""
    fenced = _FENCE.match(text)
    try:
        return _DECODER.decode(fenced[1] if fenced else text)
    except (json.JSONDecodeError, RecursionError):
        return None


def _outside_reasoning(text: str) -> str:
    return re.split(rf"</{_TAG}>", text, flags=re.IGNORECASE)[-1].strip()


def _objects(text: str) -> list[dict[str, Any]]:
    """Complete top-level objects outside of reasoning blocks, in order."""
    found: list[dict[str, Any]] = []
    at = starts = 0
    while (mark := _MARK.search(text, at)) is not None:
        at = mark.end()
        if mark[0].startswith("</"):
            continue  # the template opened the block; what stands before may be a draft or an echo, so it counts
        if mark[0].startswith("<"):
            closing = re.compile(rf"</{_TAG}>", re.IGNORECASE).search(text, at)
            if closing is None:
                raise _unreadable("a reasoning block does not end")
            at = closing.end()
        else:
            starts += 1
            if starts > _MAX_STARTS:
                raise _unreadable("the reply holds too many broken objects")
            try:
                item, at = _DECODER.raw_decode(text, mark.start())
            except (json.JSONDecodeError, RecursionError):
                continue
            found.append(item)
    return found


def without_examples(
    reply: Mapping[str, Any], key: str, prompt: Prompt, data: Mapping[str, Any]
) -> tuple[Mapping[str, Any], int]:
    """The reply without the items that repeat an example of the prompt, and how many these were.

    What the data says as well is no repetition.
    """
    items = reply.get(key)
    if not prompt.examples or not isinstance(items, list):
        return reply, 0
    echoed = [item for item in items if (text := fold(text_of_item(item))) in prompt.examples and text]
    if echoed:
        given = fold(encode(data))
        echoed = [item for item in echoed if fold(text_of_item(item)) not in given]
    return {**reply, key: [item for item in items if item not in echoed]}, len(echoed)


# ---------------------------------------------------------------- fields


def _not_translated(texts: Sequence[str], source: str) -> None:
    if is_translated(texts, source):
        raise _unreadable("the reply is in another script than the text")


def _text(value: Any, field: str) -> str:
    if not isinstance(value, str):
        raise _unreadable(f"{field}: a text expected; got {type(value).__name__}")
    return value.strip()


def _texts(value: Any, field: str) -> tuple[str, ...]:
    """The texts of a list that are not blank."""
    if not isinstance(value, list):
        raise _unreadable(f"{field}: a list expected; got {type(value).__name__}")
    return tuple(text for text in (_text(item, field) for item in value) if text)


def read_questions(reply: Mapping[str, Any], answer: str, n: int) -> ReverseQuestions:
    """At most `n` questions. A noncommittal flag counts only with words that stand in the answer."""
    noncommittal = reply.get("noncommittal", False)
    if not isinstance(noncommittal, bool):
        raise _unreadable(f"noncommittal: true or false expected; got {type(noncommittal).__name__}")
    words = _text(reply.get("words", ""), "words")
    if noncommittal and not Quotable([answer]).holds(words):
        raise _unreadable("words: they do not stand in the answer")
    questions = _texts(reply.get("questions"), "questions")[:n]
    _not_translated(questions, answer)
    return ReverseQuestions(questions, noncommittal, words if noncommittal else "")


def read_parts(reply: Mapping[str, Any], question: str, history: Sequence[str]) -> RequiredParts:
    """Parts without repetitions. Without a history the stand-alone question is the question itself."""
    parts = tuple(dict.fromkeys(_texts(reply.get("parts"), "parts")))
    standalone = _text(reply.get("standalone", ""), "standalone") if history else question
    if not standalone:
        raise _unreadable("standalone: empty")
    _not_translated((standalone, *parts), "\n".join((question, *history)))
    return RequiredParts(parts, standalone)


class ReadClaims(NamedTuple):
    """Claims without repetitions, how many were left out because no sentence makes them, and the ids left unread."""

    texts: tuple[str, ...]
    dropped: int
    uncovered: tuple[str, ...]


def read_claims(reply: Mapping[str, Any], sentences: Mapping[str, str], question: str = "") -> ReadClaims:
    """See ReadClaims. An id is read when a claim is from its sentence, or when it is listed as without any.

    A sentence without a letter or digit needs neither. Claims may be in the script of `question`, too.
    """
    rows = reply.get("claims")
    if not isinstance(rows, list):
        raise _unreadable(f"claims: a list expected; got {type(rows).__name__}")
    claims: dict[str, None] = {}
    dropped = 0
    covered = set(_ids(reply.get("without"), sentences))
    for row in rows:
        if not isinstance(row, dict):
            raise _unreadable(f"claims: objects expected; got {type(row).__name__}")
        text, named = _text(row.get("text"), "claims.text"), sentences.keys() & set(_ids(row.get("from"), sentences))
        if named and text:
            claims[text] = None
            covered |= named
        else:
            dropped += 1
    if dropped and not claims:
        raise _unreadable("claims.from: no claim names a sentence of the text")
    _not_translated(tuple(claims), "\n".join((*sentences.values(), question)))
    uncovered = (name for name, text in sentences.items() if name not in covered and any(map(str.isalnum, text)))
    return ReadClaims(tuple(claims), dropped, tuple(uncovered))


def _ids(value: Any, known: Collection[str]) -> list[str]:
    """Ids, from a list of them, from one text with commas, or from one number."""
    values = value.split(",") if isinstance(value, str) else [value] if isinstance(value, int) else value
    return [_id(each, known) for each in values] if isinstance(values, list) else []


def read_verdicts(
    reply: Mapping[str, Any], ids: Sequence[str], evidence: Quotable, vocabulary: Vocabulary
) -> tuple[dict[str, Verdict], dict[str, Drop]]:
    """Verdicts by id, and for every other id, asked for or not, why it has none."""
    rows: dict[str, list[Mapping[str, Any]]] = {name: [] for name in ids}
    for name, row in _verdict_rows(reply.get("verdicts"), ids):
        rows.setdefault(name, []).append(row)
    words = {_folded(word): word for word in vocabulary.value}
    verdicts: dict[str, Verdict] = {}
    drops: dict[str, Drop] = {}
    for name, given in rows.items():
        settled = _settle(given, words, evidence) if name in ids else "unknown_id"
        if isinstance(settled, Verdict):
            verdicts[name] = settled
        else:
            drops[name] = settled
    return verdicts, drops


def _settle(rows: Sequence[Mapping[str, Any]], words: Mapping[str, str], evidence: Quotable) -> Verdict | Drop:
    """What the rows of one statement amount to: they must agree, and show evidence where they give credit."""
    if not rows:
        return "missing"
    values = {words.get(_folded(row["verdict"])) if isinstance(row.get("verdict"), str) else None for row in rows}
    if len(values) > 1:
        return "conflicting"
    value = values.pop()
    if value is None:
        return "unknown_verdict"
    quotes = [_quote(row.get("quote")) for row in rows]
    quote = next((quote.strip() for quote in quotes if evidence.holds(quote)), "")
    return Verdict(value, quote) if quote or value in NEEDS_NO_QUOTE else "evidence_unverified"


def _quote(value: Any) -> str:
    """A quote, from a text or from a list of passages; all of them must stand in the evidence."""
    if isinstance(value, list):
        value = " ... ".join(piece for piece in value if isinstance(piece, str))
    return value if isinstance(value, str) else ""


def _verdict_rows(rows: Any, ids: Collection[str]) -> list[tuple[str, Mapping[str, Any]]]:
    """Rows with their ids, from a list of objects or from a mapping of ids to objects or bare words."""
    if isinstance(rows, dict):
        return [(_id(key, ids), row if isinstance(row, dict) else {"verdict": row}) for key, row in rows.items()]
    if not isinstance(rows, list):
        raise _unreadable(f"verdicts: a list expected; got {type(rows).__name__}")
    return [(_id(row.get("id"), ids), row) if isinstance(row, dict) else ("", {}) for row in rows]


def _id(value: Any, known: Collection[str]) -> str:
    """An id in its own spelling; a bare number is that of the `known` ids, which begin with one letter."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    name = value.strip(_AROUND).casefold() if isinstance(value, str) else ""
    return f"{next(iter(known), '')[:1]}{name}" if name.isdecimal() else name


def _folded(word: str) -> str:
    return re.sub(r"[\s_-]+", "_", word.strip(_AROUND).casefold())
