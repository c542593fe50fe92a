"""Scores -> the words of a vocabulary."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tracescore.judge.embedded.alignment import Encoder, gather, terms
from tracescore.judge.embedded.coverage import COVERED, PARTIAL, coverage
from tracescore.judge.embedded.parts import whole
from tracescore.judge.embedded.sentences import without_reply
from tracescore.judge.embedded.steps import ENCODED, Steps, batches
from tracescore.judge.embedded.support import SUPPORTED, Support, support
from tracescore.judge.embedded.terms import NEGATIONS, is_negative, words
from tracescore.judge.operations import Verdict, Vocabulary
from tracescore.judge.sentences import MAX_LENGTH, split

_YES = re.compile(r"(?i)^\W*(?:yes|yeah|yep|ja|oui|sí|si|sim|是的?|对|可以|はい|نعم|हाँ|हां|जी हाँ|да|true|correct)\W*$")
_NO = re.compile(r"(?i)^\W*(?:no|nope|nein|non|não|不|不是|不可以|否|いいえ|لا|नहीं|जी नहीं|нет|false|incorrect)\W*$")


def verdicts(
    statements: Sequence[str], evidence: Sequence[str], vocabulary: Vocabulary, question: str, encoder: Encoder
) -> Steps[tuple[Verdict, ...]]:
    """One verdict per statement, in order. Blocks while the model encodes."""
    if vocabulary is Vocabulary.COVERAGE:
        covered = yield from coverage(statements, evidence, encoder)
        return tuple(_covered(c.score, c.quote) for c in covered)
    found = yield from supports(statements, evidence, question, encoder, compared=vocabulary is not Vocabulary.SUPPORT)
    if vocabulary is Vocabulary.SUPPORT:
        return tuple(_supported(s) for s in found)
    good, bad = vocabulary.value
    return tuple(Verdict(good if s.supported else bad, s.quote if s.supported else "") for s in found)


def supports(
    statements: Sequence[str], evidence: Sequence[str], question: str, encoder: Encoder, *, compared: bool
) -> Steps[list[Support]]:
    """How far the evidence supports each statement.

    `compared`: statements and evidence are answers to one question, whose words need no support, as each may leave
    them out. A bare yes or no stands for the question itself, affirmed or denied; JudgeError where that is too long.
    """
    if compared and evidence and all(_polarity(passage) is not None for passage in evidence):
        denied = any(_polarity(passage) for passage in evidence)
        return [_agreement(_denies(statement) == denied, evidence) for statement in statements]
    known = frozenset(w.stem for sentence in split(question) for w in words(sentence))
    read = [whole(question) if question and _polarity(s) is not None else s for s in statements]
    held = yield from gather(evidence, read, encoder)
    found = []
    for batch in batches(zip(statements, read, strict=True), ENCODED, lambda pair: len(pair[1])):
        encoded = encoder.encode([text for _, text in batch])
        for (statement, text), each in zip(batch, encoded, strict=True):
            bare = text != statement
            short = not bare and len(words(text)) <= SHORT
            given = known if (compared or short) and not bare else frozenset()
            found.append(support(terms(text, each), held, given, _polarity(statement) if bare else None))
            yield
    return found


SHORT = 4
"""Words of a statement that is no sentence ("179 seats."): it is read with the question, whose words are given."""


def _polarity(text: str) -> bool | None:
    """True for a bare no ("No, it isn't."), False for a bare yes, None for anything that says more."""
    if len(text) > MAX_LENGTH:
        return None
    if _NO.match(text):
        return True
    if _YES.match(text):
        return False
    rest = without_reply(text)
    says_more = any(not word.is_function and word.folded not in NEGATIONS for word in words(rest))
    return None if says_more or not words(rest) else is_negative(rest)


def _denies(text: str) -> bool:
    bare = _polarity(text)
    return is_negative(without_reply(text)) if bare is None else bare


def _agreement(agrees: bool, evidence: Sequence[str]) -> Support:
    score = 1.0 if agrees else 0.0
    return Support(score, 1.0, conflict=not agrees, quote=evidence[0] if evidence else "")


def _covered(score: float, quote: str) -> Verdict:
    if score >= COVERED:
        return Verdict("covered", quote)
    return Verdict("partial", quote) if score >= PARTIAL else Verdict("missing")


def _supported(s: Support) -> Verdict:
    if s.score >= SUPPORTED:
        return Verdict("supported", s.quote)
    return Verdict("contradicted", s.quote) if s.contradicted else Verdict("not_found", s.quote)
