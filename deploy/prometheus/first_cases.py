"""What stands in the first scrape of a release counts once, and what was counted before is not counted again."""

from __future__ import annotations

from deploy.prometheus.streams import Case, case, found, scores

VERSION = {"service_version": "2"}
MOVED = VERSION | {"pod": "b", "instance": "10.0.0.2:9464"}
MANY = 2**15


def first_cases() -> list[Case]:
    """All of them."""
    return [
        case(
            "forty bad scores of a new release stand in its first scrape, and no more come",
            scores("answer_relevancy", 0.875, 200),
            scores("answer_relevancy", 0.25, 0, 1, 150, a_minute=40, born=60, labels=VERSION),
            minute=100,
            values=found("answer_relevancy", "1h", {"mean": 0.25, "effective_count": 40}),
            firing=["TracescoreBelowTarget"],
        ),
        case(
            "what stands in the first scrape of all may be years old",
            scores("answer_relevancy", 0.25, 0, 1, 150, a_minute=MANY),
            minute=100,
            values=found("answer_relevancy", "1h", {"mean": None, "effective_count": None}),
            firing=[],
        ),
        *(
            case(
                f"counters that {words} add nothing",
                scores("answer_relevancy", 0.25, 60, 40, ends=True, labels=VERSION),
                scores("answer_relevancy", 0.25, 0, 1, 60, a_minute=MANY, born=100 + gap, labels=labels),
                minute=120 + gap,
                values={"sum(service:tracescore_score:effective_count{window='1d'}) < bool 50": 1},
                firing=["TracescoreBelowTarget"],
            )
            for words, gap, labels in (
                ("a replica restores under a new instance", 5, MOVED),
                ("come back with a release that was rolled back", 180, MOVED),
            )
        ),
    ]
