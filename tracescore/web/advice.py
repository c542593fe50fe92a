"""What to do about evaluations that gave no score: one fix for each reason."""

from collections.abc import Mapping

from tracescore.model import Reason

FIXES: Mapping[Reason, str] = {
    "no_question": "Name the attribute that holds the question under interactions in the configuration.",
    "no_answer": "Name the attribute that holds the answer under interactions in the configuration.",
    "no_contexts": "Record the retrieved passages in the traces (docs/instrument.md).",
    "content_not_captured": "Turn on the recording of texts in the app's instrumentation (docs/instrument.md).",
    "redacted": "Let the app keep question, answer and passages, or redact in tracescore instead (docs/security.md).",
    "truncated": "Raise the attribute length limit of the app's SDK (OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT).",
    "partial_contexts": "Record the text of every passage, not its id alone (docs/instrument.md).",
    "implausible": "Record the plain text; tracescore inspect --explain shows what it read.",
    "app_error": "Look at the app's errors; tracescore scores the answers that succeed.",
    "no_reference": "Add a reference answer to the gold set.",
    "no_ranking": "Record the retrieval as a span of its own (docs/instrument.md).",
    "unsupported_language": "Choose a judge that reads this language (docs/judges.md).",
    "judge_unreachable": "Check the judge's address and network: tracescore check --probe.",
    "judge_timeout": "Raise judge.timeout, or choose a faster judge.",
    "judge_rate_limited": "Lower sampling.ratio or sampling.max_per_minute, or raise the provider's limit.",
    "judge_quota": "Top up the judge's account; scoring goes on by itself.",
    "judge_refused": "Read the refused interactions; another judge may accept them.",
    "judge_truncated": "Raise the judge's output limit (docs/judges.md).",
    "judge_unreadable": "Run tracescore check --probe; a stronger judge keeps to its format.",
    "judge_incomplete": "Choose a stronger judge: this one leaves out verdicts.",
    "judge_mixed": "Name one model: the endpoint answers with several.",
    "judge_unfit": "Choose another judge: tracescore check --probe says why.",
    "judge_input_too_long": "Choose a judge with a longer context, or retrieve fewer passages.",
    "needs_history": "Choose a language model as judge: the embedded one reads first questions only.",
    "abstained": "Read these answers: the app says that it cannot answer.",
    "no_questions": "Read these answers: the judge finds nothing they could answer.",
    "no_parts": "Nothing, where these are greetings; else read them.",
    "no_claims": "Nothing: such answers claim nothing to check.",
    "no_reference_claims": "Write the reference answer as a statement.",
    "zero_vector": "Check the embedder: it returns empty vectors.",
    "embedder_failed": "Check the embedder's address: tracescore check --probe.",
    "internal_error": "Look for event=defect in the log of tracescore and report it.",
    "queue_full": "Raise evaluators.max_concurrency, or lower sampling.ratio: the judge is too slow for the traffic.",
    "shutdown": "Set spool.path, so that waiting interactions survive a restart.",
    "budget": "Raise judge.budget.per_day, or wait for midnight (UTC).",
    "erased": "Nothing: somebody asked for it.",
}
