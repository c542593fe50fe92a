"""Trace -> interactions: question, history, contexts and answer out of whatever convention the app's spans follow."""

from tracescore.interactions.reader import Reading, read
from tracescore.interactions.table import MARKERS, content_switch

__all__ = ["MARKERS", "Reading", "content_switch", "read"]
