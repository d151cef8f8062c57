"""Online learners: one pass, predict then update, at every eligible node."""

from stream_hc.learners.arow import HAROW
from stream_hc.learners.base import ColdStart, OnlineLearner
from stream_hc.learners.calibrated import Calibrated
from stream_hc.learners.hbayes import ApproxHBayes
from stream_hc.learners.hpa import HPA, LHPA, PA
from stream_hc.learners.linear import LinearLearner
from stream_hc.learners.pa import NodePA
from stream_hc.learners.paths import PathLearner
from stream_hc.learners.perceptron import HPerceptron, Perceptron
from stream_hc.learners.ranking import RankingPerceptron
from stream_hc.learners.rls import HRLS
from stream_hc.learners.second_order import SecondOrderLearner

__all__ = [
    "HAROW",
    "HPA",
    "HRLS",
    "LEARNERS",
    "LHPA",
    "PA",
    "QUICK",
    "ApproxHBayes",
    "Calibrated",
    "ColdStart",
    "HPerceptron",
    "LinearLearner",
    "NodePA",
    "OnlineLearner",
    "PathLearner",
    "Perceptron",
    "RankingPerceptron",
    "SecondOrderLearner",
]

# The names by which the command line knows them.
LEARNERS: dict[str, type[OnlineLearner]] = {
    "h-perceptron": HPerceptron,
    "perceptron": Perceptron,
    "h-arow": HAROW,
    "node-pa": NodePA,
    "h-rls": HRLS,
    "approx-h-bayes": ApproxHBayes,
    "pa": PA,
    "hpa": HPA,
    "lhpa": LHPA,
    "ranking": RankingPerceptron,
}
# Those whose cost a document does not grow with what they have seen: what is compared if nobody says what.
QUICK = [name for name, kind in LEARNERS.items() if issubclass(kind, LinearLearner)]
