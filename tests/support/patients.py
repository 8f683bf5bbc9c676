"""A small clinical table, a form to type its rows into, and what the page answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas

NAMES = {
    "age": {"label": "Age at entry", "unit": "years"},
    "sex": {"label": "Sex", "values": {"f": "female", "m": "male"}},
    "target": {"label": "Outcome", "values": {"bad": "died", "good": "survived"}},
}


def patients(n: int = 300) -> tuple[pandas.DataFrame, np.ndarray]:
    """Whole numbers, numbers with holes, categories, an order, and a category with holes."""
    rng = np.random.default_rng(1)
    table = pandas.DataFrame(
        {
            "age": rng.integers(30, 90, n),
            "bmi": rng.normal(27, 4, n).round(1),
            "sex": rng.choice(["f", "m"], n),
            "site": rng.choice(["North", "South", "West"], n),
            "grade": pandas.Categorical(
                rng.choice(["low", "mid", "high"], n), ["low", "mid", "high"], ordered=True
            ),
        }
    )
    table.loc[::7, "bmi"] = np.nan
    table.loc[::9, "site"] = None
    risk = 2.0 * (table["age"] > 62) + (table["sex"] == "m") + 2.0 * table["bmi"].isna()
    risk += (table["site"] == "West") + table["site"].isna() + (table["grade"] == "high")
    y = np.where(rng.random(n) < 1 / (1 + np.exp(5 - 2.5 * risk)), "bad", "good")
    return table, y


def typed(page: Any, values: dict[str, str], prefix: str = "row") -> None:
    """Fill in fields by the table's own names of the columns."""
    names = page.evaluate("window.hamiltree.data.inputs.map(input => input.column)")
    for name, value in values.items():
        field = page.locator(f"#{prefix}-{names.index(name)}")
        if field.evaluate("field => field.tagName") == "SELECT":
            field.select_option(label=value or "missing")
        else:
            field.fill(value)


def shown_probability(page: Any, label: str, where: str = "#answer") -> str:
    return page.locator(f"{where} [data-class='{label}'] .value").inner_text()


def row_of(**cells: Any) -> pandas.DataFrame:
    own = {"age": [55.0], "bmi": [27.0], "sex": ["f"], "site": ["North"], "grade": ["low"]}
    table = pandas.DataFrame(own | {name: [cell] for name, cell in cells.items()})
    table["grade"] = pandas.Categorical(table["grade"], ["low", "mid", "high"], ordered=True)
    return table
