"""Configuration of lit for the text tests of the IRs.

The programs under test: rune-opt is the one named by `--param rune_opt=PATH`, or by the environment's
RUNE_OPT, or the one on PATH. filecheck is the one beside lit, or on PATH. Lines of a test are run by
lit's own shell, so no system shell is needed.
"""

import os
import shutil
import sys
from pathlib import Path

import lit.formats

config.name = "rune_jit-ir"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".ir"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.environ.get("RUNE_LIT_OUTPUT", config.test_source_root)

rune_opt = lit_config.params.get("rune_opt") or os.environ.get("RUNE_OPT") or shutil.which("rune-opt")
if not rune_opt or not os.access(rune_opt, os.X_OK):
    lit_config.fatal(f"cannot find rune-opt ({rune_opt}); name it with --param rune_opt=PATH")
beside = Path(sys.executable).parent / "filecheck"
filecheck = str(beside) if beside.exists() else shutil.which("filecheck")
if not filecheck:
    lit_config.fatal("cannot find filecheck (pip install filecheck)")

config.substitutions += [(r"\brune-opt\b", rune_opt), (r"\bfilecheck\b", filecheck)]
# The passes verify what they make, and nothing else of the environment reaches them.
config.environment["RUNE_JIT_VERIFY"] = "1"
