"""Tables of pandas, polars and pyarrow: what each column is, and its cells as numbers."""

from __future__ import annotations

import datetime

import numpy as np
import pandas
import pytest

from hamiltree.core.tree.kinds import MISSING, coded_kinds
from hamiltree.inputs.columns import OTHER, Column, coded, kinds_of, learn_table, read_table
from hamiltree.inputs.preprocess import learn
from hamiltree.posterior.files.columns import pack_columns, unpack_columns

pyarrow = pytest.importorskip("pyarrow")

CELLS = {
    "age": [31.0, None, 47.5, 52.0],
    "sex": ["male", "female", None, "female"],
    "smoker": [True, False, False, True],
    "count": [1, 2, 3, 4],
}


def tables():
    yield "pandas", pandas.DataFrame(CELLS)
    yield "pyarrow", pyarrow.table(CELLS)
    try:
        import polars
    except ImportError:
        return
    yield "polars", polars.DataFrame(CELLS)


@pytest.mark.parametrize(
    ("name", "table"), list(tables()), ids=lambda part: part if isinstance(part, str) else ""
)
def test_tables_of_all_kinds_are_read_alike(name, table):
    rows, columns = learn_table(table)
    assert list(rows.columns) == list(CELLS)
    np.testing.assert_array_equal(
        rows.to_numpy(),
        [[31.0, 1, 1, 1], [np.nan, 0, 0, 2], [47.5, 2, 0, 3], [52.0, 0, 1, 4]],
    )
    assert columns[0] == Column(missing=True)
    assert columns[1] == Column(levels=("female", "male"), missing=True)
    assert columns[2] == Column(levels=(False, True))
    assert columns[3] == Column(whole=True)
    assert columns[1].label(2) == "(missing)"
    again = read_table(table, columns, list(CELLS))
    np.testing.assert_array_equal(again.to_numpy(), rows.to_numpy())


def test_new_cells_are_never_refused():
    _, columns = learn_table(pandas.DataFrame(CELLS))
    new = pandas.DataFrame({"age": [np.nan], "sex": ["other"], "smoker": [None], "count": [np.nan]})
    np.testing.assert_array_equal(read_table(new, columns, list(CELLS)).to_numpy(), [[np.nan] * 4])
    known_by_text = pandas.DataFrame(
        {"age": ["3"], "sex": [None], "smoker": ["True"], "count": [pandas.NA]}
    )
    np.testing.assert_array_equal(
        read_table(known_by_text, columns, list(CELLS)).to_numpy(), [[3.0, 2.0, 1.0, np.nan]]
    )


def test_an_order_is_kept():
    grade = pandas.Categorical(["low", "high", None], ["low", "mid", "high"], ordered=True)
    rows, columns = learn_table(pandas.DataFrame({"grade": grade}))
    assert columns[0].order == ("low", "mid", "high")
    np.testing.assert_array_equal(rows["grade"], [0.0, 2.0, np.nan])
    assert columns[0].n_levels == 0
    assert columns[0].missing


def test_all_problems_are_listed_at_once():
    frame = pandas.DataFrame(
        {
            "when": [datetime.datetime(2020, 1, 1), datetime.datetime(2021, 1, 1)],
            "what": [[1], [2]],
            "fine": [1.0, 2.0],
        }
    )
    with pytest.raises(ValueError, match=r"'when' holds dates or times.*; 'what' holds objects"):
        learn_table(frame)
    with pytest.raises(ValueError, match="'a' holds text, but categorical_features=None"):
        learn_table(pandas.DataFrame({"a": ["x", "y"]}), None)


def test_names():
    with pytest.raises(ValueError, match="multi-level names"):
        learn_table(
            pandas.DataFrame([[1.0, 2.0]], columns=pandas.MultiIndex.from_tuples([(1, 2), (1, 3)]))
        )
    with pytest.raises(ValueError, match="same name, rename them: 'a'"):
        learn_table(pandas.DataFrame([[1.0, 2.0]], columns=["a", "a"]))
    rows, _ = learn_table(pandas.DataFrame({3: [1.0, 2.0]}))
    assert list(rows.columns) == [3]


@pytest.mark.parametrize("chosen", [["site"], [1], np.array([False, True]), np.array([1])], ids=str)
def test_columns_chosen_by_the_user(chosen):
    frame = pandas.DataFrame({"size": [1.0, 2.0, 3.0], "site": [10, 20, 10]})
    _, columns = learn_table(frame, chosen)
    assert columns[0].levels is None
    assert columns[1].levels == (10, 20)
    if not isinstance(chosen, list) or chosen != ["site"]:
        rows, columns = learn_table(frame.to_numpy(), chosen)
        assert columns[1].levels == (10, 20)
        np.testing.assert_array_equal(rows[:, 1], [0, 1, 0])
        np.testing.assert_array_equal(
            read_table([[5.0, 20], [6.0, 30]], columns, ["x0", "x1"]), [[5, 1], [6, np.nan]]
        )


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        (["nowhere"], "no column 'nowhere'"),
        ([5], "no column 5"),
        ([True], "1 entries"),
        (3, "must be"),
    ],
)
def test_columns_that_are_not_there(chosen, message):
    with pytest.raises(ValueError, match=message):
        learn_table(pandas.DataFrame({"size": [1.0, 2.0], "site": [1, 2]}), chosen)


def test_the_rarest_of_too_many_levels_are_one():
    names = [f"s{k:02d}" for k in range(70)]
    cells = [name for k, name in enumerate(names) for _ in range(1 + (k < 63))]
    with pytest.warns(
        UserWarning, match="70 levels, more than the 64 allowed: the 7 rarest are merged"
    ):
        rows, (column,) = learn_table(pandas.DataFrame({"site": cells}))
    assert column.n_levels == 64
    assert column.levels[-1] == OTHER
    assert column.others == tuple(names[63:])
    assert rows["site"].max() == 63
    assert unpack_columns(pack_columns([column])) == (column,)


def test_the_scale_of_special_columns():
    X = coded(np.array([[1.0, 0, 5], [np.nan, 2, 5], [3.0, 1, np.nan]]))
    columns = (Column(missing=True), Column(levels=("a", "b", "c")), Column(missing=True))
    scale = learn(X, None, columns=columns)
    np.testing.assert_array_equal(coded_kinds(scale.kinds), [-1, 3, -1])
    np.testing.assert_array_equal(
        scale.to_unit(X), [[0.0, MISSING, 1.0], [0, 2, 1], [0, 0, MISSING]]
    )
    imputed = kinds_of(columns, np.arange(3), imputed=True)
    np.testing.assert_array_equal(coded_kinds(imputed), [-2, 3, -2])
    assert kinds_of((), np.array([0]), imputed=False) is None
    assert kinds_of((Column(),), np.array([0]), imputed=True) is None


def test_methods_of_numbers_get_indicators_and_means():
    X = coded(np.array([[1.0, 0, 0], [np.nan, 2, 1], [3.0, 1, 1], [2.0, 1, 0]]))
    columns = (Column(missing=True), Column(levels=("a", "b", "c")), Column(levels=("n", "y")))
    scale = learn(X, ["size", "site", "ill"], columns=columns, expand=True)
    assert scale.kinds is None
    assert scale.used_names == ("size", "site=a", "site=b", "site=c", "ill=y")
    np.testing.assert_allclose(scale.fill, [0.5, 0.25, 0.5, 0.25, 0.5])
    new = coded(np.array([[np.nan, np.nan, 1.0]]))
    np.testing.assert_allclose(scale.to_unit(new)[:, 0], [0.5, 0.25, 0.5, 0.25, 1.0])
    np.testing.assert_array_equal(scale.to_unit(X)[2], [0, 0, 1, 1])
    weighted = learn(X, None, columns=columns, expand=True, weights=np.array([1.0, 1, 1, 5]))
    np.testing.assert_allclose(weighted.fill[0], (0 + 1 + 5 * 0.5) / 7)


def test_each_problem_of_a_table_is_told_once():
    table = pandas.DataFrame(
        {
            "visit": [pandas.Timestamp("2024-01-01")] * 4,
            "lists": [[1, 2]] * 4,
            "far": [1.0, np.inf, -np.inf, 2.0],
            "sex": CELLS["sex"],
        }
    )
    with pytest.raises(ValueError, match="cannot be used") as caught:
        learn_table(table, None)
    told = str(caught.value)
    assert [told.count(repr(name)) for name in table] == [1, 1, 1, 1]
    assert "'far' holds infinity (2 rows)" in told


def test_texts_of_an_array_are_refused_by_their_columns():
    cells = np.array([[1.0, "male", "2"], [2.0, "female", "x"]], dtype=object)
    with pytest.raises(ValueError, match=r"column 1 \('male'\), column 2 \('x'\).*=\[1, 2\]"):
        learn_table(cells)
    with pytest.raises(ValueError, match="column 1"):
        learn_table(cells.tolist())
    learn_table(np.array([["1", "2"], ["3", "4"]]))  # numbers, for whoever converts them


def test_tables_of_other_columns_keep_their_names():
    table = pandas.DataFrame(CELLS)
    _, columns = learn_table(table)
    for other in (table.drop(columns="age"), table[table.columns[::-1]], table.assign(more=1)):
        rows = read_table(other, columns, list(CELLS))
        assert list(rows.columns) == list(other.columns)  # which the caller compares
