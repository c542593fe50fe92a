"""The demo on a terminal: a live table of kinds and their scores; plain lines where there is no terminal."""

from collections import deque
from collections.abc import Callable, Mapping

import anyio
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tracescore.demo.questions import KIND_NAMES, KINDS, AnswerKind
from tracescore.demo.tally import EXPECTED_LOW, DemoTally, KindScores
from tracescore.model import LIVE_MEASURES, Evaluation, Measure, Result, Score

RECENT = 8
"""Answers listed below the table."""
HEADINGS: Mapping[Measure, str] = {
    "answer_relevancy": "relevancy",
    "completeness": "completeness",
    "faithfulness": "faithfulness",
}
HINT = "Off-topic answers score low in relevancy, half-answered ones in completeness, unfaithful ones in faithfulness."


def printable(text: str, most: int = 60) -> str:
    """`text` on one line, cut, and without anything that could steer a terminal."""
    plain = " ".join("".join(character if character.isprintable() else " " for character in text).split())
    return plain if len(plain) <= most else f"{plain[: most - 1]}…"


class DemoTable:
    """An exporter that shows what arrives. `done` is set once `exit_after` answers of the demo have been evaluated.

    `kind_of` tells what the answer of a trace was built to be, None where the trace is not the demo's own;
    `links` are the addresses to open, by name.
    """

    def __init__(
        self,
        kind_of: Callable[[str], AnswerKind | None],
        links: Mapping[str, str],
        *,
        exit_after: int | None = None,
        console: Console | None = None,
    ) -> None:
        self.done = anyio.Event()
        self._kind_of = kind_of
        self._links = links
        self._exit_after = exit_after
        self._console = console or Console()
        self._tally = DemoTally()
        self._recent: deque[tuple[str, Result]] = deque(maxlen=RECENT)
        self._open = False
        # Drawn after each change, in the same thread: another thread would read half a change.
        self._live = Live(console=self._console, get_renderable=self._picture, auto_refresh=False)

    def start(self) -> None:
        """Shows the links, and the table where there is a terminal to draw it on."""
        self._open = True
        if self._console.is_terminal:
            self._live.start()
        else:
            self._console.print(_links(self._links), soft_wrap=True)
            self._console.print(self._progress(), soft_wrap=True)

    async def export(self, result: Result) -> None:
        """Takes one result into the table; those of other apps do not count for `exit_after`."""
        kind = self._kind_of(result.interaction.trace_id)
        name = KIND_NAMES[kind] if kind else "your own"
        self._tally.add(kind, result)
        self._recent.append((name, result))
        if self._console.is_terminal:
            self._live.refresh()
        else:
            self._console.print(_line(name, result), soft_wrap=True)
        if self._exit_after is not None and self._tally.own >= self._exit_after:
            self.done.set()

    async def close(self) -> None:
        """Leaves the last state of the table standing; may be called twice."""
        if not self._open:
            return
        self._open = False
        if self._console.is_terminal:
            self._live.stop()
        else:
            self._console.print(self._kinds())

    def verdict(self) -> list[str]:
        """Why the scores do not tell the kinds of answers apart, a sentence each; empty when they do."""
        if self._exit_after is not None and self._tally.own < self._exit_after:
            return [f"only {self._tally.own} of {self._exit_after} answers came back in time"]
        return self._tally.verdict()

    def _progress(self) -> Text:
        if not self._tally.own:
            return Text("Waiting for the first score ...", style="dim")
        of = f" of {self._exit_after}" if self._exit_after is not None else ""
        return Text(f"{self._tally.own}{of} answers scored", style="dim")

    def _picture(self) -> RenderableType:
        return Group(
            _links(self._links), self._progress(), "", self._kinds(), Text(HINT, style="dim"), "", self._answers()
        )

    def _kinds(self) -> Table:
        table = Table("built to be", title="Mean scores by what the answers were built to be", title_justify="left")
        for heading in ("answers", *HEADINGS.values()):
            table.add_column(heading, justify="right")
        kinds: list[AnswerKind | None] = [*KINDS]
        if self._tally.row(None).answers:
            kinds.append(None)
        for kind in kinds:
            row = self._tally.row(kind)
            cells = [_mean(row, measure, low=EXPECTED_LOW.get(kind or "good") == measure) for measure in LIVE_MEASURES]
            table.add_row(KIND_NAMES[kind] if kind else "your own", str(row.answers), *cells)
        return table

    def _answers(self) -> Table:
        table = Table("built to be", "question", title="Latest", title_justify="left", box=None, padding=(0, 2, 0, 0))
        for heading in HEADINGS.values():
            table.add_column(heading, justify="right")
        for name, result in reversed(self._recent):
            question = Text(printable(result.interaction.question or "-"))
            table.add_row(name, question, *(_value(result, measure) for measure in LIVE_MEASURES))
        return table


def _links(links: Mapping[str, str]) -> Text:
    width = max(map(len, links), default=0)
    return Text("\n".join(f"{name:<{width}}  {url}" for name, url in links.items()))


def _mean(row: KindScores, measure: Measure, *, low: bool) -> Text:
    """The mean, with the number of its scores where not every answer has one."""
    if measure not in row.means:
        return Text("-")
    count = row.counts[measure]
    fewer = f"({count}) " if count < row.answers else ""
    return Text(f"{fewer}{row.means[measure]:.2f}", style="bold yellow" if low else "")


def _value(result: Result, measure: Measure) -> str:
    found: Evaluation | None = next((one for one in result.evaluations if one.measure == measure), None)
    if isinstance(found, Score):
        return f"{found.value:.2f}"
    return found.reason if found else "-"


def _line(name: str, result: Result) -> Text:
    values = "  ".join(f"{heading} {_value(result, measure)}" for measure, heading in HEADINGS.items())
    return Text(f"{name:<13}  {values}  {printable(result.interaction.question or '-')}")
