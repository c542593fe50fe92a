"""Rendered prompts taken apart again: which part is the user's question, which part is evidence.

A part is taken only where the prompt itself marks it: by a label (`Question:`, `Context information is below.`), a
tag (`<context>`), or a section (`[[ ## context ## ]]`). Where nothing is marked nothing is taken, unless a question
known from elsewhere stands in the prompt.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from tracescore.interactions import documents, scaffolds, values
from tracescore.interactions.messages import Turn, last_user
from tracescore.interactions.values import squeezed

_SOURCE_WORDS = (
    r"passages?|contexts?|documents?|docs|sources?|excerpts?|search results?|results|knowledge(?: base)?|snippets?|"
    r"references?|notes?|extracts?|articles?|materials?|facts|background|information|chunks|kontext|dokumente|quellen"
)
_SOURCE_LABEL = re.compile(
    rf"""^[ \t#*>-]{{0,20}}(?:
        (?=[^\n:]*+:[ \t*]*$)  # does the line end with a colon? Few do, and looking for the words is dear.
        [^\n:]{{0,90}}?\b(?:{_SOURCE_WORDS})\b[^\n:.?!]{{0,60}}:[ \t*]*$                   # ... passages ...:
      | (?:(?:the|provided|retrieved|relevant)[ ])*(?:{_SOURCE_WORDS})\b[*]{{0,2}}[ ]?:[*]{{0,2}}[ \t]*(?=\S)  # Docs: x
      | (?:the[ ])?(?:{_SOURCE_WORDS})\b[^\n]{{0,60}}\b(?:below|follows?)[.:]?[ \t]*$   # Context information is below.
      | (?<=\#)[ ]*[^\n]{{0,30}}\b(?:{_SOURCE_WORDS})\b[ ]*$                            # ## Context
    )""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_QUESTION_LABEL = re.compile(
    r"""^[ \t#*>-]{0,20}
        (?:(?:the|user|users|user's|customer|customer's|visitor|original|current|final|new|latest|last|my)[ ]+)*
        (?:question|query|follow[- ]?up[ ](?:input|question|message)|user[ ]input|input|frage|pregunta)
        [*]{0,2}[ ]?:[*]{0,2}[ \t]*(?P<rest>)""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_BREAK = re.compile(
    rf"""^[ \t#*>-]{{0,20}}(?:
        (?:[\w-]+[ ]){{0,2}}(?:answer|response|reply|assistant|standalone[ ]question|antwort)[*]{{0,2}}[ ]?:
      | instructions?[*]{{0,2}}[ ]?:
      | (?:given|using|based[ ]on|with)[ ](?:only[ ])?(?:the|this|these)[ ](?:above|{_SOURCE_WORDS})
      | (?:please[ ])?(?:answer|respond)[ ](?:the|this|to|in|with|only|using|based|briefly|concisely)\b
      | respond[ ]with
    )""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_SOURCE_TAG = re.compile(
    r"<(contexts?|documents?|passages?|sources?|excerpts?|search_results|results|knowledge|chunks?|docs?|references)\b[^<>]{0,200}>",
    re.IGNORECASE,
)
_QUESTION_TAG = re.compile(
    r"<(question|query|user_(?:question|query|input|request|message|task))\b[^<>]{0,200}>", re.IGNORECASE
)
_WAITS = re.compile(r"\n[ \t#*>-]*(?:[\w-]+ ){0,2}(?:answer|response)[*]{0,2} ?:[*]{0,2}\s*\Z", re.IGNORECASE)
"""A prompt that ends with a label waits for what comes behind it."""
_SECTION = re.compile(r"^\[\[ ## (\w+) ## \]\]\s*$", re.MULTILINE)
_RULE = re.compile(r"^[ \t]*[-=_*#~]{3,}[ \t]*$", re.MULTILINE)
_OF_WHAT = r" (?:the|this|a|user)[^.\n]{0,60}(?:message|question|query|input)"
_REWRITES = {
    "alone": re.compile(r"stand[- ]?alone (?:question|query|version)"),
    "phrase": re.compile(rf"rephrase the (?:follow|question|query|user)|re-?phrase{_OF_WHAT}"),
    "write": re.compile(rf"re-?write{_OF_WHAT}"),
    "formulate": re.compile(rf"re-?formulate{_OF_WHAT}"),
    "condense": re.compile(r"condense[^.\n]{0,60}question"),
    "passage": re.compile(r"write a[^.\n]{0,30} passage (?:to|that) (?:answer|support|refute)"),  # HyDE
    "hypothetical": re.compile(
        r"(?:write|generate|create)[^.\n]{0,40} hypothetical (?:answer|document|passage|paragraph)"
    ),
    "generate": re.compile(r"generate (?:a|an) [^.\n]{0,20}(?:search query|title)"),
}
"""Requests in lower case, by a word that is in each of them: a text has few of the words, and patterns are dear."""
_INSTRUCTION = re.compile(
    rf"""\s*(?:
        you[ ]are|your[ ](?:task|job|role)|act[ ]as|(?:please[ ])?(?:answer|respond|reply|be)|do[ ]not|don't|never
        |(?:use|using|based[ ]on|given)[ ](?:only[ ])?(?:the|this|these)[ ](?:following|above|below|{_SOURCE_WORDS})
        |if[ ](?:you[ ](?:do[ ]not|don't|cannot|can't)|the[ ]answer)
    )\b[^\n.:!?]{{0,200}}(?:[.:!](?=\s|$)|$|(?=\n))""",
    re.IGNORECASE | re.VERBOSE,
)
_LEAD_IN = re.compile(r"(?:^|(?<=[.!?\n]))[^\n.!?:]{0,60}:[ \t]*[\"'“«]?\s*$")
_OPENING = ("", "\n", ":", '"', "'", "“", "«", ">")
_CLOSING = re.compile(r"[ \t]*(?:[\"'”»<]|$)", re.MULTILINE)
_LONGEST_QUERY = 2000
_LABELS = 20
"""As many labels of a question, from the last one back, are looked at: a text may hold thousands of them."""
_TRIES = 1000
"""Places behind a mark at which a question is looked for: a text may hold its beginning at every second character."""
QUESTION_NAMES = ("question", "query", "user_question", "user_query", "user_input", "input", "query_str", "q")
CONTEXT_NAMES = ("context", "contexts", "documents", "passages", "docs", "context_str", "sources", "chunks")


class Rendered(NamedTuple):
    """What a prompt marks as the question and as evidence; None where it marks none."""

    question: str | None = None
    evidence: str | None = None


def take_apart(text: str) -> Rendered:
    """The marked parts of one message."""
    sections = output_sections(text)
    if sections:
        filled = {name: value for name, value in sections.items() if value and value != f"{{{name}}}"}
        question = next((filled[name] for name in QUESTION_NAMES if name in filled), None)
        evidence = next((filled[name] for name in CONTEXT_NAMES if name in filled), None)
        return Rendered(question, evidence)
    if text.startswith("{"):
        return _fields(text)
    question, bounds = _question(text)
    return Rendered(question, _evidence(text, bounds))


def _fields(text: str) -> Rendered:
    """The fields of a prompt that is JSON and holds both a question and evidence."""
    data = values.data(text)
    fields = data if isinstance(data, dict) else {}
    question = next((fields[name] for name in QUESTION_NAMES if isinstance(fields.get(name), str)), None)
    found = next((documents.passages(fields[name]) for name in CONTEXT_NAMES if fields.get(name)), None)
    return Rendered(question, "\n\n".join(found.texts)) if question and found and found.texts else Rendered()


def split_at(text: str, query: str) -> Rendered:
    """An unmarked prompt parted at a question known from elsewhere; both None unless it stands there by itself.

    It must end the prompt, or else stand there once, on a line of its own or in the first, with no other question at
    the end; and the rest must be at least as long. Instructions that lead or follow the rest are no evidence.
    """
    words = query.split()
    if not words or len(query) > min(_LONGEST_QUERY, len(text)):
        return Rendered()
    found = _by_themselves(words, text)
    if not found:
        return Rendered()
    start, end = found[-1]
    before, after = text[:start], text[end:].lstrip(" \t\"'”»")
    if after.strip():
        alone = after[:1] == "\n" and (before[-1:] in ("", "\n") or "\n" not in before.lstrip())
        if len(found) > 1 or not alone or after.rstrip().endswith("?"):
            return Rendered()
    rest = squeezed(before + " " + after)
    return Rendered(squeezed(query), _beside(before, after)) if len(rest) >= len(squeezed(query)) else Rendered()


def _by_themselves(words: Sequence[str], text: str) -> list[tuple[int, int]]:
    """Where words stand at the beginning of a line or behind a mark, and at the end of one or before a mark.

    Blanks before them are theirs. A pattern with the marks in it would take four times as long to compile.
    """
    if not all(word in text for word in words):
        return []
    pattern = re.compile(r"\s+".join(map(re.escape, words)))
    found = []
    place, tried = text.find(words[0]), 0
    while place >= 0:
        start, after = place, place + 1
        while text[start - 1 : start] in (" ", "\t"):
            start -= 1
        if text[start - 1 : start] in _OPENING:
            tried += 1
            if tried > _TRIES:
                return []
            match = pattern.match(text, place)
            if match and _CLOSING.match(text, match.end()):
                found.append((start, match.end()))
                after = match.end()
        place = text.find(words[0], after)
    return found


def _beside(before: str, after: str) -> str | None:
    """What stands around a question, without its lead-in and without instructions."""
    pieces = []
    for piece in (_LEAD_IN.sub("", before), after):
        at = 0
        while instruction := _INSTRUCTION.match(piece, at):
            at = instruction.end()
        end = _BREAK.search(piece, at)
        pieces.append(_RULE.sub("", piece[at : end.start() if end else len(piece)]).strip())
    return "\n\n".join(filter(None, pieces)) or None


def question_in(text: str) -> str:
    """The question a rendered prompt asks; the text itself where it is no rendered prompt."""
    found = take_apart(text)
    rendered = found.evidence or text.startswith("[[ ## ") or _WAITS.search(text[-80:])
    return found.question if found.question and rendered else text


def evidence_in(conversation: Sequence[Turn]) -> list[str]:
    """The marked evidence of system messages and of the last user message."""
    last = last_user(conversation)
    read = [turn for at, turn in enumerate(conversation) if turn.text and (turn.role == "system" or at == last)]
    return [found for turn in read if (found := take_apart(scaffolds.task(turn.text or "")).evidence)]


def beside_evidence(text: str, evidence: str) -> str | None:
    """What alone stands around evidence that tags mark: the question, where nothing but instructions is beside it."""
    at = text.find(evidence)
    opened, closed = text.rfind("<", 0, at), text.find(">", at + len(evidence))
    if at < 0 or opened < 0 or closed < 0 or not _SOURCE_TAG.match(text, opened):
        return None
    before = text[:opened].rstrip()
    if before.endswith(":"):  # the line that leads in the evidence
        before = before[: before.rfind("\n") + 1]
    sides = [_beside(before, ""), _beside("", text[closed + 1 :])]
    found = [side for side in sides if side]
    return found[0] if len(found) == 1 and len(found[0]) <= _LONGEST_QUERY else None


def rewrites(conversation: Sequence[Turn]) -> bool:
    """Whether a model is asked to rephrase a question (or to name a chat) rather than to answer."""
    last = last_user(conversation)
    return any(
        turn.text and _asks_to_rewrite(turn.text.lower())
        for at, turn in enumerate(conversation)
        if turn.role == "system" or at == last
    )


def _asks_to_rewrite(text: str) -> bool:
    return any(word in text and pattern.search(text) for word, pattern in _REWRITES.items())


def output_sections(text: str) -> dict[str, str]:
    """The sections of DSPy's chat format by name; empty for any other text."""
    marks = list(_SECTION.finditer(text)) if "[[ ## " in text else []
    if not marks:
        return {}
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    found = {mark[1]: text[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=True)}
    if "completed" not in found:  # the prompt: instructions follow the last field
        found[marks[-1][1]] = found[marks[-1][1]].split("\n\nRespond with", 1)[0].strip()
    return found


def _question(text: str) -> tuple[str | None, tuple[int, int]]:
    """The question marked last, and where label and question stand."""
    tagged = _tagged(text, _QUESTION_TAG)
    if tagged:
        return text[slice(*tagged[-1])].strip(), tagged[-1]
    for label in list(_QUESTION_LABEL.finditer(text))[: -_LABELS - 1 : -1]:
        stop = len(text)
        for border in (_BREAK, _SOURCE_LABEL, _QUESTION_LABEL, _RULE):
            found = border.search(text, label.end() + 1)
            stop = min(stop, found.start()) if found else stop
        question = text[label.end() : stop].strip().strip("*").strip()
        if question:
            return question, (label.start(), stop)
    return None, (len(text), len(text))


def _evidence(text: str, question: tuple[int, int]) -> str | None:
    tagged = _tagged(text, _SOURCE_TAG)
    if tagged:
        return "\n\n".join(text[slice(*inside)].strip() for inside in tagged)
    pieces = []
    at = 0
    while label := _SOURCE_LABEL.search(text, at):
        stop = question[0] if label.end() <= question[0] else len(text)
        found = _BREAK.search(text, label.end())
        stop = min(stop, found.start()) if found else stop
        if not question[0] <= label.start() < question[1]:
            piece = _RULE.sub("", text[label.end() : max(stop, label.end())]).strip()
            if piece:
                pieces.append(piece)
        at = max(stop, label.end() + 1)
    return "\n\n".join(pieces) or None


def _tagged(text: str, opening: re.Pattern[str]) -> list[tuple[int, int]]:
    """Where the contents of tags stand that are closed and not empty; in one pass over the text."""
    found: list[tuple[int, int]] = []
    if "</" not in text:
        return found
    unclosed: set[str] = set()
    lowered = text.lower()
    at = 0
    while match := opening.search(text, at):
        at = match.end()
        name = match[1].lower()
        end = -1 if name in unclosed else lowered.find(f"</{name}", at)
        if end < 0:
            unclosed.add(name)
        elif text[at:end].strip():
            found.append((at, end))
            at = end
    return found
