"""Informed moves between trees: rules drawn by scans of the data, with exact proposal ratios.

Each move edits ``new``, a copy of ``tree``, and returns log q(back) - log q(forth), or minus
infinity where the move is not possible, which keeps the chain where it is. Priors and likelihoods
are compared by the caller. A move and its reverse have the same probability of being tried, and
their labels are one to one: the file of each says which they are.

To add a move, write a file like these and give it a line in ``propose.py``.
"""
