"""What README.md and docs/ show is what there is: settings, commands, metrics, links and files."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from typer.main import get_command

from tests.sample_app import provider
from tracescore.cli.main import app
from tracescore.config import Config, InteractionsConfig
from tracescore.config.file import parse
from tracescore.config.gold import (
    GoldConfig,
    HttpTargetConfig,
    OpenAITargetConfig,
    PythonTargetConfig,
    TraceTargetConfig,
)
from tracescore.gold.items import load
from tracescore.gold.results import GOLD_MEASURES
from tracescore.interactions import read
from tracescore.interactions.table import CONVENTIONS
from tracescore.model import LIVE_MEASURES, RawTrace
from tracescore.otlp.decode import decode
from tracescore.otlp.split import split_traces
from tracescore.service import Service

ROOT = Path(__file__).parent.parent
PAGES = {path.relative_to(ROOT): path.read_text() for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))}
README, CONFIGURATION, METRICS, GOLD, CONVENTIONS_PAGE = (
    PAGES[Path(name)]
    for name in ("README.md", "docs/configuration.md", "docs/metrics.md", "docs/gold.md", "docs/conventions.md")
)


def blocks(language: str) -> list[tuple[str, str]]:
    """The code blocks of README and docs in this language: (page, text)."""
    found = ((page, re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)) for page, text in PAGES.items())
    return [(str(page), block) for page, shown in found for block in shown]


def named(value: str) -> str:
    return value.split("\n", maxsplit=1)[0]


def test_the_readme_is_at_most_150_lines() -> None:
    assert README.count("\n") <= 150


@pytest.mark.parametrize(("page", "block"), blocks("yaml"), ids=named)
def test_every_configuration_gold_set_and_rule_shown_is_valid(page: str, block: str, tmp_path: Path) -> None:
    if block.startswith("- alert:"):
        assert {"alert", "expr"} <= yaml.safe_load(block)[0].keys()
    elif block.startswith("- "):
        (tmp_path / "gold.yaml").write_text(block)
        assert load(tmp_path / "gold.yaml").items
    else:
        parse(block, page)


def test_every_setting_of_the_gold_set_is_shown() -> None:
    section = GOLD + CONFIGURATION.split("# gold: ")[1].split("shutdown")[0]
    for settings in (GoldConfig, HttpTargetConfig, OpenAITargetConfig, PythonTargetConfig, TraceTargetConfig):
        missing = {name for name in settings.model_fields if not re.search(rf"\b{name}\b", section)}
        assert not missing, settings


def test_the_reference_shows_every_setting_with_its_default() -> None:
    (reference,) = re.findall(r"```yaml\n(receiver.*?)```", CONFIGURATION, re.DOTALL)
    assert parse(reference, "docs/configuration.md") == Config()
    shown = yaml.safe_load(reference)
    for section, settings in Config().model_dump().items():
        if isinstance(settings, dict):
            missing = {name for name, value in settings.items() if value is not None} - set(shown[section])
            assert not missing, f"{section} does not show {missing}"


@pytest.mark.parametrize(("page", "block"), blocks("python"), ids=named)
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
        for name, options in re.findall(r"tracescore (gold \w+|\w+)((?: [^&|]*)?)", line.replace("docker run", "")):
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


ON_THE_NETWORK = "judge: {kind: openai, model: m}\nembedder: {kind: openai, model: e}\n"


def families(settings: str) -> set[str]:
    found = Service(parse(settings, "test")).registry.collect()
    return {family.name + ("_total" if family.type == "counter" else "") for family in found}


@pytest.mark.local
def test_the_metrics_that_only_a_judge_on_the_network_has_are_marked() -> None:
    marked = {line for line in METRICS.splitlines() if "| (openai) " in line}
    names = {name for line in marked for name in re.findall(r"`(tracescore_\w+)`", line)}
    assert names == families(ON_THE_NETWORK) - families("{}")


def test_the_table_of_metrics_is_what_the_service_exposes(tmp_path: Path) -> None:
    settings = ON_THE_NETWORK
    settings += (
        "exporters:\n  otlp: {endpoint: 'http://elsewhere:4318'}\n  phoenix: {endpoint: 'http://elsewhere:6006'}\n"
    )
    settings += "  forward: {http: 'http://elsewhere:4318', attach: hold}\n"
    settings += "redaction: {patterns: [email]}\n"
    settings += "spool: {path: /nowhere/spool}\ndrift: {labels: {path: /nowhere/labels}}\n"
    (tmp_path / "gold.yaml").write_text("[{question: q, reference: r}]")
    settings += f"gold: {{set: '{tmp_path / 'gold.yaml'}', target: {{kind: http, url: 'http://elsewhere'}}}}\n"
    shown = set()
    for name in re.findall(r"`(tracescore_[\w<>]+)`", METRICS):
        measures = GOLD_MEASURES if "_gold_" in name else LIVE_MEASURES
        shown |= {name.replace("<measure>", measure) for measure in measures} if "<" in name else {name}
    assert shown == families(settings)


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
        assert (ROOT / f"{module.replace('.', '/')}.py").exists(), module


def test_nothing_is_left_to_be_filled_in() -> None:
    for page, text in PAGES.items():
        assert not re.findall(r"^[A-Z_]{8,}$|\bTODO\b|\bTBD\b", text, re.MULTILINE), page


def test_help_of_every_command_is_one_screen() -> None:
    plain = ("serve", "check", "inspect", "score", "labels", "calibrate", "baseline", "anchors", "demo")
    for name in (*plain, "gold", "gold run", "gold pin"):
        done = subprocess.run(
            [sys.executable, "-m", "tracescore.cli.main", *name.split(), "--help"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert 0 < done.stdout.count("\n") < 40
