"""Writes the pages of docs/ that say what the code says: `python -m tests.documents`."""

from __future__ import annotations

from tests.documents import pages

if __name__ == "__main__":
    for file, text in pages().items():
        file.write_text(text, encoding="utf-8")
