"""Tokens by name: which are right, how they change, and what happens to who tries wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from tests.results import SettableClock
from tracescore.config.access import Token
from tracescore.config.types import Secret
from tracescore.errors import UsageError
from tracescore.net.access import AccessMetrics, Attempts, TokenGate, Tokens, bearer, digest_of

FIRST, SECOND = "first-token-of-16", "second-token-of-17"


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc", "abc"),
        ("bearer  abc ", "abc"),
        ("Bearer", ""),
        ("Basic abc", ""),
        ("abc", ""),
        ("", ""),
    ],
)
def test_which_headers_hold_a_token(header: str, token: str) -> None:
    assert bearer(header) == token


def test_every_token_has_a_name_and_a_wrong_one_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SHOP", FIRST)
    (tmp_path / "docs").write_text(f"{SECOND}\nformer-one-of-docs\n")
    tokens = Tokens({"shop": Secret(env="SHOP"), "docs": Secret(file=str(tmp_path / "docs"))}, "x")
    owners = [tokens.owner(digest_of(each)) for each in (FIRST, SECOND, "former-one-of-docs", FIRST[:-1], "", "é")]
    assert owners == ["shop", "docs", "docs", None, None, None]


def test_a_changed_file_is_read_again_and_one_that_cannot_be_read_leaves_the_former(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file, clock = tmp_path / "token", SettableClock()
    file.write_text(FIRST)
    tokens = Tokens({"shop": Secret(file=str(file))}, "receiver.http.tokens", clock)

    def owners() -> list[str | None]:
        clock.now += 2
        return [tokens.owner(digest_of(each)) for each in (FIRST, SECOND)]

    file.write_text(f"{FIRST}\n{SECOND}")
    assert owners() == ["shop", "shop"], "both, while senders change over"
    file.write_text(SECOND)
    assert owners() == [None, "shop"]
    for content in (" ", None):
        file.unlink() if content is None else file.write_text(content)
        assert owners() == owners() == [None, "shop"]
    errors = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert len(errors) == 2
    assert all("event=token_not_loaded" in line and SECOND not in line for line in errors)


def test_five_wrong_tokens_in_a_minute_are_enough_for_one_address_alone() -> None:
    clock = SettableClock()
    attempts = Attempts(clock)
    for _ in range(5):
        assert not attempts.exhausted("a")
        attempts.wrong("a")
        clock.now += 10
    assert attempts.exhausted("a")
    assert not attempts.exhausted("b")
    clock.now += 11
    assert not attempts.exhausted("a")


def test_a_gate_without_tokens_knows_senders_by_their_address() -> None:
    gate = TokenGate("receiver", Tokens({}, "x"), AccessMetrics(CollectorRegistry()))
    assert gate.enter("Bearer whatever", "10.0.0.1") == ("10.0.0.1", None)


def test_tokens_of_machines_cannot_be_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP", "long-enough-to-be-one short")
    with pytest.raises(UsageError, match=r"^receiver\.http\.tokens\.shop: at least 16 characters expected"):
        Tokens({"shop": Token(env="SHOP")}, "receiver.http.tokens")
