"""NumPy's functions on Arrays outside of any trace, and how Arrays are made."""

from rune_jit.eager import methods as methods  # gives Array its operators
