"""When the alerts about changes speak, and when they keep silent."""

from __future__ import annotations

from collections.abc import Mapping

from deploy.prometheus.streams import APP, READY, TARGET, Case, Series, case, named, scores

SERVICE = TARGET | APP
JUDGE_DOWN = {named("tracescore_judge_ready", TARGET | {"judge": "gpt"}): "0x600"}
TOLD = "0x60 1x120"
CALM = "0x180"


def detector(values: str, name: str = "completeness", against: str = "baseline", **labels: str) -> Series:
    """What one detector says."""
    measure = {"answered": "answer_relevancy", "completeness_multipart": "completeness"}.get(name, name)
    found = SERVICE | {"detector": name, "measure": measure, "against": against} | labels
    return {named("tracescore_drift_detected", found): values}


def verdicts(values: Mapping[str, str], **labels: str) -> Series:
    """Who is said to have moved."""
    known = dict.fromkeys(("none", "pending", "product", "judge", "unattributed"), CALM) | values
    return {named("tracescore_drift_verdict", SERVICE | labels | {"verdict": name}): it for name, it in known.items()}


def drift_cases() -> list[Case]:
    """All of them."""
    told = detector(TOLD)
    return [
        case(
            "nothing has changed", detector(CALM), verdicts({"none": "1x180"}), READY, minute=90, values={}, firing=[]
        ),
        case(
            "a fall that is the product's, or nobody's for sure, is told",
            told,
            verdicts({"none": "1x60 0x120", "unattributed": TOLD}),
            READY,
            minute=90,
            values={"count(ALERTS{detector='completeness', measure='completeness'})": 1},
            firing=["TracescoreChanged"],
        ),
        case(
            "a fall that is told goes on being told when a scrape fails",
            detector("0x60 1x29 stale 1x90"),
            verdicts({"none": "1x60 0x29 stale 0x90", "unattributed": "0x60 1x29 stale 1x90"}),
            READY,
            minute=91,
            values={},
            firing=["TracescoreChanged"],
        ),
        *(
            case(
                f"a fall is over: {after} minutes later its alert is {word}",
                detector("0x60 1x30 0x90"),
                verdicts({"none": "1x60 0x30 1x90", "unattributed": "0x60 1x30 0x90"}),
                READY,
                minute=90 + after,
                values={},
                firing=firing,
            )
            for after, word, firing in ((10, "still there", ["TracescoreChanged"]), (40, "over", []))
        ),
        case(
            "a fall below the target is told once, as a fall",
            told,
            verdicts({"product": TOLD}),
            scores("completeness", 0.25, 60, 120, 1),
            READY,
            minute=150,
            values={},
            firing=["TracescoreChanged"],
        ),
        case(
            "evasions are told as such, and not as answers that miss a target in every measure",
            detector(TOLD, "answered"),
            verdicts({"product": TOLD}),
            *(
                scores(measure, value, 60, 120, 1, a_minute=count, labels={"pod": pod})
                for measure in ("answer_relevancy", "completeness")
                for value, count, pod in ((0.0, 1, "a"), (0.9375, 1, "b"))
            ),
            READY,
            minute=150,
            values={"count(service:tracescore_below_target:burning{measure='completeness'} > 0) > bool 0": 1},
            firing=["TracescoreChanged"],
        ),
        case(
            "a fall is told once it is known who moved",
            told,
            verdicts({"pending": "0x60 1x20 0x100", "product": "0x80 1x100"}),
            READY,
            minute=75,
            values={"sum(tracescore_drift_detected)": 1},
            firing=[],
        ),
        case(
            "a fall of the judge is told as that",
            told,
            detector(TOLD, "faithfulness", "target"),
            verdicts({"judge": TOLD}),
            READY,
            minute=90,
            values={},
            firing=["TracescoreJudgeMoved"],
        ),
        case(
            "of two replicas one is alarmed",
            told,
            detector(CALM, pod="b"),
            verdicts({"product": TOLD}),
            verdicts({"none": "1x180"}, pod="b"),
            READY,
            minute=90,
            values={"count(ALERTS)": 1},
            firing=["TracescoreChanged"],
        ),
        case(
            "another service's judge silences nothing here",
            told,
            verdicts({"product": TOLD}),
            verdicts({"judge": TOLD}, service_name="bank"),
            READY,
            minute=90,
            values={},
            firing=["TracescoreChanged", "TracescoreJudgeMoved"],
        ),
        case(
            "a target is missed",
            detector(TOLD, "faithfulness", "target"),
            verdicts({"unattributed": TOLD}),
            READY,
            minute=130,
            values={},
            firing=["TracescoreTargetMissed"],
        ),
        case(
            "a fall below the target is a fall",
            told,
            detector(TOLD, "completeness", "target"),
            verdicts({"product": TOLD}),
            READY,
            minute=90,
            values={},
            firing=["TracescoreChanged"],
        ),
        case(
            "the judge is down: what was detected before waits",
            told,
            detector(TOLD, "faithfulness", "target"),
            verdicts({"product": TOLD}),
            JUDGE_DOWN,
            minute=90,
            values={},
            firing=["TracescoreMeasurementBroken"],
        ),
    ]
