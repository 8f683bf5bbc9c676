"""The sampled trees, and all that can be asked of them."""

from .posterior import Posterior

__all__ = ["Posterior"]
