"""What is deprecated still works, and says once, at the caller's line, what to write instead."""

from __future__ import annotations

import pytest

from hamiltree import Posterior
from hamiltree.utils.deprecation import deprecated, renamed


@deprecated("area(width, height)", removed_in="0.9.0")
def size(width: int, height: int = 1) -> int:
    """Width by height.

    More about it.
    """
    return width * height


class Box:
    """With an attribute that has a new name."""

    old = renamed("new", removed_in="0.9.0")

    def __init__(self) -> None:
        self.new = 3


def test_a_deprecated_function_works_and_warns_at_the_line_of_the_call():
    message = (
        r"^size is deprecated and will be removed in hamiltree 0\.9\.0: use area\(width, height\)$"
    )
    with pytest.warns(FutureWarning, match=message) as caught:
        assert size(2, height=3) == 6
    assert [warning.filename for warning in caught] == [__file__]


def test_its_docstring_says_so():
    lines = (size.__doc__ or "").splitlines()
    assert lines[0] == "Width by height."
    assert lines[2] == "Deprecated: will be removed in 0.9.0. Use area(width, height)."
    assert "More about it." in lines[-2]


def test_the_old_name_of_an_attribute_has_the_new_ones_value():
    with pytest.warns(FutureWarning, match=r"Box\.old is deprecated .* use Box\.new") as caught:
        assert Box().old == 3
    assert caught[0].filename == __file__
    assert Box.old.__doc__ == "Deprecated: will be removed in 0.9.0. Use new."


def test_posterior_settings_is_configuration():
    posterior = Posterior.__new__(Posterior)
    posterior.configuration = object()
    with pytest.warns(FutureWarning, match=r"use Posterior\.configuration"):
        assert posterior.settings is posterior.configuration
