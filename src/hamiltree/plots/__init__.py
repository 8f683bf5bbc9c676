"""Pictures of a posterior and of its trees, one file per plot; each draws into ``ax`` if given."""

from .calibration import plot_calibration
from .inclusion import plot_inclusion
from .leaves import plot_leaves
from .partial_dependence import plot_partial_dependence
from .ppc import plot_ppc
from .predictions import plot_predictions
from .rank import plot_rank
from .similarity import plot_similarity
from .thresholds import plot_thresholds
from .trace import plot_trace
from .tree import plot_tree

__all__ = [
    "plot_calibration",
    "plot_inclusion",
    "plot_leaves",
    "plot_partial_dependence",
    "plot_ppc",
    "plot_predictions",
    "plot_rank",
    "plot_similarity",
    "plot_thresholds",
    "plot_trace",
    "plot_tree",
]
