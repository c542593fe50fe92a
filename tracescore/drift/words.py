"""What the detectors know, in words: what the page, the log and `tracescore baseline show` say alike."""

from datetime import UTC, datetime
from typing import Literal, NamedTuple

from tracescore.config.drift import DriftConfig
from tracescore.drift.baseline import SWINGS
from tracescore.drift.detector import Detector
from tracescore.drift.diagnosis import SIDE_OF_95, difference
from tracescore.drift.observations import DetectorKind
from tracescore.drift.stratum import ChangePoint
from tracescore.logs import plain

DetectorStateName = Literal["changed", "suspected", "steady", "learning", "paused"]

FORGETS = (
    "nothing is kept over a restart: set spool.path, or give drift.references; a change reported before is unknown here"
)
WHERE = "The page and tracescore baseline show have the rest."
WANTED = "If the change is wanted, `tracescore baseline reset --service NAME` makes what comes from now on normal."
"""What to do with a change that is no fault."""


class SeenDrop(NamedTuple):
    """How much lower scores are than they were, with its 95 % interval at this moment; below 0: higher.

    Over so many answers (or conversations) since a moment in Unix seconds.
    """

    mean: float
    low: float
    high: float
    answers: int
    since: float


def seen_drop(kind: DetectorKind, detector: Detector, change: ChangePoint | None, since: float) -> SeenDrop | None:
    """The drop since the onset of a suspected change, or else since a moment in Unix seconds; None without scores."""
    since = change.onset if change else since
    given = kind.against == "target" or detector.baseline is None
    found = difference(detector, since, SIDE_OF_95, from_given=given)
    if found is None:
        return None
    answers = change.scores if change else detector.scores_since(since)
    return SeenDrop(-found.mean, -found.high, -found.low, answers, since)


def moment(seconds: float) -> str:
    """Unix seconds as a date and time of UTC, to the minute."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def report(population: tuple[str, str], kind: DetectorKind, onset: float, drop: SeenDrop | None, advice: str) -> str:
    """The pairs of a line of the log that reports a change."""
    service, environment = map(plain, population)
    since = datetime.fromtimestamp(onset, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    size = "drop={:.3f} from={:.3f} to={:.3f} answers={} ".format(*drop[:3], drop.answers) if drop else ""
    return (
        f'service="{service}" environment="{environment}" detector={kind.name} against={kind.against} '
        f'since={since} {size}advice="{advice} {WHERE}"'
    )


def says(
    state: DetectorStateName,
    kind: DetectorKind,
    detector: Detector,
    drop: SeenDrop | None,
    settings: DriftConfig,
    now: float,
) -> str:
    """What is known, in a sentence or two."""
    if state == "paused":
        return "Silent during a planned change; what is normal is learned anew afterwards."
    if state == "learning":
        return f"Learning what is normal, {_progress(detector, settings)}."
    said = _changed(state, kind, detector, drop) if state != "steady" else _steady(kind, detector, drop, now)
    if detector.is_provisional:
        said += f" The reference is provisional, {_progress(detector, settings)}."
    return said


def _progress(detector: Detector, settings: DriftConfig) -> str:
    so_far = f"from {detector.learned_from:,} of {settings.baseline.scores:,} answers so far"
    if detector.is_provisional and detector.learned_from >= settings.baseline.scores:
        so_far = f"from {detector.learned_from:,} answers of days that may differ"
    return so_far if detector.learned_at is None else f"{so_far}, until {moment(detector.learned_at)} at the earliest"


def _changed(state: DetectorStateName, kind: DetectorKind, detector: Detector, drop: SeenDrop | None) -> str:
    if drop is None:
        return "Lower than it should be; by how much is not known yet."
    size = f"{drop.mean:.3f} ({drop.low:.3f} to {drop.high:.3f})"
    over = f"since about {moment(drop.since)}, over {drop.answers:,} answers"
    if kind.against == "target":
        return f"{'Below' if state == 'changed' else 'Maybe below'} its target by {size} {over}."
    of = "" if detector.baseline is not None else " from the reference that was given"
    if state == "changed":
        return f"Dropped{of} by {size} {over}."
    return f"May have dropped{of}, by {size} {over}: too little to be sure."


def _steady(kind: DetectorKind, detector: Detector, drop: SeenDrop | None, now: float) -> str:
    below = "its target" if kind.against == "target" else "what is normal"
    if drop is None:
        return "No answer of the last seven days points to a drop."
    side = "below" if drop.mean >= 0 else "above"
    low, high = sorted((abs(drop.low), abs(drop.high))) if drop.low * drop.high > 0 else (None, None)
    size = f"{abs(drop.mean):.3f} {side}" if low is None else f"{abs(drop.mean):.3f} ({low:.3f} to {high:.3f}) {side}"
    allowed = detector.gap(now)
    most = "" if allowed is None else f" tracescore reports a drop of more than {allowed:.3f}."
    return f"No drop: {size} {below}, over {drop.answers:,} answers of the last seven days.{most}"


def gap(detector: Detector, settings: DriftConfig, now: float) -> dict[str, float] | None:
    """How far the reference lies below the mean, and what for; None where nothing was learned.

    `tolerance` as configured, `swing` for the days that differ, and `doubt` for what chance has in the mean.
    """
    whole = detector.gap(now)
    if whole is None:
        return None
    tolerance = min(whole, settings.tolerance)
    swing = min(whole, max(tolerance, SWINGS * (detector.between_days or 0.0))) - tolerance
    return {"whole": whole, "tolerance": tolerance, "swing": swing, "doubt": whole - tolerance - swing}
