"""What was freed is used again."""

from __future__ import annotations

import subprocess
import sys

import pytest

FAULTS = """
import resource
from tracescore.runtime import keep_freed_memory
keep_freed_memory()
copies = [bytearray(2**19) for _ in range(6)]
del copies
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(50):
    copies = [bytearray(2**19) for _ in range(6)]
    del copies
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc only")
def test_the_copies_of_a_body_are_not_paged_in_anew_for_each_request() -> None:
    faults = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True)
    assert int(faults.stdout) < 50 * 6 * 2**19 / 4096 / 10
