"""Files of models that impute missing cells: round trips, older files, and damaged ones."""

from __future__ import annotations

import dataclasses
import json

import netCDF4
import numpy as np
import pytest

from hamiltree.inputs.imputation import Imputation
from hamiltree.posterior import Posterior
from hamiltree.posterior.files.storage import FORMAT, FileFormatError

from ..imputing import KINDS, imputing_posterior, imputing_rows, with_parts


@pytest.fixture
def saved(seed, tmp_path):
    post = imputing_posterior(seed)
    post.save(tmp_path / "model.nc")
    return post, tmp_path / "model.nc"


def test_round_trip(saved):
    post, path = saved
    with netCDF4.Dataset(path) as file:
        assert file.hamiltree_format == FORMAT == 7
    back = Posterior.load(path)
    by, found = post.preprocessing.imputation, back.preprocessing.imputation
    for field in dataclasses.fields(Imputation):
        own = getattr(by, field.name)
        np.testing.assert_array_equal(getattr(found, field.name), own)
        assert getattr(found, field.name).dtype == own.dtype
    assert back.configuration == post.configuration
    rows = imputing_rows(30, 5)
    np.testing.assert_array_equal(back.predict_mean(rows), post.predict_mean(rows))
    np.testing.assert_array_equal(back.draws.kinds, KINDS)
    assert back.best_tree().to_text() == post.best_tree().to_text()


def changed_file(path, name, change):
    with netCDF4.Dataset(path, "a") as file:
        file.variables[name][...] = change(file.variables[name][...].data)


def negative(covariance):
    return covariance - 2 * covariance[0, 0] * np.eye(len(covariance))


def lopsided(covariance):
    return covariance + np.triu(np.full(covariance.shape, 0.1), 1)


def rule_is_missing(thresholds):
    return np.full_like(thresholds, np.inf)


@pytest.mark.parametrize(
    ("name", "change", "complaint"),
    [
        ("imputation_mean", lambda mean: mean * np.nan, "no mean"),
        ("imputation_covariance", negative, "no covariance"),
        ("imputation_covariance", lopsided, "no covariance"),
        ("imputation_covariance", lambda own: own * np.inf, "no covariance"),
        ("imputation_place", lambda place: place + 1, "does not number the columns"),
        ("imputation_place", lambda place: place * 0, "unknown levels|lacks a column"),
        ("imputation_code", lambda code: code + 1, "unknown levels"),
        ("imputation_code", lambda code: np.full_like(code, -1), "unknown levels"),
        ("levels", lambda levels: levels + np.uint64(3), "a set has unknown levels"),
    ],
)
def test_a_damaged_imputation_is_refused(saved, name, change, complaint):
    _, path = saved
    changed_file(path, name, change)
    with pytest.raises(FileFormatError, match=complaint):
        Posterior.load(path)


def test_a_rule_is_missing_cannot_impute(seed, tmp_path):
    post = imputing_posterior(seed)
    threshold = np.where(post.draws.levels == 2, np.inf, post.draws.threshold)
    threshold = np.where(post.draws.feature == 1, 0.5, threshold)
    draws = dataclasses.replace(post.draws, threshold=threshold)
    with_parts(post, draws=draws).save(tmp_path / "a.nc")
    with pytest.raises(FileFormatError, match="is missing"):
        Posterior.load(tmp_path / "a.nc")


def test_an_imputation_that_the_file_lacks_is_missed(saved):
    _, path = saved
    with netCDF4.Dataset(path, "a") as file:
        metadata = json.loads(str(file.variables["metadata"][...]))
        file.variables["metadata"][...] = json.dumps(metadata | {"imputed_columns": 0})
    with pytest.raises(FileFormatError, match="kinds of columns do not match"):
        Posterior.load(path)


def test_files_of_format_6_load_and_impute_nothing(seed, tmp_path):
    """As they were written: without the field, the arrays, and rules that impute."""
    post = imputing_posterior(seed)
    scale = dataclasses.replace(post.preprocessing, imputation=None)
    sides = dataclasses.replace(
        post.draws, kinds=np.maximum(KINDS, -1),
        levels=np.where((post.draws.levels == 2) & (post.draws.feature > 1), 1, post.draws.levels),
    )  # fmt: skip
    post, path = with_parts(post, draws=sides, scale=scale), tmp_path / "old.nc"
    post.save(path)
    with netCDF4.Dataset(path, "a") as file:
        file.hamiltree_format = 6
        metadata = json.loads(str(file.variables["metadata"][...]))
        del metadata["configuration"]["impute"], metadata["imputed_columns"]
        file.variables["metadata"][...] = json.dumps(metadata)
        assert "imputation_mean" not in file.variables or not file.variables["imputation_mean"].size
    back = Posterior.load(path)
    assert back.configuration.method.impute is False
    assert back.preprocessing.imputation is None
    rows = imputing_rows(30, 5)
    np.testing.assert_array_equal(back.predict_mean(rows), post.predict_mean(rows))
    assert "imputed" not in back.best_tree().to_text()
