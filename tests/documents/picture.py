"""Takes docs/page.png, the picture of the page in the README: `python -m tests.documents.picture`.

It is an answer of the demo that is to the point and not faithful, as Chromium (Debian: `apt-get install chromium`)
shows it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

from tests.documents import DOCS

FILE = DOCS / "page.png"
ANSWERS = 40
WIDTH, HEIGHT = 1000, 920


def main() -> None:
    """Runs the demo until enough answers are scored, and takes the picture while it runs."""
    command = [sys.executable, "-m", "tracescore", "demo"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as demo:
        assert demo.stdout is not None
        url, scored = "", 0
        for line in demo.stdout:
            url = url or next(iter(re.findall(r"^page +(\S+)", line)), "")
            scored += "faithfulness" in line
            if scored >= ANSWERS:
                break
        lowest = dict.fromkeys(re.findall(r"/(interactions/[0-9a-f]{32})#", shown(f"{url}?measure=faithfulness")))
        take(next(f"{url}{each}" for each in lowest if is_telling(shown(f"{url}{each}"))))
        demo.terminate()


def shown(url: str) -> str:
    """The HTML at an address."""
    with urllib.request.urlopen(url) as page:
        return page.read().decode()


def is_telling(page: str) -> bool:
    """Whether the first two scores of an interaction are good and the third, of faithfulness, is not."""
    scores = [float(score) for score in re.findall(r'class="big">\s*<span[^>]*>([\d.]+)', page)]
    return len(scores) == 3 and min(scores[:2]) > 0.6 > scores[2]


def take(url: str) -> None:
    """What Chromium shows at an address. FileNotFoundError: it is not installed."""
    browser = shutil.which("chromium")
    if browser is None:
        raise FileNotFoundError("chromium: apt-get install chromium")
    with tempfile.TemporaryDirectory() as profile:
        picture = Path(profile, "page.png")
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-color-profile=srgb"]
        options += [f"--user-data-dir={profile}", f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={picture}"]
        subprocess.run([browser, *options, url], check=True, capture_output=True, timeout=60)
        FILE.write_bytes(picture.read_bytes())


if __name__ == "__main__":
    main()
