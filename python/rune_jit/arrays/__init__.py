"""rune_jit.Array, and conversion from and to NumPy's arrays."""
