"""When the alerts about bad answers speak, and when they keep silent."""

from __future__ import annotations

from deploy.prometheus.alerts import BURNING, BURNS
from deploy.prometheus.estimates import BELOW
from deploy.prometheus.estimates import BELOW_LOWER as LOWER
from deploy.prometheus.streams import TARGET, Case, case, estimate, named, scores, share

JUDGE_DOWN = {named("tracescore_judge_ready", TARGET | {"judge": "gpt"}): "0x600"}
POD_B = {"pod": "b"}
TOO_MANY = ["TracescoreTooManyBelowTarget"]


def quality_cases() -> list[Case]:
    """When the quality alert speaks, and when it keeps silent."""
    bad = scores("answer_relevancy", 0.25, 60, 120, 60)
    return [
        case(
            "scores below the target: one measure, one alert",
            bad,
            scores("completeness", 0.875, 60, 120, 60),
            minute=150,
            values={"count(ALERTS{alertname='TracescoreBelowTarget', measure='answer_relevancy'})": 1},
            firing=["TracescoreBelowTarget"],
        ),
        case(
            "scores above the target: silence",
            scores("answer_relevancy", 0.75, 60, 120, 60),
            minute=150,
            values={},
            firing=[],
        ),
        case(
            "thin traffic is judged by the day",
            scores("completeness", 0.25, 60, 30, 500),
            minute=480,
            values={"sum(service:tracescore_quality:upper)": estimate([0.25] * 30, [1.0] * 30)["upper"]},
            firing=["TracescoreBelowTarget"],
        ),
        *(
            case(
                f"an incident {word} by good scores after {after} minutes",
                scores("completeness", 0.25, 60, 40, 200),
                scores("completeness", 0.875, 100, 200, 1, a_minute=8, labels=POD_B),
                minute=100 + after,
                values={"sum(service:tracescore_quality:upper) > bool 0.5": 1},
                firing=firing,
            )
            for word, after, firing in (("is not yet ended", 35, ["TracescoreBelowTarget"]), ("is ended", 120, []))
        ),
        case(
            "the judge is down: only the measurement is said to be broken",
            bad,
            JUDGE_DOWN,
            minute=150,
            values={"count(ALERTS{cause='judge_not_ready'})": 1},
            firing=["TracescoreMeasurementBroken"],
        ),
        case(
            "one of two replicas without its judge is told and silences nothing",
            bad,
            JUDGE_DOWN | {named("tracescore_judge_ready", TARGET | {"judge": "gpt", "pod": "b"}): "1x240"},
            minute=150,
            values={},
            firing=["TracescoreBelowTarget", "TracescoreMeasurementBroken"],
        ),
        case(
            "another deployment whose judge is down silences nothing here",
            bad,
            {named("tracescore_judge_ready", TARGET | {"judge": "gpt", "namespace": "test"}): "0x240"},
            minute=150,
            values={},
            firing=["TracescoreBelowTarget", "TracescoreMeasurementBroken"],
        ),
    ]


def burning_cases() -> list[Case]:
    """Many scores a little below the target, while the mean holds."""

    def mixed(bad: int, good: int, *phases: int) -> dict[str, str]:
        """So many scores a minute just below the target, and so many at 1."""
        below = scores("completeness", 0.4375, *phases, a_minute=bad)
        return below | scores("completeness", 1.0, *phases, a_minute=good, labels=POD_B)

    def burns(window: str, bad: int, good: int) -> dict[str, float | None]:
        """The lower limit of the share, and that no faster speed is reached."""
        speeds = [long for _, long, _ in BURNS]
        faster = "|".join(speeds[: speeds.index(window)])
        return {
            f"abs(sum({LOWER}{{window='{window}'}}) - {share(bad, good)['lower']:.6f}) < bool 0.001": 1,
            f"count({BURNING}{{window='{window}'}})": 1,
            f"count({BURNING}{{window=~'{faster}'}})": None,
        }

    return [
        case(
            "two of three scores below the target",
            mixed(2, 1, 60, 120, 60),
            minute=150,
            values=burns("6h", 180, 90),
            firing=TOO_MANY,
        ),
        case(
            "more than half of few scores: not sure enough for the fastest speed",
            mixed(3, 2, 142, 8, 60),
            minute=152,
            values={
                f"count({BELOW}{{window='6h'}} > 0.5)": 1,
                f"sum({LOWER}{{window='6h'}}) > bool 0.5": 0,
                f"count({BURNING}{{window='6h'}})": None,
            },
            firing=[],
        ),
        case(
            "three of four until two hours ago: left to the slower speed",
            mixed(3, 1, 60, 240, 240),
            scores("completeness", 1.0, 300, 200, 1, labels={"pod": "c"}),
            minute=420,
            values={
                f"sum({LOWER}{{window='6h'}}) > bool 0.5": 1,
                f"count({BURNING}{{window='6h'}})": None,
            },
            firing=TOO_MANY,
        ),
        case(
            "one of four, for hours",
            mixed(1, 3, 60, 420, 60),
            minute=480,
            values=burns("1d", 420, 1260),
            firing=TOO_MANY,
        ),
        case(
            "one of eight, for more than a day",
            mixed(1, 7, 0, 1500, 60),
            minute=1475,
            values=burns("7d", 1440, 7 * 1440),
            firing=TOO_MANY,
        ),
        case(
            "one of twenty is within the budget",
            mixed(1, 19, 0, 1500, 60),
            minute=1475,
            values={f"count({BURNING})": None, f"sum({LOWER}{{window='7d'}}) > bool 0.04": 1},
            firing=[],
        ),
        case(
            "enough scores in six hours and not in the last one: left to the slower speed",
            mixed(3, 1, 60, 4, 120, 4, 120, 4, 60),
            minute=315,
            values={f"sum({LOWER}{{window='6h'}}) > bool 0.5": 1} | burns("1d", 36, 12),
            firing=TOO_MANY,
        ),
        case(
            "too many below the target, and the judge is down",
            mixed(2, 1, 60, 120, 60),
            JUDGE_DOWN,
            minute=150,
            values={f"count({BURNING}{{window='6h'}})": 1},
            firing=["TracescoreMeasurementBroken"],
        ),
    ]
