"""Tables from CSV, Excel and Parquet files: each column comes out as numbers or as texts.

Every cell of a CSV or of a sheet is read as text, and a column holds numbers only if all its cells
do. So a stray "?" is reported instead of turning a column of numbers into categories.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas
from numpy.typing import NDArray

MISSING = ("", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL")
"""Cells that count as missing. "None" does not: it is a usual name of a category."""
SEPARATORS = ",;\t|"
MAX_CLASSES = 10
"""Whole numbers with more different values than this are taken for a quantity, not for classes."""
EXACT = 2.0**53
"""Up to here whole numbers are themselves in floating point; above, some become neighbours."""
SHOWN = 5
"""Values, or columns, that a message lists before it counts the rest."""


class TableError(ValueError):
    """The table cannot be used as it is; the message says what to do.

    Where options of the command line would do it, ``options`` has them, and ``instead`` arguments
    that were meant, by those that were given.
    """

    def __init__(
        self, message: str, options: Sequence[str] = (), instead: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.options = tuple(options)
        self.instead = dict(instead or {})


class SeveralTableError(TableError):
    """All that is wrong with a table: one problem reads as it is, several as a list."""

    def __init__(self, problems: Sequence[TableError]) -> None:
        self.problems = tuple(problems)
        lines = [f"  {number}. {problem}" for number, problem in enumerate(problems, start=1)]
        wanted = [option for problem in problems for option in _groups(problem.options)]
        super().__init__(
            str(problems[0])
            if len(problems) == 1
            else "\n".join([f"the table has {len(problems)} problems:", *lines]),
            [part for option in dict.fromkeys(wanted) for part in option],
            {old: new for problem in problems for old, new in problem.instead.items()},
        )


def raise_all(problems: Sequence[TableError]) -> None:
    """Raise what was found, if anything."""
    if problems:
        raise SeveralTableError(problems)


def _groups(options: Sequence[str]) -> list[tuple[str, ...]]:
    """Options with their values, so that one that helps twice is given once."""
    starts = [k for k, part in enumerate(options) if part.startswith("--")]
    return [tuple(options[a:b]) for a, b in pairwise([*starts, len(options)])]


def read_table(path: Path, *, missing: Sequence[str] = (), decimal: str = ".") -> pandas.DataFrame:
    """Read a table whose columns are float64 or text (object), missing cells NaN or None.

    Names are stripped of spaces around them. Columns without a name, such as the row numbers that
    pandas and R write, are left out; ``unnamed_columns`` of the frame's ``attrs`` counts them, and
    ``sheets`` names those of an Excel file, of which the first is read.
    """
    if len(decimal) != 1 or decimal.isalnum():
        raise TableError(f"the decimal mark must be one sign, such as a comma, got {decimal!r}")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    suffix = path.suffix.lower()
    if suffix in (".parquet", ".pq"):
        raw = _read_parquet(path)
    elif suffix in (".csv", ".tsv", ".txt"):
        raw = _read_csv(path)
    elif suffix in (".xlsx", ".xlsm"):
        raw = _read_excel(path)
    else:
        raise TableError(
            f"{path.name}: expected a name that ends in .csv, .tsv, .txt, .xlsx or .parquet"
        )
    names = [str(name).strip() for name in raw.columns]
    repeated = sorted({name for name in names if name and names.count(name) > 1})
    if repeated:
        raise TableError(f"{path.name}: several columns have the same name: {listed(repeated)}")
    if not len(raw):
        raise TableError(f"{path.name} holds no rows below its header")
    kept = [place for place, name in enumerate(names) if name]
    absent = {*MISSING, *missing}
    columns, problems = {}, []
    for place in kept:
        try:
            columns[names[place]] = _column(raw.iloc[:, place], absent, decimal)
        except TableError as problem:
            problems.append(problem)
    raise_all(problems)
    frame = pandas.DataFrame(columns)
    frame.attrs["unnamed_columns"] = len(names) - len(kept)
    frame.attrs["sheets"] = raw.attrs.get("sheets", ())
    return frame


def _read_csv(path: Path) -> pandas.DataFrame:
    try:
        with path.open(encoding=_encoding(path), newline="") as file:
            header = file.readline()
            separator = max(SEPARATORS, key=_outside_quotes(header).count)
            file.seek(0)
            rows = [row for row in csv.reader(file, delimiter=separator, strict=True) if row]
    except UnicodeError:
        raise TableError(
            f"{path.name} is not text in UTF-8 or UTF-16: save it as CSV UTF-8"
        ) from None
    except csv.Error as error:
        raise TableError(f"{path.name} is not a readable CSV file: {error}") from None
    if not rows:
        raise TableError(f"{path.name} is empty")
    names, cells = rows[0], rows[1:]
    for number, row in enumerate(cells, start=1):
        if len(row) != len(names):
            raise TableError(
                f"{path.name}: row {number} below the header has {len(row)} cells and the header "
                f"{len(names)}: a cell that holds a {separator!r} needs quotes around it"
            )
    return pandas.DataFrame(cells, columns=names, dtype=object)


def _encoding(path: Path) -> str:
    """UTF-16 where a mark at the start says so, as of Excel's "Unicode text"; UTF-8 otherwise."""
    with path.open("rb") as file:
        start = file.read(2)
    return "utf-16" if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"


def _read_excel(path: Path) -> pandas.DataFrame:
    """The first sheet, from its first row that is not empty on; empty rows are left out."""
    try:
        with pandas.ExcelFile(path, engine="openpyxl") as file:
            sheets = tuple(str(name) for name in file.sheet_names)
            cells = pandas.read_excel(
                file, sheet_name=0, header=None, dtype=object, keep_default_na=False
            )
    except ImportError:
        raise TableError(
            "reading Excel needs openpyxl: pip install 'hamiltree[excel]', or save a CSV"
        ) from None
    except Exception as error:  # of a zip archive, of XML, of openpyxl
        raise TableError(f"{path.name} is not a readable Excel file: {error}") from None
    cells = (
        cells.where(cells.notna() & (cells != ""), None).dropna(how="all").dropna(how="all", axis=1)
    )
    if not len(cells):
        raise TableError(f"{path.name} is empty")
    raw = cells.iloc[1:].reset_index(drop=True)
    raw.columns = ["" if name is None else as_text(name) for name in cells.iloc[0]]
    raw.attrs["sheets"] = sheets
    return raw


def _outside_quotes(line: str) -> str:
    return "".join(line.split('"')[::2])


def _read_parquet(path: Path) -> pandas.DataFrame:
    try:
        frame = pandas.read_parquet(path)
        index = [name for name in frame.index.names if name is not None]
        return frame.reset_index(level=index) if index else frame  # pandas' files mark columns so
    except ImportError:
        raise TableError(
            "reading Parquet needs pyarrow: pip install 'hamiltree[parquet]', or save a CSV"
        ) from None
    except Exception as error:  # pyarrow's own errors, of many types
        raise TableError(f"{path.name} is not a readable Parquet file: {error}") from None


def _column(column: pandas.Series, absent: set[str], decimal: str) -> pandas.Series:
    """Float64 where every cell is a number, otherwise texts; ordered categories stay what they are.

    A column with numbers and other texts stays text: the encoding says what to do about it. So
    does one with whole numbers that floating point would change.
    """
    name = str(column.name).strip()
    if isinstance(column.dtype, pandas.CategoricalDtype) and column.cat.ordered:
        return column.cat.rename_categories([as_text(value) for value in column.cat.categories])
    if pandas.api.types.is_numeric_dtype(column) and column.dtype.kind in "iuf":
        numbers = column.astype(np.float64)
        if column.dtype.kind == "f" or not (numbers.abs() >= EXACT).any():
            return numbers
    texts = column.map(as_text, na_action="ignore").astype(object)
    texts = texts.str.strip().where(lambda cells: cells.notna() & ~cells.isin(absent), None)
    if texts.str.contains("\0", regex=False, na=False).any():
        raise TableError(f"the column {name!r} holds NUL characters: save the table as CSV UTF-8")
    if decimal != ".":
        texts = texts.str.replace(decimal, ".", regex=False)
    numbers = pandas.to_numeric(texts, errors="coerce").astype(np.float64)
    if numbers.notna().sum() == texts.notna().sum() > 0 and not _rounded(texts, numbers):
        return numbers
    return texts


def _rounded(texts: pandas.Series, numbers: pandas.Series) -> bool:
    """Whether floating point changes a whole number: an identifier would become its neighbour."""
    large = (numbers.abs() >= EXACT) & texts.str.fullmatch(r"[+-]?\d+", na=False)
    if not large.any() or np.isinf(numbers).any():  # infinite ones are refused, as what they are
        return False
    return any(
        int(text.lstrip("+-0")) != abs(int(number))
        for text, number in zip(texts[large], numbers[large], strict=True)
    )


def told_apart(column: pandas.Series) -> pandas.Series | None:
    """The column as float64 where each cell is a number and different ones stay different."""
    if is_numeric(column):
        return column
    numbers = pandas.to_numeric(column, errors="coerce").astype(np.float64)
    apart = numbers.notna().all() and numbers.nunique() == column.nunique()
    return numbers if apart else None


def as_text(value: object) -> str:
    """A category as text; whole numbers without a point, so that 1 and 1.0 are one category."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def is_numeric(column: pandas.Series) -> bool:
    return bool(column.dtype == np.float64)


def refuse_infinite(frame: pandas.DataFrame) -> None:
    """Raise an error that names the columns with infinite values, and counts them."""
    infinite = [
        f"{name!r} ({int(np.isinf(column).sum())})"
        for name, column in frame.items()
        if is_numeric(column) and np.isinf(column).any()
    ]
    if infinite:
        raise TableError(f"infinite values in {listed(infinite, 20)}: replace them")


def detect_task(target: pandas.Series) -> tuple[str, str]:
    """Say "classification" or "regression", and why, of a target without missing values."""
    values = target.nunique()
    numbers = told_apart(target)
    if numbers is None or (values <= MAX_CLASSES and not is_numeric(target)):
        return "classification", f"the target holds {values} different texts"
    if (numbers % 1 != 0).any():
        return "regression", "the target holds fractional numbers"
    if values <= MAX_CLASSES:
        return "classification", f"the target holds {values} different whole numbers"
    return "regression", f"the target holds {values} different numbers"


def labels(target: pandas.Series) -> NDArray[np.generic]:
    """Class labels as an array: texts, or whole numbers where all are whole and fit."""
    if not is_numeric(target):
        return np.array(target.astype(object).tolist())
    numbers: NDArray[np.generic] = target.to_numpy(dtype=np.float64)
    if not (numbers % 1 == 0).all():
        return numbers
    if np.abs(numbers).max() >= 2.0**63:  # no integers of NumPy's
        return np.array([as_text(number) for number in numbers])
    return numbers.astype(np.int64)


def listed(items: Iterable[object], limit: int = SHOWN) -> str:
    """A list for a message: some of the items, and how many more there are."""
    texts = [_printable(str(item)) for item in items]
    more = len(texts) - limit
    return ", ".join(texts[:limit]) + (f" and {more} more" if more > 0 else "")


def _printable(text: str) -> str:
    """A text on one line: what cannot be seen is shown as Python writes it."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
