"""The probability of every way in which an informed move leads from one tree to another.

A way is one outcome of the choices that a move makes before it draws: which node, which side,
which coin. All ways are tried, and those kept that can give the new tree. There should be exactly
one: then the acceptance ratio of the moves, which knows of one, is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from .model import Leaf, Split, Tree, split_probability
from .scan import Path, Rule, Scan


@dataclass(frozen=True)
class Way:
    label: tuple[object, ...]
    log_choice: float
    """Of the label."""
    log_rules: float
    """Density of what is drawn then."""

    @property
    def log_density(self) -> float:
        return self.log_choice + self.log_rules


def at(tree: Tree, path: Path) -> Tree | None:
    """The subtree there, or None."""
    for side in path:
        if isinstance(tree, Leaf):
            return None
        tree = tree.right if side else tree.left
    return tree


def put(tree: Tree, path: Path, subtree: Tree) -> Tree:
    if not path:
        return subtree
    assert isinstance(tree, Split)
    if path[0]:
        return Split(tree.rule, tree.threshold, tree.left, put(tree.right, path[1:], subtree))
    return Split(tree.rule, tree.threshold, put(tree.left, path[1:], subtree), tree.right)


def paths(tree: Tree) -> list[Path]:
    """To every node, in preorder."""
    if isinstance(tree, Leaf):
        return [()]
    deeper = [(0, *path) for path in paths(tree.left)] + [(1, *path) for path in paths(tree.right)]
    return [(), *deeper]


def internal(tree: Tree) -> list[Path]:
    return [path for path in paths(tree) if isinstance(at(tree, path), Split)]


def rule_of(tree: Tree | None) -> Rule | None:
    return (tree.rule, tree.threshold) if isinstance(tree, Split) else None


def with_leaf(rule: Rule, subtree: Tree, side: int) -> Split:
    """A split with a new leaf on one side."""
    return Split(*rule, Leaf(), subtree) if side == 0 else Split(*rule, subtree, Leaf())


def leaf_children(tree: Tree | None) -> int:
    if not isinstance(tree, Split):
        return 0
    return isinstance(tree.left, Leaf) + isinstance(tree.right, Leaf)


def without(split: Split) -> Tree:
    """What is left of a split that has a leaf when that leaf goes."""
    return split.right if isinstance(split.left, Leaf) else split.left


def size_of(tree: Tree) -> int:
    return len(paths(tree))


class Proposals:
    """``by_columns`` is the mode of HMC-DFI, tossed before a move and the same on its way back.

    Without a scan, densities of rules are left out (0): for when only the choices are asked for.
    """

    def __init__(self, scan: Scan | None, by_columns: bool = True) -> None:
        self.scan = scan
        self.by_columns = by_columns
        self.moves: dict[str, Callable[[Tree, Tree], Iterator[Way]]] = {
            "grow": self.grow,
            "prune": self.prune,
            "insert": self.insert,
            "delete": self.delete,
            "change": self.change,
            "regrow": self.regrow,
            "transpose": self.transpose,
            "swap": self.swap,
            "relocate": self.relocate,
            "rotate": self.rotate,
        }

    def ways(self, move: str, tree: Tree, new: Tree) -> list[Way]:
        return list(self.moves[move](tree, new))

    def log_rule(self, tree: Tree, path: Path, left: Tree, right: Tree, rule: Rule) -> float:
        if self.scan is None:
            return 0.0
        rows = self.scan.reaching(tree, path)
        return self.scan.log_rule(rows, left, right, rule, self.by_columns)

    def grow(self, tree: Tree, new: Tree) -> Iterator[Way]:
        candidates = [path for path in paths(tree) if isinstance(at(tree, path), Leaf)]
        for path in candidates:
            rule = rule_of(at(new, path))
            if rule and put(tree, path, Split(*rule, Leaf(), Leaf())) == new:
                log_rule = self.log_rule(tree, path, Leaf(), Leaf(), rule)
                yield Way((path,), -np.log(len(candidates)), log_rule)

    def prune(self, tree: Tree, new: Tree) -> Iterator[Way]:
        candidates = [path for path in paths(tree) if leaf_children(at(tree, path)) == 2]
        for path in candidates:
            if put(tree, path, Leaf()) == new:
                yield Way((path,), -np.log(len(candidates)), 0.0)

    def insert(self, tree: Tree, new: Tree) -> Iterator[Way]:
        candidates = internal(tree)
        for path in candidates:
            rule, below = rule_of(at(new, path)), at(tree, path)
            for side in (0, 1):
                if rule and put(tree, path, with_leaf(rule, below, side)) == new:
                    sides = (Leaf(), below) if side == 0 else (below, Leaf())
                    log_rule = self.log_rule(tree, path, *sides, rule)
                    yield Way((path, side), -np.log(2 * len(candidates)), log_rule)

    def delete(self, tree: Tree, new: Tree) -> Iterator[Way]:
        candidates = [path for path in paths(tree) if leaf_children(at(tree, path)) == 1]
        for path in candidates:
            if put(tree, path, without(at(tree, path))) == new:
                yield Way((path,), -np.log(len(candidates)), 0.0)

    def change(self, tree: Tree, new: Tree) -> Iterator[Way]:
        candidates = internal(tree)
        for path in candidates:
            rule, old = rule_of(at(new, path)), at(tree, path)
            if rule and put(tree, path, Split(*rule, old.left, old.right)) == new:
                log_rule = self.log_rule(tree, path, old.left, old.right, rule)
                yield Way((path,), -np.log(len(candidates)), log_rule)

    def regrow(self, tree: Tree, new: Tree) -> Iterator[Way]:
        """From the first node that differs: all below it, and nothing above, was drawn anew."""
        path: Path = ()
        here, there = tree, new
        while isinstance(here, Split) and rule_of(here) == rule_of(there):
            side = int(here.left == there.left)
            path = (*path, side)
            here, there = (here.right, there.right) if side else (here.left, there.left)
        # nodes are picked by the reciprocal of their size
        all_picks = sum(1 / size_of(at(tree, node)) for node in paths(tree))
        choice = -np.log(size_of(here) * all_picks)
        yield Way((path,), choice, self.log_regrown(new, path))

    def log_regrown(self, tree: Tree, path: Path, frame: Path | None = None) -> float:
        """``frame``: the node that was regrown."""
        if self.scan is None:
            return 0.0
        frame = path if frame is None else frame
        rows = self.scan.reaching(tree, path, frame)
        by_prior = split_probability(len(path), self.scan.prior)
        odds = by_prior / (1 - by_prior) * np.exp(self.scan.log_gain(rows))
        split = 0.9 * odds / (1 + odds) + 0.1 * by_prior
        node = at(tree, path)
        if isinstance(node, Leaf):
            return float(np.log1p(-split))
        log_rule = self.scan.log_rule(rows, Leaf(), Leaf(), rule_of(node), True)
        deeper = sum(self.log_regrown(tree, (*path, side), frame) for side in (0, 1))
        return float(np.log(split)) + log_rule + deeper

    def transpose(self, tree: Tree, new: Tree) -> Iterator[Way]:
        candidates = [path for path in paths(tree) if can_transpose(at(tree, path))]
        for path in candidates:
            v = at(tree, path)
            for riser in (v.left, v.right):
                for heir in (0, 1):
                    drawn = (*path, 1 - heir)
                    rule = rule_of(at(new, drawn))
                    if rule is None or (isinstance(v.rule, int) and rule[0] != v.rule):
                        continue
                    rules = [rule_of(v), rule] if heir == 0 else [rule, rule_of(v)]
                    made = Split(
                        *rule_of(riser),
                        Split(*rules[0], v.left.left, v.right.left),
                        Split(*rules[1], v.left.right, v.right.right),
                    )
                    if put(tree, path, made) == new:
                        label = (path, riser is v.left, heir)
                        choice = -np.log(4 * len(candidates))
                        yield Way(label, choice, self.log_one_rule(new, drawn, rule))

    def log_one_rule(self, tree: Tree, path: Path, rule: Rule) -> float:
        """HMC-DF keeps the column, HMC-DFI draws all of the rule."""
        left, right = at(tree, (*path, 0)), at(tree, (*path, 1))
        if self.scan is None or not isinstance(rule[0], int):
            return self.log_rule(tree, path, left, right, rule)
        rows = self.scan.reaching(tree, path)
        return self.scan.log_threshold(rows, left, right, *rule)

    def swap(self, tree: Tree, new: Tree) -> Iterator[Way]:
        candidates = [path for path in internal(tree) if path]
        for path in candidates:
            child, parent = at(tree, path), at(tree, path[:-1])
            lower = put(tree, path, Split(*rule_of(parent), child.left, child.right))
            upper = at(lower, path[:-1])
            made = put(lower, path[:-1], Split(*rule_of(child), upper.left, upper.right))
            if made == new:
                yield Way((path,), -np.log(len(candidates)), 0.0)

    def rotate(self, tree: Tree, new: Tree) -> Iterator[Way]:
        candidates = [path for path in internal(tree) if path]
        for path in candidates:
            child, parent = at(tree, path), at(tree, path[:-1])
            on_left = parent.left is child
            for left_rises in (True, False):
                stays = child.right if left_rises else child.left
                pair = (stays, parent.right) if on_left else (parent.left, stays)
                lower = Split(*rule_of(parent), *pair)
                sides = (child.left, lower) if left_rises else (lower, child.right)
                if put(tree, path[:-1], Split(*rule_of(child), *sides)) == new:
                    yield Way((path, left_rises), -np.log(2 * len(candidates)), 0.0)

    def relocate(self, tree: Tree, new: Tree) -> Iterator[Way]:
        candidates = [path for path in paths(tree) if leaf_children(at(tree, path))]
        for path in candidates:
            between = put(tree, path, without(at(tree, path)))
            choice = -np.log(len(candidates) * len(paths(between)))
            for way in self.grow(between, new):
                yield Way((path, *way.label, None), choice, way.log_rules)
            for way in self.insert(between, new):
                yield Way((path, *way.label), choice - np.log(2), way.log_rules)


def can_transpose(tree: Tree | None) -> bool:
    if not (isinstance(tree, Split) and leaf_children(tree) == 0):
        return False
    assert isinstance(tree.left, Split)
    assert isinstance(tree.right, Split)
    return not isinstance(tree.rule, int) or tree.left.rule == tree.right.rule
