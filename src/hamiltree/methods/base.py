"""What every method of sampling trees is: its parameters, what it shares, and its sampler.

A method is a frozen dataclass in a file of its own. Its fields, made by ``parameter``, are all that
it alone decides. What every estimator has (``SHARED``) comes from the estimator, or, where that
leaves it at None, from the method's defaults.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from ..samplers.common import Problem, Sampler
from ..utils.arrays import FloatArray
from .parameters import (
    checked,
    declared,
    documented,
    parameter,
    positive_or_sequence,
    real,
    whole,
    wrapped,
)

if TYPE_CHECKING:
    from .prior_trees import PriorTree, RuleDraws

SHARED = ("h", "alpha_split", "beta_split", "max_leaves")
"""Parameters of the estimators that describe the trees, for every method that uses them."""
H_WORDS = ("auto", "learn")
"""What h may be instead of numbers."""
LENGTHS = ("n_chains", "n_warmup", "n_draws")
"""Parameters of the estimators that say how long a run is."""
CLASS_MASS = 1.0
"""Of the Dirichlet prior of a leaf, where neither class_prior nor class_mass is given."""
MAX_LEAVES = 32_767
"""Scans of large data number leaves in 16 bits."""

Softness = float | tuple[float, ...] | str | None


@dataclass(frozen=True)
class Defaults:
    """What the estimators' parameters are where they are left at None.

    None: the method does not use the parameter, and ``Method.unused`` says why.
    """

    h: Softness = 0.01
    alpha_split: float | None = 0.95
    beta_split: float | None = 2.0
    max_leaves: int = 256
    n_chains: int = 4
    n_warmup: int | None = 500
    n_draws: int = 1000


PAPER_LENGTHS: Mapping[str, int] = {"n_warmup": 200, "n_draws": 800}
"""Of the authors' runs (the paper, section 4)."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Method(ABC):
    """A way to sample trees, with its parameters; the base class of every method.

    Examples
    --------
    >>> from hamiltree.methods import METHODS, Method
    >>> all(issubclass(cls, Method) for cls in METHODS.values())
    True
    """

    name: ClassVar[str]
    """As ``method=`` and files have it."""
    defaults: ClassVar[Defaults] = Defaults()
    paper_defaults: ClassVar[Defaults] = Defaults()
    """The same with the authors' settings."""
    paper_values: ClassVar[Mapping[str, Any]] = {}
    """The authors' values of the fields, where they differ from ours."""
    unused: ClassVar[Mapping[str, str]] = {}
    """Parameters of the estimators that the method does not use, and why, or what to set."""
    conjugate_leaves: ClassVar[bool]
    """Hard splits, and leaves whose variance is integrated out; otherwise sigma is sampled."""
    takes_numbers_only: ClassVar[bool] = False
    """Categories then come as columns of 0 and 1, one per level, and missing cells as means."""
    makes_particles: ClassVar[bool] = False
    """Weighted draws, all at once, rather than a Markov chain that can go on."""
    stats: ClassVar[tuple[str, ...]] = ()
    """What is recorded at each draw beside the tree; names of ``core.tree.record.SCALARS``."""

    min_leaves: int = parameter(
        1, whole(1), "Smallest number of leaves of a tree; 1 allows a tree without a split."
    )
    class_prior: float | tuple[float, ...] | None = parameter(
        None,
        positive_or_sequence("a positive number, or one per class"),
        "Dirichlet prior of the class probabilities in a leaf: one number, or one per class; by "
        "default class_mass determines it.",
        task="classification",
    )
    class_mass: float | None = parameter(
        None,
        real(0),
        "Sum of the parameters of that Dirichlet prior, spread evenly over the classes: the number "
        f"of rows that the prior counts as in each leaf; by default {CLASS_MASS:g}, unless "
        "class_prior is given.",
        task="classification",
    )
    likelihood_power: float = parameter(
        1.0, real(0, low_allowed=True), "Power of the likelihood; 0 samples from the prior."
    )
    _paper: bool = field(default=False, repr=False)
    """Whether the estimators' defaults are the authors', too; see ``paper``."""

    def __post_init__(self) -> None:
        for f in declared(self):
            object.__setattr__(self, f.name, checked(self, f))

    @property
    def adds_replicas(self) -> bool:
        """Whether chains that are in different modes go on with replicas."""
        return False

    def imputes(self, h: Any) -> bool:
        """Whether cuts may treat missing numbers as imputed ones, given the estimator's h."""
        return False

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """The authors' settings, with ``changes``; what preset="paper" stands for.

        They also determine h, alpha_split, beta_split and the length of the run where these are
        None in the estimator.
        """
        values = dict(cls.paper_values)
        for one, other in (("class_prior", "class_mass"), ("class_mass", "class_prior")):
            if changes.get(one) is not None:
                values.pop(other, None)
        return cls(**{**values, **changes}, _paper=True)

    @property
    def is_paper(self) -> bool:
        """Whether it was made by ``paper``."""
        return self._paper

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The fields by name; ``deep`` is scikit-learn's and changes nothing."""
        return {f.name: getattr(self, f.name) for f in declared(self)}

    def set_params(self, **params: Any) -> Self:
        """A method with these fields changed. A method itself never changes."""
        known = self.get_params()
        for name in params:
            if name not in known:
                raise ValueError(
                    f"{name!r} is not a parameter of {type(self).__name__}; it has "
                    f"{', '.join(known)}"
                )
        return replace(self, **params)

    def __sklearn_clone__(self) -> Self:
        return self

    def __repr__(self) -> str:
        base = type(self).paper() if self._paper else type(self)()
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if value != getattr(base, name)
        ]
        made = f"{type(self).__name__}{'.paper' if self._paper else ''}"
        return f"{made}({', '.join(changed)})"

    def estimator_default(self, name: str, *, regression: bool) -> Any:
        """What an estimator's parameter that was left at None is for this method."""
        return getattr(self.paper_defaults if self._paper else self.defaults, name)

    def refuse_unused(self, given: Mapping[str, Any]) -> None:
        """A ``ValueError`` for a parameter of the estimator that the method does not use."""
        for name, value in given.items():
            if name in self.unused and value is not None and value is not False:
                raise ValueError(
                    f"method={self.name!r} does not use {name}, got {name}={value!r}: "
                    f"{self.unused[name]}"
                )

    def filled(self, given: Mapping[str, Any], *, regression: bool = False) -> dict[str, Any]:
        """Values of the estimator, with the method's own where they are None."""
        self.refuse_unused(given)
        return {
            name: self.estimator_default(name, regression=regression) if value is None else value
            for name, value in given.items()
        }

    def configured(self, *, regression: bool = False, **shared: Any) -> Configuration[Self]:
        """The method with the values of ``SHARED``, as given or, where None, its own."""
        unknown = set(shared) - set(SHARED)
        if unknown:
            raise TypeError(f"{sorted(unknown)} are not among the shared values {SHARED}")
        given = {name: shared.get(name) for name in SHARED}
        return Configuration(
            replace(self, _paper=False), **self.filled(given, regression=regression)
        )

    def for_columns(self, used: Sequence[int], n_features: int) -> Self:
        """The same, with values per column for the ``used`` ones of ``n_features`` only."""
        changes = {
            f.name: f.metadata["of_used"](f.name, value, used, n_features)
            for f in declared(self)
            if f.metadata["of_used"] is not None and (value := getattr(self, f.name)) is not None
        }
        return replace(self, **changes)

    def class_concentration(self, n_classes: int) -> tuple[float, ...]:
        """Parameters of the Dirichlet prior of a leaf, [n_classes]."""
        if n_classes == 0:
            return ()
        if isinstance(self.class_prior, tuple):
            return self.class_prior
        if self.class_prior is not None:
            return (self.class_prior,) * n_classes
        mass = CLASS_MASS if self.class_mass is None else self.class_mass
        return (mass / n_classes,) * n_classes

    def check(self, configuration: Configuration[Any], n_classes: int) -> None:
        """Refuse values that cannot be together; ``n_classes`` is 0 for regression."""
        if self.class_prior is not None and self.class_mass is not None:
            raise ValueError("set class_prior or class_mass, not both; leave the other at None")
        if n_classes and isinstance(self.class_prior, tuple):
            wanted = f"a positive number, or one for each of the {n_classes} classes"
            check_positive("class_prior", self.class_prior, n_classes, wanted)
        largest = configuration.max_leaves
        if self.min_leaves > largest:
            raise ValueError(f"min_leaves={self.min_leaves} is larger than max_leaves={largest}")
        if largest > MAX_LEAVES:
            raise ValueError(f"max_leaves must be at most {MAX_LEAVES}, got {largest}")
        self.check_together(configuration, n_classes)
        for f in declared(self):
            if f.metadata["only_with"] is not None:
                name, needed = f.metadata["only_with"]
                self.refuse_without_effect(f.name, getattr(self, name) == needed, name, needed)

    def refuse_without_effect(self, field: str, used: bool, name: str, needed: Any) -> None:
        """A ``ValueError`` for a field that was set and is not ``used`` but with another value."""
        value, default = getattr(self, field), type(self).__dataclass_fields__[field].default
        if not used and value not in (default, self.paper_values.get(field)):
            raise ValueError(
                f"{field}={value!r} has no effect without {name}={needed!r}: set that, too, or "
                f"leave {field} at {default!r}"
            )

    def check_together(  # noqa: B027
        self, configuration: Configuration[Any], n_classes: int
    ) -> None:
        """Refuse what cannot be together for this method; nothing unless a method says so."""

    def prior_tree(self, configuration: Configuration[Any], rules: RuleDraws) -> PriorTree | None:
        """A tree from the prior, exactly; None where it is to be drawn again.

        ``rules``: draws of rules from the prior; for some priors they depend on the training data.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot draw from its prior")

    def prior_leaves(self, n_leaves: int, rng: np.random.Generator) -> tuple[FloatArray, float]:
        """[leaves, K] of a regression tree from the prior, as draws have them, and its sigma."""
        raise NotImplementedError(f"{type(self).__name__} cannot draw from its prior")

    @abstractmethod
    def build(
        self,
        problem: Problem,
        configuration: Configuration[Any],
        n_warmup: int,
        n_draws: int,
        threads: int,
    ) -> Sampler:
        """The sampler; ``threads`` of each chain, where it can use them for its rows."""


M = TypeVar("M", bound=Method, covariant=True)


@dataclass(frozen=True)
class Configuration(Generic[M]):
    """A method and the values that methods share: what draws depend on beside data and seed.

    ``method.configured`` makes one.
    """

    method: M
    h: Softness
    """Softness of splits: a number, one per used column, "auto" or "learn"; None: hard splits."""
    alpha_split: float | None
    """A node at depth d splits with prior probability alpha_split (1 + d)^-beta_split."""
    beta_split: float | None
    """None, as alpha_split, where the method has another prior of shapes."""
    max_leaves: int

    def to_dict(self) -> dict[str, Any]:
        """Every value under its name, the method as its name; for files and comparisons."""
        shared = {name: getattr(self, name) for name in SHARED}
        return {"method": self.method.name, **shared, **self.method.get_params()}


def build_sampler(
    problem: Problem,
    configuration: Configuration[Any],
    n_warmup: int,
    n_draws: int,
    threads: int = 1,
) -> Sampler:
    """The sampler of a configuration, with ``threads`` threads in each chain."""
    sampler: Sampler = configuration.method.build(
        problem, configuration, n_warmup, n_draws, threads
    )
    return sampler


_Class = TypeVar("_Class", bound=type[Method])


def described(cls: _Class) -> _Class:
    """Complete the docstring of a method by its parameters, and by its defaults."""

    def listed(defaults: Defaults) -> str:
        known = [(f.name, getattr(defaults, f.name)) for f in fields(defaults)]
        return ", ".join(f"{name}={value!r}" for name, value in known if value is not None)

    values = ", ".join(f"{name}={value!r}" for name, value in cls.paper_values.items())
    text = (
        f"Parameters of the estimator that are None become {listed(cls.defaults)}. "
        f"``{cls.__name__}.paper()`` has {values}; with it, they become "
        f"{listed(cls.paper_defaults)}."
    )
    if cls.unused:
        text += f" The method does not use {', '.join(cls.unused)}."
    notes = "\n".join(wrapped(text, 4))
    cls.__doc__ = (
        f"{(cls.__doc__ or '').rstrip()}\n\n    Parameters\n    ----------\n    {{parameters}}\n\n"
        f"    Notes\n    -----\n{notes}\n    "
    )
    return documented(cls)


def refuse_special(problem: Problem, method: str) -> None:
    """A ``ValueError`` for columns that a method of numbers cannot split on.

    The estimators hand it numbers only, see ``Method.takes_numbers_only``.
    """
    if problem.kinds is not None and problem.kinds.special:
        raise ValueError(f"method={method!r} takes numbers without missing cells only")


def check_positive(name: str, value: Sequence[Any], length: int, wanted: str) -> None:
    """Refuse anything but ``length`` positive finite numbers."""
    if len(value) != length or not all(
        isinstance(v, int | float) and 0 < v < math.inf for v in value
    ):
        raise ValueError(f"{name} must be {wanted}, got {value!r}")
