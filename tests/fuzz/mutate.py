"""Changes IR text at random and reads it: mutate.py SEED COUNT FILE

FILE holds the text that is read now, so that it is known should the process die. The text may be
refused (ParseError and kin) or read; what was read must print, read again as the same, and verify.
"""

from __future__ import annotations

import random
import re
import sys
import warnings
from pathlib import Path

from generator import generate

import rune_jit
from rune_jit import _core

_TOKENS = (
    "%0",
    "%1",
    "%999999999",
    "%4294967295",
    "-1",
    "0",
    "1",
    "2",
    "7",
    "64",
    "2147483648",
    "9223372036854775807",
    "-9223372036854775808",
    "99999999999999999999",
    "inf",
    "nan",
    "0x7f800000",
    "true",
    "false",
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    ",",
    "=",
    ":",
    '"',
    '"\\',
    ";",
    "f32",
    "i64x16",
    "f32x0",
    "bool",
    "ptr",
    "f32[]",
    "f32[0]",
    "f32[-1]",
    "f32[9223372036854775807,9]",
    "add",
    "range",
    "endrange",
    "if",
    "endif",
    "barrier",
    "return",
    "graph",
    "kernel",
    "schedule",
    "item",
    "axes",
    "axes=[0]",
    "shape=[4]",
    "\0",
    "\xff",
    "é",
    "",
)
REFUSALS = (ValueError, TypeError, IndexError, NotImplementedError, OverflowError, RuntimeError)


def texts_of(seed: int, device: str) -> list[str]:
    """The graph, the schedule and the kernels of a random program."""
    program = generate(seed)
    jitted = rune_jit.jit(program.function(), device=device, fallback="error")
    try:
        if jitted.trace(*program.arguments()) is None:
            return []
    except (rune_jit.UnsupportedOpError, TypeError):  # some writes; bfloat16 with other dtypes
        return []
    lowered = jitted.lower(*program.arguments())
    return [lowered.graph, lowered.schedule, *lowered.kernels]


def mutate(rng: random.Random, text: str) -> str:
    """Drops, repeats, swaps or replaces some tokens or lines."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        if rng.random() < 0.3:
            lines = text.split("\n")
            i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
            match rng.randrange(4):
                case 0:
                    del lines[i]
                case 1:
                    lines.insert(j, lines[i])
                case 2:
                    lines[i], lines[j] = lines[j], lines[i]
                case 3:
                    lines = lines[:i]
            text = "\n".join(lines)
            continue
        tokens = re.findall(r"%?[\w.]+|\s+|[^\w\s]", text)
        if not tokens:
            return text
        i = rng.randrange(len(tokens))
        match rng.randrange(4):
            case 0:
                tokens[i] = rng.choice(tokens)
            case 1:
                tokens[i] = rng.choice(_TOKENS)
            case 2:
                tokens[i] = tokens[i][: rng.randrange(len(tokens[i]))] if tokens[i] else ""
            case 3:
                tokens.insert(i, rng.choice(_TOKENS))
        text = "".join(tokens)
    return text


def read(text: str) -> bool:
    """Whether the text is accepted. Raises for anything but a refusal and a faithful reading."""
    try:
        printed, _ = _core.reprint(text)
    except rune_jit.InternalError:
        raise
    except REFUSALS:
        return False
    again, violations = _core.reprint(printed)
    assert again == printed, f"{printed}\nreads as\n{again}"
    assert isinstance(violations, list)
    return True


def main() -> None:
    """Prints how many texts were accepted and how many refused."""
    seed, count, current = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    warnings.simplefilter("ignore")
    rng = random.Random(seed)
    accepted = done = 0
    while done < count:
        for device in ("cpu", "interpreter"):
            for text in texts_of(seed, device):
                for _ in range(10):
                    mutant = mutate(rng, text)
                    current.write_text(mutant, encoding="utf-8", errors="surrogatepass")
                    accepted += read(mutant)
                    done += 1
        seed += 1
    print(f"{accepted} accepted, {done - accepted} refused")


if __name__ == "__main__":
    main()
