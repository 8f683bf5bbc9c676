"""One run: its chains, here or on other machines, its files, and its end."""
