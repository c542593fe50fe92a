"""Sentences -> claims, and what two wordings of one sentence have in common."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from tracescore.judge.embedded import code, lexicon
from tracescore.judge.embedded.terms import words
from tracescore.judge.sentences import MARKER, split

_CITATION = re.compile(r"\s*(?:\[\^?\d{1,3}\^?\]|【[^】]{1,12}】)")
_EMPHASIS = re.compile(
    r"(\*\*|__|`)(?=\S)(?P<strong>.+?)(?<=\S)\1|(?<![\w*])\*(?=[^\s*])(?P<weak>.+?)(?<=[^\s*])\*(?![\w*])"
)
_ANNOUNCED = re.compile(
    r"(?i)^(?:(?:good|great) (?:news|question)|(?:the )?(?:short|quick) answer|answer|in short|in brief|to sum up|"
    r"tl;?dr|kurz gesagt|antwort|en bref|réponse|en resumen|respuesta|in breve|risposta|em resumo|resposta|kortom|"
    r"antwoord)"
    r"\s*[:!,–—-]\s+(?=\S)"
)
"""What announces the rest of a sentence and says nothing."""
_PICTURE = re.compile("\\s*[\U0001f000-\U0001faff\u2600-\u27bf\u2b50-\u2b55\ufe0f\u200d\u20e3]+")
"""Emoji and dingbats."""

_COURTESY = lexicon.pattern("courtesies")
_OPENER = re.compile(
    r"(?i)^(?:(?:yes|no|yeah|yep|nope|sure|certainly|of course|absolutely|well|ja|nein|natürlich)\s*[,!–—-]+\s*"
    r"|(?:是的|不是|对|はい|いいえ|نعم|हाँ|नहीं)\s*[，,、،]\s*)+"
)


def sentences(text: str) -> Iterator[str]:
    """The sentences of `text`, verbatim but for list markers and outer white space; a line of a list is one."""
    for sentence in split(text):
        marker = MARKER.match(sentence)
        if said := sentence[marker.end() :] if marker else sentence:
            yield said


def claims(text: str) -> tuple[str, ...]:
    """The sentences that can be true or false: no questions, headings or courtesies, no citation marks.

    A yes or no that stands alone goes with the sentence behind it. A row of a table is one claim, its header none. A
    text of nothing else gives its sentences as they are ("Yes." answers a question and is a claim then). Each line of
    a block of code that names something is one, in backticks.
    """
    cleaned: list[str] = []
    for piece, is_code in code.blocks(text):
        prose = () if is_code else sentences(rows_of_tables(piece))
        cleaned += code.lines(piece) if is_code else filter(None, map(plain, prose))
    kept = [claim for claim in cleaned if _is_claim(claim)]
    if kept and len(cleaned) > 1 and cleaned[1] == kept[0] and _REPLY.fullmatch(cleaned[0]):
        kept[0] = f"{cleaned[0]} {kept[0]}"
    return tuple(kept or cleaned)


_REPLY = re.compile(r"(?i)(?:yes|no|ja|nein|oui|non|sí|sì|sim|não|nee)\s*[.!]")
_RULE = re.compile(r"[\s|+:=-]*[=-][\s|+:=-]*")


def rows_of_tables(text: str) -> str:
    """`text` with the cells of tables joined by commas, without headers, ruled lines and numbers of rows."""
    if "|" not in text and "==" not in text:
        return text
    lines, kept = text.split("\n"), list[str]()
    headed = 0
    row = 0  # of the table, from 1: its header or, without one, its first row
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if _RULE.fullmatch(line) or (after.strip() and not after.strip(" =")):
            continue
        row = row + 1 if "|" in line else 0
        if row == 1 and _RULE.fullmatch(after):
            headed = 1
        elif row:
            kept.append(_joined(line, row - headed))
        else:
            kept.append(line)
            headed = 0
    return "\n".join(kept)


def _joined(line: str, row: int) -> str:
    """The cells of a row; the first one is left out where it only numbers the rows."""
    cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
    numbered = len(cells) > 1 and cells[0].rstrip(".") == str(row)
    return ", ".join(filter(None, cells[numbered:]))


def without_reply(sentence: str) -> str:
    """A sentence without the yes or no that opens it, where more follows."""
    return _OPENER.sub("", sentence) or sentence


def plain(sentence: str) -> str:
    """A sentence without citation marks, emphasis and pictures; one that is all code stays as it is."""
    if code.is_code(sentence):
        return sentence
    bare = _EMPHASIS.sub(lambda m: m["strong"] or m["weak"], _CITATION.sub("", sentence))
    return _ANNOUNCED.sub("", _PICTURE.sub("", bare).strip())


_CLAUSE = re.compile(
    r"(?i)\s*[,;:–—]\s+|\s+(?=(?:and|or|but|while|which|who|because|although|when|if|unless|until|after|before|once|"
    r"where|so|und|oder|aber|wenn|et|ou|mais|si|y|o|pero|e|en)\s)"
)
_PHRASE = re.compile(rf"(?i)\s+(?={lexicon.any_of(lexicon.words('prepositions'))}\s)")
_CLAUSE_WORDS = 3
"""Content words of a clause that says something by itself; what has fewer goes with its neighbour."""
_LONG = 8
"""Content words of a clause that is halved: it may stand over two passages without a joint that shows where."""


def clauses(sentence: str) -> list[str]:
    """The clauses of a sentence, verbatim, a long one in halves; each has enough words to be looked for by itself."""
    return [half for clause in _parted(sentence, _CLAUSE) for half in _halves(clause)]


def _halves(clause: str) -> list[str]:
    """A long clause in two, before the phrase that begins nearest its middle."""
    cuts = [cut.end() for cut in _PHRASE.finditer(clause)] if _weight(clause) >= _LONG else []
    cuts = [at for at in cuts if min(_weight(clause[:at]), _weight(clause[at:])) >= _CLAUSE_WORDS]
    if not cuts:
        return [clause]
    middle = min(cuts, key=lambda at: abs(_weight(clause[:at]) - _weight(clause[at:])))
    return [clause[:middle].strip(), clause[middle:]]


def _parted(sentence: str, joint: re.Pattern[str]) -> list[str]:
    """The pieces between joints, each with its lighter neighbours."""
    cuts = [cut.end() for cut in joint.finditer(sentence)]
    found, start = list[str](), 0
    for at in cuts:
        if min(_weight(sentence[start:at]), _weight(sentence[at:])) >= _CLAUSE_WORDS:
            found.append(sentence[start:at].strip(" ,;:–—"))
            start = at
    return [*found, sentence[start:].strip()]


def _weight(text: str) -> int:
    return sum(not word.is_function for word in words(text))


def key(text: str) -> str:
    """What two texts share that differ in case, spacing and punctuation alone. Empty for a text without letters."""
    folded = unicodedata.normalize("NFKC", plain(text)).casefold()
    return re.sub(r"(?<!\d)[^\w%$€£¥₹°+\-]+|[^\w%$€£¥₹°+\-.,]+|[.,](?!\d)", " ", folded).strip()


def _is_claim(sentence: str) -> bool:
    if sentence.endswith((":", "：", "?", "？", "؟")):
        return False
    return not _COURTESY.fullmatch(sentence) and any(character.isalnum() for character in sentence)
