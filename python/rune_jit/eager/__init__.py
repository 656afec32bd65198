"""NumPy's functions on Arrays outside of traces, and the creation of Arrays."""

from rune_jit.eager import methods as methods  # gives Array its operators
