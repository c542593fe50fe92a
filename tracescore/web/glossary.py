"""What the page says about the closed lists of the model: measures, states, reasons, verdicts. One sentence each.

Templates have every table of this module by its name in lower case.
"""

from collections.abc import Mapping

from tracescore.model import ContextSource, Measure, Reason, State

MEASURE_NAMES: Mapping[Measure, str] = {
    "answer_relevancy": "Answer relevancy",
    "completeness": "Completeness",
    "faithfulness": "Faithfulness",
    "answer_correctness": "Answer correctness",
}

MEASURE_MEANINGS: Mapping[Measure, str] = {
    "answer_relevancy": "Does the answer address the question? A model generates questions from the answer alone and "
    "compares them with the one that was asked; the embedded judge looks at question and answer.",
    "completeness": "Does the answer cover every part of what was asked?",
    "faithfulness": "Does every claim of the answer stand in the passages it was given?",
    "answer_correctness": "Does the answer say what the reference says?",
}

LABEL_QUESTIONS: Mapping[Measure, str] = {
    "answer_relevancy": "Does the answer deal with the question, right or wrong?",
    "completeness": "Which of the required parts does the answer cover? Whether it is right does not matter here.",
    "faithfulness": "Which claims of the answer stand in the passages?",
}

STATE_MEANINGS: Mapping[State, str] = {
    "complete": "question, answer and passages found",
    "no_question": "no question found in the trace",
    "no_answer": "no answer found in the trace",
    "no_contexts": "question and answer found, but no passages: faithfulness is skipped",
    "content_not_captured": "the app does not record the texts",
    "redacted": "a text was withheld by the app",
    "truncated": "a text was cut by the app or its exporter",
    "partial_contexts": "some passages came without their text",
    "implausible": "where a text was to be found stands an object, a scaffold or a file, and nothing that anyone said",
    "app_error": "the app failed to answer",
}

REASON_MEANINGS: Mapping[Reason, str] = {
    "no_question": STATE_MEANINGS["no_question"],
    "no_answer": STATE_MEANINGS["no_answer"],
    "no_contexts": "no passages found to hold the answer against",
    "content_not_captured": STATE_MEANINGS["content_not_captured"],
    "redacted": STATE_MEANINGS["redacted"],
    "truncated": STATE_MEANINGS["truncated"],
    "partial_contexts": STATE_MEANINGS["partial_contexts"],
    "implausible": STATE_MEANINGS["implausible"],
    "app_error": STATE_MEANINGS["app_error"],
    "no_reference": "there is no reference answer to compare with",
    "unsupported_language": "the judge does not read this script, or not these languages together",
    "judge_unreachable": "the judge did not answer",
    "judge_timeout": "the judge did not answer in time",
    "judge_rate_limited": "the judge asked to be called less often",
    "judge_quota": "the judge's quota is used up",
    "judge_refused": "the judge declined to read this text",
    "judge_truncated": "the judge's reply was cut off",
    "judge_unreadable": "the judge's reply could not be read",
    "judge_incomplete": "the judge left out some verdicts, even when asked again",
    "judge_mixed": "different models answered under the judge's name",
    "judge_unfit": "the judge cannot do this work",
    "judge_input_too_long": "the text is longer than the judge can read",
    "needs_history": "a follow-up question, and this judge reads first questions only",
    "abstained": "the answer declines to answer",
    "no_questions": "the answer gave no question to compare",
    "no_parts": "no required part was found in the question",
    "no_claims": "the answer makes no checkable claim",
    "no_reference_claims": "the reference makes no checkable claim",
    "zero_vector": "a text could not be turned into a usable vector",
    "embedder_failed": "the embedder failed",
    "internal_error": "tracescore itself failed; see its log",
    "queue_full": "too many interactions were waiting for the judge",
    "shutdown": "the process was shutting down",
    "erased": "its trace was erased before the judge read it",
}

SOURCE_MEANINGS: Mapping[ContextSource, str] = {
    "retrieval": "listed by a retrieval span",
    "tool": "the result of a tool",
    "variables": "the variables of a prompt template",
    "prompt": "the rendered prompt of the model call",
    "none": "not found",
}

LABEL_MEANINGS: Mapping[str, str] = {
    "noncommittal": "the answer evades the question, which counts as 0",
    "blank": "the answer is blank, which counts as 0",
}

STATE_OF_CHANGE: Mapping[str, str] = {
    "learning": "what is normal is not known yet: nothing is told before it is",
    "steady": "nothing speaks for a fall",
    "suspected": "something may be falling; too little is known to say so",
    "changed": "it has fallen",
}

VERDICT_MEANINGS: Mapping[str, str] = {
    "none": "",
    "pending": "Fixed items are being scored to see whether it is the judge.",
    "product": "Fixed items score as before: it is not the judge.",
    "judge": "",
    "unattributed": "Whether it is the judge is not known: no fixed items (drift.anchors) tell.",
}

ITEM_NAMES = {"question": "generated", "part": "part", "claim": "claim", "reference_claim": "reference"}

GOOD_VERDICTS = frozenset({"supported", "covered", "TP"})
BAD_VERDICTS = frozenset({"contradicted", "not_found", "missing", "FP", "missed"})
