"""Files that are no configuration, by accident or not: each is one line, and quick."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracescore.config.file import load, parse
from tracescore.config.yaml import DEEPEST, LARGEST, MOST_VALUES
from tracescore.errors import ConfigError

NINES = "9" * 5_000
BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)
TOO_DEEP = f"nested too deeply; at most {DEEPEST} levels expected"
TOO_MANY = f"at most {MOST_VALUES} values expected, counting an alias each time it is used"
IN_ITSELF = "an alias contains itself"
STRANGE = {
    "a list that holds itself": ("sampling: &a\n  rules: [*a]\n", f"f.yaml:1: {IN_ITSELF}"),
    "a file that holds itself": ("&a\nsampling: *a\n", f"f.yaml:1: {IN_ITSELF}"),
    "aliases that multiply": (BOMB, f"f.yaml:5: {TOO_MANY}"),
    "more values than anybody writes": ("x:\n" + "- 1\n" * MOST_VALUES, f"f.yaml:2: {TOO_MANY}"),
    "thousands of brackets": ("x: " + "[" * 5_000, f"f.yaml:1: {TOO_DEEP}"),
    "thousands of braces": ("{a: " * 5_000, f"f.yaml:1: {TOO_DEEP}"),
    "one level too many": ("[" * (DEEPEST + 2) + "]" * (DEEPEST + 2), f"f.yaml:1: {TOO_DEEP}"),
    "a number of 5,000 digits": (
        f"\ndrift: {{min_count: {NINES}}}\n",
        "f.yaml:2: is not YAML: int of sensible length expected",
    ),
    "a tag that does not fit": (
        "sampling: {ratio: !!bool maybe}\n",
        "f.yaml:1: is not YAML: bool of sensible length expected",
    ),
    "a tag of another language": (
        "x: !!timestamp now\n",
        "f.yaml:1: is not YAML: could not determine a constructor for the tag 'tag:yaml.org,2002:timestamp'",
    ),
    "a cron expression without quotes": (
        "gold:\n  schedule: * * * * *\n",
        'f.yaml:2: is not YAML: a text that begins with * expected in quotes, as in "* * * * *"',
    ),
    "a cron expression without quotes, in steps": (
        "gold: {schedule: */5 * * * *}\n",
        'f.yaml:1: is not YAML: a text that begins with * expected in quotes, as in "* * * * *"',
    ),
    "a character that text does not have": (
        "x: \0\n",
        "f.yaml: is not YAML: unacceptable character #x0000: special characters are not allowed",
    ),
}


@pytest.mark.parametrize(("text", "problem"), STRANGE.values(), ids=STRANGE.keys())
def test_a_strange_file_is_one_line(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(text, "f.yaml")
    assert refused.value.problems == (problem,)


@pytest.mark.parametrize(
    "section",
    [f"drift: {{window: {NINES}s}}", f"receiver: {{max_request: {NINES}B}}", f"web: {{listen: 'h:{NINES}'}}"],
    ids=["duration", "size", "address"],
)
def test_a_value_of_5000_digits_is_one_short_line(section: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(section, "f.yaml")
    assert " expected, such as " in str(refused.value)
    assert len(str(refused.value)) < 250


def test_what_is_written_once_can_be_used_again() -> None:
    text = "exporters:\n  otlp: {endpoint: &there 'http://x:1'}\n  phoenix: {endpoint: *there}\n"
    exporters = parse(text, "f.yaml").exporters
    assert exporters.otlp is not None
    assert exporters.phoenix is not None
    assert exporters.otlp.endpoint == exporters.phoenix.endpoint == "http://x:1"


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"a: \xff\n", "is not UTF-8 text"),
        (b"#" * (LARGEST + 1), "at most 1 MiB expected; is this the right file?"),
        (None, "cannot be read: Is a directory"),
    ],
    ids=["not UTF-8", "too large", "a directory"],
)
def test_a_file_that_is_no_text_is_one_line(tmp_path: Path, content: bytes | None, what: str) -> None:
    path = tmp_path / "f.yaml"
    path.mkdir() if content is None else path.write_bytes(content)
    with pytest.raises(ConfigError) as refused:
        load(path)
    assert refused.value.problems == (f"{path}: {what}",)
