"""Fits the coefficients of the embedded judge: `python -m tests.benchmarks.fit_embedded DIR --out FILE`.

DIR holds labelled sets as JSON lines, a `task` and a `label` in each row (1 good, 0 bad): faithfulness (context or
contexts, answer), correctness (question, reference, answer), relevancy (question, answer). They are other people's
and not part of the project. `--leave-out NAME` fits without the set NAME and without those that are made of the same
rows; `--each FOLDER` writes one such file for every set, so that each set can be measured with coefficients that have
not seen it (`judge.coefficients: FILE` in the configuration). `--cache FILE` keeps the features between runs.

Beside the rows themselves there are, of each faithfulness set, the same rows among passages of other rows, as an
answer must not gain or lose by what else is searched, and the good rows with a number, a name or a negation changed,
which are bad then; a set that is itself made so is measured only. Rows that a rule refutes are left out. Every set
weighs the same, and so do its good and bad rows: the intercept is moved to the prior afterwards.
"""

from __future__ import annotations

import argparse
import json
import math
import pickle
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tests.benchmarks.edits import edits
from tests.local_judge import embedder, finish, rows
from tracescore.judge.embedded.parts import required_parts
from tracescore.judge.embedded.relevancy import dealings
from tracescore.judge.embedded.sentences import claims
from tracescore.judge.embedded.support import Support
from tracescore.judge.embedded.verdicts import held, supports

Row = dict[str, Any]
Features = Mapping[str, float]
PRIORS = {"support": 0.9, "reference": 0.75, "relevancy": 0.5}
"""Share of good rows that the intercepts are for. Live answers are mostly supported by their passages."""
FEATURES = {
    "support": ("near", "pairs", "number", "negation", "name", "searched"),
    "reference": ("aligned", "pairs", "number", "negation", "name"),
    "relevancy": ("cosine", "aligned", "given", "not_given", "fragment", "fragment_given"),
}
AGAINST = frozenset({"number", "negation", "name", "searched", "not_given"})
"""Features that can only count against a statement; the others can only count for it. One that comes out otherwise in
the sets at hand is left out."""
RIDGE = 5.0
"""Penalty on the weights of standardised features, beside a weight of 100 for the rows of each set."""
SHARE = {"made": 0.5, "faithfulness_expertqa": 0.3}
"""Weight of what is made of a set beside the set itself, and of a set whose labels say less: there a claim that is
only partly supported is bad."""
LONGER = (3, 8)
"""Numbers of passages of other rows that are added."""


class Example(NamedTuple):
    """What is known of a row that no rule decides: the set it is of, or is made of, and the model that grades it."""

    source: str
    graded: str
    features: Features
    good: bool
    made: bool = False


# ---------------------------------------------------------------- rows -> features


def passages(row: Row) -> list[str]:
    """The passages of a faithfulness row."""
    found = row.get("contexts", row.get("context"))
    return [found] if isinstance(found, str) else list(found)


def refuted(support: Support) -> bool:
    """Whether a rule finds that something else is said. Other rules only keep apart what the features show too."""
    differs = any(support.features[name] for name in ("number", "negation", "name"))
    return support.clear == 0 and differs


def supported(row: Row) -> Iterator[Features]:
    """The claims of an answer beside its passages."""
    found = supports(claims(row["answer"]), passages(row), row.get("question", ""), embedder(), compared=False)
    return (support.features for support in finish(found) if support.features and not refuted(support))


def referred(row: Row) -> Iterator[Features]:
    """A reference beside the answer: the alternative of it that is met best."""
    found = finish(held([row["reference"]], [row["answer"]], row["question"], embedder()))
    graded = [support.features for support in found if support.features and not refuted(support)]
    yield from sorted(graded, key=lambda features: -features["aligned"])[:1]


def dealt(row: Row) -> Iterator[Features]:
    """An answer beside its question: the sentence that deals with it best."""
    found = [d.features for d in finish(dealings(row["question"], row["answer"], embedder())) if not d.denied]
    yield from sorted(found, key=lambda features: -features["cosine"] - features["aligned"])[:1]


READERS: Mapping[str, tuple[str, Callable[[Row], Iterator[Features]]]] = {
    "faithfulness": ("support", supported),
    "correctness": ("reference", referred),
    "relevancy": ("relevancy", dealt),
}


def examples(sets: Mapping[str, list[Row]]) -> list[Example]:
    """All examples of the sets, and of what is made of them."""
    rng = random.Random(14)
    pool = [text for given in sets.values() for row in given if row["task"] == "faithfulness" for text in passages(row)]
    found = []
    for name, given in sets.items():
        graded, read = READERS[given[0]["task"]]
        for row, made in [(row, False) for row in given] + [(row, True) for row in variants(given, pool, rng)]:
            found += [Example(name, graded, features, bool(row["label"]), made) for features in read(row)]
        if graded == "reference":
            found += [example for row in given for example in named(name, row, given, rng)]
        print(f"{name}: {len(given)} rows", flush=True)
    return found + written()


def named(name: str, row: Row, others: Sequence[Row], rng: random.Random) -> list[Example]:
    """A question with the bare reference as its answer, and with that of another question."""
    own = row["reference"].split("/")[0]
    other = rng.choice(others)["reference"].split("/")[0]
    return [
        Example(name, "relevancy", features, good, made=True)
        for answer, good in ((own, True), (other, False))
        for features in dealt({"question": row["question"], "answer": answer})
    ]


def written() -> list[Example]:
    """The project's own questions with good answers and with answers to something near: the other half, the topic."""
    pairs: list[tuple[str, str, bool]] = []
    for file in ("embedded_paraphrases.jsonl", "embedded_held_out.jsonl"):
        for row in rows(file, "relevancy"):
            pairs += [(row["question"], row["good"], True), (row["question"], row["off_topic"], False)]
        for row in rows(file, "completeness"):
            parts = required_parts(row["question"])
            pairs += [(part, row["half"], bool(credit)) for part, credit in zip(parts, row["credits"], strict=False)]
    return [
        Example("written", "relevancy", features, good)
        for question, answer, good in pairs
        for features in dealt({"question": question, "answer": answer})
    ]


def variants(given: Sequence[Row], pool: Sequence[str], rng: random.Random) -> Iterator[Row]:
    """What is made of the rows of a faithfulness set; nothing of a set that is made by edits itself."""
    if given[0]["task"] != "faithfulness":
        return
    good = [row["answer"] for row in given if row["label"]]
    for row in given[::2]:
        own = passages(row)
        among = [text for text in rng.sample(pool, rng.choice(LONGER)) if text not in own] + own
        rng.shuffle(among)
        yield {**row, "contexts": among}
        if row["label"]:
            yield from ({**row, "answer": answer, "label": 0} for _, answer in edits(row["answer"], good, rng))


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
    count: dict[tuple[str, bool, bool], int] = defaultdict(int)
    for e in found:
        count[e.source, e.made, e.good] += 1
    return np.array(
        [
            50 / count[e.source, e.made, e.good] * SHARE.get(e.source, 1.0) * (SHARE["made"] if e.made else 1.0)
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
    used = {"support": {"support"}, "reference": {"reference", "support"}, "relevancy": {"relevancy"}}
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
