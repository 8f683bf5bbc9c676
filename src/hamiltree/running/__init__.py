"""One run: from chains to draws.

``run`` is the loop: it advances the chains, judges what they have drawn, and ends. ``chains`` runs
them side by side, in threads or by ``cluster`` on other machines, and ``takeover`` gives them
replicas where they disagree. ``checkpoints`` keeps the run in a file, or in memory;
``interrupts`` listens for Ctrl-C, SIGTERM and the clock, and ``progress`` shows how far it all is.
"""
