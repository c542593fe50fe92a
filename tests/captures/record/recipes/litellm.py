"""LiteLLM: its OpenTelemetry callback in the library and in the proxy, and OpenInference."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.request
from dataclasses import replace
from pathlib import Path

from .. import scene
from ..setups import FAILED, PROMPT, SILENT, Setup

_LITELLM = "litellm==1.110.2"
_STREAMED = replace(PROMPT, key="streamed")
_SENT = scene.PROMPT.format(notes=scene.NOTES, question=scene.QUESTION)
SETUPS = (
    Setup(
        name="litellm-openinference",
        packages=(_LITELLM, "openinference-instrumentation-litellm==0.1.51"),
        mode="openinference",
        turns=(PROMPT, _STREAMED, FAILED),
        special="completion() whole, streamed, refused",
    ),
    Setup(
        name="litellm-otel-callback",
        packages=(_LITELLM,),
        mode="callback",
        turns=(PROMPT, _STREAMED, FAILED),
        special="litellm.callbacks = ['otel']: completion() whole, streamed, refused",
    ),
    Setup(
        name="litellm-otel-callback-nocontent",
        packages=(_LITELLM,),
        mode="callback-nocontent",
        turns=(SILENT, replace(SILENT, key="streamed"), replace(SILENT, key="failing", state="app_error")),
        switches="litellm.turn_off_message_logging = True",
        special="as litellm-otel-callback",
    ),
    Setup(
        name="litellm-proxy-otel",
        packages=("litellm[proxy]==1.94.3",),
        mode="proxy",
        turns=(
            replace(
                PROMPT,
                root="litellm_request",
                or_root=("Received Proxy Server Request", "POST /v1/chat/completions"),
                why="the request to the model is what a user of the proxy looks at; the spans above are the proxy's as "
                "a server and stand for the same request; the prompt calls the passages notes, which a reader need not "
                "take for a mark of the context",
            ),
        ),
        special="the proxy with callbacks: ['otel']; one request by the OpenAI client's protocol",
    ),
)


def _completions() -> None:
    import litellm

    litellm.num_retries = 0
    for question, stream in ((scene.QUESTION, False), (scene.QUESTION, True), (scene.FAILING, False)):
        content = scene.PROMPT.format(notes=scene.NOTES, question=question)
        messages = [{"role": "system", "content": scene.SYSTEM}, {"role": "user", "content": content}]
        try:
            made = litellm.completion(model="openai/gpt-4o-mini", messages=messages, stream=stream)
            for _ in made if stream else ():
                pass
        except Exception as refused:
            print(refused)


def _proxy() -> None:
    import json
    import socket

    model = {"model": "openai/gpt-4o-mini", "api_base": os.environ["OPENAI_BASE_URL"], "api_key": "none"}
    config = {
        "model_list": [{"model_name": "desk", "litellm_params": model}],
        "litellm_settings": {"callbacks": ["otel"]},
    }
    Path("config.yaml").write_text(json.dumps(config))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [Path(sys.executable).with_name("litellm"), "--config", "config.yaml", "--host", "127.0.0.1"]
    served = subprocess.Popen([*command, "--port", str(port)])
    body = {"model": "desk", "messages": [{"role": "user", "content": _SENT}]}
    url, headers = f"http://127.0.0.1:{port}", {"Content-Type": "application/json"}
    try:
        for _ in range(120):
            try:
                urllib.request.urlopen(f"{url}/health/liveliness").read()
                break
            except OSError:
                time.sleep(1)
        asked = urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(body).encode(), headers)
        print(urllib.request.urlopen(asked).read())
        time.sleep(8)  # the proxy's exporter sends every five seconds
    finally:
        served.terminate()
        served.wait()


def main(mode: str) -> None:
    os.environ.update(LITELLM_LOCAL_MODEL_COST_MAP="True", OTEL_EXPORTER="otlp_http")
    os.environ["OTEL_ENDPOINT"] = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"]
    if mode == "proxy":
        return _proxy()
    import litellm
    from record import telemetry

    litellm.telemetry = False
    provider = telemetry.tracer_provider()
    if mode == "openinference":
        from openinference.instrumentation.litellm import LiteLLMInstrumentor

        LiteLLMInstrumentor().instrument(tracer_provider=provider)
    else:
        litellm.callbacks = ["otel"]
        litellm.turn_off_message_logging = mode.endswith("nocontent")
    _completions()
    time.sleep(3)  # callbacks run on a thread of their own
    provider.force_flush()
    return None


if __name__ == "__main__":
    main(sys.argv[1])
