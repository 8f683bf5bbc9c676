"""Pictures of a posterior and of its trees, one file a plot; each draws into ``ax`` if given."""

from .leaves import plot_leaves
from .trace import plot_trace
from .tree import plot_tree

__all__ = ["plot_leaves", "plot_trace", "plot_tree"]
