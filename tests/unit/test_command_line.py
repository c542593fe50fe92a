"""What all commands have in common: help, exit status, JSON, colours, completion; and the options of `serve`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.documents.command_line import commands
from tracescore.cli import main
from tracescore.cli.options import Overrides, configured
from tracescore.errors import UsageError

NAMES = [name for name, _ in commands()]


@pytest.mark.parametrize("name", NAMES)
def test_help_of_every_command_is_one_screen(name: str) -> None:
    shown = CliRunner().invoke(main.app, [*name.split(), "--help"])
    assert shown.exit_code == 0
    assert 0 < shown.stdout.count("\n") < 45


@pytest.mark.parametrize("name", NAMES)
def test_every_command_and_option_says_what_it_does_in_a_sentence(name: str) -> None:
    command = dict(commands())[name]
    for text in (command.help, *(one.help for one in command.params)):
        assert text, command.params
        assert text[0].isupper() or text.split(",")[0].islower()
    assert not command.help.split()[0].endswith("s"), "help says what to do, as an imperative"


# ---------------------------------------------------------------- exit status


@pytest.mark.parametrize(
    ("typed", "status"),
    [
        (["--version"], 0),
        (["check", "nowhere.yaml"], 2),
        (["serve", "--no-such-option"], 2),
        (["serve", "--http", "nonsense"], 2),
        (["doctor", "--metrics", "http://127.0.0.1:1"], 1),
        (["baseline", "show", "--page", "http://127.0.0.1:1"], 2),
    ],
)
def test_the_exit_status_is_0_for_fine_1_for_a_failed_check_2_for_wrong_use(
    typed: list[str], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["tracescore", *typed])
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert (ended.value.code or 0) == status


# ---------------------------------------------------------------- what is printed


@pytest.mark.parametrize("name", ["doctor", "baseline show", "gold run", "agree", "calibrate"])
def test_a_command_that_prints_a_table_prints_json_as_well(name: str) -> None:
    command = dict(commands())[name.removesuffix(" show")]
    assert any("--json" in one.opts for one in command.params)


def test_labels_calibrated_as_json_say_what_the_table_says(tmp_path: Path) -> None:
    row = {"measure": "faithfulness", "score": 0.5, "label": 1.0, "judged": ["supported"], "labelled": ["supported"]}
    (tmp_path / "labels.jsonl").write_text("\n".join(json.dumps(row) for _ in range(3)))
    typed = ["calibrate", str(tmp_path / "labels.jsonl")]
    (line,) = CliRunner().invoke(main.app, [*typed, "--json"]).stdout.splitlines()
    found = json.loads(line)
    assert (found["measure"], found["labels"], found["judge"], found["people"]) == ("faithfulness", 3, 0.5, 1.0)
    assert {"judged": "supported", "labelled": "supported", "count": 3} in found["verdicts"]
    assert "judge 0.500, people 1.000" in CliRunner().invoke(main.app, typed).stdout


@pytest.mark.parametrize(("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colours_are_for_terminals_and_not_where_no_color_is_set(
    environment: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal = {"FORCE_COLOR": "1", "TERM": "xterm-256color"}
    for name, value in (terminal | environment).items():
        monkeypatch.setenv(name, value)
    typed = ["doctor", "--metrics", "http://127.0.0.1:1"]
    assert ("\x1b[31m" in CliRunner().invoke(main.app, typed, color=True).stdout) == coloured
    monkeypatch.delenv("FORCE_COLOR")
    assert "\x1b" not in CliRunner().invoke(main.app, typed).stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands(shell: str) -> None:
    done = CliRunner().invoke(main.app, [], prog_name="tracescore", env={"_TRACESCORE_COMPLETE": f"source_{shell}"})
    assert "_TRACESCORE_COMPLETE" in done.stdout
    assert done.exit_code == 0


# ---------------------------------------------------------------- options of serve


def test_options_of_serve_come_before_the_configuration(tmp_path: Path) -> None:
    file = tmp_path / "tracescore.yaml"
    file.write_text("receiver: {http: {listen: '127.0.0.1:5318'}, max_spans: 7}\nweb: {keep: 9}\nshutdown_grace: 4s\n")
    addresses = {"http": "127.0.0.1:1", "grpc": "127.0.0.1:2", "metrics": "0.0.0.0:3", "page": "127.0.0.1:4"}
    config = configured(file, Overrides(otlp_out="http://tempo:4317", **addresses))
    assert (config.receiver.http.listen, config.receiver.grpc.listen) == ("127.0.0.1:1", "127.0.0.1:2")
    assert (config.exporters.prometheus.listen, config.web.listen) == ("0.0.0.0:3", "127.0.0.1:4")
    assert (config.receiver.max_spans, config.web.keep, config.shutdown_grace) == (7, 9, 4.0)
    assert config.exporters.otlp is not None
    assert config.exporters.otlp.protocol == "grpc"
    swapped = configured(None, Overrides(http="127.0.0.1:4317", grpc="127.0.0.1:4318"))
    assert swapped.receiver.http.listen == "127.0.0.1:4317"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"http": "nonsense"}, "--http: an address HOST:PORT expected, such as 127.0.0.1:4317; got 'nonsense'"),
        ({"otlp_out": "tempo:4318"}, "--otlp-out: a URL such as http://127.0.0.1:4318 expected; got 'tempo:4318'"),
        ({"grpc": "127.0.0.1:4318"}, "--grpc 127.0.0.1:4318: receiver.http.listen: port 4318 is already used by"),
        ({"page": "0.0.0.0:9465"}, "--page 0.0.0.0:9465: web.token: required because the page listens on 0.0.0.0:9465"),
        ({"otlp_out": "http://127.0.0.1:4318"}, "exporters.otlp.endpoint: is a listener of this very service"),
    ],
)
def test_an_option_that_cannot_be_is_named_with_what_it_should_be(given: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError) as refused:
        configured(None, Overrides(**given))
    assert words in str(refused.value)
