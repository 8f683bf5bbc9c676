"""The estimator that a posterior belongs to, as plain values: enough to make it again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .checks import FileFormatError

KINDS = ("BayesianTreeClassifier", "BayesianTreeRegressor")


@dataclass(frozen=True)
class ModelRecord:
    """What a file keeps of an estimator beside its posterior."""

    kind: str
    """Name of its class, one of ``KINDS``."""
    parameters: dict[str, Any]
    """As given, in plain values; ``estimators.files`` writes and reads them."""
    named: bool
    """Whether the training data had names of columns."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for the file."""
        return {"kind": self.kind, "parameters": self.parameters, "named": self.named}

    @classmethod
    def from_dict(cls, stored: Any) -> ModelRecord | None:
        """Read what ``to_dict`` wrote; None where the file has none."""
        if stored is None:
            return None
        right = (
            isinstance(stored, dict)
            and stored.keys() == {"kind", "parameters", "named"}
            and stored["kind"] in KINDS
            and isinstance(stored["parameters"], dict)
            and isinstance(stored["named"], bool)
        )
        if not right:
            raise FileFormatError("it says nothing readable about its estimator")
        return cls(**stored)
