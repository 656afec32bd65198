"""`python -m rune_jit doctor` and `python -m rune_jit inspect`."""

from __future__ import annotations

import sys

from rune_jit.commands import main

if __name__ == "__main__":
    sys.exit(main.main(sys.argv[1:]))
