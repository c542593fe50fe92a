"""Rows as people have them: every format and every tool's keys give the same case, and nothing is guessed."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tracescore.datasets.case import Case
from tracescore.datasets.keys import taken
from tracescore.datasets.rows import case_of, read_rows, rows_of
from tracescore.errors import MissingExtra, UsageError
from tracescore.gold.items import load

Q, A, P, R = "How long?", "30 days.", ["Within 30 days.", "Or; never."], "Thirty, days."
HISTORY = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello!"}]
MESSAGES = [{"role": "system", "content": "Be kind."}, *HISTORY, {"role": "user", "content": Q}]
OF_RAGAS = [{"type": "human", "content": Q}, {"type": "ai", "content": A}]
CALLED = [
    {"role": "user", "content": Q},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
    {"role": "tool", "content": "found"},
]
DUMPED = [
    {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", name], "kwargs": {"content": text}}
    for name, text in (("SystemMessage", "Be kind."), ("HumanMessage", Q), ("AIMessage", A))
]
"""As LangChain dumps messages."""
OWN = {"question": Q, "answer": A, "contexts": P, "reference": R}
RAGAS = {"user_input": Q, "response": A, "retrieved_contexts": P, "reference": R}

ROWS: dict[str, dict[str, Any]] = {
    "tracescore": OWN,
    "ragas": RAGAS | {"reference_contexts": ["ideal"]},
    "ragas before 0.2": {"question": Q, "answer": A, "contexts": P, "ground_truth": R},
    "deepeval": {
        "input": Q,
        "actual_output": A,
        "retrieval_context": P,
        "expected_output": R,
        "context": ["ideal"],
    },
    "an evaluator of langsmith": {
        "inputs": {"question": Q},
        "outputs": {"answer": A, "documents": [{"page_content": text} for text in P]},
        "reference_outputs": {"answer": R},
    },
    "an experiment of langsmith": {
        "inputs.question": Q,
        "outputs.answer": A,
        "outputs.contexts": P,
        "reference.answer": R,
        "feedback.x": 1,
    },
    "openai": {
        "item": {"question": Q, "contexts": P, "ground_truth": R},
        "sample": {"output_text": A},
    },
    "deepeval in camel case": {"input": Q, "actualOutput": A, "retrievalContext": P, "expectedOutput": R},
    "ragas before 0.1": {"question": Q, "answer": A, "contexts": P, "ground_truths": [R]},
    "an item of langfuse": {
        "input": {"question": Q},
        "output": {"answer": A, "documents": P},
        "expectedOutput": {"answer": R},
    },
    "braintrust": {"input": {"query": Q}, "output": A, "expected": R, "contexts": P},
    "llamaindex": {"query": Q, "response": A, "contexts": P, "reference_answer": R},
    "contexts as json": OWN | {"contexts": json.dumps(P)},
    "contexts as python prints them": OWN | {"contexts": repr(P)},
    "contexts as numpy prints them": OWN | {"contexts": str(np.array(P, dtype=object))},
    "contexts as numpy prints them on lines": OWN | {"contexts": "[" + "\n ".join(map(repr, P)) + "]"},
    "objects as json": {
        "inputs": json.dumps({"question": Q}),
        "outputs": json.dumps({"answer": A, "contexts": P}),
        "reference_outputs": json.dumps({"answer": R}),
    },
    "documents as json": OWN | {"contexts": json.dumps([{"page_content": text, "metadata": {}} for text in P])},
}


def core(case: Case) -> tuple[Any, ...]:
    return case.question, case.answer, list(case.contexts), case.reference


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_the_keys_of_every_tool_say_the_same(row: dict[str, Any]) -> None:
    (read,) = rows_of([row])
    assert core(read.case) == (Q, A, P, R)


def test_the_ideal_passages_are_not_taken_for_those_retrieved() -> None:
    row = {"input": Q, "actual_output": A, "context": ["ideal"]}
    case = case_of(row)
    assert (case.contexts, case.metadata) == ((), {"context": ["ideal"]})
    assert taken([row]) == (
        "keys: question from input (DeepEval, OpenAI, Phoenix, Langfuse, Braintrust), "
        "answer from actual_output (DeepEval); "
        "context: the ideal passages, not those retrieved, are left out"
    )


def test_tracescore_is_silent_about_its_own_keys() -> None:
    assert taken([OWN, {"question": Q}]) == ""


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"input": MESSAGES, "ideal": [R]}, (Q, None, HISTORY, R)),
        ({"user_input": OF_RAGAS}, (Q, A, [], None)),
        ({"user_input": OF_RAGAS, "response": "Another."}, (Q, "Another.", [], None)),
        ({"input": [{"role": "assistant", "content": "Hi"}]}, (None, None, [], None)),
        ({"question": None, "user_input": Q}, (Q, None, [], None)),
        ({"messages": [*MESSAGES, {"role": "assistant", "content": A}]}, (Q, A, HISTORY, None)),
        ({"turns": [{"role": "user", "content": Q}, {"role": "assistant", "content": A}]}, (Q, A, [], None)),
        ({"inputs": {"messages": [MESSAGES]}, "outputs": {"output": A}}, (Q, A, HISTORY, None)),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": Q}]}]}, (Q, None, [], None)),
        ({"messages": CALLED, "answer": A}, (Q, A, [], None)),
        ({"messages": DUMPED}, (Q, A, [], None)),
        ({"messages": [{"type": "human", "data": {"content": Q}}]}, (Q, None, [], None)),
    ],
)
def test_a_question_given_as_messages_is_split(row: dict[str, Any], expected: tuple[Any, ...]) -> None:
    case = case_of(row)
    assert (case.question, case.answer, list(case.history), case.reference) == expected


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"question": Q, "anwser": A}, "anwser: unknown key; did you mean 'answer'?"),
        ({"question": Q, "context": P}, "context: unknown key; did you mean 'contexts'?"),
        ({"user_input": Q, "retrieved_context": P}, "did you mean 'retrieved_contexts'?"),
        ({"input": Q, "actual_ouput": A}, "did you mean 'actual_output'?"),
        ({"question": Q, "ideal": [R, A]}, "reference: text expected; got list"),
        ({"question": Q, "contexts": [1]}, "contexts: a list of texts expected; got int in it"),
        ({"question": Q, "history": [{"role": "system", "content": "x"}]}, "history: turns of {role"),
        ({"input": ["Hello"]}, "history: turns of {role"),
        (
            {"input": Q, "output": A, "reference": R},
            "beside input and output it may be the right answer or, of Phoenix",
        ),
        ({"question": Q, "answer": {"text": A}}, "answer: text expected; got an object with text"),
        ({"question": Q, "contexts": {"0": "a"}}, "contexts: text expected; got an object with 0"),
        ({"input": {"prompt": Q}, "output": A}, "input: text expected; got an object with prompt"),
    ],
)
def test_what_is_not_meant_is_not_guessed(row: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        case_of(row)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        (str(np.array(["x" * 9] * 2000, dtype=object)), "a list that numpy cut short with '...'"),
        ("[Document(page_content='a', metadata={})]", "a list that was printed and cannot be read back"),
        ("[{'page_content': 'a'} {'page_content': 'b'}]", "a list that was printed and cannot be read back"),
    ],
)
def test_a_printed_list_that_is_lost_is_no_passage(tmp_path: Path, printed: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        rows_of([OWN | {"contexts": printed}])
    (tmp_path / "a.jsonl").write_text(json.dumps(OWN) + "\n" + json.dumps(OWN | {"contexts": printed}))
    refused: list[UsageError] = []
    assert len(read_rows(tmp_path / "a.jsonl", refused.append)) == 1
    assert said in str(refused[0])


@pytest.mark.parametrize("text", ["[1] See the handbook [2].", "[Terms] 30 days.", "{a: 1} is a set"])
def test_a_passage_in_brackets_is_a_passage(text: str) -> None:
    (row,) = rows_of([OWN | {"contexts": text}])
    assert row.case.contexts == (text,)


def test_an_answer_that_is_json_stays_one() -> None:
    (row,) = rows_of([{"input": Q, "output": '{"days": 30}'}])
    assert row.case.answer == '{"days": 30}'


@pytest.mark.parametrize("key", ["question_id", "user_id", "answered", "answer_date", "reference_id", "response_time"])
def test_a_name_of_something_else_passes_through(key: str) -> None:
    row = RAGAS | {key: "x"} if key.startswith("response") else {"question": Q, "answer": A, key: "x"}
    assert case_of(row).metadata == {key: "x"}


# ---------------------------------------------------------------- files


def as_csv(delimiter: str, lists: Any = json.dumps) -> str:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter)
    writer.writerow([*RAGAS, "note"])
    writer.writerow([Q, A, lists(P), R, ""])
    return out.getvalue()


PARQUET = io.BytesIO()
pd.DataFrame([RAGAS]).to_parquet(PARQUET)
FILES = {
    "a.jsonl": json.dumps(RAGAS).encode() + b"\n\n",
    "no-ending": json.dumps(RAGAS).encode(),
    "list.json": json.dumps([RAGAS], indent=1).encode(),
    "within.json": json.dumps({"name": "x", "rows": [RAGAS]}).encode(),
    "one.json": json.dumps(RAGAS).encode(),
    "columns.json": json.dumps({key: [value] for key, value in RAGAS.items()}).encode(),
    "pandas.json": pd.DataFrame([RAGAS]).to_json().encode(),
    "lines.json": (json.dumps(RAGAS) + "\n" + json.dumps(RAGAS)).encode(),
    "comma.csv": as_csv(",").encode(),
    "semicolon.csv": as_csv(";").encode(),
    "excel.csv": as_csv(";").encode("utf-8-sig"),
    "tab.tsv": as_csv("\t").encode(),
    "wide.csv": as_csv("\t").encode("utf-16"),
    "pandas.csv": as_csv(",", repr).encode(),
    "a.parquet": PARQUET.getvalue(),
}


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_case(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(FILES[name])
    refused: list[UsageError] = []
    rows = read_rows(tmp_path / name, refused.append)
    assert not refused
    assert [core(row.case) for row in rows] == [(Q, A, P, R)] * (2 if name == "lines.json" else 1)


@pytest.mark.parametrize("name", [name for name in FILES if "." in name and name != "lines.json"])
def test_a_gold_set_is_read_from_the_same_files(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(FILES[name])
    found = load(tmp_path / name)
    (item,) = found.items
    assert (item.question, item.reference, item.contexts) == (Q, R, ())
    assert found.keys == "keys: question from user_input (RAGAS), reference"


def test_the_outputs_of_an_example_of_langsmith_are_the_reference_of_a_gold_set(tmp_path: Path) -> None:
    (tmp_path / "set.jsonl").write_text(json.dumps({"inputs": {"question": Q}, "outputs": {"answer": R}}))
    (item,) = load(tmp_path / "set.jsonl").items
    assert (item.question, item.reference) == (Q, R)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.jsonl", b'{"prompt": "x", "id": 1}', "a.jsonl: no row has a question; question, user_input (RAGAS), "),
        ("a.jsonl", b'{"prompt": "x", "id": 1}', "; got the keys prompt, id"),
        ("a.jsonl", b'{"question": " "}', "no row has a question"),
        ("a.csv", b"question;answer\n", "no row has a question; "),
        ("a.csv", "question;answer\nWo?;M\u00fcnchen\n".encode("cp1252"), "is not UTF-8 text, from line 2; save it as"),
        ("a.parquet", b"PAR1", "a.parquet: is not Parquet: "),
        ("a.csv", "question;answer\nWo?;M\u00fcnchen\n".encode("utf-16-le"), "holds NUL bytes, as UTF-16 without"),
        ("a.csv", b"PK\x03\x04\x14\x00", "a.csv: is a spreadsheet or a zip file; save it as CSV"),
        ("a.jsonl", b"\x1f\x8b\x08\x00", "a.jsonl: is compressed; unpack it first"),
        (
            "a.jsonl",
            b'{"question": "Wo?", "completion": "Hier."}',
            "a.jsonl: no row has an answer; answer, response (RA",
        ),
    ],
)
def test_a_file_that_is_another_one_is_refused_in_one_line(
    tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError) as refused:
        read_rows(tmp_path / name, pytest.fail)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_without_pyarrow_parquet_is_refused_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.parquet").write_bytes(FILES["a.parquet"])
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match="pip install pyarrow"):
        read_rows(tmp_path / "a.parquet", pytest.fail)


def test_a_broken_row_is_named_and_does_not_stop_the_rest(tmp_path: Path) -> None:
    lines = ['{"question": "a", "question": "b"}', "{", '{"question": "\\ud83d"}', "[]", json.dumps(OWN)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    refused: list[UsageError] = []
    rows = read_rows(tmp_path / "a.jsonl", refused.append)
    assert [row.case.question for row in rows] == [Q]
    assert [str(each).split(":")[0] for each in refused] == ["line 1", "line 2", "line 3", "line 4"]


# ---------------------------------------------------------------- memory


class Dataset:
    """As one of Hugging Face: a list of dicts that knows no index."""

    def to_list(self) -> list[dict[str, Any]]:
        return [RAGAS]


IN_MEMORY = {
    "dicts": [RAGAS],
    "cases": [Case(Q, A, P, reference=R)],
    "a case": Case(Q, A, P, reference=R),
    "a generator": (row for row in [RAGAS]),
    "pandas": pd.DataFrame([RAGAS]),
    "arrays of pandas": pd.read_parquet(PARQUET),
    "a data set": Dataset(),
    "a row": RAGAS,
    "a list per column": {key: [value] for key, value in RAGAS.items()},
    "a series of rows": pd.Series([RAGAS]),
    "printed columns of pandas": pd.read_csv(io.StringIO(as_csv(",", repr))),
}


@pytest.mark.parametrize("given", IN_MEMORY.values(), ids=IN_MEMORY)
def test_whatever_holds_rows_gives_the_same_case(given: object) -> None:
    (row,) = rows_of(given)
    assert core(row.case) == (Q, A, P, R)


def test_polars_gives_the_same_case() -> None:
    polars = pytest.importorskip("polars")
    (row,) = rows_of(polars.DataFrame([RAGAS]))
    assert core(row.case) == (Q, A, P, R)


def test_what_a_frame_lacks_is_nothing_rather_than_a_number() -> None:
    frame = pd.DataFrame([{"question": Q, "answer": A, "when": pd.Timestamp(0)}, {"question": "And?", "contexts": P}])
    first, second = rows_of(frame)
    assert (first.case.answer, first.case.contexts, second.case.answer) == (A, (), None)
    assert second.interaction.state == "no_answer"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (5, "got <class 'int'>"),
        ({"train": [], "test": []}, "got a mapping of train, test; choose one"),
        ([{"question": Q}, {"question": 5}], "row 2: question: text expected; got int"),
        ([], "no row has a question"),
        (pd.Series([Q]), "row 1: an object with question and answer expected; got str"),
        (pd.DataFrame([[Q, A, "B"]], columns=["question", "answer", "answer"]), "answer: two columns of that name"),
    ],
)
def test_what_holds_no_rows_is_refused(given: object, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        rows_of(given)
    assert said in str(refused.value)
