"""`KEYS`, the one table of where a row of each tool holds what tracescore reads; no other module knows their names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

_OWN, _RAGAS, _DEEPEVAL, LANGSMITH, _OPENAI = "tracescore", "RAGAS", "DeepEval", "LangSmith", "OpenAI"
_LLAMAINDEX, _STORES = "LlamaIndex", "Phoenix, Langfuse, Braintrust"


class Key(NamedTuple):
    """Where a row may hold a field, and whose spelling that is. `path` is a key, or a key within an object."""

    path: str
    tool: str

    @property
    def tools(self) -> set[str]:
        """The tools one by one."""
        return set(self.tool.split(", "))

    @property
    def foreign(self) -> bool:
        """Whether it is another tool's."""
        return self.tool != _OWN


KEYS: Mapping[str, tuple[Key, ...]] = {
    "question": (
        Key("question", _OWN),
        Key("user_input", _RAGAS),
        Key("input", f"{_DEEPEVAL}, {_OPENAI}, {_STORES}"),
        Key("query", _LLAMAINDEX),
        Key("inputs.question", LANGSMITH),
        Key("inputs.input", LANGSMITH),
        Key("inputs.query", LANGSMITH),
        Key("inputs.messages", LANGSMITH),
        Key("input.question", _STORES),
        Key("input.query", _STORES),
        Key("input.input", _STORES),
        Key("input.messages", _STORES),
        Key("item.question", _OPENAI),
        Key("item.input", _OPENAI),
        Key("messages", _OPENAI),
        Key("turns", _DEEPEVAL),
    ),
    "answer": (
        Key("answer", _OWN),
        Key("response", f"{_RAGAS}, {_LLAMAINDEX}"),
        Key("actual_output", _DEEPEVAL),
        Key("actualOutput", _DEEPEVAL),
        Key("output", f"{_STORES}, TruLens"),
        Key("outputs.answer", LANGSMITH),
        Key("outputs.output", LANGSMITH),
        Key("outputs.response", LANGSMITH),
        Key("output.answer", _STORES),
        Key("output.output", _STORES),
        Key("output.response", _STORES),
        Key("sample.output_text", _OPENAI),
    ),
    "contexts": (
        Key("contexts", _OWN),
        Key("retrieved_contexts", _RAGAS),
        Key("retrieval_context", _DEEPEVAL),
        Key("retrievalContext", _DEEPEVAL),
        Key("outputs.contexts", LANGSMITH),
        Key("outputs.documents", LANGSMITH),
        Key("output.contexts", _STORES),
        Key("output.documents", _STORES),
        Key("item.contexts", _OPENAI),
    ),
    "reference": (
        Key("reference", _OWN),
        Key("ground_truth", f"{_RAGAS} before 0.2"),
        Key("ground_truths", f"{_RAGAS} before 0.1"),
        Key("expected_output", f"{_DEEPEVAL}, Langfuse"),
        Key("expectedOutput", f"{_DEEPEVAL}, Langfuse"),
        Key("expected", "Braintrust"),
        Key("reference_answer", _LLAMAINDEX),
        Key("reference_outputs.answer", LANGSMITH),
        Key("reference_outputs.output", LANGSMITH),
        Key("reference.answer", LANGSMITH),
        Key("reference.output", LANGSMITH),
        Key("expected_output.answer", "Langfuse"),
        Key("expectedOutput.answer", "Langfuse"),
        Key("expected.answer", "Braintrust"),
        Key("ideal", _OPENAI),
        Key("item.reference", _OPENAI),
        Key("item.ground_truth", _OPENAI),
        Key("item.ideal", _OPENAI),
    ),
    "history": (Key("history", _OWN),),
}
"""Field -> where it may be, the first that a row has is taken.

RAGAS 0.4: `SingleTurnSample`, and before 0.2 `question`, `answer`, `contexts`, `ground_truth`. DeepEval: `LLMTestCase`.
LangSmith: `inputs`, `outputs` and `reference_outputs` of an evaluator, and `inputs.question` as
`ExperimentResults.to_pandas` names columns. OpenAI: `input` and `ideal` of the repository `openai/evals`, `item` and
`sample` of the Evals API, `messages` of fine-tuning. Phoenix, Langfuse and Braintrust: `input`, `output` and what is
expected, each a text or an object. LlamaIndex: `EvaluationResult` and `LabelledRagDataset`. The ideal passages
(`context` of DeepEval, `reference_contexts` of RAGAS) are in no row of it: they are not what the app retrieved.
"""

PATHS = tuple(key.path for keys in KEYS.values() for key in keys)
IDEAL = ("context", "reference_contexts")
"""The keys of the ideal passages, which are never taken for those retrieved."""
LISTS = frozenset(
    {"history", "tags", "required", "messages", "turns", "ground_truths", "inputs.messages", "input.messages"}
    | {key.path for key in KEYS["contexts"]}
    | set(IDEAL)
)
"""Keys whose text, where it begins with `[`, is a list."""
OBJECTS: Mapping[str, frozenset[str]] = {
    outer: frozenset(path.partition(".")[2] for path in PATHS if path.startswith(f"{outer}."))
    for outer in (path.partition(".")[0] for path in PATHS)
    if any(path.startswith(f"{outer}.") for path in PATHS)
}
"""Keys whose text, where it begins with `{`, is an object, and what is looked for in it."""


class Located(NamedTuple):
    """The value of a field in a row, and where it was."""

    key: Key
    value: Any


def find(row: Mapping[Any, Any], field: str) -> Located | None:
    """What the row holds of a field; None when it holds nothing."""
    for key in KEYS[field]:
        value = _at(row, key.path)
        if value is not None and not (field != "history" and isinstance(value, Mapping)):
            return Located(key, value)
    return None


def _at(row: Mapping[Any, Any], path: str) -> Any:
    """The value of the column `a.b`, or of `b` in the object `a`."""
    if path in row:
        return row[path]
    outer, _, inner = path.partition(".")
    held = row.get(outer) if inner else None
    return held.get(inner) if isinstance(held, Mapping) else None


def unclear(row: Mapping[Any, Any]) -> Iterator[str]:
    """What nobody can read for sure in a row, in a line each: a key that is nearly one, an object for a text."""
    used = {field: found.key for field in KEYS if (found := find(row, field)) is not None}
    yield from _misspelt(row, used)
    for field in KEYS.keys() - used.keys():
        for key in KEYS[field]:
            if isinstance(held := row.get(key.path), Mapping) and held:
                yield f"{key.path}: text expected; got an object with {', '.join(map(str, list(held)[:5]))}"
    paths = {field: key.path for field, key in used.items()}
    if (paths.get("question"), paths.get("answer"), paths.get("reference")) == ("input", "output", "reference"):
        yield (
            "reference: beside input and output it may be the right answer or, of Phoenix, the passages; "
            "name it expected_output or contexts"
        )


def _misspelt(row: Mapping[Any, Any], used: Mapping[str, Key]) -> Iterator[str]:
    """Keys that are nearly one that the row lacks, each with that one; a name such as question_id is another's."""
    tools = {_OWN}.union(*(key.tools for key in used.values()))
    unused = [key for field, keys in KEYS.items() if field not in used for key in keys]
    lacking = [key.path for key in unused if "." not in key.path and key.path not in row and key.tools & tools]
    for key in map(str, row):
        if key not in PATHS and not (key in IDEAL and len(tools) > 1):
            near = difflib.get_close_matches(key.lower(), lacking, n=1, cutoff=0.8 if key.isalpha() else 0.9)
            if near:
                yield f"{key}: unknown key; did you mean '{near[0]}'?"


def taken(rows: Iterable[Mapping[Any, Any]], fields: Iterable[str] = tuple(KEYS)) -> str:
    """Which keys the fields are read from, in a line; empty when all of them are tracescore's own."""
    seen: dict[tuple[str, Key], None] = {}
    ideal: dict[str, None] = {}
    for row in rows:
        seen |= {(field, found.key): None for field in fields if (found := find(row, field)) is not None}
        ideal |= dict.fromkeys(key for key in IDEAL if row.get(key) is not None)
    if not any(key.foreign for _, key in seen):
        return ""
    told = [f"{field} from {key.path} ({key.tool})" if key.foreign else field for field, key in seen]
    left = [f"; {key}: the ideal passages, not those retrieved, are left out" for key in ideal if "contexts" in fields]
    return f"keys: {', '.join(told)}{''.join(left)}"


def known(field: str) -> str:
    """The first keys of a field, as an error names them."""
    return ", ".join(f"{key.path} ({key.tool})" if key.foreign else key.path for key in KEYS[field][:4])
