"""The command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from rune_jit import _core
from rune_jit.commands import doctor, inspect

_EXAMPLES = """\
examples:
  python -m rune_jit doctor
  python -m rune_jit inspect module:function --args 'np.ones((100, 100))' 3
  python -m rune_jit inspect module:function --args 'f32[100,100]' 'i64[100]' --html page.html

exit codes: 0: all is well; 1: doctor found what does not work, or the function cannot be lowered;
2: the command line cannot be understood
"""


def main(arguments: Sequence[str]) -> int:
    """Runs a command. Returns the exit code. Raises SystemExit(2) for arguments that it cannot
    understand."""
    parser = argparse.ArgumentParser(
        prog="python -m rune_jit",
        description="Looks at this installation of rune_jit, or at what it makes of a function.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"rune_jit {_core.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    doctor.add_to(commands)
    inspect.add_to(commands)
    options = parser.parse_args(arguments)
    code: int = options.run(options)
    return code
