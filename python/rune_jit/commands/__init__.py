"""The commands of `python -m rune_jit`."""
