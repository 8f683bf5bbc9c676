"""The shipped data are the published ones, and the generator is the paper's tree."""

from __future__ import annotations

import hashlib
import random

import numpy as np
import pytest

from hamiltree.datasets import cgm_mean, load_bcw, make_cgm


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
