"""Tables, and models that were fitted to them."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

from ..support.cli import SHORT, run


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A table with an unlucky header, new rows in another order, and numbers to regress on."""
    folder = tmp_path_factory.mktemp("cli")
    rng = np.random.default_rng(0)
    n = 120
    table = pandas.DataFrame(
        {
            "Patient ID": [f"P{i:03d}" for i in range(n)],
            " Age (years) ": rng.integers(30, 90, n),
            "BMI, kg/m²": rng.normal(27, 4, n).round(1),
            "[bold]Clinic[/bold]": rng.choice(["North", "South", "West"], n),
            "<Grade>": rng.choice(["low", "medium", "high"], n),
        }
    )
    risk = (table[" Age (years) "] > 60) * 2.0 + (table["<Grade>"] == "high") * 2.0
    table["out?"] = np.where(rng.random(n) < 1 / (1 + np.exp(2 - 1.5 * risk)), "yes", "no")
    table.to_csv(folder / "patients.csv", index=False, encoding="utf-8-sig")
    new = table.head(5)[
        ["<Grade>", "BMI, kg/m²", "[bold]Clinic[/bold]", "Patient ID", " Age (years) "]
    ]
    new.to_csv(folder / "new.csv", index=False)
    table["cost"] = 3 * table[" Age (years) "] + rng.normal(0, 5, n)
    table[[" Age (years) ", "BMI, kg/m²", "cost"]].to_parquet(folder / "costs.parquet")
    return folder


@pytest.fixture(scope="session")
def fitted(folder):
    model = folder / "model.nc"
    result = run(
        "fit", folder / "patients.csv", "--target", "out?", "--drop", "Patient ID",
        "--ordinal", "<Grade>=low,medium,high", "-o", model, *SHORT,
    )  # fmt: skip
    return model, result


@pytest.fixture(scope="session")
def regression(folder):
    model = folder / "costs.nc"
    run("fit", folder / "costs.parquet", "-t", "cost", "-o", model, "--h", "0.05", *SHORT)
    return model
