"""rune_jit.Array: memory on a device, and conversions from and to NumPy's arrays."""
