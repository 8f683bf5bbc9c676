"""The posterior mean of hard trees as an ONNX model, for programs without Python.

The tree operator reads float32 unless told otherwise, and a row between two training values could
change sides. So the model takes float64 rows, brings them to the unit interval by the very
subtraction and division that ours does, and compares with the thresholds as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...inputs.preprocess import FAR
from ...utils.arrays import FloatArray, IntArray
from ..predictions import values_of_leaves

if TYPE_CHECKING:
    from ..posterior import Posterior

OPSET, ML_OPSET = 17, 3  # the first ML opset whose trees compare in float64


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
    used, minimum, span = scale.used, scale.minimum[None], scale.span[None]
    far = np.array([-FAR, FAR])
    constants = {"used": used, "minimum": minimum, "span": span, "low": far[0], "high": far[1]}
    nodes = [
        helper.make_node("Gather", ["X", "used"], ["columns"], axis=1),
        helper.make_node("Sub", ["columns", "minimum"], ["shifted"]),
        helper.make_node("Div", ["shifted", "span"], ["scaled"]),
        helper.make_node("Clip", ["scaled", "low", "high"], ["unit"]),
        helper.make_node(
            "TreeEnsembleRegressor",
            ["unit"],
            ["sums"],
            domain="ai.onnx.ml",
            n_targets=values.shape[1],
            aggregate_function="SUM",
            **_tree_attributes(posterior, values, numpy_helper.from_array),
        ),
    ]
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
        },
    )
    onnx.checker.check_model(model)
    return model


def _check(posterior: Posterior, hard: bool) -> None:
    draws = posterior.draws
    if posterior.preprocessing.indicator is not None or posterior.preprocessing.kinds is not None:
        raise ValueError("export to ONNX does not support categories and missing cells yet")
    if draws.split_weights.shape[1]:
        raise ValueError(
            "splits of hmc-dfi weigh all features, and ONNX trees look at one: "
            "use a method with splits on one feature"
        )
    if np.any(draws.h > 0) and not hard:
        raise ValueError(
            "these trees have soft splits, which ONNX trees do not have: pass hard=True to send "
            "every row to the likelier side of each split"
        )


def _tree_attributes(posterior: Posterior, values: FloatArray, tensor: Any) -> dict[str, Any]:
    """All trees as ONNX lists them; nodes are numbered within their tree, in preorder."""
    draws = posterior.draws
    size, offset = draws.size.astype(np.int64), draws.node_offset
    tree = np.repeat(np.arange(len(offset) - 1), np.diff(offset))
    node = np.arange(len(size)) - offset[tree]
    is_leaf = size == 1
    yes = np.where(is_leaf, 0, node + 1)
    after_yes = np.append(size[1:], 0)  # nodes below, of the node that comes next
    no = np.where(is_leaf, 0, node + 1 + after_yes)
    feature, threshold = np.zeros(len(size), np.int64), np.zeros(len(size))
    feature[~is_leaf], threshold[~is_leaf] = draws.feature, draws.threshold
    leaves, outputs = values.shape

    def each_output(of_leaf: IntArray) -> list[int]:
        return np.repeat(of_leaf, outputs).tolist()

    return {
        "nodes_treeids": tree.tolist(),
        "nodes_nodeids": node.tolist(),
        "nodes_featureids": feature.tolist(),
        "nodes_modes": np.where(is_leaf, "LEAF", "BRANCH_LEQ").tolist(),
        "nodes_values_as_tensor": tensor(threshold, "nodes_values"),
        "nodes_truenodeids": yes.tolist(),
        "nodes_falsenodeids": no.tolist(),
        "target_treeids": each_output(tree[is_leaf]),
        "target_nodeids": each_output(node[is_leaf]),
        "target_ids": np.tile(np.arange(outputs), leaves).tolist(),
        "target_weights_as_tensor": tensor(values.ravel(), "target_weights"),
    }
