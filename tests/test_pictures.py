"""Pictures of the documentation: of chains that agree, sharp, and of the tree in the text."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from hamiltree.core.moves.propose import NAMES

from .support.examples import ROOT

IMAGES = ROOT / "docs" / "images"
AGREES = 1.01
"""docs/images/make.py samples until no R-hat is above it."""
SHARP = 200
"""Dots per inch: twice what a plain screen shows."""
OF_FITS = sorted(
    {
        name
        for script in ("make.py", "why.py")
        for name in re.findall(r'save\("([\w-]+)"', (IMAGES / script).read_text("utf-8"))
    }
)
PAGES_WITH_THE_TREE = ("README.md", "docs/start.md")


def chunks(path: Path) -> dict[str, list[bytes]]:
    """The parts of a PNG file by their kind."""
    content, found, at = path.read_bytes(), {}, 8
    while at < len(content):
        (length,) = struct.unpack(">I", content[at : at + 4])
        kind = content[at + 4 : at + 8].decode()
        found.setdefault(kind, []).append(content[at + 8 : at + 8 + length])
        at += 12 + length
    return found


def texts(path: Path) -> dict[str, str]:
    """What a PNG file says about itself."""
    pairs = (chunk.split(b"\0", 1) for chunk in chunks(path).get("tEXt", []))
    return {key.decode("latin-1"): value.decode("latin-1") for key, value in pairs}


def test_there_are_pictures_of_fits():
    assert {"tree", "why", "calibration", "trace", "ppc"} <= set(OF_FITS)


@pytest.mark.parametrize("name", OF_FITS)
def test_a_picture_comes_from_chains_that_agree(name):
    assert 1.0 <= float(texts(IMAGES / f"{name}.png")["R-hat"]) <= AGREES


@pytest.mark.parametrize("name", OF_FITS)
def test_a_picture_has_twice_the_resolution_of_a_plain_screen(name):
    per_metre, _, unit = struct.unpack(">IIB", chunks(IMAGES / f"{name}.png")["pHYs"][0])
    assert unit == 1
    assert round(per_metre * 0.0254) >= SHARP


@pytest.mark.parametrize("page", PAGES_WITH_THE_TREE)
def test_the_tree_of_the_text_is_the_tree_of_the_picture(page):
    text = (ROOT / page).read_text("utf-8")
    assert "images/tree.png" in text
    assert texts(IMAGES / "tree.png")["Description"].strip() in text


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/start.md"])
def test_entry_pages_show_one_tree(page):
    text = (ROOT / page).read_text("utf-8")
    assert re.findall(r"images/(\w*tree[\w-]*)\.png", text) == ["tree"]


def test_the_picture_of_the_moves_has_every_move():
    script = (IMAGES / "sampler.py").read_text("utf-8")
    (drawn,) = re.findall(r"^MOVES.*?^\]", script, re.DOTALL | re.MULTILINE)
    assert [name for name in NAMES if not re.search(rf'["| ]{name}["| ]', drawn)] == []
