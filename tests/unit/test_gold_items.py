"""A gold set is read whole or refused whole, with the line of every problem."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.test_config_yaml import BOMB
from tracescore.config.yaml import DEEPEST
from tracescore.errors import ConfigError
from tracescore.gold.items import KEYS, LARGEST, MOST_VALUES, GoldItem, GoldSet, load, mark_of
from tracescore.model import Message

FULL = GoldItem(
    id="window",
    question="How long, exactly?",
    reference="30 days.",
    tags=("returns", "short"),
    required=("the number of days", "from when"),
    contexts=("Items can be returned within 30 days.",),
    history=(Message("user", "Can I return a lamp?"), Message("assistant", "Yes.")),
    weight=2.5,
)
ROW = {
    "id": "window",
    "question": FULL.question,
    "reference": FULL.reference,
    "tags": ["returns", "short"],
    "required": list(FULL.required),
    "contexts": list(FULL.contexts),
    "history": [{"role": "user", "content": "Can I return a lamp?"}, {"role": "assistant", "content": "Yes."}],
    "weight": 2.5,
}
YAML = """\
- id: window
  question: How long, exactly?
  reference: 30 days.
  tags: [returns, short]
  required: [the number of days, from when]
  contexts: [Items can be returned within 30 days.]
  history:
    - role: user
      content: Can I return a lamp?
    - {role: assistant, content: Yes.}
  weight: 2.5
"""


def written(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def problems(folder: Path, name: str, text: str) -> list[str]:
    file = written(folder, name, text)
    with pytest.raises(ConfigError) as refused:
        load(file)
    assert all(problem.startswith(f"{file}:") for problem in refused.value.problems)
    return [problem.removeprefix(f"{file}:") for problem in refused.value.problems]


def as_csv(row: dict[str, object]) -> str:
    cells = [json.dumps(value) if isinstance(value, list) else str(value) for value in row.values()]
    quoted = ['"' + cell.replace('"', '""') + '"' for cell in cells]
    return f"{','.join(row)}\n{','.join(quoted)}\n"


def loaded(tmp_path: Path, ending: str) -> GoldSet:
    text = {"yaml": YAML, "jsonl": json.dumps(ROW) + "\n\n", "csv": as_csv(ROW)}[ending]
    return load(written(tmp_path, f"set.{ending}", text), "faq")


@pytest.mark.parametrize("ending", ["yaml", "jsonl", "csv"])
def test_the_three_formats_say_the_same(tmp_path: Path, ending: str) -> None:
    found = loaded(tmp_path, ending)
    assert found == loaded(tmp_path, "jsonl")
    assert found.items == (FULL,)
    assert set(ROW) == set(KEYS)


def test_a_set_has_the_name_of_its_file_unless_it_is_given_one(tmp_path: Path) -> None:
    file = written(tmp_path, "prices.jsonl", '{"question": "q", "reference": "r"}')
    assert load(file).name == "prices"
    assert load(file, "other").name == "other"


@pytest.mark.parametrize("reference", ["No", "0010", "2026-11-30", "~", "1e3", "null"])
def test_yaml_takes_answers_as_they_are_written(tmp_path: Path, reference: str) -> None:
    (item,) = load(written(tmp_path, "set.yaml", f"items:\n  - {{question: q, reference: {reference}}}\n")).items
    assert item.reference == reference


def test_csv_from_a_spreadsheet_is_read(tmp_path: Path) -> None:
    text = '\ufeffquestion,reference,tags,id\r\n"What, then?","A\nB",a; b,\r\n\r\nAnd?,C,,7\r\n'
    first, second = load(written(tmp_path, "set.csv", text)).items
    assert (first.question, first.reference, first.tags) == ("What, then?", "A\nB", ("a", "b"))
    assert (second.id, second.tags) == ("7", ())


def test_the_hash_follows_what_can_move_a_score_and_not_the_order(tmp_path: Path) -> None:
    rows = [{"question": f"q{number}", "reference": "r"} for number in range(3)]

    def hash_of(*changed: dict[str, object]) -> str:
        return load(written(tmp_path, "set.jsonl", "\n".join(map(json.dumps, changed)))).hash

    assert hash_of(*rows) == hash_of(*reversed(rows))
    assert hash_of(*rows) != hash_of(*rows[:2])
    assert hash_of(*rows) != hash_of(rows[0], rows[1], rows[2] | {"reference": "R"})


def test_an_item_stays_itself_while_what_it_asks_and_wants_stays() -> None:
    same = GoldItem("other name", FULL.question, FULL.reference, (), FULL.required, FULL.contexts, FULL.history, 1.0)
    assert mark_of(same) == mark_of(FULL)
    assert mark_of(GoldItem(FULL.id, FULL.question, "31 days.")) != mark_of(FULL)


OK = '{"question": "q", "reference": "r"}'


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("set.jsonl", OK + "\n{broken\n", ["2: is not JSON: Expecting property name enclosed in double quotes"]),
        ("set.jsonl", '["q", "r"]', ["1: an item with question and reference expected; got a list"]),
        ("set.jsonl", "", ["1: no items; at least one with question and reference expected"]),
        ("set.jsonl", '{"question": " ", "reference": 5}', [
            "1: question: text expected; got a blank one",
            "1: reference: text expected; got a number",
        ]),
        ("set.jsonl", '{"question": "q", "answer": "r"}', [
            "1: answer: unknown key; known: id, question, reference, tags, required, contexts, history, weight",
            "1: reference: required, but not set",
        ]),
        ("set.jsonl", '{"question": "q", "refrence": "r"}', [
            "1: reference: required, but not set",
            "1: refrence: unknown key; did you mean 'reference'?",
        ]),
        ("set.jsonl", OK + "\n\n" + OK, ["3: question: asked before, on line 1; an item each expected"]),
        ("set.yaml", "- {id: a, question: q, reference: r}\n- {id: a, question: p, reference: r}", [
            "2: id: 'a' was given before, on line 1; a name of its own expected",
        ]),
        ("set.jsonl", '{"question": "q", "question": "p", "reference": "r"}', ["1: question: set twice in one item"]),
        ("set.jsonl", '{"question": "q", "reference": "r", "tags": ["a", ""], "weight": 0, "id": ""}', [
            "1: id: a name of 1 to 128 printable characters expected",
            "1: tags: a list of texts, none of them blank, expected",
            "1: weight: a number above 0, at most 1,000,000, expected; got '0'",
        ]),
        ("set.jsonl", '{"question": "q", "reference": "r", "weight": 1e308}', [
            "1: weight: a number above 0, at most 1,000,000, expected; got '1e+308'",
        ]),
        ("set.yaml", "- ? [a, b]\n  : c\n  question: q\n  reference: r\n", ["1: is not YAML: found unhashable key"]),
        ("set.yaml", "- question: q\n  reference: \a\n", ["2: is not YAML: special characters are not allowed"]),
        ("set.jsonl", '{"question": "q", "reference": "r", "history": [{"role": "system", "content": "x"}]}', [
            "1: history: a list of turns {role: user or assistant, content: text} expected",
        ]),
        ("set.yaml", "- question: q\n  reference: r\n- question: q2\n  question: q3\n  reference:\n", [
            "3: reference: text expected; got a blank one",
            "4: question: set twice in one item",
        ]),
        ("set.yaml", "- question: q\n  reference: [\n", [
            "3: is not YAML: expected the node content, but found '<stream end>'",
        ]),
        ("set.yaml", "question: q\nreference: r\n", ["1: a list of items expected"]),
        ("set.csv", "question,reference\nq,r,s\n", ["2: 2 cells expected, as in the header; got 3"]),
        ("set.csv", "question,reference,question\n", ["1: question: two columns of that name"]),
        ("set.csv", 'question,reference\n"q,r\n', ["2: is not CSV: unexpected end of data"]),
        ("set.csv", "question,reference\nq,\n", ["2: reference: text expected; got nothing"]),
        ("set.csv", "user_input;refrence\nq;r\n", [
            "2: reference: required, but not set",
            "2: refrence: unknown key; did you mean 'reference'?",
        ]),
        ("set.txt", "", ["1: a name ending in .yaml, .jsonl, .json, .csv or .parquet expected; got 'set.txt'"]),
    ],
)  # fmt: skip
def test_everything_that_is_wrong_is_said_with_its_line(
    tmp_path: Path, name: str, text: str, expected: list[str]
) -> None:
    assert problems(tmp_path, name, text) == expected


MOST = f"at most {MOST_VALUES} values expected, counting an alias each time it is used"
TOO_MUCH = {
    "aliases that multiply": (BOMB, f":6: {MOST}"),
    "an item that holds itself": ("- &a\n  question: *a\n", ":1: an alias contains itself"),
    "too deep": ("[" * 60 + "]" * 60, f":1: nested too deeply; at most {DEEPEST} levels expected"),
    "thousands of brackets": ("[" * 5_000, ":1: is not YAML: nested too deep or broken"),
    "more bytes than any set has": ("x" * (LARGEST + 1), ": at most 16 MiB expected; is this the right file?"),
}


@pytest.mark.parametrize(("text", "said"), TOO_MUCH.values(), ids=TOO_MUCH.keys())
def test_a_set_is_bounded_as_the_configuration_is(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "set.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as refused:
        load(file)
    assert refused.value.problems == (f"{file}{said}",)


def test_a_file_that_is_not_there_or_no_text_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^gold\.set: .*no\.yaml cannot be read from /.*: No such file"):
        load(tmp_path / "no.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="is not UTF-8 text"):
        load(tmp_path / "bytes.yaml")
