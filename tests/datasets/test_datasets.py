"""The data are the published ones, split as published; the generators are the papers' trees."""

from __future__ import annotations

import hashlib
import io
import random
import zipfile
from urllib.error import URLError

import numpy as np
import pytest

from hamiltree.datasets import (
    MissingDataError,
    cgm_mean,
    fetch_raisin,
    load_bcw,
    load_heart,
    load_paper_split,
    load_penguins,
    make_cgm,
    make_cgm98,
    make_wu,
    raisin,
    wu_mean,
)
from hamiltree.datasets.paper import generate_split, random_split


@pytest.fixture(autouse=True)
def _no_local_copies(monkeypatch):
    monkeypatch.delenv("HAMILTREE_DATA", raising=False)


def test_bcw_is_the_published_data_set():
    bunch = load_bcw()
    assert bunch.data.shape == (683, 9)
    assert len(bunch.feature_names) == 9
    assert bunch.data.min() == 1
    assert bunch.data.max() == 10
    assert np.bincount(bunch.target).tolist() == [444, 239]
    assert bunch.target_names.tolist() == ["benign", "malignant"]
    assert "CC BY 4.0" in bunch.DESCR
    table = load_bcw(as_frame=True).data
    assert table.columns.tolist() == bunch.feature_names
    np.testing.assert_array_equal(table, bunch.data)


def test_bcw_can_keep_its_missing_values():
    bunch = load_bcw(drop_missing=False)
    missing = np.isnan(bunch.data)
    assert bunch.data.shape == (699, 9)
    assert missing.sum() == missing[:, bunch.feature_names.index("bare_nuclei")].sum() == 16


def test_heart_is_the_published_data_set():
    bunch = load_heart()
    assert bunch.data.shape == (303, 13)
    assert bunch.feature_names == bunch.data.columns.tolist()
    assert bunch.target.value_counts().to_dict() == {"healthy": 164, "diseased": 139}
    assert bunch.data.isna().sum()[lambda n: n > 0].to_dict() == {"vessels": 4, "thallium": 2}
    # Means that descriptions of the data set have: age, resting pressure, cholesterol, heart rate.
    means = bunch.data[["age", "resting_pressure", "cholesterol", "max_heart_rate"]].mean()
    np.testing.assert_allclose(means, [54.4, 131.7, 246.7, 149.6], atol=0.05)
    assert "C52P4X" in bunch.DESCR
    X, y = load_heart(return_X_y=True)
    assert X.equals(bunch.data)
    assert y.equals(bunch.target)


def test_penguins_are_the_published_data_set():
    bunch = load_penguins(target="species")
    assert bunch.target.value_counts().to_dict() == {"Adelie": 152, "Gentoo": 124, "Chinstrap": 68}
    assert bunch.target_names.tolist() == ["Adelie", "Chinstrap", "Gentoo"]
    assert bunch.data.isna().sum().sum() == 19
    mass = load_penguins()
    assert mass.data.shape == (342, 6)
    assert round(mass.target.mean(), 1) == 4201.8
    assert mass.target_names is None
    with pytest.raises(ValueError, match=r"target must be one of species, .*, got 'weight'"):
        load_penguins(target="weight")


def test_bcw_has_the_row_order_behind_the_papers_split():
    bunch = load_bcw()
    index = list(range(683))
    random.Random(123456789).shuffle(index)
    table = np.column_stack([bunch.data, bunch.target]).astype(np.int8)[index]
    digest = [
        hashlib.sha256(part.tobytes()).hexdigest()[:16] for part in (table[:478], table[478:])
    ]
    # Digests of the authors' bcw_train and bcw_test files, as int8.
    assert digest == ["13b717b64874f841", "18b3ac2619271c02"]


def test_cgm_tree_has_five_means():
    corners = {(3, 4): 1, (4, 4): 5, (7, 4): 5, (8, 4): 8, (5, 5): 8, (6, 5): 2}
    assert cgm_mean(np.array(list(corners), dtype=float)).tolist() == list(corners.values())


@pytest.mark.parametrize("integer", [True, False])
def test_cgm_data_are_the_tree_plus_noise(integer):
    n, noise = 20_000, 0.2
    bunch = make_cgm(n, noise=noise, integer=integer, random_state=0)
    np.testing.assert_array_equal(bunch.mean, cgm_mean(bunch.data))
    residual = bunch.target - bunch.mean
    # Four standard errors: a false alarm in 16,000 seeds.
    assert abs(residual.mean()) < 4 * noise / np.sqrt(n)
    assert abs(residual.std() - noise) < 4 * noise / np.sqrt(2 * n)
    assert (bunch.data == np.round(bunch.data)).all() == integer
    values, counts = np.unique(bunch.mean, return_counts=True)
    shares = np.array([0.12, 0.3, 0.16, 0.42])  # of the means 1, 2, 5, 8, integer or not
    assert values.tolist() == [1, 2, 5, 8]
    assert (np.abs(counts / n - shares) < 4 * np.sqrt(shares * (1 - shares) / n)).all()


def test_cgm_is_reproducible_and_refuses_nonsense():
    np.testing.assert_array_equal(make_cgm(random_state=3).target, make_cgm(random_state=3).target)
    with pytest.raises(ValueError, match="noise"):
        make_cgm(noise=-1.0)
    with pytest.raises(ValueError, match="n must be"):
        make_cgm(0)


def test_wu_data_are_the_tree_plus_noise():
    n, noise = 30_000, 0.25
    bunch = make_wu(n, noise=noise, random_state=0)
    np.testing.assert_array_equal(bunch.mean, wu_mean(bunch.data))
    residual = bunch.target - bunch.mean
    assert abs(residual.mean()) < 4 * noise / np.sqrt(n)
    assert abs(residual.std() - noise) < 4 * noise / np.sqrt(2 * n)
    assert np.unique(bunch.mean, return_counts=True)[1].tolist() == [n // 3] * 3
    # x0 and x2 tell the same story, with nothing between 0.4 and 0.6 ...
    np.testing.assert_array_equal(bunch.data[:, 0] > 0.5, bunch.data[:, 2] < 0.5)
    assert not ((bunch.data[:, [0, 2]] > 0.4) & (bunch.data[:, [0, 2]] < 0.6)).any()
    # ... while x1 fills the gap in the last leaf alone.
    between = (bunch.data[:, 1] > 0.4) & (bunch.data[:, 1] < 0.6)
    assert between.any()
    assert (bunch.mean[between] == 5).all()
    assert bunch.data.min() > 0.1
    assert bunch.data.max() < 0.9


# Digests of the authors' files (train and test) as float64 tables, target last.
@pytest.mark.parametrize(
    ("name", "digests"),
    [
        ("iris", ["ddef04455e11976e", "913fb08ba5d0f585"]),
        ("wine", ["5ecd6aea947d6a73", "2c711e6b975580fd"]),
    ],
)
def test_the_papers_splits_are_reproduced(name, digests):
    split = load_paper_split(name)
    tables = [np.column_stack(part) for part in ((split.X, split.y), (split.X_test, split.y_test))]
    found = [hashlib.sha256(np.ascontiguousarray(t).tobytes()).hexdigest()[:16] for t in tables]
    assert found == digests


def test_bcw_split_is_that_of_its_own_digest_test():
    split = load_paper_split("bcw")
    table = np.column_stack([split.X, split.y]).astype(np.int8)
    assert hashlib.sha256(table.tobytes()).hexdigest()[:16] == "13b717b64874f841"
    assert (len(split.y), len(split.y_test), split.n_classes) == (478, 205, 2)


def test_synthetic_splits_are_generated_and_say_so():
    split = load_paper_split("cgm")
    assert (split.X.shape, split.X_test.shape, split.n_classes) == ((800, 2), (800, 2), 0)
    assert "generated" in split.source
    assert not np.array_equal(split.X, split.X_test)
    assert not np.array_equal(split.y, generate_split("cgm", seed=1).y)


def test_random_splits_keep_the_rows_and_the_sizes():
    whole = load_paper_split("iris")
    split = random_split(whole, seed=5)
    rows = [np.column_stack([np.vstack([s.X, s.X_test]), np.append(s.y, s.y_test)])
            for s in (whole, split)]  # fmt: skip
    np.testing.assert_array_equal(*[r[np.lexsort(r.T)] for r in rows])
    assert len(split.y) == len(whole.y)
    assert not np.array_equal(split.X, whole.X)


def test_local_copies_win(tmp_path, monkeypatch):
    for part, value in (("train", 1), ("test", 0)):
        (tmp_path / f"iris_{part}.csv").write_text(f"x0,x1,target\n0.5,2,{value}\n")
    for split in (
        load_paper_split("iris", tmp_path),
        monkeypatch.setenv("HAMILTREE_DATA", str(tmp_path)) or load_paper_split("iris"),
    ):
        assert split.X.tolist() == [[0.5, 2.0]]
        assert split.y.dtype == np.int64
        assert split.source == "the authors' files"
    assert "scikit-learn" in load_paper_split("wine").source


def test_mistakes_in_the_data_folder_are_named(tmp_path):
    with pytest.raises(ValueError, match="unknown data set 'titanic': there are cgm"):
        load_paper_split("titanic")
    with pytest.raises(NotADirectoryError, match="nowhere"):
        load_paper_split("iris", tmp_path / "nowhere")
    (tmp_path / "iris_train.csv").write_text("a,target\n1,2\n")
    with pytest.raises(FileNotFoundError, match=r"has iris_train.csv but not iris_test.csv"):
        load_paper_split("iris", tmp_path)
    (tmp_path / "iris_test.csv").write_text("a,target\nx,2\n")
    with pytest.raises(ValueError, match="rows of numbers, the target last"):
        load_paper_split("iris", tmp_path)


def fake_archive(rows: list[str]) -> bytes:
    """A zip in a zip, as UCI's is."""
    inner, outer = io.BytesIO(), io.BytesIO()
    text = "@RELATION raisin\n@ATTRIBUTE Area INTEGER\n@DATA\n" + "\n".join(rows) + "\n"
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("Raisin_Dataset/Raisin_Dataset.txt", "about")
        archive.writestr("Raisin_Dataset/Raisin_Dataset.arff", text)
    with zipfile.ZipFile(outer, "w") as archive:
        archive.writestr("Raisin_Dataset.zip", inner.getvalue())
    return outer.getvalue()


def test_raisin_is_read_from_its_archive(tmp_path, monkeypatch):
    rows = [f"{i},1.5,2,0.5,4,0.25,6,{'Kecimen' if i < 450 else 'Besni'}" for i in range(900)]
    (tmp_path / "raisin.zip").write_bytes(fake_archive(rows))
    with pytest.raises(MissingDataError, match="sha256 differs"):
        fetch_raisin(tmp_path)
    digest = hashlib.sha256((tmp_path / "raisin.zip").read_bytes()).hexdigest()
    monkeypatch.setattr(raisin, "SHA256", digest)
    bunch = fetch_raisin(tmp_path)
    assert bunch.data[3].tolist() == [3, 1.5, 2, 0.5, 4, 0.25, 6]
    assert bunch.target_names[bunch.target[[0, 899]]].tolist() == ["kecimen", "besni"]
    split = load_paper_split("raisin", tmp_path)
    order = list(range(900))
    random.Random(1).shuffle(order)
    assert split.X[:, 0].tolist() == order[:630]
    assert split.X_test[:, 0].tolist() == order[630:]

    (tmp_path / "raisin.zip").write_bytes(fake_archive(rows[:-1]))
    monkeypatch.setattr(
        raisin, "SHA256", hashlib.sha256((tmp_path / "raisin.zip").read_bytes()).hexdigest()
    )
    with pytest.raises(MissingDataError, match="900 grains"):
        fetch_raisin(tmp_path)


def test_raisin_without_a_network_says_what_to_put_where(monkeypatch):
    def unreachable(*_, **__):
        raise URLError("no network")

    monkeypatch.setattr(raisin, "fetch_file", unreachable)
    with pytest.raises(MissingDataError, match=r"raisin\.zip .*raisin_train\.csv.*--data-dir"):
        load_paper_split("raisin")


def test_raisin_is_downloaded_with_its_checksum(tmp_path, monkeypatch):
    asked = {}

    def download(url, **options):
        asked.update(url=url, **options)
        path = tmp_path / "raisin.zip"
        rows = [f"1,1,1,1,1,1,1,{name}" for name in ("Kecimen", "Besni") for _ in range(450)]
        path.write_bytes(fake_archive(rows))
        return path

    monkeypatch.setattr(raisin, "fetch_file", download)
    assert len(fetch_raisin().target) == 900
    assert asked["url"].endswith("/850/raisin.zip")
    assert asked["sha256"] == raisin.SHA256


def test_the_tree_of_1998_and_its_published_rows():
    data = make_cgm98(random_state=34647)
    assert list(data.data["v2"][:4]) == ["d", "a", "c", "a"]
    np.testing.assert_allclose(data.data["v1"][:4], [6.5, 4.5, 1.5, 4.5])
    np.testing.assert_allclose(data.target[:2], [-0.8662549618328805, 9.845381908337774])
    assert sorted(set(data.mean)) == [1.0, 2.0, 5.0, 8.0]
    assert abs(np.std(data.target - data.mean) - 2.0) < 0.3
    with pytest.raises(ValueError, match="n must be at least 1"):
        make_cgm98(0)
