"""The draws of fixed configurations are those stored; see ``tests/support/draws.py``."""

from __future__ import annotations

import json

import pytest

from ..support.draws import (
    CONFIGURATIONS,
    EVERYWHERE,
    STORED,
    differences,
    draws_of,
    hash_of,
    place,
)

FOUND = json.loads(STORED.read_text("utf-8"))
ONLY_THERE = [name for name in CONFIGURATIONS if name not in EVERYWHERE]


@pytest.mark.parametrize("name", EVERYWHERE)
def test_draws_that_are_the_same_everywhere(name):
    assert differences({name: hash_of(draws_of(name))}, FOUND) == {}


@pytest.mark.long
@pytest.mark.parametrize("name", ONLY_THERE)
def test_draws_that_depend_on_the_processor(name):
    if place() != {key: FOUND[key] for key in place()}:
        pytest.skip(
            f"stored for another processor or numba: {FOUND['processor']}, {FOUND['numba']}"
        )
    assert differences({name: hash_of(draws_of(name))}, FOUND) == {}


def test_the_file_has_every_configuration_and_agrees_with_itself():
    assert set(FOUND["draws"]) == set(CONFIGURATIONS)
    assert FOUND["as in 0.1.0"].items() <= FOUND["draws"].items()
    assert {name.split("-")[0] for name in FOUND["as in 0.1.0"]} == {"cgm", "wu", "smc"}


def test_a_difference_is_seen_where_it_can_be():
    found = {**FOUND["draws"], "df-iris": "other", "wu-dia": "other"}
    assert set(differences(found, FOUND | place())) == {"df-iris", "wu-dia"}
    assert set(differences(found, FOUND | {"numba": "0.1"})) == {"wu-dia"}
