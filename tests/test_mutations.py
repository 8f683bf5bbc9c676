"""Mutants are edits of the sources: they must still find what they break."""

from __future__ import annotations

from pathlib import Path

import pytest

import hamiltree

from .mutations import MUTANTS

PACKAGE = Path(hamiltree.__file__).parent


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.what)
def test_mutant_finds_its_text(mutant):
    assert mutant.old in (PACKAGE / mutant.file).read_text("utf-8")
    assert mutant.new != mutant.old
