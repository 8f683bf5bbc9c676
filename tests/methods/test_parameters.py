"""Methods own their parameters: objects, names, presets, refusals and scikit-learn's protocol."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, dataclass
from typing import ClassVar

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import hamiltree.core.predict as predict_module
from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor, Posterior
from hamiltree.methods import CGM, HMCDF, HMCDFI, METHODS, SMC, WU, Method, base, chosen
from hamiltree.methods.parameters import declared, parameter, whole
from hamiltree.running import run
from hamiltree.samplers.cgm import build_cgm

from ..support.resuming import arrays_of, same_arrays

SHORT = {"n_chains": 2, "n_warmup": 20, "n_draws": 10, "random_state": 0}
LEFT = {
    "method", "preset", "h", "alpha_split", "beta_split", "max_leaves", "n_chains", "n_warmup",
    "n_draws", "target_rhat", "max_draws",
    "max_seconds", "warm_start", "checkpoint", "checkpoint_seconds",
    "dtype", "n_jobs", "random_state", "progress", "categorical_features",
}  # fmt: skip


def data(regression: bool = False):
    X = np.random.default_rng(3).random((40, 3))
    return X, X[:, 0] + X[:, 1] if regression else (X[:, 0] > 0.5).astype(int)


def draws_of(estimator, regression=False):
    return arrays_of(estimator.fit(*data(regression)).posterior_.draws)


# ------------------------------------------------------------------ objects


@pytest.mark.parametrize("cls", METHODS.values())
def test_a_method_is_a_frozen_value(cls):
    one, other = cls(), cls()
    assert (one, hash(one)) == (other, hash(other))
    assert one != cls(min_leaves=2)
    assert one.get_params() == {f.name: f.default for f in declared(cls)}
    with pytest.raises(FrozenInstanceError):
        one.min_leaves = 3
    two = one.set_params(min_leaves=2)
    assert (one.min_leaves, two.min_leaves, type(two)) == (1, 2, cls)
    for method in (two, cls.paper(min_leaves=2)):
        assert clone(method) == method == pickle.loads(pickle.dumps(method))
        assert eval(repr(method)) == method
    with pytest.raises(ValueError, match=rf"'depth' is not a parameter of {cls.__name__}"):
        one.set_params(depth=3)


@pytest.mark.parametrize("cls", METHODS.values())
def test_every_field_is_documented_once_in_its_class(cls):
    for f in declared(cls):
        assert cls.__doc__.count(f"    {f.name} : ") == 1
    assert "{" not in cls.__doc__.replace("{'", "")
    assert f"{cls.__name__}.paper()" in cls.__doc__


@pytest.mark.parametrize("estimator", [BayesianTreeClassifier, BayesianTreeRegressor])
def test_the_estimators_keep_what_methods_share(estimator):
    own = LEFT | {"standardize" if estimator is BayesianTreeRegressor else "class_weight"}
    assert set(estimator().get_params()) == own
    for name in own:
        assert f"    {name} : " in estimator.__doc__


def test_values_become_plain():
    method = HMCDF(replicas=np.int64(3), move_probs=[0.3, 0.3, 0.4], tau_prior=np.array([1.0, 2.0]))
    assert method == HMCDF(replicas=3, move_probs=(0.3, 0.3, 0.4), tau_prior=(1.0, 2.0))
    assert type(method.replicas) is int


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: HMCDF(replicas=0), "replicas must be an integer of at least 1, or 'auto', got 0"),
        (lambda: HMCDF(replicas=True), "replicas must be an integer"),
        (lambda: HMCDF(replicas=2.0), "replicas must be an integer"),
        (lambda: HMCDF(replicas=None), "replicas must be an integer"),
        (lambda: HMCDF(moves="wild"), "moves must be 'informed' or 'prior', got 'wild'"),
        (lambda: HMCDF(max_nuts_depth=21), "max_nuts_depth must be an integer between 1 and 20"),
        (lambda: HMCDF(informed_moves="grow"), "informed_moves must be a sequence of names"),
        (lambda: HMCDF(h_by_feature="yes"), "h_by_feature must be True or False"),
        (lambda: HMCDFI(weight_prior=np.nan), "weight_prior must be a number above 0"),
        (
            lambda: SMC(ess_threshold=1.5),
            "ess_threshold must be a number of at least 0",
        ),
    ],
)
def test_limits_are_said(make, words):
    with pytest.raises(ValueError, match=words):
        make()


# ------------------------------------------------------------------ names, objects and presets


@pytest.mark.parametrize("name", METHODS)
def test_a_name_is_the_method_with_its_defaults(name):
    assert chosen(name, None) == METHODS[name]()
    assert chosen(name, "paper") == METHODS[name].paper()
    given = SHORT if name != "smc" else {**SHORT, "n_warmup": None}
    by_name = BayesianTreeClassifier(method=name, **given)
    assert same_arrays(
        draws_of(by_name), draws_of(clone(by_name).set_params(method=METHODS[name]()))
    )


@pytest.mark.parametrize("regression", [False, True])
@pytest.mark.parametrize("name", METHODS)
def test_paper_is_the_preset(name, regression):
    estimator = BayesianTreeRegressor if regression else BayesianTreeClassifier
    fields = {"adapt_steps": 20} if name.startswith("hmc") else {}
    short = {"n_chains": 1, "n_draws": 10, "random_state": 0}
    if name != "smc":
        short["n_warmup"] = 10
    preset = estimator(method=name, preset="paper", **short)
    preset.set_params(**{f"method__{field}": value for field, value in fields.items()})
    paper = estimator(method=METHODS[name].paper(**fields), **short)
    assert same_arrays(draws_of(preset, regression), draws_of(paper, regression))
    assert preset.posterior_.configuration == paper.posterior_.configuration


def test_shared_values_are_the_estimators_or_the_methods():
    for regression in (False, True):
        assert HMCDF().configured(regression=regression).h == "learn"
    assert HMCDF(likelihood="paper").configured().h == 0.01  # which h cannot be learned by
    assert HMCDF(likelihood="paper").configured(regression=True).h == "learn"
    assert HMCDF(replicas=2).configured(regression=True).h == "learn"
    assert HMCDF(moves="prior").configured(regression=True).h == 0.01
    assert HMCDFI().configured(regression=True).h == 0.01
    assert HMCDF().configured(regression=True, h=0.02).h == 0.02
    for cls in (HMCDF, HMCDFI):
        paper = cls.paper().configured(regression=True)
        assert (paper.h, paper.alpha_split, paper.method.min_leaves) == (0.025, 0.45, 2)
    assert HMCDF.paper().configured(alpha_split=0.7).alpha_split == 0.7
    assert (CGM.paper().configured().alpha_split, CGM.paper().configured().h) == (1.0, None)
    assert WU().configured().alpha_split is None


def test_the_papers_run_length_is_used():
    short = {"n_chains": 1, "random_state": 0}
    posterior = BayesianTreeClassifier(method=WU.paper(), **short).fit(*data()).posterior_
    assert (posterior.n_draws, posterior.info.n_warmup) == (800, 200)


def test_a_preset_does_not_change_an_object():
    with pytest.raises(ValueError, match=r"set method=HMCDF\.paper\(\.\.\.\)"):
        BayesianTreeClassifier(method=HMCDF(replicas=2), preset="paper").fit(*data())
    assert chosen(HMCDF.paper(adapt_steps=3), "paper").adapt_steps == 3
    with pytest.raises(ValueError, match="preset must be 'paper' or None, got 'fast'"):
        BayesianTreeClassifier(preset="fast").fit(*data())


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"method": "cgm", "h": 0.05}, "method='cgm' does not use h, got h=0.05: its splits are"),
        ({"method": CGM(), "h": "learn"}, "method='cgm' does not use h.*choose method='hmc-df'"),
        ({"method": "wu", "alpha_split": 0.5}, "does not use alpha_split.*set expected_splits"),
        ({"method": "wu", "beta_split": 0.0}, "method='wu' does not use beta_split"),
        ({"method": "smc", "n_warmup": 10}, "method='smc' does not use n_warmup"),
        ({"method": "smc", "target_rhat": 1.1}, "method='smc' does not use target_rhat.*n_draws"),
        ({"method": "smc", "max_draws": 10}, "method='smc' does not use max_draws"),
        ({"method": "smc", "warm_start": True}, "method='smc' does not use warm_start"),
        ({"method": HMCDF(moves="prior", min_leaves=4), "max_leaves": 4}, "one size only"),
        ({"method": CGM(moves="prior", min_leaves=4), "max_leaves": 4}, "one size only"),
        ({"method": HMCDF(informed_moves=("grow", "fly"))}, r"informed_moves has \['fly'\]"),
        ({"method": HMCDF(scheme="double-sided")}, 'set moves="prior"'),
        ({"method": HMCDF(min_leaves=9), "max_leaves": 8}, "min_leaves=9 is larger"),
        ({"max_leaves": 40_000}, "max_leaves must be at most 32767"),
    ],
)
def test_what_is_not_used_or_cannot_be_together_is_refused(parameters, words, monkeypatch):
    monkeypatch.setattr(run, "sample", lambda *args, **kwargs: pytest.fail("it ran"))
    with pytest.raises(ValueError, match=words):
        BayesianTreeClassifier(**parameters).fit(*data())


@pytest.mark.filterwarnings("ignore:with alpha_split")  # max_leaves is meant to cut off here
@pytest.mark.parametrize("size", [1, 2])
def test_one_size_with_one_shape_is_no_obstacle(size):
    method = HMCDF(moves="prior", min_leaves=size)
    model = BayesianTreeClassifier(method=method, max_leaves=size, alpha_split=0.1, **SHORT)
    assert (model.fit(*data()).posterior_.n_leaves == size).all()


def test_flat_keywords_of_old_are_told_where_they_are_now():
    with pytest.raises(TypeError, match=r"give method=HMCDF\(replicas=6\)"):
        BayesianTreeClassifier(replicas=6)
    with pytest.raises(TypeError, match=r"give method=CGM\(variance='common'\)"):
        BayesianTreeRegressor(method="cgm", variance="common")
    with pytest.raises(TypeError, match=r"give method=WU\(triples=3\)"):
        BayesianTreeRegressor(triples=3)
    with pytest.raises(TypeError, match="unexpected keyword argument 'depth'"):
        BayesianTreeRegressor(depth=3)
    with pytest.raises(ValueError, match="replicas is a parameter of the method: set method__rep"):
        BayesianTreeClassifier().set_params(replicas=6)


# ------------------------------------------------------------------ scikit-learn


def test_nested_parameters():
    model = BayesianTreeClassifier(method=CGM(proposals=7))
    assert model.get_params()["method__proposals"] == 7
    assert "method__proposals" not in model.get_params(deep=False)
    first = model.method
    assert model.set_params(method__proposals=9, n_draws=5) is model
    assert (first.proposals, model.method.proposals, model.n_draws) == (7, 9, 5)
    named = BayesianTreeClassifier().set_params(method__replicas=6)
    assert named.method == HMCDF(replicas=6)
    paper = BayesianTreeClassifier(preset="paper").set_params(method__adapt_steps=6)
    assert paper.method == HMCDF.paper(adapt_steps=6)
    switched = BayesianTreeClassifier().set_params(method="wu", method__triples=2)
    assert switched.method == WU(triples=2)
    with pytest.raises(ValueError, match="'leaf_means' is not a parameter of CGM"):
        model.set_params(method__leaf_means="explicit")
    inside = make_pipeline(StandardScaler(), BayesianTreeClassifier())
    inside.set_params(bayesiantreeclassifier__method__replicas=2)
    assert inside[-1].method.replicas == 2


def test_clone_pickle_and_repr():
    model = BayesianTreeClassifier(method=HMCDF(feature_prior=np.array([1.0, 2.0, 1.0])), **SHORT)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    fitted = pickle.loads(pickle.dumps(model.fit(*data())))
    assert fitted.method == model.method
    np.testing.assert_array_equal(fitted.predict_proba(data()[0]), model.predict_proba(data()[0]))
    assert "method=HMCDF(feature_prior=(1.0, 2.0, 1.0))" in repr(model)
    assert repr(BayesianTreeClassifier(method=CGM.paper())) == (
        "BayesianTreeClassifier(method=CGM.paper())"
    )
    assert repr(BayesianTreeClassifier()) == "BayesianTreeClassifier()"
    assert "HMCDF" in model._repr_html_()


def test_grid_search_over_methods_and_their_fields():
    X, y = data()
    short = {"n_chains": 1, "n_draws": 10, "random_state": 0}
    grid = [
        {"method__replicas": [1, 2], "n_warmup": [10]},
        {"method": ["wu", CGM(rule_prior="gap"), SMC()]},
    ]
    search = GridSearchCV(BayesianTreeClassifier(**short), grid, cv=2, refit=False).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    replicas = search.cv_results_["param_method__replicas"]
    assert [int(n) for n in replicas[:2]] == [1, 2]


# ------------------------------------------------------------------ files and identities


@pytest.mark.parametrize("cls", METHODS.values())
def test_files_keep_the_method_and_the_shared_values(cls, tmp_path):
    given = {name: value for name, value in SHORT.items() if name not in cls.unused}
    model = BayesianTreeClassifier(method=cls(class_mass=1.5), max_leaves=9, **given).fit(*data())
    model.posterior_.save(tmp_path / "trees.nc")
    back = Posterior.load(tmp_path / "trees.nc").configuration
    assert back == model.posterior_.configuration
    assert (back.method, back.max_leaves) == (cls(class_mass=1.5), 9)


def test_a_checkpoint_knows_every_field(tmp_path):
    path = tmp_path / "run.nc"
    BayesianTreeClassifier(method=CGM(), checkpoint=path, **SHORT).fit(*data())
    for f in declared(CGM):
        other = {"moves": "prior", "informed_moves": ("grow",), "rule_prior": "gap"}.get(f.name)
        if other is not None:
            model = BayesianTreeClassifier(method=CGM(**{f.name: other}), checkpoint=path, **SHORT)
            with pytest.raises(ValueError, match=f"{f.name} was .* and is"):
                model.fit(*data())
    identity = CGM().configured().to_dict()
    assert set(identity) == {"method", *base.SHARED, *(f.name for f in declared(CGM))}


# ------------------------------------------------------------------ a method of one's own


@dataclass(frozen=True, kw_only=True, repr=False)
class FewProposals(Method):
    """CGM's own moves, few at a time: all that a method needs, in one class."""

    name: ClassVar[str] = "few"
    conjugate_leaves: ClassVar[bool] = True
    defaults: ClassVar[base.Defaults] = base.Defaults(h=None)
    unused: ClassVar[dict[str, str]] = {"h": "its splits are hard"}

    few: int = parameter(2, whole(1), "Proposals in an iteration.")

    def build(self, problem, configuration, n_warmup, n_draws, threads):
        cgm = CGM(moves="prior", proposals=self.few).configured(
            alpha_split=configuration.alpha_split,
            beta_split=configuration.beta_split,
            max_leaves=configuration.max_leaves,
        )
        return build_cgm(problem, cgm, n_warmup)


def test_a_method_of_ones_own_runs_saves_and_loads(tmp_path, monkeypatch):
    monkeypatch.setitem(METHODS, "few", FewProposals)
    model = BayesianTreeClassifier(method="few", **SHORT).set_params(method__few=5)
    same = BayesianTreeClassifier(method=CGM(moves="prior", proposals=5), **SHORT)
    assert same_arrays(draws_of(model), draws_of(same))
    model.posterior_.save(tmp_path / "few.nc")
    assert Posterior.load(tmp_path / "few.nc").configuration.method == FewProposals(few=5)


# ------------------------------------------------------------------ n_jobs


def test_none_is_one_thread_unless_joblib_says_otherwise(monkeypatch):
    X, y = data()
    model = BayesianTreeClassifier(**SHORT).fit(X, y)
    rows = np.random.default_rng(0).random((10_000, 3))
    used = []
    pool = predict_module.ThreadPoolExecutor
    monkeypatch.setattr(predict_module, "ThreadPoolExecutor", lambda n: used.append(n) or pool(n))
    one = model.predict_proba(rows)
    assert used == []
    with joblib.parallel_config("threading", n_jobs=2):
        two = model.predict_proba(rows)
    assert used == [2]
    model.set_params(n_jobs=2).predict_proba(rows)
    assert used == [2, 2]
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (
            CGM(proposals=7),
            "proposals=7 has no effect without moves='prior'.* at 100",
        ),
        (CGM(tau_prior=(2, 1)), r"tau_prior=\(2, 1\) has no effect without rule_prior='uniform01'"),
        (HMCDF(move_probs=(0.3, 0.3, 0.4)), "move_probs=.* has no effect without moves='prior'"),
        (HMCDF(adapt_steps=20), "adapt_steps=20 has no effect without adapt='transition'"),
        (HMCDF(h_prior=(0.02, 1.0)), r"h_prior=.* has no effect without h='learn'"),
    ],
)
def test_a_field_without_effect_is_refused_by_name(method, message):
    with pytest.raises(ValueError, match=message):
        BayesianTreeClassifier(method=method, h=None if method.name == "cgm" else 0.1).fit(*data())
