"""Files: what comes back is what went in, and a bad file is refused before anything is used."""

from __future__ import annotations

import dataclasses
import json
import os

import netCDF4
import numpy as np
import pytest

from hamiltree.inputs.encoding import Encoding, TrainingTable
from hamiltree.posterior import Posterior
from hamiltree.posterior.draws import Draws, TrainingData
from hamiltree.posterior.files.storage import FORMAT, FileFormatError

from ...support.configuring import changed
from ...support.fake_draws import P, fake_posterior, fake_rows


def replaced(post, **changes):
    """The posterior with some of its draws' arrays replaced."""
    draws = dataclasses.replace(post.draws, **changes)
    return Posterior(
        draws, post.info, post.preprocessing, post.configuration,
        monitor=post.monitor,
    )  # fmt: skip


def same(a, b):
    np.testing.assert_array_equal(a, b)
    assert np.asarray(a).dtype == np.asarray(b).dtype


@pytest.mark.parametrize("oblique", [False, True])
@pytest.mark.parametrize("n_classes", [0, 3])
@pytest.mark.parametrize("roots", [False, True])
def test_round_trip(oblique, n_classes, roots, seed, tmp_path):
    options = {"n_leaves": np.ones((2, 5), int)} if roots else {}
    post = fake_posterior(seed, oblique=oblique, n_classes=n_classes, **options)
    post = post.monitored_at(fake_rows(3))
    post.save(tmp_path / "trees.nc")
    assert os.listdir(tmp_path) == ["trees.nc"]
    back = Posterior.load(tmp_path / "trees.nc")
    for field in dataclasses.fields(Draws):
        same(getattr(back.draws, field.name), getattr(post.draws, field.name))
    for field in dataclasses.fields(post.preprocessing):
        before = getattr(post.preprocessing, field.name)
        after = getattr(back.preprocessing, field.name)
        same(after, before) if isinstance(before, np.ndarray) else None
        assert isinstance(before, np.ndarray) or after == before
    assert back.configuration == post.configuration
    assert back.info.requested() == post.info.requested()
    assert set(back.stats) == set(post.stats)
    for name, stat in post.stats.items():
        same(back.stats[name], stat)
    assert back.acceptance_table() == post.acceptance_table()
    assert (back.info.seconds, back.info.stopped, back.log_evidence) == (1.5, "n_draws", None)
    same(back.monitor, post.monitor)
    same(back.predict_mean(fake_rows(10)), post.predict_mean(fake_rows(10)))


@pytest.mark.parametrize("n_classes", [0, 3])
def test_training_data_come_back_unless_they_are_left_out(n_classes, tmp_path):
    post = fake_posterior(0, n_classes=n_classes, n_training=30)
    post.save(tmp_path / "with.nc")
    post.without_data().save(tmp_path / "without.nc")
    back = Posterior.load(tmp_path / "with.nc")
    same(back.training.X, post.training.X)
    same(back.training.y, post.training.y)
    assert back.best_tree().to_text() == post.best_tree().to_text()
    assert Posterior.load(tmp_path / "without.nc").training is None
    content = (tmp_path / "without.nc").read_bytes()
    assert post.training.X[7].tobytes() not in content
    assert post.training.X[7].tobytes() in (tmp_path / "with.nc").read_bytes()


LABELS = [
    np.array([3, 7, 9]),
    np.array([3, 7, 9], dtype=np.uint8),
    np.array([0.1, 1 / 3, 1e300]),
    np.array([1.5, 2.5, 3.5], dtype=np.float32),
    np.array([False, True]),
    np.array(["a", '\N{GREEK SMALL LETTER BETA} \u0000 "quoted"', "\N{EVERGREEN TREE}" * 70_000]),
    np.array(["ash", "beech", "cedar"], dtype=object),
    np.array([b"a", b"\xff"]),
    np.array(["2020-01-01", "2021-05-06"], dtype="datetime64[D]"),
]


@pytest.mark.parametrize("labels", LABELS, ids=lambda labels: labels.dtype.str)
def test_class_labels_of_any_type_come_back(labels, tmp_path):
    post = fake_posterior(0, n_classes=len(labels))
    scale = dataclasses.replace(post.preprocessing, classes=labels)
    Posterior(post.draws, post.info, scale, post.configuration).save(tmp_path / "a.nc")
    same(Posterior.load(tmp_path / "a.nc").preprocessing.classes, labels)


def test_tuples_infinities_and_many_names_come_back(tmp_path):
    post = fake_posterior(0)
    names = tuple(f"a rather long name of column {j}" for j in range(10_000))
    scale = dataclasses.replace(post.preprocessing, feature_names=names)
    configuration = changed(
        post.configuration, class_prior=(0.5, 1.0, 2.0), feature_prior=(1.0, 2.0, 3.0, 4.0)
    )
    info = dataclasses.replace(
        post.info, log_evidence=-np.inf, stopped="interrupted", target_rhat=1.01, max_draws=60
    )
    provenance = {"weight": np.int64(5), "who": None}
    table = TrainingTable(Encoding.of_numbers(names), "birds.csv", 12)
    Posterior(post.draws, info, scale, configuration, table=table, provenance=provenance).save(
        tmp_path / "a.nc"
    )
    back = Posterior.load(tmp_path / "a.nc")
    assert back.preprocessing.feature_names == names
    assert back.configuration == configuration
    assert back.log_evidence == -np.inf
    assert back.info.stopped == "interrupted"
    assert back.info.requested() == info.requested()
    assert back.table == table
    assert back.provenance == {"weight": 5, "who": None}
    assert back.monitor is None


def test_other_tools_can_read_the_file(tmp_path):
    xarray = pytest.importorskip("xarray")
    post = fake_posterior(0)
    post.save(tmp_path / "a.nc")
    with xarray.open_dataset(tmp_path / "a.nc", engine="netcdf4") as dataset:
        np.testing.assert_array_equal(dataset["n_leaves"], post.n_leaves)
        assert dataset["n_leaves"].dims == ("chain", "draw")


# ---------------------------------------------------------------------- writing


def test_a_failed_save_leaves_the_old_file_alone(tmp_path, monkeypatch):
    post = fake_posterior(0)
    post.save(tmp_path / "a.nc")
    before = (tmp_path / "a.nc").read_bytes()
    odd = Posterior(
        post.draws, post.info, post.preprocessing, post.configuration, provenance={"x": object()}
    )
    with pytest.raises(TypeError, match="cannot save"):
        odd.save(tmp_path / "a.nc")

    def no_space(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", no_space)
    with pytest.raises(OSError, match="no space"):
        fake_posterior(1).save(tmp_path / "a.nc")
    assert (tmp_path / "a.nc").read_bytes() == before
    assert os.listdir(tmp_path) == ["a.nc"]


def test_unwritable_paths(tmp_path):
    post = fake_posterior(0)
    with pytest.raises(FileNotFoundError, match="no folder"):
        post.save(tmp_path / "missing" / "a.nc")
    with pytest.raises(IsADirectoryError, match="folder"):
        post.save(tmp_path)


def test_a_link_is_followed(tmp_path):
    (tmp_path / "real.nc").write_bytes(b"old")
    (tmp_path / "link.nc").symlink_to(tmp_path / "real.nc")
    fake_posterior(0).save(tmp_path / "link.nc")
    assert (tmp_path / "link.nc").is_symlink()
    Posterior.load(tmp_path / "real.nc")


# ---------------------------------------------------------------------- hostile files


@pytest.fixture
def saved(tmp_path):
    fake_posterior(3, n_draws=8).save(tmp_path / "a.nc")
    return tmp_path / "a.nc"


def test_no_such_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        Posterior.load(tmp_path / "none.nc")


@pytest.mark.parametrize("content", [b"", b"not a NetCDF file", b"\x89HDF\r\n\x1a\n" + b"x" * 99])
def test_not_a_netcdf_file(content, tmp_path):
    (tmp_path / "a.nc").write_bytes(content)
    with pytest.raises(FileFormatError, match=r"cannot load .*a\.nc"):
        Posterior.load(tmp_path / "a.nc")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_truncated_files(share, saved):
    content = saved.read_bytes()
    saved.write_bytes(content[: int(share * len(content))])
    with pytest.raises(FileFormatError, match="cannot load"):
        Posterior.load(saved)


def test_somebody_elses_file(tmp_path):
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        file.createDimension("x", 3)
        file.createVariable("n_leaves", "i8", ("x",))
    with pytest.raises(FileFormatError, match="not written by hamiltree"):
        Posterior.load(tmp_path / "a.nc")


def test_a_newer_format_asks_for_an_upgrade(saved):
    with netCDF4.Dataset(saved, "a") as file:
        file.hamiltree_format = FORMAT + 1
    with pytest.raises(FileFormatError, match="upgrade"):
        Posterior.load(saved)


@pytest.mark.parametrize("name", ["metadata", "n_leaves", "used", "leaf", "node_offset", "h"])
def test_missing_variables_are_named(name, saved):
    with netCDF4.Dataset(saved, "a") as file:
        file.renameVariable(name, "something_else")
    with pytest.raises(FileFormatError, match=f"{name} is missing"):
        Posterior.load(saved)


def first(array, value):
    array = array.copy()
    array.flat[0] = value
    return array


HOSTILE = {
    "offsets beyond the nodes": lambda d: {"node_offset": first(d.node_offset[::-1], 999)[::-1]},
    "offsets that fall": lambda d: {"node_offset": first(d.node_offset, 9)},
    "offsets that overflow": lambda d: {"node_offset": first(d.node_offset[::-1], 2**62 + 1)[::-1]},
    "a size too large": lambda d: {"size": first(d.size, 10_001)},
    "a size of zero": lambda d: {"size": first(d.size, 0)},
    "a negative size": lambda d: {"size": first(d.size, -5)},
    "sizes all one": lambda d: {"size": np.ones_like(d.size)},
    "sizes all three": lambda d: {"size": np.full_like(d.size, 3)},
    "a feature too many": lambda d: {"feature": first(d.feature, 4)},
    "a negative feature": lambda d: {"feature": first(d.feature, -1)},
    "a threshold of NaN": lambda d: {"threshold": first(d.threshold, np.nan)},
    "a leaf of infinity": lambda d: {"leaf": first(d.leaf, np.inf)},
    "a negative count": lambda d: {"leaf": first(d.leaf, -1)},
    "a negative h": lambda d: {"h": first(d.h, -0.1)},
    "wrong leaves": lambda d: {"n_leaves": d.n_leaves + 1},
    "wrong depth": lambda d: {"depth": d.depth + 1},
    "weights of 2": lambda d: {"weights_of_draws": d.weights_of_draws * 2},
    "a log posterior of NaN": lambda d: {"log_posterior": first(d.log_posterior, np.nan)},
}


@pytest.mark.parametrize("case", HOSTILE)
def test_arrays_that_contradict_each_other(case, tmp_path):
    post = fake_posterior(3, n_draws=8)
    replaced(post, **HOSTILE[case](post.draws)).save(tmp_path / "a.nc")
    with pytest.raises(FileFormatError, match="cannot load"):
        Posterior.load(tmp_path / "a.nc")


def test_every_wrong_size_is_found(tmp_path, seed):
    """Kernels follow the sizes unchecked, so no single changed one may pass."""
    from hamiltree.posterior.files.checks import check_draws

    draws = fake_posterior(seed, n_draws=3).draws
    check_draws(draws, classification=True, p=P)
    for node in range(len(draws.size)):
        for value in range(-1, 17):
            if value != draws.size[node]:
                size = draws.size.copy()
                size[node] = value
                with pytest.raises(FileFormatError):
                    check_draws(dataclasses.replace(draws, size=size), classification=True, p=P)


@pytest.mark.parametrize(
    "change",
    [
        {"split_weights": np.full((1, 4), 0.3)},
        {"split_weights": np.array([[2.0, -1.0, 0.0, 0.0]])},
        {"split_weights": np.array([[np.nan, 0.0, 0.0, 1.0]])},
        {"sigma": np.array([[0.0]])},
        {"sigma": np.array([[np.nan]])},
    ],
)
def test_bad_oblique_weights_and_noise(change, tmp_path):
    sizes = np.array([[2]])
    post = fake_posterior(0, n_chains=1, n_draws=1, n_leaves=sizes, n_classes=0, oblique=True)
    replaced(post, **change).save(tmp_path / "a.nc")
    with pytest.raises(FileFormatError, match="cannot load"):
        Posterior.load(tmp_path / "a.nc")


@pytest.mark.parametrize(
    "change",
    [
        {"used": np.array([0, 1, 2, 5])},
        {"used": np.array([0, 1, 1, 4])},
        {"span": np.array([1.0, 1.0, 0.0, 1.0])},
        {"minimum": np.array([1.0, 1.0, np.nan, 1.0])},
        {"y_sd": 0.0},
        {"y_mean": np.inf},
    ],
)
def test_bad_preprocessing(change, tmp_path):
    post = fake_posterior(0)
    scale = dataclasses.replace(post.preprocessing, **change)
    Posterior(post.draws, post.info, scale, post.configuration).save(tmp_path / "a.nc")
    with pytest.raises(FileFormatError, match="cannot load"):
        Posterior.load(tmp_path / "a.nc")


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (fake_rows(4), [0.0, 1.0, 2.0, 3.0]),
        (fake_rows(4), [0.0, 1.0, 2.0, -1.0]),
        (fake_rows(4), [0.0, 1.0, 2.0, 0.5]),
        (fake_rows(4), [0.0, 1.0, 2.0, np.nan]),
        (np.full((4, 5), np.inf), [0.0, 1.0, 2.0, 0.0]),
        (fake_rows(4)[:, :4], [0.0, 1.0, 2.0, 0.0]),
        (fake_rows(3), [0.0, 1.0, 2.0, 0.0]),
    ],
)
def test_bad_training_data(X, y, tmp_path):
    post = fake_posterior(0)
    training = TrainingData(X, np.array(y))
    odd = Posterior(
        post.draws, post.info, post.preprocessing, post.configuration, training=training
    )
    try:
        odd.save(tmp_path / "a.nc")
    except (IndexError, ValueError):  # X and y of different lengths do not get into a file
        assert len(X) != len(y)
        return
    with pytest.raises(FileFormatError, match="training"):
        Posterior.load(tmp_path / "a.nc")


def test_twenty_thousand_trees_fit_a_small_file(tmp_path):
    """4 x 5,000 trees of 8 leaves with all that a fit records: below 20 MB."""
    sizes = np.full((4, 5000), 8)
    post = fake_posterior(0, n_chains=4, n_draws=5000, n_leaves=sizes, n_classes=3, n_training=1000)
    stats = {f"stat {j}": np.random.default_rng(j).random((4, 5000)) for j in range(5)}
    info = dataclasses.replace(post.info, stats=stats)
    monitor = np.random.default_rng(9).random((4, 5000, 20))
    Posterior(
        post.draws, info, post.preprocessing, post.configuration,
        monitor=monitor, training=post.training,
    ).save(tmp_path / "a.nc")  # fmt: skip
    assert os.path.getsize(tmp_path / "a.nc") < 20e6
    assert Posterior.load(tmp_path / "a.nc").n_draws == 5000


@pytest.mark.parametrize(
    "change",
    [
        {"class_prior": -1.0},
        {"class_prior": (1.0, 1.0)},
        {"method": ["hmc-df"]},
        {"method": "bart"},
        {"method": 3},
        {"max_leaves": None},
        {"h": "wide"},
        {"mu_prior": ("a", "b")},
    ],
)
def test_bad_parameters(change, saved):
    with netCDF4.Dataset(saved, "a") as file:
        metadata = json.loads(str(file.variables["metadata"][...]))
        metadata["configuration"] |= change
        file.variables["metadata"][...] = json.dumps(metadata)
    with pytest.raises(FileFormatError, match=next(iter(change))):
        Posterior.load(saved)


def test_parameters_of_a_newer_version_are_named(saved):
    with netCDF4.Dataset(saved, "a") as file:
        text = str(file.variables["metadata"][...])
        file.variables["metadata"][...] = text.replace('"replicas"', '"warp_speed"')
    with pytest.raises(FileFormatError, match="warp_speed"):
        Posterior.load(saved)


def test_an_array_larger_than_its_file_is_not_read(tmp_path):
    """A few bytes can claim a terabyte of draws."""
    fake_posterior(0).save(tmp_path / "a.nc")
    with netCDF4.Dataset(tmp_path / "b.nc", "w") as file:
        with netCDF4.Dataset(tmp_path / "a.nc") as source:
            file.setncatts({name: source.getncattr(name) for name in source.ncattrs()})
            file.createVariable("metadata", str)[...] = str(source.variables["metadata"][...])
        for name, length in {"chain": 2**20, "draw": 2**20, "bounds": 2**40 + 1}.items():
            file.createDimension(name, length)
        file.createDimension("columns", 4)
        file.createVariable("n_leaves", "i8", ("chain", "draw"), chunksizes=(1, 1024))
        file.createVariable("used", "i8", ("columns",))
        file.createVariable("node_offset", "i8", ("bounds",), chunksizes=(1024,))
    with pytest.raises(FileFormatError, match="node_offset is incomplete"):
        Posterior.load(tmp_path / "b.nc")
