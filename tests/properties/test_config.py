"""Whatever stands in a configuration file, it is read, or refused in lines that say where."""

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from tracescore.config import Config
from tracescore.config.file import parse
from tracescore.errors import ConfigError

SECTIONS = Config().model_dump(mode="json")
NAMES = sorted({*SECTIONS, *(name for section in SECTIONS.values() if isinstance(section, dict) for name in section)})
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["5s", "0B", "http://x:1", "127.0.0.1:1", "openai", "embedded", "file", "env", "/nowhere"])
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=3), inner),
    max_leaves=8,
)


def check(text: str) -> None:
    problems = None
    try:
        parse(text, "f.yaml", secrets=True)
    except ConfigError as error:
        problems = error.problems
    if problems is not None:
        assert problems
        assert all(problem.startswith("f.yaml:") and problem.isprintable() for problem in problems)


@given(st.text(alphabet="[]{}&*!<>:-?|,'\"#~%@ \n\tab01.", max_size=80))
def test_no_text_is_a_defect(text: str) -> None:
    check(text)


@given(st.dictionaries(st.sampled_from(sorted(SECTIONS)), VALUES, min_size=1))
def test_no_value_of_a_section_is_a_defect(values: dict[str, Any]) -> None:
    check(yaml.safe_dump(values, allow_unicode=True))


@given(st.sampled_from(sorted(SECTIONS)), st.sampled_from(NAMES), VALUES)
def test_no_value_of_a_setting_is_a_defect(section: str, name: str, value: Any) -> None:
    check(yaml.safe_dump({section: {name: value}}, allow_unicode=True))
