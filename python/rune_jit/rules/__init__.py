"""NumPy's functions, operators and indexing on traced arrays."""

from rune_jit.rules import protocol as protocol  # registers rules, and gives Tracer operators
