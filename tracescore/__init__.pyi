# The public names of tracescore with their types; __init__.py loads them when they are first used.

from tracescore.datasets.case import Case as Case
from tracescore.scoring import ascore as ascore
from tracescore.scoring import score as score
from tracescore.scoring.results import MeanScore as MeanScore
from tracescore.scoring.results import Measured as Measured
from tracescore.scoring.results import ScoredCase as ScoredCase
from tracescore.scoring.results import ScoredCases as ScoredCases

__version__: str
