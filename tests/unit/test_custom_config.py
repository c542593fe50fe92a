"""Measures of one's own at the door of the configuration: what is refused, and in which words."""

from __future__ import annotations

import pytest

from tracescore.config import DEFAULT_MEASURES
from tracescore.config.custom import ENDINGS, TAKEN
from tracescore.config.drift import DETECTORS
from tracescore.config.file import parse
from tracescore.datasets.case import Case
from tracescore.errors import ConfigError
from tracescore.gold.results import GOLD_MEASURES
from tracescore.model import MEASURES

PATTERN = "{kind: pattern, reads: [answer], matches: please, value: 1}"
RUBRIC = "{{kind: rubric, reads: [answer], prompt: p.md, scale: {}}}"
PYTHON = '{{kind: python, reads: [answer], callable: "{}", version: 1}}'
AT = "f.yaml:5: evaluators.custom.a"
NAME = "a name of at most 40 lower-case letters, digits and single _ expected, a letter first"


def written(name: str, body: str) -> str:
    return f"""\
measures: [completeness, {name}]
judge: {{kind: openai, model: m}}
evaluators:
  custom:
    {name}: {body}
"""


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        parse(text, "f.yaml")
    return list(refused.value.problems)


@pytest.mark.parametrize("name", ["Polite", "1st", "_a", "a_", "a__b", "a-b", "a.b", "x" * 41, "h\u00f6flich"])
def test_a_name_that_no_metric_can_have_is_refused(name: str) -> None:
    assert problems(written(name, PATTERN)) == [f"f.yaml:5: evaluators.custom.{name}: {NAME}; got '{name}'"]


@pytest.mark.parametrize("name", sorted({*TAKEN, *MEASURES, *GOLD_MEASURES, *DETECTORS} - ENDINGS))
def test_a_name_that_means_something_already_is_refused(name: str) -> None:
    (told,) = problems(written(name, PATTERN))
    assert told.startswith(f"f.yaml:5: evaluators.custom.{name}: a name of your own expected; this one has a meaning")


def test_no_name_hides_a_key_of_a_row() -> None:
    assert set(Case.__dataclass_fields__) <= TAKEN


@pytest.mark.parametrize("word", sorted(ENDINGS))
def test_no_name_ends_as_names_of_metrics_do(word: str) -> None:
    for name in (word, f"polite_{word}"):
        (told,) = problems(written(name, PATTERN))
        assert f"a name that does not end in '{word}' expected" in told or "a name of your own expected" in told


BAD = {
    "a range the wrong way round": (
        RUBRIC.format("[1, 0]"),
        (
            ".scale: the lower number first, and a higher one, expected; where less is better, name levels, as in "
            "{0: 1, 1: 0.5, 2: 0}; got [1, 0]"
        ),
    ),
    "a range of nothing": (
        RUBRIC.format("[1, 1]"),
        (
            ".scale: the lower number first, and a higher one, expected; where less is better, name levels, as in "
            "{0: 1, 1: 0.5, 2: 0}; got [1, 1]"
        ),
    ),
    "one level": (RUBRIC.format("{good: 1}"), ".scale: 2 to 10 levels expected; got 1"),
    "levels that only differ by case": (
        RUBRIC.format("{good: 1, Good: 0}"),
        ".scale: levels that differ by more than case and spaces expected; got a mapping",
    ),
    "levels that all score the same": (
        RUBRIC.format("{good: 1, bad: 1}"),
        ".scale: levels that score at least two different numbers expected; got a mapping",
    ),
    "a level beyond the scale": (
        RUBRIC.format("{good: 2, bad: 0}"),
        ".scale.good: must be less than or equal to 1; got 2",
    ),
    "a pattern that RE2 refuses": (
        "{kind: pattern, reads: [answer], matches: '(?=x)', value: 0}",
        ".matches: not an RE2 expression: invalid perl operator: (?=; got '(?=x)'",
    ),
    "a pattern without its other end": (
        "{kind: pattern, reads: [answer], matches: x, value: 0.3}",
        ".otherwise: required where value is neither 0 nor 1; got 0.3 for value and nothing for this",
    ),
    "a pattern that always scores the same": (
        "{kind: pattern, reads: [answer], matches: x, value: 1, otherwise: 1}",
        ".otherwise: another number than value expected; got 1 for both",
    ),
    "a field that there is not": (
        "{kind: pattern, reads: [answr], matches: x, value: 0}",
        ".reads[0]: must be 'question', 'answer', 'contexts', 'history' or 'reference'; got 'answr'",
    ),
    "a measure that reads nothing": (
        "{kind: pattern, reads: [], matches: x, value: 0}",
        ".reads: at least one field expected, and each once; got a list",
    ),
    "a function without its module": (
        PYTHON.format("polite"),
        ".callable: module:function expected, such as shop.rag:answer; got 'polite'",
    ),
    "a kind that there is not": ("{kind: llm}", ": kind must be one of 'rubric', 'python', 'pattern'; got 'llm'"),
}


@pytest.mark.parametrize(("body", "said"), BAD.values(), ids=BAD.keys())
def test_what_cannot_be_scored_is_refused_in_one_line(body: str, said: str) -> None:
    assert problems(written("a", body)) == [AT + said]


def test_a_measure_is_declared_and_listed() -> None:
    undeclared, unlisted = "measures: [polite]\n", f"evaluators: {{custom: {{polite: {PATTERN}}}}}\n"
    assert problems(undeclared) == [
        (
            "f.yaml:1: measures: one of answer_relevancy, completeness, faithfulness, context_precision expected; "
            "got 'polite'"
        )
    ]
    assert problems(unlisted) == [
        "f.yaml:1: evaluators.custom.polite: declared, but not listed in measures; list it there, or remove it"
    ]
    assert parse(undeclared + unlisted, "f.yaml").measures == ("polite",)


def test_at_most_ten() -> None:
    names = [f"m{number}" for number in range(11)]
    bodies = "".join(f"    {name}: {PATTERN}\n" for name in names)
    text = f"measures: [{', '.join(names)}]\nevaluators:\n  custom:\n{bodies}"
    assert problems(text) == ["f.yaml:3: evaluators.custom: at most 10 measures of your own expected; got 11"]


def test_the_embedded_judge_takes_functions_and_patterns_and_no_rubric() -> None:
    """A series that could never come would look like an app that nobody uses."""
    text = written("a", RUBRIC.format("[0, 1]")).replace("judge: {kind: openai, model: m}\n", "")
    assert problems(text) == [
        (
            "f.yaml:4: evaluators.custom.a: a rubric needs a language model, and the judge is the embedded one; "
            "set judge.kind: openai, or use kind: python or pattern"
        )
    ]
    for body in (PATTERN, PYTHON.format("checks:polite")):
        parse(written("a", body).replace("judge: {kind: openai, model: m}\n", ""), "f.yaml")


def test_targets_and_references_know_the_names() -> None:
    own = f"measures: [polite]\nevaluators: {{custom: {{polite: {PATTERN}}}}}\n"
    drift = "drift: {targets: {polite: {shop: 0.9}}, references: {'*': {polite: 0.8}}}\n"
    config = parse(own + drift, "f.yaml")
    assert (config.drift.target("polite", "shop"), config.drift.target("polite", "other")) == (0.9, None)
    (reference, target) = problems(own + drift.replace("polite", "polit"))
    assert target.endswith("answer_correctness, polite expected; did you mean 'polite'?")
    assert reference.startswith("f.yaml:3: drift.references.*.polit: one of")
    assert parse("{}", "f.yaml").measures == DEFAULT_MEASURES
