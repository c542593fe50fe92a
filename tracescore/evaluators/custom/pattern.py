"""A regular expression of RE2: whether anything in what it reads matches, in time linear in the length of the texts."""

from __future__ import annotations

import hashlib

from tracescore.config import PatternMeasureConfig
from tracescore.config.types import compiled
from tracescore.evaluators.custom.measure import OwnMeasure
from tracescore.judge.operations import Session
from tracescore.model import Evaluation, Interaction, Item, Measure, Score

_QUOTED = 200


class PatternMeasure(OwnMeasure):
    """Scores `value` where there is a match, and else `otherwise`. The first match is its evidence."""

    kind = "pattern"

    def __init__(self, measure: Measure, settings: PatternMeasureConfig) -> None:
        self._found, self._not_found = settings.ends
        parts = (settings.matches, repr(settings.ends), *settings.reads)
        version = hashlib.sha256("\x00".join(parts).encode()).hexdigest()[:12]
        super().__init__(measure, settings.reads, version, judge=f"pattern:{measure}")
        self._pattern = compiled(settings.matches)

    async def evaluate(self, interaction: Interaction, session: Session) -> Evaluation:
        """See `Evaluator`."""
        del session
        for field, given in self.texts(interaction).items():
            texts = [turn["text"] for turn in given] if field == "history" else given
            for place, text in enumerate([texts] if isinstance(texts, str) else texts):
                match = self._pattern.search(text.encode(errors="replace").decode())
                if match is not None:
                    passage = place if field == "contexts" else None
                    item = Item("match", f"in the {field}", "", match[0][:_QUOTED], self._found, passage)
                    return Score(self.measure, self._found, items=(item,))
        return Score(self.measure, self._not_found)
