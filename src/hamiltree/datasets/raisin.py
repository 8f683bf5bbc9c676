"""The Raisin data set: no package ships it, so it is downloaded once, checked, and kept."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from pathlib import Path

import numpy as np
from sklearn.datasets import fetch_file
from sklearn.utils import Bunch

ARCHIVE = "raisin.zip"
URL = f"https://archive.ics.uci.edu/static/public/850/{ARCHIVE}"
SHA256 = "5d516c040923fd154ecf85e31b6e1b5a096724fa0e68d588c33fb5a2f0c3e5db"
FEATURE_NAMES = (
    "area",
    "major_axis_length",
    "minor_axis_length",
    "eccentricity",
    "convex_area",
    "extent",
    "perimeter",
)
VARIETIES = ("besni", "kecimen")
"""In the order of their codes, which are those of the paper's splits."""


class MissingDataError(OSError):
    """A data set is not on this machine and cannot be downloaded; the message says what to do.

    Examples
    --------
    >>> from hamiltree.datasets import MissingDataError, load_paper_split
    >>> issubclass(MissingDataError, OSError)
    True
    """


def fetch_raisin(data_dir: str | os.PathLike[str] | None = None) -> Bunch:
    """Load Raisin: 900 grains of two varieties, 7 measures of their shape.

    Cinar, Koklu and Tasdemir (2020), UCI data set 850, CC BY 4.0. Downloaded on the first use
    into scikit-learn's data folder, and checked against a known checksum.

    Parameters
    ----------
    data_dir : path, optional
        A folder that holds ``raisin.zip``: nothing is downloaded then.

    Returns
    -------
    Bunch
        ``data`` [900, 7]; ``target`` [900], 0 Besni and 1 Kecimen, in the order of the file;
        ``feature_names``; ``target_names``; ``DESCR``.

    Raises
    ------
    MissingDataError
        An ``OSError``: if there is no network and no local copy.

    Examples
    --------
    >>> from hamiltree.datasets import MissingDataError, fetch_raisin
    >>> try:
    ...     data = fetch_raisin(data_dir="folder-of-the-archive")
    ... except MissingDataError as error:
    ...     print("not here:", str(error)[:30])  # doctest: +ELLIPSIS
    not here: ...
    """
    path = _local_archive(data_dir) or _downloaded()
    rows = _rows(path)
    data = np.array([[float(cell) for cell in row[:-1]] for row in rows])
    target = np.array([VARIETIES.index(row[-1].strip(" '\"").lower()) for row in rows])
    if data.shape != (900, 7) or np.bincount(target).tolist() != [450, 450]:
        raise MissingDataError(f"{path} does not hold the 900 grains that it should")
    return Bunch(
        data=data,
        target=target,
        feature_names=list(FEATURE_NAMES),
        target_names=np.array(VARIETIES),
        DESCR="Raisin: Cinar, Koklu and Tasdemir (2020), UCI data set 850, CC BY 4.0.",
    )


def _local_archive(data_dir: str | os.PathLike[str] | None) -> Path | None:
    if data_dir is None or not (path := Path(data_dir) / ARCHIVE).is_file():
        return None
    if hashlib.sha256(path.read_bytes()).hexdigest() != SHA256:
        raise MissingDataError(f"{path} is not UCI's archive: its sha256 differs from {SHA256}")
    return path


def _downloaded() -> Path:
    try:
        path: Path = fetch_file(URL, sha256=SHA256, n_retries=0)
    except OSError as error:  # no network, a server in trouble, or a wrong checksum
        raise MissingDataError(
            f"cannot download the Raisin data ({error}). Without a network: get {URL} elsewhere, "
            f"put {ARCHIVE} (or raisin_train.csv and raisin_test.csv, the paper's split) into a "
            "folder, and name the folder by --data-dir or HAMILTREE_DATA"
        ) from error
    return path


def _rows(path: Path) -> list[list[str]]:
    """The lines of data in the ARFF file of the archive, which is a zip inside a zip."""
    for name, content in _members(path.read_bytes()):
        if name.lower().endswith(".arff"):
            lines = content.decode("utf-8-sig").splitlines()
            start = [line.strip().lower() for line in lines].index("@data") + 1
            return [line.split(",") for line in lines[start:] if line.strip(" %")]
    raise MissingDataError(f"there is no ARFF file in {path}")


def _members(archive: bytes) -> list[tuple[str, bytes]]:
    """Every file in a zip, and in the zips in it."""
    found = []
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        for name in opened.namelist():
            content = opened.read(name)
            found += _members(content) if name.lower().endswith(".zip") else [(name, content)]
    return found
