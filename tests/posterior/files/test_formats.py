"""Files that earlier versions wrote, kept as they are: they load, and predict what they did."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import netCDF4
import numpy as np
import pandas
import pytest
from typer.testing import CliRunner

from hamiltree import Posterior
from hamiltree.cli import app
from hamiltree.methods import CGM, HMCDF, HMCDFI, SMC
from hamiltree.posterior.files.storage import FileFormatError

from ...support.fake_draws import fake_posterior

FOLDER = Path(__file__).parent / "formats"
# The first three training rows, and what the version that wrote the file predicted there: the
# probability of the first class, or the mean.
WRITTEN = {
    "classification-0.1.0.nc": (0.08284142560234443, 0.9204275862154743, 0.08284001554057675),
    "regression-0.1.0.nc": (-0.9887789960045552, -0.9887789960045563, 2.018356391183954),
    "regression-cgm-0.1.0.nc": (-0.9731475326351724, -0.9731475326351724, 2.014213897803778),
    "classification-smc-0.1.0.nc": (0.043809670069081146, 0.9179494434235272, 0.049437430461028636),
    "classification-paper-0.1.0.nc": (0.12890264394316925, 0.8262040467616143, 0.1173393593790773),
}
ROWS = np.round(np.random.default_rng(0).random((24, 2)), 3)[:3]


@pytest.mark.parametrize("name", WRITTEN)
def test_an_old_file_predicts_what_it_did(name, tmp_path):
    posterior = Posterior.load(FOLDER / name)
    predicted = posterior.predict_mean(ROWS)
    first = predicted[:, 0] if posterior.n_classes else predicted
    np.testing.assert_allclose(first, WRITTEN[name], rtol=1e-12)
    assert posterior.best_tree().to_text()
    assert posterior.best_tree().leaf_intervals() is not None
    assert posterior.summary()
    # what is typed now was a key of the provenance then
    warmup = 200 if "smc" in name else 60
    assert (posterior.info.n_warmup, posterior.info.seed) == (warmup, 209652396)
    assert posterior.provenance == {}
    posterior.save(tmp_path / "again.nc")
    again = Posterior.load(tmp_path / "again.nc")
    assert again.configuration == posterior.configuration
    np.testing.assert_array_equal(again.predict_mean(ROWS), predicted)


@pytest.mark.parametrize(
    ("key", "wrong"),
    [
        ("run", {}),
        ("run", {"n_warmup": "60", "seed": 1, "target_rhat": None, "max_draws": None}),
        ("run", {"n_warmup": 60, "seed": 1, "target_rhat": [1.01], "max_draws": None}),
        ("table", {"encoding": {"target": "y", "columns": []}, "name": "a.csv", "n_rows": "many"}),
        ("table", {"name": "a.csv"}),
    ],
)
def test_what_is_typed_is_checked(key, wrong, tmp_path):
    path = tmp_path / "a.nc"
    Posterior.load(FOLDER / "regression-0.1.0.nc").save(path)
    with netCDF4.Dataset(path, "a") as file:
        metadata = json.loads(str(file.variables["metadata"][...]))
        file.variables["metadata"][...] = json.dumps(metadata | {key: wrong})
    with pytest.raises(FileFormatError, match=r"is wrong|does not say|nothing readable"):
        Posterior.load(path)


def test_old_settings_become_those_of_the_method():
    read = {name: Posterior.load(FOLDER / name).configuration for name in WRITTEN}
    then = {"sigma_prior": (1.5, 1.5), "replicas": 1}
    df = {"impute": False, **then}  # which they could not do
    soft = HMCDF(class_prior=(1.0, 0.5), likelihood="paper", **df)  # the only one
    assert read["classification-0.1.0.nc"] == soft.configured()
    numbers = HMCDF(class_prior=1.0, **df)
    assert read["regression-0.1.0.nc"] == numbers.configured(regression=True)
    cgm = CGM(class_prior=1.0, rule_prior="gap", mean_prior=(0.5, 0.2), replicas=1)
    assert read["regression-cgm-0.1.0.nc"] == cgm.configured()
    smc = SMC.paper(class_prior=(0.25, 0.25))
    assert read["classification-smc-0.1.0.nc"] == smc.configured()
    paper = HMCDFI.paper(class_prior=1.0)
    assert read["classification-paper-0.1.0.nc"] == paper.configured()


@pytest.mark.parametrize(
    ("given", "expected"), [({}, 1.0), ({"class_mass": 0.6}, 0.2), ({"class_prior": 0.3}, 0.3)]
)
def test_files_before_format_6_have_one_row_of_each_class(given, expected, tmp_path):
    """Where their configuration says nothing: that was the default."""
    post = fake_posterior(0, n_classes=3)
    configuration = dataclasses.replace(post.configuration, method=HMCDF(**given))
    Posterior(post.draws, post.info, post.preprocessing, configuration).save(tmp_path / "a.nc")
    with netCDF4.Dataset(tmp_path / "a.nc", "a") as file:
        file.hamiltree_format = 5
    found = Posterior.load(tmp_path / "a.nc").configuration.method.class_concentration(3)
    assert found == pytest.approx([expected] * 3)


def test_an_old_model_file_of_the_command_line(tmp_path):
    old = Posterior.load(FOLDER / "model-0.1.0.nc").table
    assert (old.name, old.n_rows, old.encoding.target) == ("small.csv", 24, "answer")
    table = pandas.DataFrame({"size": [0.2, 0.9], "colour": ["red", "blue"]})
    table.to_csv(tmp_path / "new.csv", index=False)
    arguments = ["predict", str(FOLDER / "model-0.1.0.nc"), str(tmp_path / "new.csv")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "yes" in result.stdout
    assert CliRunner().invoke(app, ["summary", str(FOLDER / "model-0.1.0.nc")]).exit_code == 0
