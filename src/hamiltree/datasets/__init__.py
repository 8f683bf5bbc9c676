"""Data to try the library on, and the data and splits of the paper's experiments."""

from .bundled import load_bcw, load_heart, load_penguins
from .paper import PAPER_DATASETS, Split, load_paper_split
from .raisin import MissingDataError, fetch_raisin
from .synthetic import cgm_mean, make_cgm, make_cgm98, make_wu, wu_mean

__all__ = [
    "PAPER_DATASETS",
    "MissingDataError",
    "Split",
    "cgm_mean",
    "fetch_raisin",
    "load_bcw",
    "load_heart",
    "load_paper_split",
    "load_penguins",
    "make_cgm",
    "make_cgm98",
    "make_wu",
    "wu_mean",
]
