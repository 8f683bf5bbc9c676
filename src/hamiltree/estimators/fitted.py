"""What a fitted model answers beside predictions: one tree to read, files, explanations."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.utils import check_random_state, estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from ..utils.arrays import FloatArray
from .parameters import RandomState
from .record import record_of

if TYPE_CHECKING:
    from ..posterior import Posterior
    from ..posterior.explanation import Explanation
    from ..posterior.tree import Tree


class Fitted:
    """Methods of both estimators that concern the posterior as a whole."""

    posterior_: Posterior
    n_jobs: int | None

    def best_tree(self) -> Tree:
        """The tree of highest posterior that was found, to read, draw or export.

        The same as ``posterior_.best_tree()``.

        Examples
        --------
        >>> print(model.best_tree().to_text())  # doctest: +ELLIPSIS
        petal ...
        """
        return self._sampled().best_tree()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one NetCDF file, replacing it only once it is complete.

        ``hamiltree.load`` restores the model, and ``Posterior.load`` reads its posterior. The file
        contains the training rows; ``posterior_.without_data().save(path)`` leaves them out. A
        ``RandomState`` and the checkpoint's path are not saved.

        Examples
        --------
        >>> model.save("iris.nc")
        """
        posterior = self._sampled()
        posterior.model = record_of(self)  # parameters may have been set since fit
        posterior.save(path)

    def report(
        self,
        path: str | os.PathLike[str],
        X_test: Any = None,
        y_test: Any = None,
        *,
        title: str | None = None,
        names: Any = None,
    ) -> Path:
        """Write an HTML report: trees, predictions for rows that the reader enters, convergence.

        Parameters
        ----------
        path : str or path
            The HTML file. It is self-contained: it loads nothing and sends nothing.
        X_test, y_test : array-like, optional
            Held-out rows and their targets. With them the report says how well they are predicted:
            accuracy, log score, Brier score, calibration, ROC curve, confusion matrix and
            prevalence; or error, R2 and the coverage of intervals.
        title : str, optional
            Heading of the report.
        names : mapping or path, optional
            Display names and units by column: ``{"bmi": {"label": "Body mass index", "unit":
            "kg/m²"}, "sex": {"label": "Sex", "values": {"0": "female", "1": "male"}}}``, or a JSON
            file with the same, or a CSV file with columns ``column``, ``label`` and optionally
            ``unit`` and ``value``. ``target`` stands for the target, its values for the classes.

        Returns
        -------
        Path

        Examples
        --------
        >>> model.report("page.html", X_test, y_test).name
        'page.html'
        """
        from ..report import write_report  # a page of its own: most programs write none

        posterior = self._sampled()
        rows = None if X_test is None else self._rows(X_test)
        return write_report(posterior, path, title=title, X_test=rows, y_test=y_test, names=names)

    def explain(self, row: Any, tree: Tree | None = None) -> Explanation:
        """Why a row is predicted as it is, by all sampled trees.

        Parameters
        ----------
        row : array-like, mapping, Series or table of one row
            Mappings and Series are read by the names of the columns.
        tree : Tree, optional
            The tree whose path is described; by default the tree of highest posterior.

        Returns
        -------
        Explanation
            Prints as text. The prediction and how many trees agree with it; the row's path
            through the tree, with the share of the trees that have each split; which features
            moved the prediction, and by how much over the posterior (Shapley values against
            training rows); and the smallest change of one feature that would change the class, or
            move the mean by one sd of a new observation. ``to_dict`` has plain values.

        Examples
        --------
        >>> explanation = model.explain(X_test.iloc[0])
        >>> print(explanation)  # doctest: +ELLIPSIS
        Predicted: ...
        """
        check_is_fitted(self)
        rows = self._rows(self._one_row(row))
        return self.posterior_.explain(rows, tree, n_jobs=self.n_jobs)

    def _one_row(self, row: Any) -> Any:
        """What a user takes for a row, as a table of one row with the names of the columns."""
        names = getattr(self, "feature_names_in_", None)
        if hasattr(row, "columns"):
            return row
        if isinstance(row, Mapping) or (isinstance(row, pandas.Series) and names is not None):
            own, cells = self.posterior_.preprocessing.feature_names, dict(row.items())
            cells = {str(name): cell for name, cell in cells.items()}  # names may be integers
            missing = [name for name in own if name not in cells]
            if missing:
                raise ValueError(f"the row lacks {', '.join(missing)}")
            row = [cells[name] for name in own]
        # as objects: beside a text NumPy would make texts of numbers and of missing cells
        values = np.atleast_2d(np.asarray(row, dtype=object))
        return values if names is None else pandas.DataFrame(values, columns=names)

    def sample_prior(
        self,
        X: ArrayLike,
        n_draws: int = 1000,
        random_state: RandomState = None,
        *,
        observations: bool = False,
    ) -> NDArray[Any]:
        """Predictions of trees drawn from the prior: for prior predictive checks.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        n_draws : int
            Number of trees, drawn independently and exactly from the prior of the method.
        random_state : int or RandomState, optional
        observations : bool
            Whether to return new observations instead of expectations: labels, or means plus noise.

        Returns
        -------
        ndarray of shape (n_draws, n_rows) or (n_draws, n_rows, n_classes)
            Means in y's units, or class probabilities; for observations (n_draws, n_rows).

        Notes
        -----
        The training data determine the scale of X and y, and for CGM, WU and SMC also the prior of
        the rules, which depends on X; nothing else. ``plots.plot_ppc(model, prior=True)`` shows
        observations.

        Examples
        --------
        >>> model.sample_prior(X_test, n_draws=500, random_state=0).shape
        (500, 38, 3)
        """
        rows = self._rows(X)
        seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
        return self.posterior_.sample_prior(
            rows, n_draws, seed, observations=observations, n_jobs=self.n_jobs
        )

    @abstractmethod
    def _rows(self, X: ArrayLike) -> FloatArray:
        """Rows to predict, checked against the training columns."""

    def _repr_html_(self) -> str:
        """The model with its best tree once it is fitted, scikit-learn's diagram before."""
        own: str = estimator_html_repr(self)
        if not hasattr(self, "posterior_"):
            return own
        parameters = f"<details><summary>Parameters</summary>{own}</details>"
        return f"{self.posterior_._repr_html_()}{parameters}"

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        shown = {"text/plain": repr(self)}
        if get_config()["display"] == "diagram":
            shown["text/html"] = self._repr_html_()
        return shown

    def _sampled(self) -> Posterior:
        check_is_fitted(self)
        return self.posterior_
