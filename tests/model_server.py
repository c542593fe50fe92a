"""Serves a GGUF model over the OpenAI API with llama.cpp, until it is ended: `python model_server.py MODEL CONTEXT`.

Run by the interpreter of an environment that has xllamacpp; prints the address first.
"""

from __future__ import annotations

import signal
import sys

import xllamacpp


def main(model: str, context: int) -> None:
    """Listens on a free port of loopback."""
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = context
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.warmup = False
    params.use_jinja = True
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    signal.pause()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
