"""A tree in the DOT language."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..tree_text import branch_words, how_common, leaf_text, rule_text, soft_marks, softness

if TYPE_CHECKING:
    from ..tree import Tree


def tree_dot(tree: Tree) -> str:
    """Boxes for splits, rounded ones for leaves, "yes" and "no" on the edges."""
    lines = [
        "digraph tree {",
        '  node [shape=box, fontname="Helvetica", fontsize=11];',
        '  edge [fontname="Helvetica", fontsize=10];',
    ]
    root = tree.to_dict()
    assigned = bool(soft_marks(tree.preprocessing, root))
    names = iter(range(2 * tree.n_leaves))
    words = branch_words(tree.preprocessing)

    def add(node: dict[str, Any]) -> int:
        name = next(names)
        if "threshold" not in node:
            text = leaf_text(tree.preprocessing, node, assigned=assigned).replace("; ", "\n")
            lines.append(f"  n{name} [label={_quoted(text)}, style=rounded];")
            return name
        rule, soft = rule_text(tree.preprocessing, node), softness(tree.preprocessing, node)
        text = "\n".join([rule, *soft, *how_common(tree, node)])
        lines.append(f"  n{name} [label={_quoted(text)}];")
        for side, word in zip(("yes", "no"), words, strict=True):
            lines.append(f"  n{name} -> n{add(node[side])} [label={word}];")
        return name

    add(root)
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    """As a string of DOT: any text, a backslash and a quote included."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
