"""Statements and evidence -> verdicts: exact where a rule decides, graded where none does."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tracescore.errors import JudgeError
from tracescore.judge.embedded import language
from tracescore.judge.embedded.alignment import Encoder, gather, terms
from tracescore.judge.embedded.coverage import coverage
from tracescore.judge.embedded.grading import Coefficients
from tracescore.judge.embedded.parts import whole
from tracescore.judge.embedded.sentences import without_reply
from tracescore.judge.embedded.steps import ENCODED, Steps, batches
from tracescore.judge.embedded.support import NOTHING, Support, support
from tracescore.judge.embedded.terms import NEGATIONS, is_negative, words
from tracescore.judge.operations import Verdict, Vocabulary
from tracescore.judge.sentences import MAX_LENGTH, split

GOOD, HALF = 0.75, 0.25
"""Credits from which a statement has the good word of its vocabulary, and the word between good and bad."""
SHORT = 4
"""Words of a statement that is no sentence ("179 seats."): it is read with the question, whose words are given."""
PHRASE = 8
"""Words of a reference that is no sentence: it names what is asked for, and says nothing of the rest of an answer."""
_YES = re.compile(r"(?i)^\W*(?:yes|yeah|yep|ja|oui|sí|si|sim|是的?|对|可以|はい|نعم|हाँ|हां|जी हाँ|да|true|correct)\W*$")
_NO = re.compile(r"(?i)^\W*(?:no|nope|nein|nee|non|não|不|不是|不可以|否|いいえ|لا|नहीं|जी नहीं|нет|false|incorrect)\W*$")
_OPENING = re.compile(r"(?P<word>[^\W\d_]+)\s*[,.;:!–—-]")
_ALTERNATIVES = re.compile(r"(?:(?<=[^\W\d_])|(?<=[)\].])|(?<=\d{4}))\s*/\s*(?=[^\W_])(?!\d{1,2}\b)")


def verdicts(
    statements: Sequence[str],
    evidence: Sequence[str],
    vocabulary: Vocabulary,
    question: str,
    encoder: Encoder,
    coefficients: Coefficients,
) -> Steps[tuple[Verdict, ...]]:
    """One verdict per statement, in order. Blocks while the model encodes.

    Raises JudgeError(unsupported_language) where the texts are in languages that are not judged together, or where
    no rule decides and the model knows nothing of the script.
    """
    if language.differ("\n".join(statements), evidence):
        raise JudgeError("unsupported_language", "statements in one language and evidence in another")
    if vocabulary is Vocabulary.COVERAGE:
        _only_latin(*statements, *evidence)
        covered = yield from coverage(statements, evidence, encoder)
        return tuple(_verdict(vocabulary, c.credit, c.quote) for c in covered)
    if vocabulary is Vocabulary.SUPPORT:
        found = yield from supports(statements, evidence, question, encoder, compared=False)
    elif vocabulary is Vocabulary.PRECISION and _is_phrase(*evidence):
        there = yield from held(evidence, statements, question, encoder)
        found = [_best([*there, *_agreements(statement, evidence)], coefficients) for statement in statements]
    elif vocabulary is Vocabulary.PRECISION:
        found = yield from supports(statements, evidence, question, encoder, compared=True)
    else:
        found = []
        for statement in statements:
            there = yield from held([statement], evidence, question, encoder)
            found.append(_best(there, coefficients))
    if any(s.clear is None for s in found):
        _only_latin(*statements, *evidence)
    graded = "support" if vocabulary is Vocabulary.SUPPORT else "reference"
    return tuple(
        _verdict(vocabulary, _credit(s, graded, coefficients), s.quote, contradicted=s.contradicted) for s in found
    )


def held(references: Sequence[str], answer: Sequence[str], question: str, encoder: Encoder) -> Steps[list[Support]]:
    """How far the answer supports each alternative of the references."""
    alternatives = [text for reference in references for text in alternatives_of(reference)]
    return (yield from supports(alternatives, answer, question, encoder, compared=True))


def alternatives_of(reference: str) -> list[str]:
    """The alternatives of a reference that joins them by strokes: Brussels/Bruxelles. No units, dates or paths."""
    if not _is_phrase(reference) or "//" in reference:
        return [reference]
    found = [text.strip() for text in _ALTERNATIVES.split(reference)]
    return found if all(len(text) > 1 for text in found) else [reference]


def _is_phrase(*texts: str) -> bool:
    """Whether the texts are no sentences: alternatives of few words each, without an end but the last."""
    return all(
        len(words(piece)) <= PHRASE and len(list(split(piece))) <= 1
        for text in texts
        for piece in _ALTERNATIVES.split(text)
    )


def supports(
    statements: Sequence[str], evidence: Sequence[str], question: str, encoder: Encoder, *, compared: bool
) -> Steps[list[Support]]:
    """How far the evidence supports each statement.

    `compared`: statements and evidence are answers to one question, whose words need no support, as each may leave
    them out. A bare yes or no stands for the question itself, affirmed or denied; JudgeError where that is too long.
    """
    replies = [_reply(passage) for passage in evidence]
    bare_evidence = bool(evidence) and all(polarity(passage) is not None for passage in evidence)
    if compared and bare_evidence:
        return [_agreement(_denies(statement) == any(replies), evidence) for statement in statements]
    known = frozenset(w.stem for sentence in split(question) for w in words(sentence))
    read = [whole(question) if question and polarity(s) is not None else s for s in statements]
    held = yield from gather(evidence, read, encoder)
    found = []
    for batch in batches(zip(statements, read, strict=True), ENCODED, lambda pair: len(pair[1])):
        encoded = encoder.encode([text for _, text in batch])
        for (statement, text), each in zip(batch, encoded, strict=True):
            bare = text != statement
            short = not bare and len(words(text)) <= SHORT
            if compared and polarity(statement) is not None and replies and replies[0] is not None:
                found.append(_agreement(polarity(statement) == replies[0], evidence))
                continue
            given = known if (compared or short) and not bare else frozenset()
            found.append(support(terms(text, each), held, given, polarity(statement) if bare else None))
            yield
    return found


def polarity(text: str) -> bool | None:
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


def _reply(text: str) -> bool | None:
    """The yes or no that a text is or opens with: False or True as in `polarity`, None where there is none."""
    opening = _OPENING.match(text.lstrip())
    said = polarity(text)
    return polarity(opening["word"]) if said is None and opening else said


def _denies(text: str) -> bool:
    reply = _reply(text)
    return is_negative(without_reply(text)) if reply is None else reply


def _agreement(agrees: bool, evidence: Sequence[str]) -> Support:
    return Support(clear=float(agrees), contradicted=not agrees, quote=evidence[0] if evidence else "")


def _agreements(statement: str, evidence: Sequence[str]) -> list[Support]:
    """Whether a statement says yes or no as a reference that is only that does; none for any other reference."""
    bare = [polarity(passage) for passage in evidence]
    return [] if None in bare or not bare else [_agreement(_denies(statement) == any(bare), evidence)]


def _only_latin(*texts: str) -> None:
    if not all(map(language.is_latin, texts)):
        raise JudgeError("unsupported_language", "only texts in Latin script are graded")


def _credit(s: Support, graded: str, coefficients: Coefficients) -> float:
    return coefficients.grade(graded, s.features) if s.clear is None else s.clear


def _best(found: Sequence[Support], coefficients: Coefficients) -> Support:
    return max(found, key=lambda s: _credit(s, "reference", coefficients), default=NOTHING)


def _verdict(vocabulary: Vocabulary, credit: float, quote: str, *, contradicted: bool = False) -> Verdict:
    """The word that goes with a credit, and the quote unless that is the word for nothing there."""
    good, *_, bad = vocabulary.value
    if credit >= GOOD:
        return Verdict(good, quote, grade=credit)
    if credit >= HALF:
        return Verdict("partial" if vocabulary is Vocabulary.COVERAGE else UNCERTAIN, quote, grade=credit)
    if contradicted and vocabulary is Vocabulary.SUPPORT:
        return Verdict("contradicted", quote, grade=credit)
    return Verdict(bad, quote if vocabulary is Vocabulary.SUPPORT else "", grade=credit)


UNCERTAIN = "uncertain"
"""The word between good and bad for claims. It is in no vocabulary: a language model has to decide."""
