"""A metric of RAGAS as a measure of one's own: the functions of the docs as they stand there, with the real package."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.openai_server import Reply, Request, openai_server
from tests.running import run

PYTHON = os.environ.get("TRACESCORE_RAGAS", "")
PAGE = Path(__file__).parents[2] / "docs" / "custom-measures.md"
SUPPORTED, INVENTED = "Items can be returned within 30 days.", "Shipping is free."

pytestmark = [
    pytest.mark.local,
    pytest.mark.timeout(120),
    pytest.mark.skipif(not PYTHON, reason="needs an environment with RAGAS: TRACESCORE_RAGAS names its python"),
]


def judge(request: Request) -> Reply:
    """RAGAS asks first for the statements of an answer, then for a verdict on each."""
    if "verdict" not in request.raw.decode():
        return Reply.json({"statements": [SUPPORTED, INVENTED]})
    verdicts = {SUPPORTED: 1, INVENTED: 0}
    told = [{"statement": each, "reason": "r", "verdict": verdict} for each, verdict in verdicts.items()]
    return Reply.json({"statements": told})


def test_faithfulness_of_ragas_is_a_measure_like_any_other(tmp_path: Path) -> None:
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        name = block.removeprefix("# ").partition("\n")[0]
        if "ragas" in block:
            (tmp_path / name).write_text(
                block.replace("/opt/ragas/bin/python", PYTHON).replace('"ragas_faith', f'"{tmp_path}/ragas_faith')
            )
    own = {
        "kind": "python",
        "callable": "checks:ragas_faithfulness",
        "reads": ["question", "answer", "contexts"],
        "version": 1,
        "timeout": "60s",
    }
    config = {"measures": ["ragas_faithfulness"], "evaluators": {"custom": {"ragas_faithfulness": own}}}
    (tmp_path / "c.yaml").write_text(json.dumps(config))
    rows = [{"question": "How long?", "answer": f"30 days. {n}", "contexts": [SUPPORTED]} for n in range(3)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with openai_server(judge) as server:
        files = str(tmp_path / "rows.jsonl"), "-c", str(tmp_path / "c.yaml")
        done = run("score", *files, OPENAI_BASE_URL=server.url, OPENAI_API_KEY="x")
    assert done.returncode == 0, done.stderr
    found = [json.loads(line)["scores"]["ragas_faithfulness"]["value"] for line in done.stdout.splitlines()]
    assert found == [0.5] * 3
    assert len(server.requests) == 6
