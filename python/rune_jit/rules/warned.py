"""NumPy's warnings about operations on traced arrays."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np

from rune_jit.tracing.context import current_trace
from rune_jit.tracing.frames import user_frame


def warn(text: str, category: type[Warning]) -> None:
    """Gives a warning that names the user's line. A program gives it at each call, after it has
    run, unless data decide whether it does: then only the trace gives it."""
    frame, trace = user_frame(), current_trace()
    if frame is None:
        warnings.warn(text, category, stacklevel=2)
        return
    of_line = text, category, frame.f_code.co_filename, frame.f_lineno
    names = frame.f_globals
    if trace is None or trace.is_segmented:
        _give(names, *of_line)
        return
    action = _action(text, category, names.get("__name__") or "", frame.f_lineno)
    is_later = trace.prints is not None and trace.loops is not None and action != "error"
    if not is_later or not trace.loops.are_counters_alone(trace.builder):  # type: ignore[union-attr]
        warnings.warn_explicit(*of_line)  # (without a registry, which would be a new global)
    elif action != "ignore":  # (the function may have asked for that, for a part of it)
        trace.prints.later(functools.partial(_give, names, *of_line), ())


def _give(names: dict[str, Any], *of_line: Any) -> None:
    """Gives a warning that Python gives again only if the filters say so."""
    registry = names.setdefault("__warningregistry__", {})
    give: Any = warnings.warn_explicit
    give(*of_line, names.get("__name__"), registry)


def warn_of_lost_part(given: np.dtype[Any], wanted: np.dtype[Any]) -> None:
    """Gives NumPy's ComplexWarning if a cast drops the imaginary part."""
    if given.kind == "c" and wanted.kind in "iuf":
        text = "Casting complex values to real discards the imaginary part"
        warn(text, np.exceptions.ComplexWarning)


def _action(text: str, category: type[Warning], module: str, line: int) -> str:
    """What the present filters do with a warning."""
    given: Any
    for given in warnings.filters:
        action, message, kind, of_module, at = given
        is_one = issubclass(category, kind) and at in (0, line)
        if is_one and all(
            pattern is None or pattern.match(x)
            for pattern, x in ((message, text), (of_module, module))
        ):
            return str(action)
    return "default"
