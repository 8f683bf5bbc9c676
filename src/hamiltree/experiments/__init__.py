"""The experiments of the RJHMC-Tree paper, and what it could not give; ``hamiltree paper``."""
