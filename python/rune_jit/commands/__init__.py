"""What `python -m rune_jit` does."""
