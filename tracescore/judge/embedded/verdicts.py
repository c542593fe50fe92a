"""Statements and evidence -> verdicts: exact where a rule decides, graded where none does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tracescore.errors import JudgeError
from tracescore.judge.embedded import code, language
from tracescore.judge.embedded.alignment import Encoder, Evidence, Terms, all_terms, gather, of_one, terms
from tracescore.judge.embedded.answer_type import asked
from tracescore.judge.embedded.clauses import clauses
from tracescore.judge.embedded.coverage import coverage
from tracescore.judge.embedded.grading import Coefficients
from tracescore.judge.embedded.parts import whole
from tracescore.judge.embedded.replies import affirmed, denies, only_repeats, polarity, reply
from tracescore.judge.embedded.steps import ENCODED, Steps, batches
from tracescore.judge.embedded.support import NOTHING, Support, support
from tracescore.judge.embedded.terms import is_negative, words
from tracescore.judge.operations import Verdict, Vocabulary
from tracescore.judge.sentences import MAX_LENGTH, split

GOOD, HALF = 0.75, 0.25
"""Credits from which a statement has the good word of its vocabulary, and the word between good and bad."""
SHORT = 4
"""Words of a statement that is no sentence ("179 seats."): it is read with the question, whose words are given."""
PHRASE = 8
"""Words of a reference that is no sentence: it names what is asked for, and says nothing of the rest of an answer."""
LISTED = 30
"""Words of a reference that is one of several alternatives."""
_ALTERNATIVES = re.compile(r"(?:(?<=[^\W\d_])|(?<=[)\].])|(?<=\d{4}))\s*/\s*(?=[^\W_])(?!\d{1,2}\b(?!\s[^\W\d_]))")
_REMARK = re.compile(r"\s*\([^()]*\)")


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
    """The alternatives of a reference that joins them by strokes, each with and without a remark in brackets.

    Brussels/Bruxelles (city); no units, dates or paths.
    """
    if not _is_phrase(reference) or "//" in reference:
        return [reference]
    found = [text.strip() for text in _ALTERNATIVES.split(reference)]
    if not all(len(text) > 1 for text in found):
        return [reference]
    return list(dict.fromkeys([*found, *filter(None, (_REMARK.sub("", text).strip() for text in found))]))


def _is_phrase(*texts: str) -> bool:
    """Whether the texts are no sentences: alternatives of few words each, without an end but the last."""
    pieces = [piece for text in texts for piece in _ALTERNATIVES.split(text)]
    longest = PHRASE if len(pieces) == len(texts) else LISTED
    return all(len(words(piece)) <= longest and len(list(split(piece))) <= 1 for piece in pieces)


def supports(
    statements: Sequence[str], evidence: Sequence[str], question: str, encoder: Encoder, *, compared: bool
) -> Steps[list[Support]]:
    """How far the evidence supports each statement.

    `compared`: statements and evidence are answers to one question, whose words need no support, as each may leave
    them out. A bare yes or no stands for the question itself, affirmed or denied; JudgeError where that is too long.
    A yes or no that opens a statement must not say the opposite of the evidence, whatever follows.
    """
    if compared and evidence and all(polarity(passage) is not None for passage in evidence):
        denied = any(map(denies, evidence))
        return [_agreement(denies(statement) == denied, evidence) for statement in statements]
    known = frozenset(w.stem for sentence in split(question) for w in words(sentence))
    bare = [bool(question) and polarity(s) is not None for s in statements]
    read = [whole(question) if alone else _rest(s) for s, alone in zip(statements, bare, strict=True)]
    sought = [*read, *([question] if _is_asked(question) else [])]
    held = yield from gather(evidence, sought, encoder, resolve=not compared)
    checked = yield from _Checked.of(question, evidence, held, encoder, compared=compared)
    own = code.assigned(statements)
    found: list[Support] = []
    for batch in batches(zip(statements, read, bare, strict=True), ENCODED, lambda each: len(each[1])):
        for (statement, text, alone), each in zip(batch, encoder.encode([text for _, text, _ in batch]), strict=True):
            short = not alone and len(words(text)) <= SHORT
            given = known if (compared or short) and not alone else frozenset()
            said = terms(text, each)
            decided = _as_code(text, said, held, own) or checked.by_reply(statement, said)
            seen = decided or support(said, held, given, polarity(statement) if alone else None)
            if seen.clear is None and not compared:
                seen = yield from _by_clauses(seen, text, held, encoder)
            found.append(seen)
            yield
    return found


def _as_code(statement: str, said: Terms, held: Evidence, own: frozenset[str]) -> Support | None:
    """What is seen of a line of code; None for any other statement."""
    if not code.is_code(statement):
        return None
    quote = support(said, held).quote
    return Support(clear=code.share_found(statement, held.text, own), quote=quote)


def _by_clauses(seen: Support, statement: str, held: Evidence, encoder: Encoder) -> Steps[Support]:
    """What is `seen` of a statement that may join clauses: contradicted where one of them is."""
    parts = yield from all_terms(clauses(statement), encoder)
    each = tuple(support(part, held) for part in parts)
    wrong = [part for part in each if part.contradicted and part.clear == 0]
    return wrong[0] if wrong else replace(seen, clauses=each)


def _rest(statement: str) -> str:
    """A statement without the yes or no that opens it, if anything is left."""
    said = reply(statement)
    return said.rest if said and said.rest else statement


def _is_asked(question: str) -> bool:
    """Whether yes or no is an answer to `question` that can be held against a text: not where it is negative."""
    return len(question) <= MAX_LENGTH and asked(question).yes_no and not is_negative(question)


@dataclass(frozen=True, slots=True)
class _Checked:
    """A yes-or-no question beside the evidence: whether that `denies` what is asked (None: it does not say)."""

    question: Terms | None
    evidence: Sequence[str]
    denies: bool | None = None
    replied: bool = False

    @classmethod
    def of(
        cls, question: str, evidence: Sequence[str], held: Evidence, encoder: Encoder, *, compared: bool
    ) -> Steps[_Checked]:
        """`compared`: the evidence is an answer itself, and may open with yes or no."""
        if not _is_asked(question):
            return cls(None, evidence)
        (read,) = yield from all_terms([question], encoder)
        said = reply(evidence[0]) if compared and evidence else None
        if said is not None:
            return cls(read, evidence, said.denies, replied=True)
        is_so = affirmed(read, held)
        return cls(read, evidence, None if is_so is None else not is_so)

    def by_reply(self, statement: str, rest: Terms) -> Support | None:
        """What the yes or no of a statement decides; None where that decides nothing."""
        if self.question is None or self.denies is None:
            return None
        said = reply(statement)
        if said is None:
            is_so = affirmed(self.question, of_one(rest)) if self.replied else None
            return _agreement(False, self.evidence) if is_so is not None and is_so == self.denies else None
        if said.denies != self.denies:
            return _agreement(False, self.evidence)
        return _agreement(True, self.evidence) if only_repeats(said.rest, self.question.text) else None


def _agreement(agrees: bool, evidence: Sequence[str]) -> Support:
    return Support(clear=float(agrees), contradicted=not agrees, quote=evidence[0] if evidence else "")


def _agreements(statement: str, evidence: Sequence[str]) -> list[Support]:
    """Whether a statement says yes or no as a reference that is only that does; none for any other reference."""
    bare = [polarity(passage) for passage in evidence]
    return [] if None in bare or not bare else [_agreement(denies(statement) == any(bare), evidence)]


def _only_latin(*texts: str) -> None:
    if not all(map(language.is_latin, texts)):
        raise JudgeError("unsupported_language", "only texts in Latin script are graded")


def _credit(s: Support, graded: str, coefficients: Coefficients) -> float:
    """By rule, or the grade: of all that a statement says together or, if that is more, of the worst of its clauses."""
    if s.clear is not None:
        return s.clear
    by_clause = min((_credit(clause, graded, coefficients) for clause in s.clauses), default=0.0)
    return max(by_clause, coefficients.grade(graded, s.features))


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
