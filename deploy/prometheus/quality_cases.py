"""When the alerts about bad answers speak, and when they keep silent."""

from __future__ import annotations

from deploy.prometheus.alerts import BURNING, BURNS
from deploy.prometheus.estimates import BELOW, UPPER
from deploy.prometheus.estimates import BELOW_LOWER as LOWER
from deploy.prometheus.streams import (
    TARGET,
    Case,
    Series,
    case,
    counter,
    estimate,
    evaluations,
    found,
    named,
    scores,
    share,
)

JUDGE_DOWN = {named("tracescore_judge_ready", TARGET | {"judge": "gpt"}): "0x600"}
POD_B = {"pod": "b"}
POLITE = {"measure": "polite", "service_name": "shop"}
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
            "an own measure below its target, beside another that is as it should be",
            scores("polite", 0.25, 60, 120, 60),
            scores("cites_a_source", 0.875, 60, 120, 60),
            {
                named(
                    "tracescore_custom_polite_by_slice_weight_total", TARGET | POLITE | {"slice_key": "route"}
                ): "0+9x240",
            },
            minute=150,
            values={
                "count(ALERTS{alertname='TracescoreBelowTarget', measure='polite', service_name='shop'})": 1,
                **found("polite", "1h", estimate([0.25] * 60, [1.0] * 60)),
                **found("cites_a_source", "1h", estimate([0.875] * 60, [1.0] * 60)),
                "count(service:tracescore_score:mean{window='1h'})": 2,
            },
            firing=["TracescoreBelowTarget"],
        ),
        case(
            "an own measure of a new release counts from its first score",
            scores("polite", 0.25, 0, 40, 60, born=120),
            scores("answer_relevancy", 0.75, 0, 240),
            minute=162,
            values={"count(ALERTS{alertname='TracescoreBelowTarget', measure='polite'})": 1},
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
            values={f"sum({UPPER})": estimate([0.25] * 30, [1.0] * 30)["upper"]},
            firing=["TracescoreBelowTarget"],
        ),
        *(
            case(
                f"an incident {word} by good scores after {after} minutes",
                scores("completeness", 0.25, 60, 40, 200),
                scores("completeness", 0.875, 100, 200, 1, a_minute=8, labels=POD_B),
                minute=100 + after,
                values={f"count({UPPER})": None},
                firing=firing,
            )
            for word, after, firing in (("is not yet ended", 12, ["TracescoreBelowTarget"]), ("is ended", 35, []))
        ),
        case(
            "an incident that was told and is over uses up the budget, which is no news",
            scores("completeness", 0.25, 60, 40, 200),
            scores("completeness", 0.875, 100, 200, 1, labels=POD_B),
            minute=190,
            values={f"count({BURNING})": 1},
            firing=[],
        ),
        *(
            case(
                f"half of the evaluations of {words} fail: that silences nobody else",
                bad,
                scores("answer_relevancy", 0.25, 60, 120, 60, labels={"service_name": "bank"}),
                evaluations("answer_relevancy", "scored", "", 60, 120, 60, service=service),
                evaluations("answer_relevancy", "unscored", "judge_refused", 60, 120, 60, service=service),
                minute=150,
                values={
                    "count(ALERTS{alertname='TracescoreBelowTarget', service_name='shop'})": 1,
                    "count(ALERTS{alertname='TracescoreBelowTarget', service_name='bank'})": None if service else 1,
                },
                firing=["TracescoreBelowTarget", "TracescoreMeasurementBroken"],
            )
            for words, service in (("another service", "bank"), ("nobody knows whom", ""))
        ),
        *(
            case(
                f"the judge was down {words}: its outage is told, and neither what failed then nor bad scores of then",
                scores("answer_relevancy", 0.25, 90, 30, 120),
                evaluations("answer_relevancy", "scored", "", 60, 30, 180),
                *(
                    evaluations("answer_relevancy", "unscored", "judge_unreachable", 90, 60, 120, service=name)
                    for name in ("shop", "bank")
                ),
                {
                    named("tracescore_judge_ready", TARGET | {"judge": "gpt"}): "1x89 0x59 1x120",
                    named("tracescore_evaluations_started_total", TARGET | {"measure": "completeness"}): (
                        counter(1, 60, 90, 120)
                    ),
                    named("tracescore_evaluations_oldest_pending_seconds", TARGET | {"measure": "completeness"}): (
                        "0x89 60+60x80 0x100"
                    ),
                    named("tracescore_gold_last_run_ok", TARGET | {"gold_set": "g"}): "1x89 0x180",
                },
                minute=minute,
                values={"count(ALERTS{alertstate='firing', cause!='judge_not_ready'})": None},
                firing=firing,
            )
            for words, minute, firing in (
                ("for an hour until now", 148, ["TracescoreMeasurementBroken"]),
                ("until a quarter of an hour ago", 166, []),
            )
        ),
        case(
            "services have targets of their own: .625 misses one of .7 and not the .5 of all others",
            {
                named(
                    "tracescore_target_ratio", TARGET | {"measure": "answer_relevancy", "service_name": "shop"}
                ): "0.7x240"
            },
            *(
                scores("answer_relevancy", 0.625, 60, 120, 60, labels={"service_name": name})
                for name in ("shop", "bank")
            ),
            minute=150,
            values={
                "count(ALERTS{alertname='TracescoreBelowTarget', service_name='shop'})": 1,
                "count(service:tracescore_target:ratio{measure='answer_relevancy'})": 2,
            },
            firing=["TracescoreBelowTarget"],
        ),
        case(
            "a mean of an hour a little below its target, of which nobody can be sure, is for the plain threshold",
            scores("answer_relevancy", 0.5, 60, 120, 60, a_minute=15 / 32),
            scores("answer_relevancy", 0.0, 60, 120, 60, a_minute=1 / 32, labels=POD_B),
            minute=180,
            values={f"count({UPPER})": None, "count(ALERTS{alertname='TracescoreHourBelowTarget'})": 1},
            firing=[],
        ),
        case(
            "a scrape fails while scores are below the target: the alert goes on",
            {series: values.replace("x119 ", "x99 _x2 ") for series, values in bad.items()},
            minute=161,
            values={},
            firing=["TracescoreBelowTarget"],
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


def thin_cases() -> list[Case]:
    """Fifteen scores an hour: too few for an hour to tell .45 from .5, enough for a day; few of them are low."""

    def thin(*phases: int) -> Series:
        """Nine of ten at the target, the others at 0."""
        at_target = scores("answer_relevancy", 0.5, *phases, a_minute=58 / 256)
        return at_target | scores("answer_relevancy", 0.0, *phases, a_minute=6 / 256, labels=POD_B)

    told = ["TracescoreBelowTarget"]
    return [
        case("thin traffic a little below its target", thin(0, 1440, 1), minute=1430, values={}, firing=told),
        case(
            "thin traffic was below its target until 100 minutes ago: the day says so, the hours do not",
            thin(0, 1440, 600),
            scores("answer_relevancy", 0.9375, 1440, 600, 1, a_minute=0.25, labels={"pod": "c"}),
            minute=1540,
            values={"count(service:tracescore_score:mean{window='1d'} < 0.5)": 1},
            firing=[],
        ),
        *(
            case(
                f"answers of two parts, nine of ten parts right, {words}",
                scores("faithfulness", 1.0, 0, 1560, 1, a_minute=full),
                scores("faithfulness", 0.5, 0, 1560, 1, a_minute=half, labels=POD_B),
                scores("faithfulness", 0.0, 0, 1560, 1, a_minute=none, labels={"pod": "c"}),
                minute=1530,
                values={},
                firing=firing,
            )
            for words, full, half, none, firing in (
                ("independent of each other", 13, 2.75, 0.25, []),
                ("both right or both wrong", 13, 0, 3, TOO_MANY),
            )
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
            mixed(1, 7, 0, 1560, 60),
            minute=1530,
            values=burns("7d", 1440, 7 * 1440),
            firing=TOO_MANY,
        ),
        case(
            "one of twenty is within the budget",
            mixed(1, 19, 0, 1560, 60),
            minute=1530,
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
