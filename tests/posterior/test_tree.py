"""Trees in the user's units, as text, dictionary and picture."""

from __future__ import annotations

import dataclasses
import itertools
import json

import matplotlib.pyplot as plt
import numpy as np
import pytest

from hamiltree.inputs.columns import Column
from hamiltree.plots import plot_leaves
from hamiltree.posterior.tree_text import softness

from ..support.fake_draws import fake_posterior, fake_rows


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def one_tree(seed, n_leaves, **options):
    sizes = np.array([[n_leaves]])
    post = fake_posterior(seed, n_chains=1, n_draws=1, n_leaves=sizes, **options)
    return post.tree(0, 0), post


def follow(node, x, depth=0):
    """Predict from the dictionary alone, in the user's units."""
    if "threshold" not in node:
        return np.array(node.get("probabilities", [node.get("mean")])), depth
    value = np.dot(node.get("weights", 1.0), x[node["column"]])
    distance = value - node["threshold"]
    right = 1 / (1 + np.exp(-distance / node["h"])) if node["h"] > 0 else float(distance > 0)
    (yes, left_depth), (no, right_depth) = (
        follow(node[side], x, depth + 1) for side in ("yes", "no")
    )
    return (1 - right) * yes + right * no, max(left_depth, right_depth)


@pytest.mark.parametrize("oblique", [False, True])
@pytest.mark.parametrize("n_classes", [0, 3])
@pytest.mark.parametrize("h", [0.0, 0.05])
def test_the_dictionary_predicts_like_the_kernels(oblique, n_classes, h, seed):
    tree, post = one_tree(seed, 6, oblique=oblique, n_classes=n_classes, h=h)
    nested = json.loads(json.dumps(tree.to_dict()))
    X = fake_rows(40, seed)
    kernel = tree.predict(X)
    np.testing.assert_allclose(post.predict_draws(X)[0, 0], kernel, rtol=1e-12)
    for x, expected in zip(X, kernel, strict=True):
        got, depth = follow(nested, x)
        # Sums in the user's units cancel digits: minima and spans differ by a factor of 1e6.
        np.testing.assert_allclose(got, np.atleast_1d(expected), rtol=1e-7)
        assert depth == tree.depth == post.depth[0, 0]


def test_text_of_a_known_tree(seed):
    tree, _ = one_tree(seed, 3, n_classes=2)
    tree = dataclasses.replace(
        tree,
        size=np.array([5, 1, 3, 1, 1], np.int32),
        feature=np.array([1, 2], np.int32),
        threshold=np.array([0.25, 0.5]),
        leaf=np.array([[9.0, 0.0], [0.0, 4.0], [2.0, 2.0]]),
        h=np.array([0.0, 0.01, 0.0, 0.0]),
    )
    assert tree.to_text().split("\n") == [
        "width <= 0.500  (h = 0.02)",
        "  yes: ash 0.95 (0.81 to 1.00), beech 0.05; 9 rows assigned",
        "  no:  mass (kg) <= 850",
        "    yes: beech 0.90 (0.64 to 1.00), ash 0.10; 4 rows assigned",
        "    no:  beech 0.50 (0.17 to 0.83), ash 0.50; 4 rows assigned",
        "(h: a row goes to no with probability 1 / (1 + exp(-(x - threshold) / h)))",
        "(rows assigned: not exactly those that satisfy the rules; near a soft threshold they "
        "go both ways)",
    ]
    assert (tree.n_leaves, tree.depth) == (3, 2)
    assert repr(tree).startswith("<Tree with 3 leaves, depth 2>")


@pytest.mark.parametrize(
    ("threshold", "h", "expected"),
    [
        (3.4, 0.05, []),  # 3 goes to yes and 4 to no with more than 0.99
        (3.1, 0.05, ["at 3: 88% yes"]),
        (3.5, 0.2, ["at 3: 92% yes", "at 4: 8% yes"]),
        (3.5, 1.0, ["h = 1"]),  # too many values are near
        (3.4, 0.0, []),
    ],
)
@pytest.mark.parametrize("ordered", [False, True], ids=["whole", "ordered"])
def test_what_a_soft_split_does_with_the_values_near_it(threshold, h, expected, ordered, seed):
    tree, _ = one_tree(seed, 2, n_classes=2)
    order = tuple("abcdef") if ordered else ()
    about = (Column(whole=not ordered, order=order), *[Column()] * 4)
    scale = dataclasses.replace(
        tree.preprocessing, minimum=np.zeros(4), span=np.full(4, 5.0), columns=about
    )
    tree = dataclasses.replace(
        tree,
        feature=np.array([0], np.int32),
        threshold=np.array([threshold / 5]),
        h=np.full(4, h / 5),
        preprocessing=scale,
        training=None,
    )
    names = {f"at {k}": f"at {label}" for k, label in enumerate(order)}
    wanted = [":".join([names.get(text[:4], text[:4]), text[5:]]) if text[:2] == "at" else text
              for text in expected]  # fmt: skip
    split = tree.to_dict()
    assert softness(scale, split) == wanted
    for mark, x in zip((m for m in wanted if m[:2] == "at"), (3.0, 4.0), strict=False):
        rows = np.full((1, 5), x)
        assert f"{tree.reach(rows)[0, 0]:.0%} yes" in mark
    text = tree.to_text()
    # h means something only beside the threshold as it is.
    exact = f"{threshold:.3f}" if expected == ["h = 1"] and not ordered else "3"
    assert text.startswith(f"length <= {order[3] if ordered else exact}")
    assert text.count("rows assigned") == (3 if expected else 0)
    assert all(mark in text for mark in wanted)
    assert all(mark in tree._repr_html_() for mark in wanted)
    assert all(mark in tree.to_graphviz() for mark in wanted)
    drawn = "\n".join(found.get_text() for found in tree.plot().texts)
    assert all(mark in drawn for mark in wanted)
    assert ("rows assigned" in drawn) == bool(expected)


def test_oblique_rules_show_the_weights_that_matter(seed):
    tree, _ = one_tree(seed, 2, oblique=True, n_classes=0, h=0.0)
    tree = dataclasses.replace(
        tree, weights=np.array([[0.1, 0.6, 0.05, 0.25]]), threshold=np.array([0.5])
    )
    # threshold: 0.5 + 0.1 * -3 / 10 + 0.05 * 100 / 1500 + 0.25 * 1e-3 / 4e-3
    assert tree.to_text().split("\n")[0] == "0.3*width + 62.5*age + 0.01*length + ... <= 0.5358"


def test_tree_numbers(seed):
    post = fake_posterior(seed)
    for chain, draw in itertools.product(range(2), range(5)):
        tree = post.tree(chain, draw)
        assert (tree.n_leaves, tree.depth) == (post.n_leaves[chain, draw], post.depth[chain, draw])
        assert len(tree.threshold) == tree.n_leaves - 1
    assert post.tree(-1, -1).to_text() == post.tree(1, 4).to_text()
    with pytest.raises(IndexError, match="chain 2"):
        post.tree(2, 0)


@pytest.mark.parametrize("options", [{}, {"n_classes": 0, "oblique": True}], ids=["df", "dfi"])
@pytest.mark.parametrize("n_leaves", [1, 2, 5, 16])
@pytest.mark.parametrize("own_axes", [False, True])
def test_boxes_of_a_picture_do_not_overlap(n_leaves, options, own_axes, seed):
    tree, _ = one_tree(seed, n_leaves, **options)
    ax = plt.figure(figsize=(9, 7)).add_subplot() if own_axes else None
    ax = tree.plot(ax)
    renderer = ax.figure.canvas.get_renderer()
    ax.figure.draw(renderer)
    boxes = [text.get_bbox_patch().get_window_extent(renderer) for text in ax.texts]
    assert len(boxes) == (2 * n_leaves - 1) + 2 * (n_leaves - 1)  # nodes, and yes and no
    for a, b in itertools.combinations(boxes, 2):
        across = min(a.x1, b.x1) - max(a.x0, b.x0)
        down = min(a.y1, b.y1) - max(a.y0, b.y0)
        assert across <= 0 or down <= 0
    frame = ax.figure.bbox
    assert all(frame.x0 <= box.x0 and box.x1 <= frame.x1 for box in boxes)


def test_leaves_of_a_posterior(seed):
    post = fake_posterior(seed, n_chains=3, n_draws=20)
    ax = plot_leaves(post)
    heights = np.array([bar.get_height() for bar in ax.patches])
    sizes = np.arange(post.n_leaves.min(), post.n_leaves.max() + 1)
    expected = [(post.n_leaves == size).mean() for size in sizes]
    np.testing.assert_allclose(heights, expected, atol=1e-12)
    assert len(ax.lines) == 3


def test_marks_of_certainty_and_rows(seed):
    post = fake_posterior(seed, n_classes=0, n_training=30, n_leaves=np.full((2, 5), 4))
    tree = post.best_tree()
    text = tree.to_text()
    assert text.count("% of trees") == 4  # of three splits, and what it means
    assert text.count(" rows assigned") == 4
    assert text.split("\n")[-1] == "(% of trees: share of the sampled trees that have such a split)"
    nested = tree.to_dict()
    assert nested["certainty"] == tree.certainty[0] >= 0.1
    assert nested["n_rows"] == pytest.approx(30)
    leaf = nested["yes"]
    while "yes" in leaf:
        leaf = leaf["yes"]
    assert leaf["interval"][0] < leaf["mean"] < leaf["interval"][1]
    assert leaf["rows"] == pytest.approx(tree.n_rows[tree.size == 1][0])


def test_a_tree_for_graphviz(seed):
    tree, _ = one_tree(seed, 3, n_classes=2)
    names = ("a \\ b", 'say "no"', "c", "constant", "d")
    tree = dataclasses.replace(
        tree,
        size=np.array([5, 1, 3, 1, 1], np.int32),
        feature=np.array([1, 0], np.int32),
        threshold=np.array([0.25, 0.5]),
        leaf=np.array([[9.0, 0.0], [0.0, 4.0], [2.0, 2.0]]),
        preprocessing=dataclasses.replace(tree.preprocessing, feature_names=names),
    )
    lines = tree.to_graphviz().split("\n")
    assert lines[0] == "digraph tree {"
    assert lines[-1] == "}"
    assert '  n0 [label="say \\"no\\" <= 0.500\\nh = 0.1"];' in lines
    assert '  n2 [label="a \\\\ b <= 2.00\\nh = 0.5"];' in lines
    assert [line for line in lines if "->" in line] == [
        "  n0 -> n1 [label=yes];",
        "  n2 -> n3 [label=yes];",
        "  n2 -> n4 [label=no];",
        "  n0 -> n2 [label=no];",
    ]
    assert sum("style=rounded" in line for line in lines) == 3
