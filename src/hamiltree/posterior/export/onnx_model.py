"""The posterior mean of hard trees as an ONNX model, for programs without Python.

The tree operator reads float32 unless told otherwise, and a row between two training values could
change sides. So the model takes float64 rows, brings them to the unit interval by the very
subtraction and division that ours does, and compares with the thresholds as they are.

ONNX's own splits on sets are of newer runtimes alone. So each set of levels that a tree asks for
becomes a column, read from a table by the code of the level: 0 left, 1 right, and NaN for a level
that training did not see. A split says where NaN goes. Where training could say nothing about a
cell, our trees send it both ways, which ONNX trees cannot: there a coin is tossed for each split,
once, when the model is written, so that the mean over the draws is the same up to their number.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.tree.kinds import IMPUTED
from ...inputs.preprocess import FAR, Preprocessing
from ...utils.arrays import FloatArray, IntArray
from ..draws import Draws
from ..predictions import values_of_leaves

if TYPE_CHECKING:
    from ..posterior import Posterior

OPSET, ML_OPSET = 17, 3  # the first ML opset whose trees compare in float64
COIN_SEED = 0
IN_SET = 0.5
"""Threshold of a column that is 1 for levels in a set, and 0 for others."""


def to_onnx(posterior: Posterior, *, hard: bool) -> Any:
    """See ``Posterior.to_onnx``."""
    try:
        import onnx
    except ImportError as error:
        raise ImportError("to_onnx needs the package onnx: pip install hamiltree[onnx]") from error
    from onnx import TensorProto, helper, numpy_helper

    _check(posterior, hard)
    scale = posterior.preprocessing
    weights = posterior.weights.ravel()
    values = (
        values_of_leaves(posterior) * np.repeat(weights, posterior.draws.n_leaves.ravel())[:, None]
    )
    if scale.classes is None:
        values = values * scale.y_sd
    columns = _Columns(scale, helper.make_node)
    splits = columns.splits_of(posterior.draws)
    columns.finish()
    constants, nodes = columns.constants, columns.nodes
    trees = _tree_attributes(posterior.draws, splits, values, numpy_helper.from_array)
    nodes.append(
        helper.make_node(
            "TreeEnsembleRegressor",
            ["unit"],
            ["sums"],
            domain="ai.onnx.ml",
            n_targets=values.shape[1],
            aggregate_function="SUM",
            **trees,
        )
    )
    if scale.classes is None:
        constants["mean"] = np.array([scale.y_mean], dtype=np.float32)
        nodes.append(helper.make_node("Add", ["sums", "mean"], ["mean_of_y"]))
        outputs = [helper.make_tensor_value_info("mean_of_y", TensorProto.FLOAT, [None, 1])]
    else:
        name, classes = "probabilities", len(scale.classes)
        nodes.append(helper.make_node("Identity", ["sums"], [name]))
        outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, classes])]
    rows = helper.make_tensor_value_info("X", TensorProto.DOUBLE, [None, len(scale.feature_names)])
    graph = helper.make_graph(
        nodes,
        "hamiltree",
        [rows],
        outputs,
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
    model = helper.make_model(graph, producer_name="hamiltree", opset_imports=opsets, ir_version=8)
    helper.set_model_props(
        model,
        {
            "features": "\n".join(scale.feature_names),
            "classes": "" if scale.classes is None else "\n".join(map(str, scale.classes)),
            "codes": json.dumps(_codes(scale), ensure_ascii=False),
        },
    )
    onnx.checker.check_model(model)
    return model


def _check(posterior: Posterior, hard: bool) -> None:
    draws = posterior.draws
    if draws.split_weights.shape[1]:
        raise ValueError(
            "splits of hmc-dfi weigh all features, but those of ONNX trees are on a single one: "
            "use a method with splits on one feature"
        )
    if np.any(draws.h > 0) and not hard:
        raise ValueError(
            "these trees have soft splits, which ONNX trees do not have: pass hard=True to send "
            "every row to the more probable side of each split"
        )


def _codes(scale: Preprocessing) -> dict[str, dict[str, int]]:
    """The number of each level, by the name of its column; ordered categories have ranks."""
    codes = {}
    for name, column in zip(scale.feature_names, scale.columns, strict=False):
        labels = column.order or column.levels
        if labels is not None:
            codes[name] = {str(label): code for code, label in enumerate(labels)}
            codes[name] |= {str(label): len(labels) - 1 for label in column.others}
    return codes


class _Splits:
    """What the splits of all trees ask, [splits] each: ONNX's left is "true"."""

    def __init__(self, n: int) -> None:
        self.feature = np.zeros(n, np.int64)
        """Index into the columns that the trees of ONNX see."""
        self.threshold = np.zeros(n)
        self.missing_left = np.zeros(n, np.int64)


class _Columns:
    """The nodes that make the trees' columns of the rows: ``unit`` [rows, columns].

    First the used columns of numbers, on the unit interval, then those looked up by a level.
    """

    def __init__(self, scale: Preprocessing, make_node: Any) -> None:
        self.scale, self.make_node = scale, make_node
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}
        p = len(scale.used)
        self.n_levels = np.array([scale.column(place).n_levels for place in range(p)], np.int64)
        self.numbers = np.flatnonzero(self.n_levels == 0)
        self.tables: dict[int, list[FloatArray]] = {}
        """By input column, for each column looked up in it: [levels + 1], the last for others."""

    def splits_of(self, draws: Draws) -> _Splits:
        """Where each split looks, and what it compares with; notes which sets are wanted."""
        splits = _Splits(len(draws.feature))
        coin = np.random.default_rng(COIN_SEED).integers(2, size=len(draws.feature))
        place_of = np.full(len(self.n_levels), -1)
        place_of[self.numbers] = np.arange(len(self.numbers))
        wanted: dict[tuple[int, int], int] = {}
        keys: list[tuple[int, int]] = []
        for k, f in enumerate(draws.feature.astype(int)):
            levels = 0 if draws.levels is None else int(draws.levels[k])
            splits.missing_left[k] = coin[k]
            if self.n_levels[f] == 0:
                splits.feature[k], splits.threshold[k] = place_of[f], draws.threshold[k]
                if draws.kinds is not None and draws.kinds[f] < 0:
                    splits.missing_left[k] = levels == 0
                    if levels == IMPUTED:  # ONNX trees cannot look at the other cells
                        splits.missing_left[k] = self._imputed_mean(f) <= draws.threshold[k]
                continue
            if self.scale.indicator is None:
                threshold, key = IN_SET, (f, levels)
            else:  # a column of 0 and 1 for one level, which has a threshold
                threshold, key = draws.threshold[k], (f, 1 << int(self.scale.indicator[f]))
            if key not in wanted:
                wanted[key] = len(wanted)
                keys.append(key)
            splits.feature[k], splits.threshold[k] = -1 - wanted[key], threshold
        self._look_up(keys, splits)
        return splits

    def _imputed_mean(self, column: int) -> float:
        """What a missing cell is imputed as where all others are missing, too."""
        by = self.scale.imputation
        assert by is not None
        return float(by.mean[(by.place == column) & (by.code < 0)][0])

    def _look_up(self, keys: list[tuple[int, int]], splits: _Splits) -> None:
        """Tables of the sets, in the order of their columns, and the places of these."""
        order = sorted(range(len(keys)), key=lambda number: self.scale.used[keys[number][0]])
        place = np.zeros(len(keys), np.int64)
        for rank, number in enumerate(order):
            f, levels = keys[number]
            place[number] = len(self.numbers) + rank
            own = [float(levels >> code & 1) for code in range(int(self.n_levels[f]))]
            fill = np.nan if self.scale.fill is None else self.scale.fill[f]
            self.tables.setdefault(int(self.scale.used[f]), []).append(np.array([*own, fill]))
        looked = splits.feature < 0
        splits.feature[looked] = place[-1 - splits.feature[looked]]

    def finish(self) -> None:
        parts = []
        if len(self.numbers):
            parts.append(self._numbers())
        parts += [self._levels(column, tables) for column, tables in self.tables.items()]
        self._node("Concat", parts or ["X"], "unit", axis=1)  # trees without a split need none

    def _numbers(self) -> str:
        """Missing cells stay NaN, whatever a runtime's Clip makes of them, or are filled in."""
        scale, numbers = self.scale, self.numbers
        self.constants |= {
            "used": scale.used[numbers],
            "minimum": scale.minimum[None, numbers],
            "span": scale.span[None, numbers],
            "low": np.array(-FAR),
            "high": np.array(FAR),
            "fill": np.full((1, len(numbers)), np.nan)
            if scale.fill is None
            else scale.fill[None, numbers],
        }
        self._node("Gather", ["X", "used"], "columns", axis=1)
        self._node("Sub", ["columns", "minimum"], "shifted")
        self._node("Div", ["shifted", "span"], "scaled")
        self._node("Clip", ["scaled", "low", "high"], "clipped")
        last = self._rounded("clipped")
        self._node("IsNaN", ["columns"], "gone")
        return self._node("Where", ["gone", "fill", last], "numbers")

    def _rounded(self, name: str) -> str:
        """To single precision where the training data were."""
        if self.scale.dtype == "float64":
            return name
        single, double = 1, 11  # ONNX's numbers of the types
        self._node("Cast", [name], "single", to=single)
        return self._node("Cast", ["single"], "rounded", to=double)

    def _levels(self, column: int, tables: list[FloatArray]) -> str:
        """Columns [rows, sets] of one category, by its codes in X; NaN is a missing cell."""
        about, end = self.scale.columns[column], len(tables[0]) - 1
        name = f"level{column}"
        assert about.levels is not None
        self.constants |= {
            f"{name}_at": np.array(column),
            f"{name}_table": np.column_stack(tables),
            f"{name}_missing": np.array(float(len(about.levels) if about.missing else end)),
            f"{name}_other": np.array(float(end)),
            f"{name}_first": np.array(0.0),
            f"{name}_last": np.array(float(end - 1)),
        }
        self._node("Gather", ["X", f"{name}_at"], f"{name}_code", axis=1)
        self._node("IsNaN", [f"{name}_code"], f"{name}_gone")
        self._node("Less", [f"{name}_code", f"{name}_first"], f"{name}_below")
        self._node("Greater", [f"{name}_code", f"{name}_last"], f"{name}_above")
        self._node("Or", [f"{name}_below", f"{name}_above"], f"{name}_odd")
        self._node("Where", [f"{name}_odd", f"{name}_other", f"{name}_code"], f"{name}_known")
        self._node("Where", [f"{name}_gone", f"{name}_missing", f"{name}_known"], f"{name}_number")
        self._node("Cast", [f"{name}_number"], f"{name}_row", to=7)  # int64
        return self._node("Gather", [f"{name}_table", f"{name}_row"], f"{name}_sets", axis=0)

    def _node(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self.nodes.append(self.make_node(operator, inputs, [output], **attributes))
        return output


def _tree_attributes(
    draws: Draws, splits: _Splits, values: FloatArray, tensor: Any
) -> dict[str, Any]:
    """All trees as ONNX lists them; nodes are numbered within their tree, in preorder."""
    size, offset = draws.size.astype(np.int64), draws.node_offset
    tree = np.repeat(np.arange(len(offset) - 1), np.diff(offset))
    node = np.arange(len(size)) - offset[tree]
    is_leaf = size == 1
    yes = np.where(is_leaf, 0, node + 1)
    after_yes = np.append(size[1:], 0)  # nodes below, of the node that comes next
    no = np.where(is_leaf, 0, node + 1 + after_yes)
    feature, threshold = np.zeros(len(size), np.int64), np.zeros(len(size))
    missing_left = np.zeros(len(size), np.int64)
    feature[~is_leaf], threshold[~is_leaf] = splits.feature, splits.threshold
    missing_left[~is_leaf] = splits.missing_left
    leaves, outputs = values.shape

    def each_output(of_leaf: IntArray) -> list[int]:
        return np.repeat(of_leaf, outputs).tolist()

    return {
        "nodes_treeids": tree.tolist(),
        "nodes_nodeids": node.tolist(),
        "nodes_featureids": feature.tolist(),
        "nodes_modes": np.where(is_leaf, "LEAF", "BRANCH_LEQ").tolist(),
        "nodes_values_as_tensor": tensor(threshold, "nodes_values"),
        "nodes_missing_value_tracks_true": missing_left.tolist(),
        "nodes_truenodeids": yes.tolist(),
        "nodes_falsenodeids": no.tolist(),
        "target_treeids": each_output(tree[is_leaf]),
        "target_nodeids": each_output(node[is_leaf]),
        "target_ids": np.tile(np.arange(outputs), leaves).tolist(),
        "target_weights_as_tensor": tensor(values.ravel(), "target_weights"),
    }
