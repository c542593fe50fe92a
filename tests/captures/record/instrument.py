"""Writes docs/instrument.md from the recordings' expectations: `python -m tests.captures.record.instrument`."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CAPTURES = Path(__file__).parent.parent
PAGE = CAPTURES.parent.parent / "docs/instrument.md"
_HEAD = """\
# Instrumenting your app

tracescore scores what your instrumentation records. Nothing recorded, nothing scored: most instrumentations leave texts
out until a setting turns them on.

## Three ways to start

Start `tracescore serve`, run your app in one of these ways, ask it a question, and open <http://127.0.0.1:9465>.

**The official OpenTelemetry instrumentation**, here of OpenAI, without a change to your code:

```sh
pip install opentelemetry-distro opentelemetry-exporter-otlp opentelemetry-instrumentation-openai-v2
export OTEL_SERVICE_NAME=shop OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true
export OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf
opentelemetry-instrument python your_app.py
```

**OpenInference**, which records texts by default. There is a package for each of LangChain, LlamaIndex, OpenAI, DSPy,
Haystack and others; for OpenAI:

```sh
pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http openinference-instrumentation-openai
export OTEL_SERVICE_NAME=shop OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318
```

```py
from openinference.instrumentation.openai import OpenAIInstrumentor
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
OpenAIInstrumentor().instrument()
```

**By hand:** three attributes on a span of your own, and the passages on a span below it. The
[README](../README.md#score-your-own-app) shows the code.

Nothing appears? Run `tracescore doctor`. To see what tracescore reads from which span and key, save an OTLP request as
a file and run `tracescore inspect --explain FILE`.

`python -m tests.captures.record.instrument` writes this page from recordings of libraries that ran against a scripted
model. To record another library or version, see [tests/captures/record](../tests/captures/record).

## Settings that record content

The first row that fits applies. An instrumentation without a row follows the [table of conventions](conventions.md).

| instrumentation scope | versions | settings |
|---|---|---|
"""
_LIBRARIES = """
## Libraries

The columns name the attribute that holds the text in the recording (after `event` or `log`: of an event or a log
record). "in the prompt" means that no span lists the passages; only the prompt to the model holds them.

| recording | ran with | question | answer | passages | settings in the recording |
|---|---|---|---|---|---|
"""


def expectations() -> list[dict[str, Any]]:
    """What must be read out of each recording, by name."""
    return sorted((json.loads(path.read_text()) for path in CAPTURES.rglob("*.expected.json")), key=lambda e: e["name"])


def page() -> str:
    """The text of docs/instrument.md."""
    rows = [_row(wanted) for wanted in expectations() if wanted.get("recorded", True)]
    return _HEAD + "".join(_switches()) + _LIBRARIES + "".join(rows)


def _switches() -> Iterator[str]:
    from tracescore.interactions.switches import SWITCHES

    for row in SWITCHES:
        since = ".".join(map(str, row.since))
        versions = f"{since} and later" if since else "all"
        yield f"| `{row.scope}` | {versions} | {_cell(row.settings)} |\n"


def _row(wanted: dict[str, Any]) -> str:
    told = next((one for one in wanted["interactions"] if one.get("found_at")), {})
    found = told.get("found_at", {})
    cells = [_keys(found.get(field)) for field in ("question", "answer", "contexts")]
    if told.get("contexts_in_prompt") and not told.get("contexts"):
        cells[2] = f"in the prompt: {cells[2]}"
    switches = _cell(wanted.get("switches") or wanted["special"])
    ran = _cell(f"{wanted['library']}; {wanted['instrumentation']}")
    return f"| {wanted['name']} | {ran} | {cells[0]} | {cells[1]} | {cells[2]} | {switches} |\n"


def _keys(places: list[str] | None) -> str:
    keys = dict.fromkeys(re.sub(r"\d+", "N", place.split(" @ ")[-1]) for place in places or [])
    return ", ".join(f"`{key}`" for key in list(keys)[:2]) or "not recorded"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def main() -> None:
    """Writes the page."""
    parser = argparse.ArgumentParser(description="Writes docs/instrument.md from the expectations of the recordings.")
    parser.add_argument("--out", type=Path, default=PAGE, help="default: %(default)s")
    parser.parse_args().out.write_text(page())


if __name__ == "__main__":
    main()
