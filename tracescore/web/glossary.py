"""What the page says about the closed lists of the model: measures, states, reasons, verdicts. One sentence each.

Templates have every table of this module by its name in lower case.
"""

from collections.abc import Mapping

from tracescore.model import ContextSource, Measure, Reason, State


class _NamesOfMeasures(dict[Measure, str]):
    """Names a measure of the user's own as well."""

    def __missing__(self, measure: Measure) -> str:
        return measure.replace("_", " ").capitalize()


class _Meanings(dict[Measure, str]):
    """Knows of a measure of the user's own that it is one."""

    def __missing__(self, measure: Measure) -> str:
        return f"A measure of your own (evaluators.custom.{measure})."


MEASURE_NAMES: Mapping[Measure, str] = _NamesOfMeasures(
    {
        "answer_relevancy": "Answer relevancy",
        "completeness": "Completeness",
        "faithfulness": "Faithfulness",
        "context_precision": "Context precision",
        "context_recall": "Context recall",
        "answer_correctness": "Answer correctness",
    }
)

MEASURE_MEANINGS: Mapping[Measure, str] = _Meanings(
    {
        "answer_relevancy": "Does the answer address the question? The judge writes questions that fit the answer and "
        "compares them with the user's question; the embedded judge compares question and answer.",
        "completeness": "Does the answer cover every part of what was asked?",
        "faithfulness": "Do the passages support every claim of the answer?",
        "context_precision": "Did retrieval rank first what a right answer needs? It cannot see a missing passage.",
        "context_recall": "Do the passages say what the reference says?",
        "answer_correctness": "Does the answer say what the reference says?",
    }
)

LABEL_QUESTIONS: Mapping[Measure, str] = {
    "answer_relevancy": "Does the answer address the question, whether right or wrong?",
    "completeness": "Which parts does the answer cover, whether right or wrong?",
    "faithfulness": "Which claims of the answer do the passages support?",
}

STATE_MEANINGS: Mapping[State, str] = {
    "complete": "question, answer and passages found",
    "no_question": "no question found in the trace",
    "no_answer": "no answer found in the trace",
    "no_contexts": "question and answer found, but no passages: tracescore skips faithfulness",
    "content_not_captured": "the app does not record the texts",
    "redacted": "the app withheld a text",
    "truncated": "the app or its exporter cut a text",
    "partial_contexts": "some passages came without their text",
    "implausible": "the attribute holds a serialised object, a prompt scaffold or a file instead of a text",
    "app_error": "the app failed to answer",
}

REASON_MEANINGS: Mapping[Reason, str] = {
    "no_question": STATE_MEANINGS["no_question"],
    "no_answer": STATE_MEANINGS["no_answer"],
    "no_contexts": "no passages found to compare the answer with",
    "content_not_captured": STATE_MEANINGS["content_not_captured"],
    "redacted": STATE_MEANINGS["redacted"],
    "truncated": STATE_MEANINGS["truncated"],
    "partial_contexts": STATE_MEANINGS["partial_contexts"],
    "implausible": STATE_MEANINGS["implausible"],
    "app_error": STATE_MEANINGS["app_error"],
    "no_reference": "no reference answer to compare with",
    "no_ranking": "the passages come from a tool or a prompt; no retrieval ranked them",
    "budget": "today's budget of the judge is spent (judge.budget)",
    "not_applicable": "your measure says that it does not apply here",
    "unsupported_language": "the judge does not read this language, or not these languages together",
    "judge_unreachable": "the judge did not answer",
    "judge_timeout": "the judge did not answer in time",
    "judge_rate_limited": "the judge's rate limit was reached",
    "judge_quota": "the judge's quota is used up",
    "judge_refused": "the judge refused this text",
    "judge_truncated": "the judge's reply was cut off",
    "judge_unreadable": "tracescore could not read the judge's reply",
    "judge_incomplete": "the judge left out some verdicts, even when asked again",
    "judge_mixed": "several models answered under the judge's name",
    "judge_unfit": "the judge cannot do this work",
    "judge_input_too_long": "the text is longer than the judge can read",
    "needs_history": "a follow-up question; this judge reads first ones only, or what was said before is not known",
    "abstained": "the answer says that it cannot answer",
    "no_questions": "the judge found no question that the answer answers",
    "no_parts": "the judge found no part in the question",
    "no_claims": "the answer makes no checkable claim",
    "no_reference_claims": "the reference makes no checkable claim",
    "zero_vector": "the embedder returned a vector of zeros",
    "embedder_failed": "the embedder failed",
    "internal_error": "tracescore failed; see event=defect in its log",
    "queue_full": "too many interactions waited for the judge",
    "shutdown": "the process stopped before it could score this",
    "erased": "its trace was erased before the judge read it",
    "expired": "its texts became older than retain.spool before the judge read it",
}

SOURCE_MEANINGS: Mapping[ContextSource, str] = {
    "retrieval": "from a retrieval span",
    "tool": "from the result of a tool",
    "variables": "from the variables of a prompt template",
    "prompt": "from the rendered prompt of the model call",
    "none": "not found",
}

LABEL_MEANINGS: Mapping[str, str] = {
    "noncommittal": "the answer evades the question and scores 0",
    "blank": "the answer is blank and scores 0",
    "language_unknown": "the judge knows digits in this language, but neither its number words nor its negations",
}

DETAIL_NAMES: Mapping[str, str] = {
    "strict": "counting partly covered parts as missing",
    "windows": "windows of evidence",
    "uncovered": "sentences without a claim",
    "contradicted": "contradicted claims",
}

STATE_OF_CHANGE: Mapping[str, str] = {
    "learning": "tracescore still learns what is normal and reports no drop yet",
    "steady": "no sign of a drop",
    "suspected": "a drop is possible; the evidence is too weak to report it",
    "changed": "the mean has dropped",
    "paused": "silent during a planned change",
}

TRAFFIC_MEANINGS: Mapping[str, str] = {
    "side_by_side": "side by side, hour by hour",
    "adjacent": "one after the other",
}

VERDICT_MEANINGS: Mapping[str, str] = {
    "none": "",
    "pending": "tracescore is scoring the anchors again to see whether the judge moved.",
    "product": "The anchors score as before: the judge has not moved.",
    "judge": "",
    "unattributed": "Without anchors (drift.anchors) tracescore cannot tell whether the judge moved.",
}

ITEM_NAMES = {
    "question": "generated",
    "part": "part",
    "claim": "claim",
    "reference_claim": "reference",
    "passage": "passage",
    "reason": "reason",
    "match": "match",
}

GOOD_VERDICTS = frozenset({"supported", "covered", "TP", "useful"})
BAD_VERDICTS = frozenset({"contradicted", "not_found", "missing", "FP", "missed", "not_useful"})
