"""Whatever table comes in, the command line answers with a model or with one line of error."""

from __future__ import annotations

import csv
import io
import re
import tempfile
from pathlib import Path

import numpy as np
import pandas
from hypothesis import event
from hypothesis import strategies as st
from typer.testing import CliRunner

from hamiltree.cli import app
from hamiltree.inputs.encoding import Encoding, learn_encoding
from hamiltree.inputs.tables import SeveralTableError, TableError, detect_task, labels, read_table

from .strategies import holds_for

TINY = ["--n-chains=2", "--n-draws=5", "--n-jobs=1"]
METHODS = ["hmc-df", "hmc-dfi", "cgm", "wu", "smc"]

UNLUCKY_NAMES = [
    "a", "b", "A", "y", "x0", "target", "", " ", " a ", "a,b", "a;b", 'say "a"', "a\nb", "a\rb",
    "a=b", "[bold]a[/bold]", "[/]", "<a>", "\\", "'", "--target", "-h", "0", "1.5", "NaN", "ä",
    "日本", "\ufeffa", "\x00", "\x1b[31m", "index", "prediction", "probability_1", "a" * 300,
]  # fmt: skip
NAMES = st.one_of(
    st.sampled_from(UNLUCKY_NAMES),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
)
CELLS = {
    "numbers": st.floats(-9, 9).map(lambda x: f"{x:.2f}"),
    "whole": st.integers(0, 4).map(str),
    "any floats": st.floats(allow_nan=False, allow_infinity=False).map(repr),
    "neighbours beyond 2**53": st.integers(2**60, 2**60 + 9).map(str),
    "beyond int64": st.integers(2**63, 2**70).map(str),
    "neighbours beyond int64": st.integers(2**70, 2**70 + 9).map(str),
    "beyond floats": st.integers(10**307, 10**320).map(str),
    "decimal commas": st.integers(0, 9).map(lambda n: f"{n},5"),
    "thousands": st.integers(1, 9).map(lambda n: f"{n},000"),
    "constant": st.just("7"),
    "empty": st.just(""),
    "missing": st.sampled_from(["NA", "nan", "null", "", " "]),
    "some missing": st.sampled_from(["1", "2.5", "NA", "?"]),
    "infinite": st.sampled_from(["1", "inf", "-Infinity", "1e999"]),
    "categories": st.sampled_from(["red", "green", "blue, dark", 'the "best"', "None"]),
    "two categories": st.sampled_from(["yes", "no"]),
    "booleans": st.sampled_from(["True", "False", "true"]),
    "mixed": st.sampled_from(["1", "2", "three", "4.0", "0x5", "1_0", "\uff11", "+6", "1e2"]),
    "dates": st.dates().map(str),
    "texts": st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    "one letter": st.text("ab\x00\n\r\t\x1b", min_size=1, max_size=2),
}


@st.composite
def tables(draw) -> dict:
    """A table, as rows of texts with a header, and how it is written."""
    n, p = draw(st.integers(0, 14)), draw(st.sampled_from([1, 2, 2, 3, 3, 4]))
    header = draw(st.lists(NAMES, min_size=p, max_size=p, unique=draw(st.integers(0, 3)) > 0))
    kinds = draw(st.lists(st.sampled_from(sorted(CELLS)), min_size=p, max_size=p))
    # every second table has a target that can be learned, or most would be refused
    if draw(st.booleans()):
        kinds[-1] = draw(st.sampled_from(["two categories", "whole", "numbers"]))
    cells = [draw(st.lists(CELLS[kind], min_size=n, max_size=n)) for kind in kinds]
    return {"header": header, "rows": [list(row) for row in zip(*cells, strict=True)]}


@st.composite
def files(draw) -> tuple[dict, bytes]:
    """A table, and its bytes."""
    table = draw(tables())
    text = io.StringIO(newline="")
    writer = csv.writer(
        text,
        delimiter=draw(st.sampled_from([",", ",", ",", ";", "\t", "|"])),
        lineterminator=draw(st.sampled_from(["\n", "\r\n", "\r"])),
        quoting=draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])),
    )
    writer.writerow(table["header"])
    writer.writerows(table["rows"])
    written = text.getvalue()
    if draw(st.integers(0, 5)) == 0:  # a row too long, a stray quote, blank lines
        written += draw(st.sampled_from(["1,2,3,4,5,6\n", '"open', "\n\n", "x\n", '"a"b\n']))
    encoding = draw(st.sampled_from(["utf-8"] * 5 + ["utf-8-sig", "utf-16", "latin-1"]))
    return table, written.encode(encoding, errors="replace")


FURTHER = re.compile(r"  \d+\. |Corrected, if that is what you meant:$|  hamiltree fit ")
"""How lines of an error begin, beside the first."""


def invoke(*arguments: object):
    """Run a command; an error is one line, or a list, and never one from the inside.

    A command that would do may follow.
    """
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    told = f"{result.output}\n{result.exception!r}"
    assert result.exit_code in (0, 1), told
    assert result.exception is None or isinstance(result.exception, SystemExit), told
    said = ("note: ", "hamiltree: compiling ")
    lines = [line for line in result.stderr.splitlines() if not line.startswith(said)]
    if result.exit_code:
        assert lines[0].startswith("error: "), told
        assert all(FURTHER.match(line) for line in lines[1:]), told
        assert len(lines[0]) > len("error: ") + 10, told
        event(f"refused: {lines[0][7:40]}")
    else:
        assert not lines, told
        event("accepted")
    return result


def assert_one_line(error: TableError) -> None:
    assert len(str(error)) > 10
    # Several problems are a numbered list with a line each.
    several = isinstance(error, SeveralTableError)
    for number, line in enumerate(str(error).split("\n") if several else [str(error)]):
        assert line.splitlines() == [line]
        assert number == 0 or line.startswith(f"  {number}. ")
    event(f"refused: {str(error)[:40]}")


# ---------------------------------------------------------------------- reading and encoding


@holds_for(files(), few=150, many=2000)
def test_any_file_is_read_as_it_was_written_or_refused(case):
    table, content = case
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        path.write_bytes(content)
        try:
            frame = read_table(path)
        except TableError as error:
            assert_one_line(error)
            return
    for name in frame.columns:
        assert frame[name].dtype in (np.float64, object)
    written = {name.strip(): place for place, name in enumerate(table["header"])}
    if list(frame.columns) != [name for name in written if name]:
        return  # another encoding than ours was read, or a line was added
    for name, column in frame.items():
        before = [row[written[name]] for row in table["rows"]]
        if column.dtype == np.float64 and len(before) == len(column):
            known = [float(text) for text, cell in zip(before, column, strict=True) if cell == cell]
            np.testing.assert_array_equal(column[column.notna()], known)
            whole = [int(text) for text in before if text.lstrip("-").isdecimal()]
            if len(whole) == len(before) and np.isfinite(column).all():
                assert column.nunique() == len(set(whole)), "whole numbers fell together"


@holds_for(files(), few=100, many=1000)
def test_any_table_is_encoded_alike_again_or_refused(case):
    _, content = case
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        path.write_bytes(content)
        try:
            frame = read_table(path)
            if not len(frame.columns):
                return
            target = str(frame.columns[-1])
            frame = frame[frame[target].notna()].reset_index(drop=True)
            if frame.empty:
                return
            encoding = learn_encoding(frame, target)
            encoded = encoding.encode(frame)
        except TableError as error:
            assert_one_line(error)
            return
    again = Encoding.from_dict(encoding.to_dict())
    assert again == encoding
    pandas.testing.assert_frame_equal(again.encode(frame[frame.columns[::-1]]), encoded)
    for column in encoding.columns:
        if column.kind == "number":
            assert not np.isinf(encoded[column.name]).any()
    task, _ = detect_task(frame[target])
    if task == "classification":
        found = labels(frame[target])
        assert len(np.unique(found)) == frame[target].nunique()
        assert [str(label) for label in found] == [
            str(cell) if isinstance(cell, str) else str(int(cell)) for cell in frame[target]
        ]


# ---------------------------------------------------------------------- the commands


@st.composite
def commands(draw) -> tuple[dict, bytes, str, list[str]]:
    table, content = draw(files())
    names = table["header"]
    target = draw(st.sampled_from([names[-1], names[-1], names[-1], names[0], "no such column"]))
    method = draw(st.sampled_from(METHODS))
    options = ["--method", method]
    if method != "smc":
        options.append("--n-warmup=5")
    name = draw(st.sampled_from(names))
    for option in draw(
        st.lists(
            st.sampled_from(
                [
                    ["--drop-missing"],
                    ["--task", "regression"],
                    ["--task", "classification"],
                    ["--decimal", ","],
                    ["--decimal", ""],
                    ["--missing", "?"],
                    [f"--drop={name}"],
                    [f"--categorical={name}"],
                    [f"--ordinal={name}=red,green"],
                    ["--ordinal", "=,"],
                    ["--max-categories", "2"],
                    ["--max-categories", "1000"],
                    ["--json"],
                    ["--without-data"],
                    ["--h", "0"],
                ]
            ),
            max_size=2,
        )
    ):
        options += option
    return table, content, target.strip(), options


@holds_for(commands(), few=20, many=600)
def test_any_table_gives_a_model_or_one_line_of_error(case):
    table, content, target, options = case
    with tempfile.TemporaryDirectory() as folder:
        path, model = Path(folder) / "table.csv", Path(folder) / "model.nc"
        path.write_bytes(content)
        result = invoke("fit", path, f"--target={target}", "-o", model, *TINY, *options)
        assert model.exists() == (result.exit_code == 0)
        if result.exit_code:
            return
        decimal = ["--decimal", ","] if "," in options else []
        predicted = invoke("predict", model, path, *decimal, "--n-jobs=1", "--full-precision")
        assert predicted.exit_code == 0, predicted.output
        answer = pandas.read_csv(io.StringIO(predicted.stdout), dtype=str, keep_default_na=False)
        assert len(answer) == len(table["rows"])
        numbers = answer.drop(columns="prediction").astype(float)
        assert np.isfinite(numbers.to_numpy()).all()
        chances = [name for name in numbers if name.startswith("probability_")]
        if chances:
            np.testing.assert_allclose(numbers[chances].sum(axis=1), 1, rtol=1e-9)
            low, high = numbers.filter(regex="^low_"), numbers.filter(regex="^high_")
        else:
            low, high = numbers[["low"]], numbers[["high"]]
        assert (low.to_numpy() <= high.to_numpy()).all()
        invoke("summary", model)


@holds_for(st.binary(max_size=60), few=20, many=300)
def test_any_bytes_end_in_one_line(content):
    with tempfile.TemporaryDirectory() as folder:
        for name in ("table.csv", "table.parquet", "table.txt"):
            path = Path(folder) / name
            path.write_bytes(content)
            invoke(
                "fit", path, "--target=a", "-o", Path(folder) / "model.nc", "--n-warmup=5", *TINY
            )
