"""The experiments of the RJHMC-Tree paper, and further measures; ``hamiltree paper``."""
