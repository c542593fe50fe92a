"""What README.md and docs/ show is what there is: settings, commands, metrics, links and files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from typer.main import get_command

from tests.documents import configuration, pages
from tests.documents.configuration import EXAMPLES
from tests.sample_app import provider
from tracescore.cli.main import app
from tracescore.config import Config, InteractionsConfig
from tracescore.config.file import parse
from tracescore.gold.items import load
from tracescore.interactions import read
from tracescore.interactions.table import CONVENTIONS
from tracescore.model import RawTrace
from tracescore.otlp.decode import decode
from tracescore.otlp.split import split_traces

ROOT = Path(__file__).parent.parent
PAGES = {path.relative_to(ROOT): path.read_text() for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))}
README, CONVENTIONS_PAGE = PAGES[Path("README.md")], PAGES[Path("docs/conventions.md")]


def blocks(language: str) -> list[tuple[str, str]]:
    """The code blocks of README and docs in this language: (page, text)."""
    found = ((page, re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)) for page, text in PAGES.items())
    return [(str(page), block) for page, shown in found for block in shown]


def named(value: str) -> str:
    return value.split("\n", maxsplit=1)[0]


def test_the_readme_is_at_most_150_lines() -> None:
    assert README.count("\n") <= 150


def test_the_glossary_has_at_most_25_words() -> None:
    assert len(re.findall(r"^\| (?!word )[a-z]", PAGES[Path("docs/glossary.md")], re.MULTILINE)) <= 25


@pytest.mark.parametrize(("page", "block"), blocks("yaml"), ids=named)
def test_every_configuration_gold_set_and_rule_shown_is_valid(page: str, block: str, tmp_path: Path) -> None:
    if block.startswith("- alert:"):
        assert {"alert", "expr"} <= yaml.safe_load(block)[0].keys()
    elif block.startswith("- "):
        (tmp_path / "gold.yaml").write_text(block)
        assert load(tmp_path / "gold.yaml").items
    else:
        parse(block, page)


@pytest.mark.parametrize("document", EXAMPLES.read_text().split("\n---\n"), ids=named)
def test_the_examples_of_settings_are_valid_together(document: str) -> None:
    parse(document, EXAMPLES.name)


def test_every_setting_says_what_it_means() -> None:
    silent = [f"{table.path}.{key.name}" for table in configuration.tables() for key in table.keys if not key.meaning]
    assert not silent, f"no docstring below {silent}"


@pytest.mark.local
def test_the_pages_made_from_the_code_say_what_the_code_says() -> None:
    stale = [file.name for file, text in pages().items() if file.read_text() != text]
    assert not stale, "run: python -m tests.documents"


def test_all_defaults_shown_are_the_defaults() -> None:
    (shown,) = re.findall(r"```yaml\n(receiver.*?)```", PAGES[Path("docs/configuration.md")], re.DOTALL)
    assert parse(shown, "docs/configuration.md") == Config()


@pytest.mark.parametrize(
    ("page", "block"),
    [each for each in blocks("python") if each[0] not in ("docs/python.md", "docs/custom-measures.md")],
    ids=named,
)
def test_the_spans_shown_are_read_as_a_complete_interaction(page: str, block: str) -> None:
    memory = InMemorySpanExporter()
    names = {"question": "What is it?", "passages": ["It is a thing.", "Or two."], "answer": "A thing."}
    exec(block, {"tracer": provider(memory).get_tracer("app"), **names})
    body = encode_spans(memory.get_finished_spans()).SerializeToString()
    spans = split_traces(body, lambda _: True).spans
    trace = decode(RawTrace(spans[0].trace_id, tuple(spans), (), "complete"))
    (found,) = read(trace, InteractionsConfig()).interactions
    assert (found.state, found.question, found.answer) == ("complete", names["question"], names["answer"])
    assert list(found.contexts) == names["passages"]


def test_every_command_and_option_shown_exists() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    for line in "\n".join(block for _, block in blocks("sh")).splitlines():
        for name, options in re.findall(
            r"tracescore ((?:gold|spool) \w+|\w+)((?: [^&|]*)?)", line.replace("docker run", "")
        ):
            if "docker" in line or "pip install" in line.split("tracescore")[0].split("&&")[-1]:
                continue
            command = commands[name.split()[0]]
            for inner in name.split()[1:]:
                command = command.commands[inner]
            known = {option for parameter in command.params for option in parameter.opts}
            assert set(re.findall(r"(?<!\w)--?[a-z-]+", options)) <= known, line


def test_the_test_command_is_the_one_that_ci_runs() -> None:
    script = "/<!-- test command -->/,/```$/p"
    assert script in (ROOT / ".ci" / "run").read_text()
    (command,) = re.findall(r"<!-- test command -->\n```sh\n(.*?)\n```", README, re.DOTALL)
    assert ".venv/bin/pytest" in command


def test_the_table_of_conventions_is_the_one_that_is_read_by() -> None:
    rows = re.findall(r"^\| `([^`]+)` \| [^|]+ \| `([^`]+)` \| [^|]+ \|$", CONVENTIONS_PAGE, re.MULTILINE)
    assert rows == [(convention.name, convention.switch) for convention in CONVENTIONS]


def test_the_keys_of_your_own_that_are_shown_can_be_set() -> None:
    (shown,) = re.findall(r"`(interactions: \{.*\})`", CONVENTIONS_PAGE)
    assert parse(shown, "docs/conventions.md").interactions.question


def anchors(text: str) -> set[str]:
    """What the headings of a page can be linked by: lower case, no punctuation, a hyphen for each space."""
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_link_leads_to_a_file_and_a_heading_that_exist(page: Path) -> None:
    for target, heading in re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", PAGES[page]):
        file = (ROOT / page.parent / target).resolve() if target else ROOT / page
        assert file.is_relative_to(ROOT), f"{page}: {target} leads out of the repository"
        assert file.exists(), f"{page}: {target}"
        if heading and file.suffix == ".md":
            assert heading in anchors(file.read_text()), f"{page}: {target}#{heading}"


def test_every_page_of_the_docs_is_linked_from_the_readme() -> None:
    linked = set(re.findall(r"\]\((docs/[^)#]+)", README))
    assert {str(page) for page in PAGES if page.parent.name == "docs"} <= linked


def test_every_module_of_the_tests_that_is_shown_exists() -> None:
    modules = re.findall(r"python -m (tests\.\w+(?:\.\w+)*)", "".join(PAGES.values()))
    assert modules
    for module in modules:
        path = ROOT / module.replace(".", "/")
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), module


def test_nothing_is_left_to_be_filled_in() -> None:
    for page, text in PAGES.items():
        assert not re.findall(r"^[A-Z_]{8,}$|\bTODO\b|\bTBD\b", text, re.MULTILINE), page
