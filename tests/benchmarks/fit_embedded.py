"""Fits the coefficients of the embedded judge: `python -m tests.benchmarks.fit_embedded DIR --out FILE`.

DIR holds labelled sets as JSON lines, a `task` and a `label` in each row (1 good, 0 bad): faithfulness (context or
contexts, answer), correctness (question, reference, answer), relevancy (question, answer). They are other people's
and not part of the project. `--leave-out NAME` fits without the set NAME and without those that are made of the same
rows; `--each FOLDER` writes one such file for every set, so that each set can be measured with coefficients that have
not seen it (`judge.coefficients: FILE` in the configuration). `--cache FILE` keeps the features between runs.

Beside the rows themselves there are, of each faithfulness set, the same rows among five to thirty passages of other
rows, as an answer must not gain or lose by what else is searched, sentences of these long texts as a summary says or
distorts them, and for the comparison with a reference the good
rows with a number, a name or a negation changed, which are bad then; a set that is itself made so is measured only.
Claims that a rule decides are left out, and counted by label, which says how often a rule is wrong (of bad answers,
those of one claim). Every set weighs the same, and so do its good and bad rows: the intercept is moved to the prior
afterwards.
"""

from __future__ import annotations

import argparse
import json
import math
import pickle
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tests.benchmarks.edits import edits
from tests.local_judge import embedder, finish, rows
from tracescore.judge.embedded.alignment import EncodedText
from tracescore.judge.embedded.parts import required_parts
from tracescore.judge.embedded.relevancy import dealings
from tracescore.judge.embedded.sentences import claims, key, sentences
from tracescore.judge.embedded.support import Support
from tracescore.judge.embedded.verdicts import alternatives_of, held, supports

Row = dict[str, Any]
Features = Mapping[str, float]
PRIORS = {"support": 0.55, "reference": 0.75, "relevancy": 0.5}
"""Share of good rows that the intercepts are for. Live answers are mostly supported by their passages, but those are
mostly clear by rule, and what is left is not: at 0.9 the unsupported rows of BEGIN have a mean of 0.6, 0.4
under that of the supported ones; at 0.55 it is 0.47 under it."""
FEATURES = {
    "support": ("near", "together", "weakest", "length"),
    "reference": ("aligned", "pairs", "number", "negation", "name"),
    "relevancy": ("cosine", "aligned", "fragment", "fragment_given", "explains"),
}
AGAINST = frozenset({"number", "negation", "name"})
"""Features that can only count against a statement; the others can only count for it. One that comes out otherwise in
the sets at hand is left out."""
RIDGE = 5.0
"""Penalty on the weights of standardised features, beside a weight of 100 for the rows of each set."""
LONG, EDITED, SUMMED = "long", "edited", "summed"
"""How a row is made of another: among other passages, with something changed, or as a summary of its passages."""
SHARE = {"": 1.0, LONG: 0.5, EDITED: 0.5, SUMMED: 0.5, "faithfulness_expertqa": 0.1}
"""Weight of what is made of a set beside the set itself, and of a set whose labels say less: there a claim that is
only partly supported is bad."""
WRITTEN = tuple(f"embedded_{name}.jsonl" for name in ("paraphrases", "held_out", "explanations", "bare"))
"""Files of the project's own rows."""
MOST_ROWS = 150
"""Rows of a set that others are made of."""
LONGER = (5, 30)
"""Passages of other rows that are added, from and to."""
TELLING = (8, 40)
"""Words of a sentence that a summary is made of, from and to, and the fewest sentences of a text to be summed up."""
FEWEST = 6


class Example(NamedTuple):
    """What is known of a row that no rule decides: the set it is of, or is made of, and the model that grades it."""

    source: str
    graded: str
    features: Features
    good: bool
    made: str = ""


# ---------------------------------------------------------------- rows -> features


def passages(row: Row) -> list[str]:
    """The passages of a faithfulness row."""
    found = row.get("contexts", row.get("context"))
    return [found] if isinstance(found, str) else list(found)


def refuted(support: Support) -> bool:
    """Whether a rule finds that something else is said. Other rules only keep apart what the features show too."""
    differs = any(support.features.get(name) for name in ("number", "negation", "name"))
    return support.clear == 0 and differs


class Remembered:
    """The local embedder, each text once: the same passages stand beside many answers."""

    def __init__(self) -> None:
        self._known: dict[str, EncodedText] = {}

    def encode(self, texts: Sequence[str]) -> list[EncodedText]:
        """See `Encoder`."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._known]
        self._known.update(zip(missing, embedder().encode(missing), strict=True))
        return [self._known[text] for text in texts]


ENCODER = Remembered()


def supported(row: Row) -> Iterator[Support]:
    """The claims of an answer beside its passages."""
    return iter(
        finish(supports(claims(row["answer"]), passages(row), row.get("question", ""), ENCODER, compared=False))
    )


def referred(row: Row) -> Iterator[Support]:
    """A reference beside the answer: the alternative of it that is met best."""
    found = finish(held([row["reference"]], [row["answer"]], row["question"], ENCODER))
    graded = [support for support in found if support.features and not refuted(support)]
    yield from sorted(graded, key=lambda support: -support.features["aligned"])[:1]


def dealt(row: Row) -> Iterator[Support]:
    """An answer beside its question: the sentence that deals with it best."""
    found = [d.features for d in finish(dealings(row["question"], row["answer"], ENCODER)) if not d.denied]
    yield from map(Support, sorted(found, key=lambda features: -features["cosine"] - features["aligned"])[:1])


READERS: Mapping[str, tuple[str, Callable[[Row], Iterator[Support]]]] = {
    "faithfulness": ("support", supported),
    "correctness": ("reference", referred),
    "relevancy": ("relevancy", dealt),
}


def examples(sets: Mapping[str, list[Row]]) -> list[Example]:
    """All examples of the sets, and of what is made of them."""
    rng = random.Random(14)
    found: list[Example] = []
    for name, given in sets.items():
        graded, read = READERS[given[0]["task"]]
        decided: Counter[str] = Counter()
        for row, made in [(row, "") for row in given] + list(variants(given, rng)):
            read_of_row = list(read(row))
            for support in read_of_row:
                decides = graded == "support" and support.clear is not None
                if decides and made != EDITED and (row["label"] or len(read_of_row) == 1):
                    decided[f"{made} row of label {row['label']}, by rule {support.clear:.0f}".strip()] += 1
                if support.features and not refuted(support):
                    kind = SUMMED if made == SUMMED else "clear" if decides or made == EDITED else graded
                    if not (made == SUMMED and decides):
                        found.append(Example(name, kind, support.features, bool(row["label"]), made))
        if graded == "reference":
            found += candidates(name, given)
        print(f"{name}: {len(given)} rows", dict(sorted(decided.items())) or "", flush=True)
    return found + written()


def candidates(name: str, given: Sequence[Row]) -> Iterator[Example]:
    """Bare candidates for an answer: the reference alone, and sentences of right answers that hold it.

    Beside them stand the reference of some other question, what answers the most similar other question, and the
    sentences that do not hold the reference.
    """
    rng = random.Random(14)
    vectors = np.stack([each.vector for each in ENCODER.encode([row["question"] for row in given])])
    like = vectors @ vectors.T - 2 * np.eye(len(given))
    for row, near in zip(given, like.argmax(axis=1), strict=True):
        named = [each["reference"].split("/")[0] for each in (row, rng.choice(given))]
        told = [(text, _holds(text, row["reference"])) for text in claims(row["answer"]) if row["label"]]
        other = claims(given[near]["answer"])[:1] if any(held for _, held in told) else ()
        texts = [(named[0], True), (named[1], False), *told, *((text, False) for text in other)]
        for text, good in texts:
            for support in dealt({"question": row["question"], "answer": text}):
                yield Example(name, "relevancy", support.features, good, LONG)


def _holds(text: str, reference: str) -> bool:
    """Whether a text has any of the alternatives of a reference in it."""
    return any(key(each) in key(text) for each in alternatives_of(reference) if key(each))


def written() -> list[Example]:
    """The project's own questions with good answers and with answers to something near: the other half, the topic."""
    pairs: list[tuple[str, str, bool]] = []
    for file in WRITTEN:
        for row in rows(file, "relevancy"):
            pairs += [(row["question"], row["good"], True), (row["question"], row["off_topic"], False)]
        for row in rows(file, "completeness"):
            parts = required_parts(row["question"])
            pairs += [(part, row["half"], bool(credit)) for part, credit in zip(parts, row["credits"], strict=False)]
    return [
        Example("written", "relevancy", support.features, good)
        for question, answer, good in pairs
        for support in dealt({"question": question, "answer": answer})
    ]


def variants(given: list[Row], rng: random.Random) -> Iterator[tuple[Row, str]]:
    """What is made of the rows of a faithfulness set, and how; nothing of a set that is made by edits itself."""
    if given[0]["task"] != "faithfulness":
        return
    pool = [text for row in given for text in passages(row)]
    good = [row["answer"] for row in given if row["label"]]
    for row in rng.sample(given, min(len(given), MOST_ROWS)):
        longer = {**row, "contexts": among(passages(row), pool, rng)}
        yield longer, LONG
        if row["label"]:
            yield from (
                ({**row, "answer": answer, "label": 0}, EDITED) for _, answer in edits(row["answer"], good, rng)
            )
        yield from ((summary, SUMMED) for summary in summaries(longer, rng))


def summaries(row: Row, rng: random.Random) -> Iterator[Row]:
    """What a summary of the passages may say: one of their sentences or two, shortened; and what it may not.

    That is one half of a sentence with the other half of another, or a number, name or negation changed. The words
    stand in the text either way: only where they stand tells them apart.
    """
    told = [text for passage in passages(row) for text in sentences(passage)]
    told = [text for text in told if TELLING[0] <= len(text.split()) <= TELLING[1]]
    if len(told) < FEWEST:
        return
    one, other = rng.sample(told, 2)
    short = shortened(one)
    joined = f"{short.rstrip('.')} and {shortened(other)}"
    halves = [one.split(), other.split()]
    spliced = " ".join(halves[0][: len(halves[0]) // 2] + halves[1][len(halves[1]) // 2 :])
    wrong = [text for _, text in edits(short, told, rng)]
    yield {**row, "answer": joined if rng.random() < 0.3 else short, "label": 1}
    yield {**row, "answer": rng.choice(wrong) if wrong and rng.random() < 0.5 else spliced, "label": 0}


def shortened(sentence: str) -> str:
    """A sentence without brackets and without one of its side clauses."""
    clauses = re.sub(r"\s*\([^)]*\)", "", sentence).split(", ")
    if len(clauses) > 1:
        del clauses[1]
    return ", ".join(clauses)


def among(own: Sequence[str], pool: Sequence[str], rng: random.Random) -> list[str]:
    """Passages at some place among LONGER others of the same set."""
    others = [text for text in rng.sample(pool, min(len(pool), rng.randint(*LONGER))) if text not in own]
    place = rng.randint(0, len(others))
    return [*others[:place], *own, *others[place:]]


# ---------------------------------------------------------------- features -> coefficients


def fit(found: Sequence[Example], graded: str) -> dict[str, Any]:
    """Intercept and weights of one model, in the units of the features."""
    names = FEATURES[graded]
    x = np.array([[e.features[name] for name in names] for e in found])
    y = np.array([e.good for e in found], dtype=float)
    mean, scale = x.mean(axis=0), x.std(axis=0) + 1e-9
    signs = np.array([-1.0 if name in AGAINST else 1.0 for name in names])
    solved = _signed((x - mean) / scale, y, _weights(found), signs)
    weights = solved[:-1] / scale
    prior = PRIORS[graded]
    intercept = solved[-1] - float(weights @ mean) + math.log(prior / (1 - prior))
    return {
        "prior": prior,
        "intercept": round(intercept, 4),
        "weights": {name: round(float(weight), 4) for name, weight in zip(names, weights, strict=True)},
    }


def _weights(found: Sequence[Example]) -> NDArray[np.float64]:
    """100 for a set, half of it for its good rows; less for what says less (SHARE)."""
    count: dict[tuple[str, str, bool], int] = defaultdict(int)
    for e in found:
        count[e.source, e.made, e.good] += 1
    return np.array(
        [
            50
            / count[e.source, e.made, e.good]
            * (1.0 if e.made == SUMMED else SHARE.get(e.source, 1.0))
            * SHARE[e.made]
            for e in found
        ]
    )


def _signed(
    x: NDArray[np.float64], y: NDArray[np.float64], w: NDArray[np.float64], signs: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Weights of these signs and the intercept: columns that come out with another are taken away."""
    kept = np.arange(x.shape[1])
    while True:
        solved = _logistic(np.c_[x[:, kept], np.ones(len(x))], y, w)
        right = solved[:-1] * signs[kept] >= 0
        if right.all():
            whole = np.zeros(x.shape[1] + 1)
            whole[np.append(kept, -1)] = solved
            return whole
        kept = kept[right]


def _logistic(x: NDArray[np.float64], y: NDArray[np.float64], w: NDArray[np.float64]) -> NDArray[np.float64]:
    """Newton's method on the penalised likelihood; the last column is the intercept and has no penalty."""
    b, penalty = np.zeros(x.shape[1]), np.r_[np.full(x.shape[1] - 1, RIDGE), 1e-6]
    for _ in range(50):
        p = 1 / (1 + np.exp(-x @ b))
        curvature = (x * (w * p * (1 - p))[:, None]).T @ x + np.diag(penalty)
        b = b - np.linalg.solve(curvature, x.T @ (w * (p - y)) + penalty * b)
    return b


def kin(name: str) -> str:
    """Sets of one kin are made of the same rows."""
    return "begin_wow" if "begin" in name and "cmu" not in name else name


def coefficients(found: Sequence[Example], left_out: str = "") -> dict[str, Any]:
    """The content of a file of coefficients, fitted without the kin of `left_out`."""
    kept = [e for e in found if kin(e.source) != kin(left_out)]
    head: dict[str, Any] = {"fitted_by": "tests/benchmarks/fit_embedded.py"}
    if left_out:
        head["left_out"] = left_out
    head["sets"] = sorted({e.source for e in kept})
    used = {"support": {"support", SUMMED}, "reference": {"reference", "support", "clear"}, "relevancy": {"relevancy"}}
    return head | {graded: fit([e for e in kept if e.graded in used[graded]], graded) for graded in FEATURES}


def write(path: Path, content: Mapping[str, Any]) -> None:
    """One readable JSON file."""
    path.write_text(json.dumps(content, indent=1) + "\n")


def main() -> None:
    """Reads the sets, fits, writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--leave-out", default="", metavar="NAME")
    parser.add_argument("--each", type=Path, metavar="FOLDER")
    parser.add_argument("--cache", type=Path)
    options = parser.parse_args()
    read = [(path.stem, [json.loads(line) for line in path.open()]) for path in sorted(options.folder.glob("*.jsonl"))]
    sets = {name: given for name, given in read if given and given[0].get("task") in READERS}
    seen = {name: given for name, given in sets.items() if "perturbation" not in given[0]}
    cached = options.cache and options.cache.exists()
    found = pickle.loads(options.cache.read_bytes()) if cached else examples(seen)
    if options.cache:
        options.cache.write_bytes(pickle.dumps(found))
    if options.out:
        write(options.out, coefficients(found, options.leave_out))
    if options.each:
        options.each.mkdir(parents=True, exist_ok=True)
        for name in sets:
            write(options.each / f"without-{name}.json", coefficients(found, name))


if __name__ == "__main__":
    main()
