"""Configurations of the paper's experiments: run lengths, grids, presets."""

from __future__ import annotations

import json

import pytest

from hamiltree.datasets import PAPER_DATASETS
from hamiltree.datasets.paper import generate_split
from hamiltree.experiments import restarts
from hamiltree.experiments.configurations import (
    HMC,
    METHODS,
    Lengths,
    classical_estimator,
    classical_method,
    hmc_estimator,
    lengths_of,
    presets_of,
)
from hamiltree.experiments.hyperparameters import TABLE_3, TABLE_4, grid_of, span
from hamiltree.methods import CGM, WU


def test_every_method_has_a_setting_for_every_data_set():
    assert set(TABLE_4) == {(method, name) for method in METHODS for name in PAPER_DATASETS}
    assert set(TABLE_3) == {pair for pair in TABLE_4 if pair[0] not in HMC}


def test_spans_are_the_papers():
    assert span(0.6, 0.2, 1.2) == (0.6, 0.8, 1.0, 1.2)
    assert span(0.1, 0.2, 1.0) == (0.1, 0.3, 0.5, 0.7, 0.9)


def test_grids_have_the_papers_sizes_and_hold_table_4():
    assert len(grid_of("wu", "cgm")) == 13_200
    assert len(grid_of("cgm", "iris")) == 5 * 11 * 5
    for (method, name), values in TABLE_3.items():
        assert all(TABLE_4[method, name][s] in values[s] for s in values), (method, name)


def test_run_lengths_are_the_papers():
    assert lengths_of("cgm", "cgm") == Lengths(4500, 500)
    assert lengths_of("cgm", "wu") == lengths_of("cgm", "hmc-df") == Lengths(500, 500)
    assert lengths_of("iris", "cgm") == Lengths(200, 800)


def test_symbols_become_parameters():
    assert classical_method("wu", TABLE_4["wu", "raisin"], 2) == WU.paper(
        class_prior=(1.0, 2.0), expected_splits=1.8, left_share=0.3
    )
    three = classical_method("wu", {"alpha": 0.5, "lambda": 1.0, "p": 0.5}, 3)
    assert three.class_prior == (0.5, 0.5, 0.5)
    cgm = classical_estimator("cgm", TABLE_4["cgm", "cgm"], 0, Lengths(3, 4), seed=1)
    assert cgm.method == CGM.paper(variance_prior=(4.0, 2.0), mean_prior=(3.0, 0.3))
    assert (cgm.alpha_split, cgm.beta_split) == (1.2, 1.0)
    smc = classical_estimator("smc", TABLE_4["smc", "bcw"], 2, Lengths(3, 4), seed=1)
    assert (smc.method.class_mass, smc.n_chains, smc.n_draws) == (0.3, 5, 40)


@pytest.mark.parametrize("method", ["hmc-df", "hmc-dfi", "cgm", "wu", "smc"])
@pytest.mark.parametrize("preset", ["exact", "paper"])
def test_a_stored_configuration_makes_its_estimator_again(method, preset):
    split = generate_split("cgm", seed=3)
    make = hmc_estimator if method in HMC else classical_estimator
    which = (method, preset) if method in HMC else (method,)
    estimator = make(*which, TABLE_4[method, "cgm"], 0, Lengths(3, 4), 1)
    config = json.loads(json.dumps({"parameters": restarts.parameters_set(estimator)}))
    assert repr(restarts.estimator_of(config, split)) == repr(estimator)


@pytest.mark.parametrize("method", HMC)
@pytest.mark.parametrize("n_classes", [0, 3])
def test_both_presets_sample_the_same_model(method, n_classes):
    name = "iris" if n_classes else "cgm"
    model = ("min_leaves", "tau_prior", "class_prior", "mu_prior", "sigma_prior")
    shared = ("h", "alpha_split", "beta_split", "max_leaves")
    found = []
    for preset in ("exact", "paper"):
        estimator = hmc_estimator(
            method, preset, TABLE_4[method, name], n_classes, Lengths(5, 5), 1
        )
        given = {name: getattr(estimator, name) for name in shared}
        found.append(estimator.method.configured(**given))
        assert estimator.method.moves == ("prior" if preset == "paper" else "informed")
        assert (estimator.preset == "paper") == (preset == "paper")
    one, other = ([getattr(c.method, k) for k in model] for c in found)
    assert one == other
    one, other = ([getattr(c, k) for k in shared] for c in found)
    assert one == other
    assert found[0].h == TABLE_4[method, name]["h_final"]


def test_classical_methods_keep_the_papers_moves():
    estimator = classical_estimator("cgm", TABLE_4["cgm", "bcw"], 2, Lengths(3, 4), seed=7)
    assert (estimator.method.moves, estimator.preset) == ("prior", "paper")
    assert (estimator.n_warmup, estimator.n_draws, estimator.random_state) == (3, 4, 7)
    assert presets_of("cgm", "both") == ("paper",)
    assert presets_of("hmc-df", "both") == ("exact", "paper")
