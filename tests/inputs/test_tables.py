"""Tables in, encoded columns out: what is refused, what is decided, and that it is repeated."""

from __future__ import annotations

import datetime
import sys

import numpy as np
import pandas
import pytest

from hamiltree.inputs.encoding import Column, Encoding, TrainingTable, encoding_of, learn_encoding
from hamiltree.inputs.suspects import holds_dates, numbers_rows
from hamiltree.inputs.tables import TableError, detect_task, labels, read_table, refuse_infinite

from ..support.fake_draws import fake_posterior

CSV = """\ufeffid, Age (years) ,"BMI, kg/m2",site,smoker,y
p1,61,27.5,north,True,yes
p2,48,31.0,south,False,no
p3,70,22.25,west,True,no
"""


@pytest.fixture
def table(tmp_path):
    def write(text: str, name: str = "table.csv"):
        path = tmp_path / name
        path.write_text(text, "utf-8")
        return path

    return write


def test_numbers_and_texts_are_told_apart(table):
    frame = read_table(table(CSV))
    assert list(frame.columns) == ["id", "Age (years)", "BMI, kg/m2", "site", "smoker", "y"]
    assert frame["BMI, kg/m2"].tolist() == [27.5, 31.0, 22.25]
    assert frame["smoker"].tolist() == ["True", "False", "True"]


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_the_separator_is_found(separator, table):
    frame = read_table(table(f'a{separator}"b{separator}x, y"\n1{separator}2\n'))
    assert list(frame.columns) == ["a", f"b{separator}x, y"]
    assert frame.iloc[0].tolist() == [1.0, 2.0]


def test_parquet_gives_the_same(tmp_path, table):
    frame = pandas.DataFrame(
        {
            "count": [1, 2, 3],
            "size": [0.5, None, 1.5],
            "site": ["a", "b", None],
            "flag": [True, False, True],
            "grade": pandas.Categorical(["low", "high", "low"], ["low", "high"], ordered=True),
        }
    )
    path = tmp_path / "table.parquet"
    frame.to_parquet(path)
    read = read_table(path)
    assert read["count"].dtype == np.float64
    assert read["size"].isna().tolist() == [False, True, False]
    assert read["site"].isna().tolist() == [False, False, True]
    assert read["flag"].tolist() == ["True", "False", "True"]
    frame.set_index("count").to_parquet(path)  # pandas' index is a column of the file
    assert list(read_table(path)) == ["count", "size", "site", "flag", "grade"]
    column = learn_encoding(read[["grade", "count"]], "count").columns[0]
    assert (column.kind, column.categories) == ("ordinal", ("low", "high"))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is empty"),
        ("a,b\n", "holds no rows"),
        ("a,b,a\n1,2,3\n", "same name: a"),
        ("a,b\n1,2\n1,2,3\n", "row 2 below the header has 3 cells and the header 2"),
        ("a,b\n1\n", "row 1 below the header has 1 cells"),
        ('a,b\n"1,2\n', "not a readable CSV"),
    ],
)
def test_a_file_that_is_no_table_is_refused(text, complaint, table):
    with pytest.raises(TableError, match=complaint):
        read_table(table(text))


def test_other_files_are_refused(table, tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_table(tmp_path / "nothing.csv")
    with pytest.raises(TableError, match=r"ends in \.csv"):
        read_table(table("x", "table.ods"))
    with pytest.raises(TableError, match="not a readable Parquet"):
        read_table(table("x", "table.parquet"))
    (tmp_path / "latin.csv").write_bytes("größe\n1\n".encode("latin-1"))
    with pytest.raises(TableError, match="UTF-8 or UTF-16"):
        read_table(tmp_path / "latin.csv")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_read_by_its_mark(encoding, tmp_path):
    path, mark = tmp_path / "unicode.txt", "" if encoding == "utf-16" else "\ufeff"
    path.write_bytes(f"{mark}größe\tort\n1\tKöln\n2\tŁódź\n".encode(encoding))
    frame = read_table(path)
    assert frame["größe"].tolist() == [1.0, 2.0]
    assert frame["ort"].tolist() == ["Köln", "Łódź"]


def excel(path, sheets):
    openpyxl = pytest.importorskip("openpyxl", reason="needs the extra excel")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_excel_gives_the_same(tmp_path):
    """The first sheet; empty rows and columns around the table do not count."""
    when = datetime.datetime(2024, 5, 17)
    rows = [
        [],
        [None, " count ", "size", "site", "flag", "when", None],
        [None, 1, 0.5, "a", True, when, "x"],
        [None, 2, None, "NA", False, when, None],
        [],
        [None, 3, "1.5", " b ", True, None, "y"],
    ]
    frame = read_table(excel(tmp_path / "t.xlsx", {"data": rows, "notes": [["nothing"]]}))
    assert list(frame) == ["count", "size", "site", "flag", "when"]
    assert frame["count"].tolist() == [1.0, 2.0, 3.0]
    np.testing.assert_array_equal(frame["size"], [0.5, np.nan, 1.5])
    assert frame["site"].tolist() == ["a", None, "b"]
    assert frame["flag"].tolist() == ["True", "False", "True"]
    assert frame["when"].tolist() == ["2024-05-17 00:00:00"] * 2 + [None]
    assert frame.attrs == {"unnamed_columns": 1, "sheets": ("data", "notes")}


def test_excel_that_cannot_be_read_is_refused(tmp_path, table, monkeypatch):
    with pytest.raises(TableError, match="is empty"):
        read_table(excel(tmp_path / "empty.xlsx", {"one": []}))
    with pytest.raises(TableError, match="holds no rows"):
        read_table(excel(tmp_path / "head.xlsx", {"one": [["a", "b"]]}))
    with pytest.raises(TableError, match="not a readable Excel"):
        read_table(table("x", "table.xlsx"))
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(TableError, match=r"pip install 'hamiltree\[excel\]'"):
        read_table(tmp_path / "head.xlsx")


def test_row_numbers_without_a_name_are_left_out(table):
    frame = read_table(table(",a,b\n0,1,2\n1,3,4\n"))
    assert list(frame.columns) == ["a", "b"]
    assert frame.attrs["unnamed_columns"] == 1


def test_missing_cells(table):
    frame = read_table(table("a,b,c\n1,,x\nNA,2,y\n3,?,\n"), missing=["?"])
    assert frame.isna().to_numpy().tolist() == [[0, 1, 0], [1, 0, 0], [0, 1, 1]]
    encoding = learn_encoding(frame, "c")
    assert [column.kind for column in encoding.columns] == ["number", "number"]
    assert encoding.encode(frame).isna().to_numpy().tolist() == [[0, 1], [1, 0], [0, 1]]
    assert read_table(table("a\nNone\nx\n"))["a"].tolist() == ["None", "x"]


def test_infinity_is_refused(table):
    with pytest.raises(TableError, match=r"infinite values in 'a' \(2\)"):
        refuse_infinite(read_table(table("a\n1\ninf\n-inf\n")))


def test_decimal_commas_have_to_be_said(table):
    path = table("x;y\n" + "".join(f"{i},5;{i}\n" for i in range(30)))
    with pytest.raises(TableError, match="--decimal ,"):
        learn_encoding(read_table(path), "y")
    assert read_table(path, decimal=",")["x"].tolist()[:2] == [0.5, 1.5]


@pytest.mark.parametrize(
    ("values", "task"),
    [
        (["a", "b", "a"], "classification"),
        ([0.0, 1.0, 1.0], "classification"),
        ([0.5, 1.0, 1.0], "regression"),
        (list(map(float, range(10))), "classification"),
        (list(map(float, range(11))), "regression"),
    ],
)
def test_the_task_is_detected(values, task):
    dtype = object if isinstance(values[0], str) else np.float64
    found, reason = detect_task(pandas.Series(values, dtype=dtype))
    assert found == task
    assert "the target holds" in reason


def test_labels_keep_their_type():
    assert labels(pandas.Series(["b", "a"], dtype=object)).tolist() == ["b", "a"]
    assert labels(pandas.Series([1.0, 2.0])).dtype == np.int64
    assert labels(pandas.Series([1.5, 2.0])).dtype == np.float64


def test_large_whole_numbers_keep_every_digit(table):
    """Floating point makes 2**60 of its neighbours; an identifier must not become another."""
    first = 2**60
    frame = read_table(table("id,y\n" + "".join(f"{first + i},{first + i}\n" for i in range(4))))
    assert frame["id"].tolist() == [str(first + i) for i in range(4)]
    assert labels(frame["y"]).tolist() == frame["y"].tolist()
    with pytest.raises(TableError, match=r"cannot tell apart.*--drop 'id'.*--categorical 'id'"):
        learn_encoding(frame, "y")
    encoding = learn_encoding(frame, "y", categorical=["id"])
    assert encoding.encode(frame)["id"].tolist() == frame["id"].tolist()


def test_large_whole_numbers_far_apart_are_numbers(table):
    numbers = [2**60 + 1000 * i for i in range(20)]
    frame = read_table(table("x,y\n" + "".join(f"{i},{i}\n" for i in numbers)))
    encoded = learn_encoding(frame, "y").encode(frame)
    assert encoded["x"].tolist() == [float(i) for i in numbers]
    assert detect_task(frame["y"])[0] == "regression"


def test_labels_beyond_the_integers_stay_exact():
    assert labels(pandas.Series([1e300, 2.0])).tolist() == [str(int(1e300)), "2"]


def test_odd_characters_are_shown_or_refused(table):
    with pytest.raises(TableError, match=r"same name: a\\nb$"):
        read_table(table('"a\nb","a\nb"\n1,2\n'))
    with pytest.raises(TableError, match="holds NUL characters"):
        read_table(table("a\nx\0\n"))
    with pytest.raises(TableError, match="decimal mark must be one sign"):
        read_table(table("a\n1\n"), decimal="")


@pytest.mark.parametrize(
    ("cells", "dates"),
    [
        (["2024-05-17", "2024-06-01"], True),
        (["2024-05-17T12:30:00Z", "2024-05-17 12:30"], True),
        (["17.5.24", "1.12.2023"], True),
        (["5/17/2024"], True),
        (["12:30", "08:15:00"], True),
        (["3 days 00:00:00"], True),
        (["2024-05-17", "soon"], False),
        (["1.2", "3.4"], False),
        (["1-2", "10-20"], False),
        ([], False),
    ],
)
def test_dates_are_known_by_their_looks(cells, dates):
    assert holds_dates(pandas.Series(cells, dtype=object)) == dates


@pytest.mark.parametrize(
    ("cells", "does"),
    [
        (range(1, 31), True),
        (range(29, -1, -1), True),
        ([*range(1, 30), 31], False),
        ([*range(1, 30), 29], False),
        ([*range(1, 30), np.nan], False),
        ([0.5 + i for i in range(30)], False),
        (range(9), False),
    ],
)
def test_numbers_of_rows_are_known(cells, does):
    assert numbers_rows(pandas.Series(list(cells), dtype=float)) == does


# ---------------------------------------------------------------------- encoding


def frame_of(**columns: list) -> pandas.DataFrame:
    made = pandas.DataFrame(columns)
    return made.astype({name: object for name in made if made[name].dtype.kind not in "f"})


def test_categories_stay_what_they_are():
    frame = frame_of(site=["b", "a", "c"], sex=["m", "f", "f"], size=[1.0, 2.0, 3.0], y=list("uvu"))
    encoding = learn_encoding(frame, "y")
    encoded = encoding.encode(frame)
    assert list(encoded) == ["site", "sex", "size"]
    assert encoded.to_numpy().tolist() == [["b", "m", 1.0], ["a", "f", 2.0], ["c", "f", 3.0]]
    assert encoding.columns[0].describe() == "category: a, b, c"
    assert encoding.columns[2].describe() == "as it is"


def test_files_of_version_0_1_have_columns_of_0_and_1():
    site = Column("site", "one-hot", ("a", "b", "c"))
    sex = Column("sex", "one-hot", ("f", "m"))
    assert site.describe() == "one-hot, one column each: a, b, c"
    assert sex.describe() == "two categories: m = 1, f = 0"
    encoded = Encoding((site, sex)).encode(frame_of(site=["b", "z"], sex=["m", None]))
    assert list(encoded) == ["site=a", "site=b", "site=c", "sex=m"]
    np.testing.assert_array_equal(encoded.to_numpy(), [[0, 1, 0, 1], [np.nan] * 4])


def test_a_text_that_never_changes_is_described():
    frame = frame_of(site=["a", "a"], y=[1.0, 2.0])
    assert learn_encoding(frame, "y").columns[0].describe() == "category: a"


def test_an_order_becomes_ranks():
    frame = frame_of(grade=["mid", "low", "high"], y=[1.0, 2.0, 3.0])
    encoding = learn_encoding(frame, "y", ordinal={"grade": ["low", "mid", "high"]})
    assert encoding.encode(frame)["grade"].cat.codes.tolist() == [1, 0, 2]
    assert encoding.encode(frame)["grade"].cat.ordered
    assert encoding.columns[0].describe() == "ordinal: low = 0, mid = 1, high = 2"
    with pytest.raises(TableError, match=r"leaves out 'mid' \(1 row\)"):
        learn_encoding(frame, "y", ordinal={"grade": ["low", "high"]})
    with pytest.raises(TableError, match="'grad' \\(did you mean 'grade'"):
        learn_encoding(frame, "y", ordinal={"grad": ["low", "high"]})


def test_codes_can_be_categories():
    frame = frame_of(code=[1.0, 2.0, 3.0], y=[1.0, 2.0, 3.0])
    encoding = learn_encoding(frame, "y", categorical=["code"])
    assert encoding.outputs == ("code",)
    assert encoding.encode(frame_of(code=["2", "1"]))["code"].tolist() == ["2", "1"]
    assert encoding.encode(frame_of(code=[2.0, 1.0]))["code"].tolist() == ["2", "1"]


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ({"x": ["1", "2", "?", "?"]}, r"holds numbers, but also '\?' \(2 rows\)"),
        ({"x": ["2024-05-17", "2024-05-18"]}, r"dates or times, such as '2024-05-17'.*--drop 'x'"),
        (
            {"x": ["1", "?"], "when": ["2024-05-17", "2024-05-18"]},
            r"2 problems:\n  1. the column 'x' holds numbers, but .*\n  2. the column 'when'",
        ),
        ({"x": [f"p{i}" for i in range(70)]}, r"70 different texts in 70 rows.*--drop 'x'"),
        ({}, "no column except the target"),
    ],
)
def test_columns_that_cannot_be_used_are_refused(columns, complaint):
    n = len(next(iter(columns.values()), [1, 2]))
    with pytest.raises(TableError, match=complaint):
        learn_encoding(frame_of(**columns, y=[float(i) for i in range(n)]), "y")


def test_dates_can_be_categories_where_this_is_said():
    frame = frame_of(when=["2024-05-17", "2024-05-18"], y=[1.0, 2.0])
    assert learn_encoding(frame, "y", categorical=["when"]).columns[0].kind == "category"


def test_new_rows_are_encoded_alike_in_any_order():
    frame = frame_of(site=["b", "a", "c"], size=[1.0, 2.0, 3.0], y=["u", "v", "u"])
    encoding = Encoding.from_dict(learn_encoding(frame, "y").to_dict())
    assert encoding == learn_encoding(frame, "y")
    new = frame_of(extra=[9.0], size=[7.0], site=["c"])
    assert encoding.encode(new).iloc[0].to_dict() == {"site": "c", "size": 7}


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ({"size": [1.0], "sit": ["a"]}, "lacks 'site' \\(did you mean 'sit'"),
        ({"size": ["big"], "site": ["a"]}, r"'size' should hold numbers, not 'big' \(1 row\)"),
        ({"size": [np.inf], "site": ["a"]}, r"infinite values in 'size' \(1\)"),
    ],
)
def test_new_rows_that_do_not_fit_are_refused(columns, complaint):
    frame = frame_of(site=["b", "a", "c"], size=[1.0, 2.0, 3.0], y=["u", "v", "u"])
    with pytest.raises(TableError, match=complaint):
        learn_encoding(frame, "y").encode(frame_of(**columns))


@pytest.mark.parametrize(
    "stored",
    [None, 3, [], {}, {"target": "y", "columns": [{"name": 1}]}, {"target": 1, "columns": []},
     {"target": "y", "columns": [{"name": "x", "kind": "code", "categories": []}]}],
)  # fmt: skip
def test_a_damaged_encoding_is_refused(stored):
    with pytest.raises(TableError, match="nothing readable"):
        Encoding.from_dict(stored)
    with pytest.raises(TableError, match="nothing readable"):
        TrainingTable.from_dict(stored)


def test_the_encoding_of_a_model(seed):
    posterior = fake_posterior(seed)
    assert encoding_of(posterior).outputs == posterior.preprocessing.feature_names
    posterior.table = TrainingTable(Encoding.of_numbers(["other"]))
    with pytest.raises(TableError, match="does not fit its trees"):
        encoding_of(posterior)
