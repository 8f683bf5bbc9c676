"""A fitted estimator from a file: that of its posterior, with its parameters inside."""

from __future__ import annotations

import os

import numpy as np

from ..methods.parameters import checked, declared
from ..posterior import Posterior
from ..posterior.files.checks import FileFormatError, require
from ..posterior.files.model_record import ModelRecord
from .classifier import BayesianTreeClassifier
from .record import of_the_run, values_of
from .regressor import BayesianTreeRegressor

Estimator = BayesianTreeClassifier | BayesianTreeRegressor
ESTIMATORS: dict[str, type[Estimator]] = {
    cls.__name__: cls for cls in (BayesianTreeClassifier, BayesianTreeRegressor)
}


def load(path: str | os.PathLike[str]) -> Estimator:
    """Read a fitted model from a file.

    Parameters
    ----------
    path : str or path
        A file that ``model.save``, ``posterior_.save`` or ``hamiltree fit`` wrote.

    Returns
    -------
    BayesianTreeClassifier or BayesianTreeRegressor
        Fitted, with ``posterior_``, its parameters, and the names of columns and classes. If the
        file has no parameters of an estimator, they are those of the run, with defaults filled in.

    Raises
    ------
    OSError
        If there is no such file, or it cannot be read.
    FileFormatError
        A ``ValueError``: if it is not a complete and consistent model. Nothing in it is run.

    Examples
    --------
    >>> import hamiltree
    >>> model.save("iris.nc")
    >>> again = hamiltree.load("iris.nc")
    >>> bool((again.predict_proba(X_test) == model.predict_proba(X_test)).all())
    True
    """
    posterior = Posterior.load(path)
    record = posterior.model or of_the_run(posterior)
    try:
        model = _made(record)
    except FileFormatError as error:
        raise FileFormatError(f"cannot load {path}: {error}") from None
    scale = posterior.preprocessing
    if (scale.classes is not None) != isinstance(model, BayesianTreeClassifier):
        raise FileFormatError(f"cannot load {path}: its trees are not those of a {record.kind}")
    model.posterior_ = posterior
    model.n_features_in_ = len(scale.feature_names)
    if record.named:
        model.feature_names_in_ = np.array(scale.feature_names, dtype=object)
    if scale.classes is not None:
        model.classes_ = scale.classes
    return model


def _made(record: ModelRecord) -> Estimator:
    """An estimator that is not fitted, its parameters checked."""
    cls = ESTIMATORS[record.kind]
    unknown = set(record.parameters) - {f.name for f in declared(cls)}
    require(not unknown, f"it has parameters that this version does not know: {sorted(unknown)}")
    model = cls(**values_of(record))
    try:
        for f in declared(model):
            checked(model, f)
    except ValueError as error:
        raise FileFormatError(str(error)) from None
    return model
