"""How every service stands: one row each, the most urgent first, with what to do."""

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from tracescore.drift.family import Population
from tracescore.drift.observations import measure_of
from tracescore.exporters.prometheus.label_values import label_value
from tracescore.model import Measure, Reason, Result, Score
from tracescore.web.charts import Chart, spark
from tracescore.web.glossary import MEASURE_NAMES
from tracescore.web.history import DAY, HOUR, WIDTHS, Bucket, ScoreSeries
from tracescore.web.lines import ScoreMean, mean_of, points
from tracescore.web.recent import in_order
from tracescore.web.standing import Facts, StandingVerdict, decide
from tracescore.web.visit import SharedParts

Watching = Mapping[str, Any]
"""What `DriftWatch.show` says of one service."""


@dataclass(frozen=True, slots=True)
class MeasureStanding:
    """A measure of a service over the last day. `of` is what its mean is a mean of; None without a score."""

    measure: Measure
    mean: ScoreMean | None
    of: ScoreSeries | None
    target: float | None
    verdict: StandingVerdict
    spark: Chart | None


@dataclass(frozen=True, slots=True)
class ServiceStanding:
    """A service with its measures; its `verdict` is that of the `worst` of those that are measured.

    What `worst` says and what to do about it are sentences; so is `change`, which says where the running release is
    worse than the one before it, and is empty where it is not known to be.
    """

    service: str
    environment: str
    release: str
    measures: Mapping[Measure, MeasureStanding]
    worst: MeasureStanding
    says: str
    advice: str
    change: str

    @property
    def verdict(self) -> StandingVerdict:
        """How it stands."""
        return self.worst.verdict

    @property
    def unmeasured(self) -> list[MeasureStanding]:
        """Measures without a score although others have some, and a fix for each."""
        others = (each for each in self.measures.values() if each is not self.worst)
        return [each for each in others if each.verdict.word == "not measured" and each.verdict.fix]


class Missing:
    """Why measures of a service gave no score, by the interactions that the page keeps."""

    def __init__(self) -> None:
        self._reasons: dict[tuple[Population, Measure], Counter[Reason]] = {}
        self.releases: dict[Population, str] = {}
        self.measures: dict[Population, set[Measure]] = {}
        self._names: dict[tuple[str, str], Population] = {}

    def add(self, results: Sequence[Result]) -> Generator[None, None, None]:
        """Takes in results, the newest first; in steps, each of which is short."""
        for number, result in enumerate(results, 1):
            self._add(result)
            if number % 200 == 0:
                yield

    def _add(self, result: Result) -> None:
        of = self.of(result)
        self.releases.setdefault(of, result.interaction.release)
        tried = self.measures.setdefault(of, set())
        for each in result.evaluations:
            tried.add(each.measure)
            if not isinstance(each, Score):
                self._reasons.setdefault((of, each.measure), Counter())[each.reason] += 1

    def of(self, result: Result) -> Population:
        """Service and environment by which the result is counted."""
        told = result.interaction.service, result.interaction.environment
        return self._names.get(told) or self._names.setdefault(told, (label_value(told[0]), label_value(told[1])))

    def reason(self, of: Population, measure: Measure) -> Reason | None:
        """The commonest one; None where none is known."""
        reasons = self._reasons.get((of, measure))
        return reasons.most_common(1)[0][0] if reasons else None


def standings(shared: SharedParts) -> Generator[None, None, list[ServiceStanding]]:
    """All services, the most urgent first; in steps, each of which is short."""
    missing, found = Missing(), []
    yield from missing.add(shared.recent.results())
    for of in sorted({*shared.history.populations(), *missing.releases}):
        watched = shared.changes.service(of, brief=True) if shared.changes else None
        yield
        found.append(standing(shared, of, missing, watched))
        yield
    return sorted(found, key=lambda each: (each.verdict.urgency, each.service, each.environment))


def standing(shared: SharedParts, of: Population, missing: Missing, watched: Watching | None) -> ServiceStanding:
    """How one service stands."""
    series, now = shared.history.series(of, DAY), shared.clock()
    tried = missing.measures.get(of, set()) | {each.measure for each in series}
    cells = {}
    for measure in in_order(tried):
        line = current(series, measure)
        stretches = points(series[line], WIDTHS[DAY], DAY, HOUR) if line else ()
        mean, target = mean_of(series[line]) if line else None, shared.target(measure, of[0])
        facts = Facts(mean, target, *_detectors(watched, measure), missing.reason(of, measure))
        drawn = spark(stretches, now - DAY, now, target) if line else None
        cells[measure] = MeasureStanding(measure, mean, line, target, decide(facts), drawn)
    nothing = MeasureStanding("answer_relevancy", None, None, None, decide(Facts()), None)
    worst = min(cells.values(), key=_urgency, default=nothing)
    release, change = _releases(shared, of)
    release = release or missing.releases.get(of, "")
    return ServiceStanding(*of, release, cells, worst, _says(worst), _advice(worst, watched), change)


def _urgency(cell: MeasureStanding) -> tuple[bool, float]:
    """A measure that cannot be measured decides the state of a service only where it has no other."""
    return cell.verdict.word == "not measured", cell.verdict.urgency


def current(series: Mapping[ScoreSeries, Sequence[Bucket]], measure: Measure) -> ScoreSeries | None:
    """What the latest scores of a measure are of; against the rendered prompt only where there is nothing else."""
    of = [each for each in series if each.measure == measure]
    return max(of, key=lambda each: (not each.from_prompt, series[each][-1].start, each.epoch), default=None)


def _releases(shared: SharedParts, of: Population) -> tuple[str, str]:
    """The running release, and a sentence where it is worse than the one before it; empty where nothing is known."""
    pair = shared.releases.use(of).pair if of in shared.releases.services() else None
    if pair is None or pair.before is None:
        return (pair.running if pair else ""), ""
    compared = shared.releases.compared(of, pair)
    worse = [
        MEASURE_NAMES[each.measure].lower() for each, found in compared.items() if found and found.verdict == "worse"
    ]
    names = dict.fromkeys(worse)
    said = f"Release {pair.running} is worse than {pair.before} in {', '.join(names)}." if names else ""
    return pair.running, said


def _says(worst: MeasureStanding) -> str:
    """How the service stands, after the word for it."""
    name, verdict, mean = MEASURE_NAMES[worst.measure], worst.verdict, worst.mean
    if verdict.word == "falling":
        return f"{name} is lower than normal."
    if verdict.word == "below target":
        if mean is None or worst.target is None or mean.value >= worst.target:
            return f"The detector of {name.lower()} reports that it is below its target."
        chance = "" if verdict.sure else "; chance alone may explain that"
        return f"{name} is {worst.target - mean.value:.2f} below its target of {worst.target:g}{chance}."
    if verdict.word == "good":
        return f"{name}: {verdict.why}." if not verdict.sure else ""
    return f"{verdict.why[:1].upper()}{verdict.why[1:]}."


def _detectors(watched: Watching | None, measure: Measure) -> tuple[list[Any], Any]:
    """States of the detectors of a measure: against what is normal, and against its target."""
    detectors = watched["detectors"] if watched else ()
    own = [each for each in detectors if measure_of(each["detector"]) == measure]
    aimed = next((each["state"] for each in own if each["against"] == "target"), None)
    return [each["state"] for each in own if each["against"] == "baseline"], aimed


def _advice(worst: MeasureStanding, watched: Watching | None) -> str:
    verdict = worst.verdict
    if verdict.word == "falling" and watched:
        return str(watched["advice"])
    if verdict.fix:
        return verdict.fix
    if verdict.word == "below target":
        return "Read its lowest answers."
    return "Nothing to do." if verdict.word == "good" else "Nothing to do but wait."


def link(of: Population, **fields: str) -> str:
    """The page of a service."""
    query = urlencode({"environment": of[1], **fields}, errors="replace")
    return f"/services/{quote(of[0], safe='', errors='replace')}?{query}"


def lowest(of: Population, measure: Measure) -> str:
    """The list of the answers of a service with the lowest scores of a measure first."""
    fields = {"service": of[0], "environment": of[1], "sort": measure}
    return f"/interactions?{urlencode(fields, errors='replace')}"


def headline(rows: Sequence[ServiceStanding]) -> tuple[str, str]:
    """Whether everything is all right, in a sentence, and how many services stand how."""
    counts = Counter(row.verdict.word for row in rows)
    urgent = sum(counts[word] for word in ("falling", "below target", "not measured"))
    told = ", ".join(f"{count} {word}" for word, count in sorted(counts.items(), key=_by_urgency))
    if urgent:
        return f"{urgent} of {_services(len(rows))} need{'s' if urgent == 1 else ''} a look", told
    if counts["learning"]:
        still = f"{counts['learning']} of {_services(len(rows))}" if counts["good"] else _services(len(rows))
        return f"Nothing is wrong so far; tracescore still learns {still}", told
    return ("Everything is all right" if rows else "No service yet"), told


def _by_urgency(pair: tuple[Any, int]) -> int:
    return ("falling", "below target", "not measured", "learning", "good").index(pair[0])


def _services(count: int) -> str:
    return f"{count} service{'s' if count != 1 else ''}"
