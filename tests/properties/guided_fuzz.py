"""Fuzzing by coverage: `python -m tests.properties.guided_fuzz WHAT [-max_total_time=600]`; needs atheris.

WHAT is one of the names in test_fuzz.py; the options are those of libFuzzer. It ends with a traceback, and the input in
a file, at the first error that is no refusal.
"""

from __future__ import annotations

import sys

import atheris  # type: ignore[import-not-found,unused-ignore]  # by hand: pip install atheris

with atheris.instrument_imports(include=["tracescore"]):
    from tests.properties.test_fuzz import FUZZED

if __name__ == "__main__":
    atheris.Setup([sys.argv[0], *sys.argv[2:]], FUZZED[sys.argv[1]].hypothesis.fuzz_one_input)  # type: ignore[attr-defined]
    atheris.Fuzz()
