"""One run: from chains to draws.

``run`` is the loop: it advances the chains, judges what they have drawn, and ends. ``chains`` runs
them side by side, in threads or by ``cluster`` on other machines, and puts their draws together.
``checkpoints`` keeps the run in a file, or in memory, with ``chain_state`` of each chain;
``interrupts`` listens for Ctrl-C and SIGTERM, and ``progress`` shows how far it all is.
"""
