"""Everything that a trace takes from outside of its function: NumPy, globals, closures, objects."""

from rune_jit.capture import sources as sources  # registers its rules
