"""Why a row is predicted as it is: what is known about it, and how it reads."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ..utils.json_text import plain_values
from ..utils.notebook import badge, preformatted
from .describe import percent
from .tree_text import in_units

SHOWN = 6
"""Features that the text names; ``effects`` and ``changes`` have all."""
NOTHING = {"probability": 0.005, "share of the span": 0.001}
"""Effects below it are not worth a line: they would read as 0."""


Cell = float | str | None
"""A number, a level of a category, or a missing cell."""


@dataclass(frozen=True)
class Step:
    """A split on the path of the row through the tree."""

    rule: str
    """The rule as text: ``age <= 63.97``, or a weighted sum."""
    value: Cell
    """Value of the row for this rule: a number, a level, or None if it is missing."""
    holds: bool
    """Whether the row goes to yes."""
    probability: float
    """Probability of that side; below 1 near the threshold of a soft split."""
    share: float | None
    """Share of the sampled trees with such a split anywhere; None without training data."""
    imputed: float | None = None
    """What a missing cell was imputed as, to a thousandth of the feature's range, where the rule
    asks for it; of an ordered category its rank."""


@dataclass(frozen=True)
class Effect:
    """How much a feature moved the prediction of the row: its Shapley value, over the draws."""

    feature: str
    value: Cell
    mean: float
    """Mean over the sampled trees, in units of the prediction."""
    low: float
    """``low`` to ``high`` contains the central 90% of the trees."""
    high: float


@dataclass(frozen=True)
class Change:
    """The smallest change of one feature that, by itself, changes the prediction."""

    feature: str
    value: Cell
    """Value of the row."""
    becomes: Cell
    """The value that would change the prediction."""
    share_of_range: float
    """The change as a share of the range of the feature in the training data; 1 for a category."""
    prediction: Any
    """The new prediction: a class, or a mean."""


@dataclass(frozen=True, repr=False)
class Explanation:
    """A prediction explained; prints as text, ``to_dict`` has plain values."""

    row: dict[str, Cell]
    """Values of the row by feature, without constant features."""
    prediction: Any
    """The class, or the mean in y's units."""
    probability: float | None
    """Probability of the predicted class; None for regression."""
    sd: float | None
    """Standard deviation of a new observation; None for classification."""
    interval: tuple[float, float]
    """90% credible interval of the probability, or predictive interval of a new observation."""
    agreement: float
    """Share of the sampled trees that would predict this class on their own; or whose mean is
    within one sd of the prediction."""
    steps: tuple[Step, ...]
    """The path of the row through the tree."""
    leaf: str
    """The leaf at its end, as text."""
    baseline: float
    """Mean prediction of the training rows, from which the effects start: of the probability of
    the same class, or of the mean."""
    effects: tuple[Effect, ...]
    """One per feature that the trees use, the largest first; with the baseline they add up to the
    prediction (of at most 1,000 draws)."""
    changes: tuple[Change, ...]
    """One per feature that can change the prediction by itself, within its range; the smallest
    first. In regression, a change moves the mean by one sd of a new observation."""
    span: float
    """Range of the prediction's scale, which determines its digits."""
    spans: dict[str, float]
    """The same for each feature."""
    svg: str
    """Drawing of the tree with the path marked."""
    tree: str
    """Which tree it is, as text."""

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, ready for JSON; without the drawing."""
        values = asdict(self)
        for name in ("svg", "span", "spans", "tree"):
            del values[name]
        plain: dict[str, Any] = plain_values(values)
        return plain

    def __str__(self) -> str:
        parts = [self._predicted(), self._path(), self._moved(), self._flips()]
        return "\n\n".join(parts)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        sure = f"{percent(self.agreement)} of the trees agree"
        parts = [self._path(), self._moved(), self._flips()]
        return (
            f"<div>{badge(sure, self.agreement >= 0.5)}{preformatted(self._predicted())}"
            f"{self.svg}{''.join(preformatted(part) for part in parts)}</div>"
        )

    # ------------------------------------------------------------------ texts

    def _number(self, value: float) -> str:
        return f"{value:.2f}" if self.probability is not None else in_units(value, self.span)

    def _of(self, feature: str, value: Cell) -> str:
        if not isinstance(value, float):
            return "missing" if value is None else value
        text = in_units(value, self.spans[feature])
        return text.rstrip("0").rstrip(".") if "." in text else text

    def _predicted(self) -> str:
        low, high = (self._number(end) for end in self.interval)
        agree = percent(self.agreement)
        if self.probability is not None:
            return (
                f"Predicted: {self.prediction}, with probability {self.probability:.2f} (90% "
                f"interval {low} to {high}); {agree} of the sampled trees agree."
            )
        assert self.sd is not None
        return (
            f"Predicted: {self._number(self.prediction)}, sd {self._number(self.sd)} (90% "
            f"interval of a new observation {low} to {high}); {agree} of the sampled trees have a "
            "mean within one sd of it."
        )

    def _path(self) -> str:
        lines = [f"Its path through {self.tree}:"]
        for step in self.steps:
            side = "yes" if step.holds else "no"
            shown = f"{step.value:.6g}" if isinstance(step.value, float) else step.value
            notes = [shown or "missing"]
            if step.imputed is not None:
                notes.append(f"imputed as {step.imputed:.6g}")
            if step.probability < 0.995:
                notes.append(f"with probability {step.probability:.2f}")
            if step.share is not None:
                notes.append(f"{percent(step.share)} of trees have such a split")
            lines.append(f"  {step.rule}? {side} ({', '.join(notes)})")
        return "\n".join([*lines, f"  {self.leaf}"])

    def _moved(self) -> str:
        what = f"the probability of {self.prediction}" if self.probability is not None else "it"
        lines = [
            f"What moved {what}, starting from {self._number(self.baseline)} for all training rows "
            "(Shapley values, 90% of the trees):"
        ]
        least = NOTHING["share of the span"] * self.span
        if self.probability is not None:
            least = NOTHING["probability"]
        shown = [effect for effect in self.effects if abs(effect.mean) >= least][:SHOWN]
        for effect in shown:
            mean, low, high = (self._signed(v) for v in (effect.mean, effect.low, effect.high))
            value = self._of(effect.feature, effect.value)
            lines.append(f"  {effect.feature} = {value}: {mean} ({low} to {high})")
        if not shown:
            lines.append("  nothing: no feature affects it")
        return "\n".join(lines)

    def _signed(self, value: float) -> str:
        text = self._number(value)
        return text if text.startswith("-") else f"+{text}"

    def _flips(self) -> str:
        goal = "change the class" if self.probability is not None else "move the mean by one sd"
        if not self.changes:
            return f"No change of one feature within its range would {goal}."
        lines = [f"The smallest change of one feature that would {goal}:"]
        for change in self.changes[:SHOWN]:
            start, end = (self._of(change.feature, v) for v in (change.value, change.becomes))
            new = change.prediction
            shown = new if self.probability is not None else self._number(new)
            lines.append(f"  {change.feature} from {start} to {end}: {shown}")
        return "\n".join(lines)
