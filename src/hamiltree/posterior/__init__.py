"""The sampled trees, and all that can be asked of them."""

from .comparison import compare
from .given import posterior_of
from .posterior import Posterior

__all__ = ["Posterior", "compare", "posterior_of"]
