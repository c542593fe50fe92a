"""Trace -> interactions: question, history, contexts and answer out of whatever convention the app's spans follow."""

from tracescore.interactions.reader import Census, census, read
from tracescore.interactions.table import MARKERS, content_switch

__all__ = ["MARKERS", "Census", "census", "content_switch", "read"]
