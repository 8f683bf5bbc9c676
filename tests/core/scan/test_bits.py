"""Scans of columns of few values, with rows as bits: what is in them, and beside scans by rows.

The other tests of informed moves have so few rows that classification scans by bits as well, in
one word; here are more rows, and more sets of them than there is room for.
"""

from __future__ import annotations

import numpy as np
import pytest

from hamiltree.core.scan import bits
from hamiltree.core.scan.bits import make_row_bits, pack
from hamiltree.core.scan.proposals import MODE_COLUMNS, weigh
from hamiltree.core.tree.nodes import right_child
from hamiltree.samplers.common import Problem
from hamiltree.samplers.rjhmc import RJHMC

from ...support.configuring import configured
from ...support.core_trees import MAX_LEAVES, random_tree
from ...support.informed_battery import Bench
from ..moves.test_informed import SOFTNESS, check_ratios

N_ROWS, N_CLASSES = 150, 3


@pytest.fixture
def by_rows(monkeypatch):
    monkeypatch.setattr(bits, "MAX_ROWS", 0)


def unpack(words):
    """[..., words] to [..., 64 words]"""
    places = np.arange(bits.WORD, dtype=np.uint64)
    return ((words[..., None] >> places) & np.uint64(1)).astype(bool).reshape(*words.shape[:-1], -1)


def test_sets_of_rows(rng):
    level = rng.integers(0, 5, (2, 70)).astype(np.int32)
    level[0] %= 3
    rows = np.delete(np.arange(70), [0, 64]).astype(np.int32)  # the others pad
    label = rng.integers(0, 2, 70).astype(np.int32)
    twice = np.array([False, True])
    sets = make_row_bits(level, np.array([3, 5]), rows, label, twice)
    counts = np.isin(np.arange(70), rows)
    assert list(sets.first_value) == [0, 3]
    assert list(sets.second) == [0, 8]
    for f, n in enumerate([3, 5]):
        for k in range(n):
            found = unpack(sets.of_value.T[sets.first_value[f] + k])[:70]
            assert np.array_equal(found, counts & (level[f] == k))
            assert np.array_equal(unpack(sets.from_level[f, k])[:70], counts & (level[f] >= k))
        assert not unpack(sets.from_level[f, n]).any()
    for m in range(2):
        assert np.array_equal(unpack(sets.of_class[m])[:70], label == m)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
def test_packing(n, rng):
    rows = rng.random((4, n)) < 0.5
    words = pack(rows)
    assert words.shape == (4, -(-n // 64))
    assert np.array_equal(unpack(words)[:, :n], rows)
    assert not unpack(words)[:, n:].any()


def data_of_few_values(rng):
    X = np.column_stack(
        [
            rng.integers(0, 2, N_ROWS),
            rng.integers(0, 10, N_ROWS) / 9,
            rng.choice([0.1, 0.4, 0.45, 0.9], N_ROWS),
        ]
    )
    return X, rng.integers(0, N_CLASSES, N_ROWS)


def scans(X, y, h, trees, rng):
    """Every node of every tree scanned, as two new leaves and with its subtrees."""
    configuration = configured(h=h, max_leaves=MAX_LEAVES, alpha_split=0.9, class_prior=0.7)
    chain = RJHMC.build(Problem(np.ascontiguousarray(X.T), y, N_CLASSES), configuration, 0).start(
        rng
    )
    proposals = chain.state.proposals
    scan = proposals.scan
    found, keys = [], []
    for tree in trees:
        for node in range(tree.n_nodes[0]):
            sides = [(-1, -1)]
            if tree.size[node] > 1:
                sides += [(node + 1, right_child(tree, node)), (-1, node), (node, -1)]
            for left, right in sides:
                rule_of = node if tree.size[node] > 1 else -1
                given = (tree, node, rule_of, left, right, MODE_COLUMNS)
                everything, log_rule = weigh(proposals, *given)
                n, start, share = scan.node.n_rows[0], scan.sides.start[0], scan.cells.share
                found.append([n, everything, log_rule, start, *share])
                keys.append(scan.bits.n_keys[0])
    return np.array(found), np.array(keys), scan.data


@pytest.mark.parametrize("room", [64, 6])
@pytest.mark.parametrize("h", [0.1, 0.004, 0.0])
def test_bits_and_rows_agree(h, room, rng, monkeypatch):
    monkeypatch.setattr(bits, "MAX_KEYS", room)
    X, y = data_of_few_values(rng)
    trees = [random_tree(rng, 3, k % 6, oblique=False) for k in range(12)]
    for tree in trees[6:]:  # thresholds that some row has
        inside = tree.size[: tree.n_nodes[0]] > 1
        columns = tree.feature[: tree.n_nodes[0]][inside]
        rows = rng.integers(0, N_ROWS, len(columns))
        tree.threshold[: tree.n_nodes[0]][inside] = X[rows, columns]
    by_bits, keys, data = scans(X, y, h, trees, rng)
    assert data.bits.of_value.shape == (3, 16)
    assert (keys > 0).any()
    assert (keys == 0).any()
    assert (keys < 0).any() == (room == 6)
    monkeypatch.setattr(bits, "MAX_ROWS", 0)
    row_by_row, keys, data = scans(X, y, h, trees, rng)
    assert data.bits.of_value.size == 0
    assert not keys.any()
    np.testing.assert_allclose(by_bits, row_by_row, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("h", SOFTNESS)
@pytest.mark.usefixtures("by_rows")
def test_ratio_by_rows(h, rng):
    """As ``test_ratio``, for columns of too many values."""
    bench = Bench.build("hmc-df", h, N_CLASSES, rng)
    assert bench.compiled.data.bits.of_value.size == 0
    check_ratios(bench, n_trees=30)
