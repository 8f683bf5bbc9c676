"""``python -m hamiltree`` is the command ``hamiltree``."""

from .cli import app

app(prog_name="hamiltree")
