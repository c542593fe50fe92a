"""A process is replaced by another while a sender goes on: all that was acknowledged is evaluated, once."""

from __future__ import annotations

import re
import threading
from pathlib import Path

from tests.e2e.test_chaos import Sender
from tests.openai_server import OpenAIServer, openai_server
from tests.running import FREE_PORTS, Running, serving


def settings(judge: OpenAIServer, spool: Path, more: str = "") -> str:
    return (
        f"{FREE_PORTS}assembly: {{idle: 500ms, orphan_idle: 1s}}\nspool: {{path: '{spool}'{more}}}\n"
        f"shutdown_grace: 10s\n{judge.settings}"
    )


class Load(Sender):
    """Sends one answer after the other, to wherever the service is."""

    def __init__(self, to: Running) -> None:
        super().__init__()
        self.to = to
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._go_on)
        self._thread.start()

    def _go_on(self) -> None:
        while not self._over.wait(0.02):
            self.add(1)
            self.send(self.to.addresses["http"], 5)

    def close(self, before: float = 0.0) -> None:
        """Ends, and waits until the service has evaluated all that was sent, but for what was `before`."""
        self._over.set()
        self._thread.join()
        self.send(self.to.addresses["http"])
        assert self.done
        assert self.told[200] == self.sent, self.told
        wanted = self.sent - before
        self.to.wait_value(wanted, "tracescore_evaluations_total", measure="faithfulness")
        assert self.to.value("tracescore_evaluations_total", measure="faithfulness") == wanted
        assert self.to.value("tracescore_evaluations_total", outcome="shed") == 0
        assert self.to.value("tracescore_interactions_total") == wanted


def evaluated(service: Running) -> int:
    """What a process that has ended says of one measure: nothing of it was left undone."""
    service.join()
    (line,) = [line for line in service.log if "event=stopped" in line and "measure=faithfulness" in line]
    counts = {name: int(value) for name, value in re.findall(r"(scored|unscored|skipped|shed|pending)=(\d+)", line)}
    assert counts["shed"] == counts["pending"] == 0, line
    return sum(counts.values())


def test_the_next_pod_of_a_stateful_set_goes_on_with_the_volume(tmp_path: Path) -> None:
    with openai_server() as judge:
        config = settings(judge, tmp_path / "spool")
        with serving(tmp_path, config) as first:
            load = Load(first)
            first.wait_value(20, "tracescore_receiver_spans_total")
            assert first.terminate() == 0
        with serving(tmp_path, config) as second:
            load.to = second
            second.wait_value(20, "tracescore_receiver_spans_total")
            load.close()


def test_a_pod_of_a_deployment_finishes_what_it_has_before_it_goes(tmp_path: Path) -> None:
    places = [tmp_path / name for name in ("one", "two")]
    for place in places:
        place.mkdir()
    with openai_server() as judge:
        configs = [settings(judge, place / "spool", ", hand_over: false") for place in places]
        with serving(places[0], configs[0]) as first, serving(places[1], configs[1]) as second:
            load = Load(first)
            first.wait_value(20, "tracescore_receiver_spans_total")
            load.to = second
            assert first.terminate() == 0
            second.wait_value(20, "tracescore_receiver_spans_total")
            load.close(before=evaluated(first))
