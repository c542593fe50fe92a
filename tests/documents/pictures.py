"""Takes pictures of the page as Chromium shows it, of a week with three apps and a release that got worse.

python -m tests.documents.pictures           docs/page.png, the picture in the README
python -m tests.documents.pictures FOLDER    every page, in light and dark, in a window and on a telephone
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from typing import get_args

from tests.browser import NARROW, WIDE, Colours, chromium, pages_of, visit
from tests.documents import DOCS
from tests.seeded import TOKEN, seeded

FILE = DOCS / "page.png"
HEIGHT = 620
"""Of the picture in the README: up to the end of the services."""


def main(folder: Path | None) -> None:
    """Takes the pictures."""
    with tempfile.TemporaryDirectory() as files, chromium() as browser, seeded(Path(files)) as service:
        window = visit(browser, service.url)
        window.log_in(TOKEN)
        if folder is None:
            window.page.set_viewport_size({"width": WIDE, "height": HEIGHT})
            window.page.screenshot(path=FILE)
            return
        for address in pages_of(window.context.request):
            window.page.goto(address)
            for width in (WIDE, NARROW):
                window.page.set_viewport_size({"width": width, "height": 900})
                for colours in get_args(Colours):
                    window.page.emulate_media(color_scheme=colours)
                    window.page.screenshot(path=folder / f"{named(address)}-{width}-{colours}.png", full_page=True)


def named(address: str) -> str:
    """An address as the name of a file."""
    words = re.sub(r"[0-9a-f]{16,}", "one", address)
    return re.sub(r"\W+", "-", words).strip("-")[:60] or "home"


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
