"""The gauges of each detector, and what they say."""

from collections.abc import Mapping

GAUGES: Mapping[str, str] = {
    "evidence_days": "For machines: evidence for a drop; false alarms as strong as this come this many days apart.",
    "detected": "1: changed, from when tracescore reports a drop until none is suspected any more. Else learning, "
    "suspected where change_scores is there, or steady; the page says by how much, since when and what to do.",
    "learning": "1: learning what is normal; tracescore reports no drop from it before it knows it.",
    "reference_ratio": "What the mean has to stay above at this moment.",
    "baseline_ratio": "The mean that was learned.",
    "between_days_ratio": "Standard deviation between the days learned, of weekdays that are alike; the reference is "
    "at least two of them lower. Absent where it was not measured.",
    "swing_ratio": "How far the quarters of the day lay apart while it was learned.",
    "scores": "Observations tested since the baseline, or learned from so far.",
    "change_scores": "Suspected or changed: answers or conversations since the drop began. Absent while steady.",
    "change_timestamp_seconds": "When the change that is suspected probably began.",
}
"""Suffix of the metric -> help."""
