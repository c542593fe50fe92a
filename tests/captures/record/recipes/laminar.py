"""Laminar's SDK: @observe around functions, and the OpenAI client that it instruments."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

from .. import scene
from ..setups import LISTED, Setup

SETUPS = (
    Setup(
        name="laminar-observe",
        packages=("lmnr==0.8.2", "openai==3.57.0"),
        turns=(replace(LISTED, root="ask"),),
        special="Laminar.initialize sent to OTLP over HTTP; @observe around ask and retrieve",
    ),
)


def main(_mode: str) -> None:
    from urllib.parse import urlsplit

    from lmnr import Laminar, observe

    sink = urlsplit(os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"])
    host = f"{sink.scheme}://{sink.hostname}"
    Laminar.initialize(project_api_key="none", base_url=host, base_http_url=host, http_port=sink.port, force_http=True)
    from openai import OpenAI

    @observe()
    def retrieve(query: str) -> list[str]:
        return list(scene.PASSAGES) if query else []

    @observe()
    def ask(question: str) -> str:
        retrieve(question)
        content = scene.PROMPT.format(notes=scene.NOTES, question=question)
        messages = [{"role": "user", "content": content}]
        reply = OpenAI().chat.completions.create(model="gpt-4o-mini", messages=messages)
        return str(reply.choices[0].message.content)

    print(ask(scene.QUESTION))
    Laminar.flush()


if __name__ == "__main__":
    main(sys.argv[1])
