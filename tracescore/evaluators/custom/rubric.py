"""A rubric: the judge follows instructions of the user's own and chooses on their scale."""

from __future__ import annotations

from tracescore.config import RubricMeasureConfig
from tracescore.evaluators.custom.measure import OwnMeasure
from tracescore.judge.operations import Session
from tracescore.judge.rubric import load_rubric
from tracescore.model import Evaluation, Interaction, Measure


class RubricMeasure(OwnMeasure):
    """One request for each interaction that the judge does not remember; its choice and reason are the evidence."""

    kind = "rubric"

    def __init__(self, setting: str, measure: Measure, settings: RubricMeasureConfig) -> None:
        """UsageError when a file cannot be used."""
        self.rubric = load_rubric(setting, measure, settings)
        super().__init__(measure, settings.reads, self.rubric.version)

    async def evaluate(self, interaction: Interaction, session: Session) -> Evaluation:
        """See `Evaluator`."""
        choice = await session.choose(self.rubric, self.texts(interaction))
        return self.scored(choice.value, choice.reason, choice.label)
