"""All that is wrong with a table is said at once, with the command that would do."""

from __future__ import annotations

import shlex

import numpy as np
import pandas
import pytest

from hamiltree.cli.screen import corrected
from hamiltree.inputs.encoding import learn_encoding
from hamiltree.inputs.tables import SeveralTableError, TableError, read_table

from ..support.cli import SHORT, run


def messy(n: int = 90) -> pandas.DataFrame:
    rng = np.random.default_rng(0)
    return pandas.DataFrame(
        {
            "id": [f"P{k:03d}" for k in range(n)],
            "age": [*rng.integers(30, 90, n - 2).astype(str), "?", "unknown"],
            "bmi": [f"{value:.1f}".replace(".", ",") for value in rng.normal(27, 4, n)],
            "sex": rng.choice(["f", "m"], n),
            "outcome": rng.choice(["no", "yes"], n),
        }
    )


def command_of(output: str) -> list[str]:
    """The arguments of the corrected command."""
    line = output.strip().splitlines()[-1]
    program, *arguments = shlex.split(line)
    assert program == "hamiltree"
    return arguments


def test_every_problem_is_listed_and_the_corrected_command_runs(tmp_path):
    table = tmp_path / "a table.csv"
    messy().to_csv(table, index=False)
    model = tmp_path / "model.nc"
    failed = run("fit", table, "--target", "outcome", "-o", model, *SHORT, code=1)
    assert "error: the table has 3 problems:" in failed.stderr
    assert "1. the column 'id' has 90 different texts" in failed.stderr
    assert "2. the column 'age' holds numbers, but also" in failed.stderr
    assert "3. 'bmi' seems to use decimal commas" in failed.stderr
    again = command_of(failed.stderr)
    assert again[:4] == ["fit", str(table), "--target", "outcome"]
    fixes = "--drop id --missing '?' --missing unknown --decimal ,"
    assert " ".join(shlex.quote(part) for part in again[-8:]) == fixes
    run(*again)
    assert model.exists()


def test_problems_of_the_target_come_with_the_others(tmp_path):
    frame = messy().drop(columns=["age", "bmi"])
    frame["dose"] = [np.inf, *range(89)]
    frame.loc[3, "outcome"] = None
    table = tmp_path / "t.csv"
    frame.to_csv(table, index=False)
    failed = run("fit", table, "-t", "outcome", "--task", "regression", code=1).stderr
    assert "the table has 4 problems:" in failed
    for part in (
        "the target 'outcome' is missing in 1 of 90 rows",
        "infinite values in 'dose' (1)",
        "the target 'outcome' holds text",
        "the column 'id' has 90 different texts",
    ):
        assert part in failed
    again = command_of(failed)
    assert again[4:] == ["--task", "classification", "--drop", "id"]
    frame["outcome"] = None
    frame.to_csv(table, index=False)
    assert "missing in every row" in run("fit", table, "-t", "outcome", code=1).stderr


def test_names_that_were_meant_are_put_in_their_place(tmp_path):
    table = tmp_path / "t.csv"
    messy().to_csv(table, index=False)
    given = ["fit", table, "--target=outcom", "--drop", "iid", "--drop", "bmi", "--missing", "?"]
    failed = run(*given, code=1).stderr
    assert "there is no column 'outcom' (did you mean 'outcome'?), 'iid' (did you mean" in failed
    assert command_of(failed)[2:5] == ["--target=outcome", "--drop", "id"]
    failed = run("fit", table, "-t", "survival", code=1).stderr
    assert "Corrected" not in failed  # nothing is like it


def test_one_problem_reads_as_it_is():
    one = TableError("a cell is odd", ["--missing", "?"])
    assert str(SeveralTableError([one])) == "a cell is odd"
    both = SeveralTableError([one, TableError("another", ["--missing", "?", "--drop", "id"])])
    assert both.options == ("--missing", "?", "--drop", "id")
    assert corrected(["fit", "my table.csv"], both) == (
        "hamiltree fit 'my table.csv' --missing '?' --drop id"
    )


def test_columns_of_times_are_named_together(tmp_path):
    path = tmp_path / "t.parquet"
    days = pandas.date_range("2020-01-01", periods=5)
    pandas.DataFrame({"born": days, "seen": days, "y": range(5)}).to_parquet(path)
    frame = read_table(path)
    with pytest.raises(TableError, match=r"2 problems:\n.*'born' holds dates.*\n.*'seen' holds"):
        learn_encoding(frame, "y")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8", "utf-8-sig"])
def test_text_of_excel_is_read(encoding, tmp_path):
    mark = "\ufeff" if encoding in ("utf-16-le", "utf-16-be") else ""
    path = tmp_path / "t.txt"
    path.write_bytes(f"{mark}Größe\tSex\n1,5\tf\n2,5\tm\n".encode(encoding))
    frame = read_table(path, decimal=",")
    assert list(frame.columns) == ["Größe", "Sex"]
    assert frame["Größe"].tolist() == [1.5, 2.5]


@pytest.mark.parametrize("cells", [b"\xff\xfe\x00\xd8", b"x,y\n\xe9,1\n"])
def test_other_texts_are_refused(cells, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(cells)
    with pytest.raises(TableError, match="not text in UTF-8 or UTF-16"):
        read_table(path)
