"""A model to a file and back: predictions, parameters, names; and what is refused."""

from __future__ import annotations

import json

import netCDF4
import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import hamiltree
from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor, Posterior
from hamiltree.methods import CGM, HMCDF, METHODS
from hamiltree.posterior.files.checks import FileFormatError

from ..support.configuring import parameters

SHORT = {"n_chains": 2, "n_warmup": 20, "n_draws": 20, "random_state": 7}


def table(n=40):
    rng = np.random.default_rng(3)
    frame = pandas.DataFrame(rng.uniform(size=(n, 3)), columns=["age", "bmi", "dose"])
    frame.insert(1, "same", 1.0)
    return frame, frame["age"] > 0.5


@pytest.fixture(scope="module")
def classifier():
    X, above = table()
    with pytest.warns(UserWarning, match="constant"):
        model = BayesianTreeClassifier(h=[0.1, 0.5, 0.2, 0.05], **SHORT).fit(
            X, np.where(above, "ill", "well")
        )
    return model, X


def same_parameters(a, b):
    first, second = a.get_params(), b.get_params()
    assert first.keys() == second.keys()
    for name, value in first.items():
        one, other = (tuple(v) if isinstance(v, list) else v for v in (value, second[name]))
        assert one == other, name


def test_a_classifier_comes_back(classifier, tmp_path):
    model, X = classifier
    model.save(tmp_path / "model.nc")
    again = hamiltree.load(tmp_path / "model.nc")
    assert type(again) is BayesianTreeClassifier
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.feature_importances_, model.feature_importances_)
    assert again.classes_.tolist() == ["ill", "well"]
    assert again.feature_names_in_.tolist() == ["age", "same", "bmi", "dose"]
    assert again.n_features_in_ == 4
    same_parameters(again, model)
    assert again.best_tree().to_text() == model.best_tree().to_text()
    assert Posterior.load(tmp_path / "model.nc").summary() == model.posterior_.summary()
    with pytest.raises(ValueError, match="feature names"):
        again.predict(X[["dose", "bmi", "same", "age"]])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("cls", [BayesianTreeClassifier, BayesianTreeRegressor])
def test_every_method_comes_back_and_fits_the_same_again(method, cls, tmp_path):
    X, above = table()
    rows = X.drop(columns="same").to_numpy()
    y = above.to_numpy().astype(float) if cls is BayesianTreeRegressor else above.to_numpy()
    options = parameters(method=method, min_leaves=2, **SHORT)
    model = cls(**options).fit(rows, y)
    model.save(tmp_path / "model.nc")
    again = hamiltree.load(tmp_path / "model.nc")
    same_parameters(again, model)
    assert not hasattr(again, "feature_names_in_")
    anew = clone(again).fit(rows, y)
    np.testing.assert_array_equal(anew.posterior_.log_posterior, model.posterior_.log_posterior)


def test_parameters_are_those_at_the_time_of_saving(classifier, tmp_path):
    X, above = table()
    model = BayesianTreeRegressor(
        method=HMCDF.paper(leaf_means="collapsed"), checkpoint=tmp_path / "run.nc",
        n_chains=2, n_warmup=20, n_draws=20, random_state=np.random.RandomState(0),
        standardize=False,
    ).fit(X.drop(columns="same"), above.astype(float))  # fmt: skip
    model.set_params(n_jobs=2)
    model.save(tmp_path / "model.nc")
    again = hamiltree.load(tmp_path / "model.nc")
    assert again.n_jobs == 2
    assert again.method == model.method
    assert again.method.is_paper
    assert (again.random_state, again.checkpoint, again.standardize) == (None, None, False)


@pytest.mark.parametrize("method", [CGM(feature_prior=(1.0, 9.0, 2.0, 3.0)), "hmc-df"])
def test_a_file_without_parameters_has_those_of_the_run(method, tmp_path):
    X, above = table()
    h = None if isinstance(method, CGM) else (0.1, 0.5, 0.2, 0.05)
    options = {"n_chains": 2, "n_warmup": 20, "n_draws": 25, "max_leaves": 9}
    with pytest.warns(UserWarning, match="constant"):
        model = BayesianTreeClassifier(method=method, h=h, random_state=1, **options).fit(X, above)
    posterior = model.posterior_
    posterior.model = None
    posterior.save(tmp_path / "posterior.nc")
    again = hamiltree.load(tmp_path / "posterior.nc")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert {name: getattr(again, name) for name in options} == options
    assert again.feature_names_in_.tolist() == list(X.columns)
    with pytest.warns(UserWarning, match="constant"):
        anew = clone(again).set_params(random_state=1).fit(X, above)
    np.testing.assert_array_equal(anew.predict_proba(X), model.predict_proba(X))


def test_only_fitted_models_are_saved(tmp_path):
    with pytest.raises(NotFittedError):
        BayesianTreeClassifier().save(tmp_path / "model.nc")
    with pytest.raises(NotFittedError):
        BayesianTreeClassifier().best_tree()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"kind": "Forest"}, "nothing readable"),
        ({"parameters": {"n_trees": 4}}, "does not know"),
        ({"parameters": {"n_chains": -4}}, "n_chains"),
        ({"parameters": {"method": {"name": "cart", "paper": False, "fields": {}}}}, "no method"),
        (
            {"parameters": {"method": {"name": "cgm", "paper": 1, "fields": {}}}},
            "does not know",
        ),
        (
            {"parameters": {"method": {"name": "cgm", "paper": False, "fields": {"moves": 3}}}},
            "moves",
        ),
        ({"named": "yes"}, "nothing readable"),
    ],
)
def test_a_damaged_record_is_refused(change, complaint, classifier, tmp_path):
    path = tmp_path / "model.nc"
    classifier[0].save(path)
    with netCDF4.Dataset(path, "a") as file:
        metadata = json.loads(str(file.variables["metadata"][...]))
        file.variables["metadata"][...] = json.dumps(
            metadata | {"model": metadata["model"] | change}
        )
    with pytest.raises(FileFormatError, match=complaint):
        hamiltree.load(path)


def test_a_regressor_of_classes_is_refused(classifier, tmp_path):
    path = tmp_path / "model.nc"
    classifier[0].save(path)
    with netCDF4.Dataset(path, "a") as file:
        metadata = json.loads(str(file.variables["metadata"][...]))
        metadata["model"]["kind"] = "BayesianTreeRegressor"
        del metadata["model"]["parameters"]["class_weight"]  # which only a classifier has
        file.variables["metadata"][...] = json.dumps(metadata)
    with pytest.raises(FileFormatError, match="not those of a BayesianTreeRegressor"):
        hamiltree.load(path)
