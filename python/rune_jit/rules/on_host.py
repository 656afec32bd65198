"""NumPy's functions that the compiled program calls on the host, because no kernel computes them:
sorting, linear algebra, Fourier transforms and others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rune_jit.errors import ConcretizationError, UnsupportedOpError
from rune_jit.rules import large_matrices
from rune_jit.rules.by_rows import QUANTILES, along_axes, by_rows
from rune_jit.rules.coercions import laid_out_as, traced
from rune_jit.rules.host import (
    call_on_host,
    eye,
    minus_ones,
    ones,
    require_known,
    shape_depends_on_data,
    various,
    zeros,
)
from rune_jit.rules.indexing.selection import NONZERO_HINT, UNIQUE_HINT, argwhere, nonzero, unique
from rune_jit.rules.known import run_known
from rune_jit.rules.table import ON_HOST, implements, named
from rune_jit.tracing.context import current_trace, require_trace
from rune_jit.tracing.tracer import Tracer, contains_traced, tracers_in


def call(function: Any, args: Any, kwargs: Any) -> Any:
    """Calls a function of the table below on the host."""
    may_raise = function not in _NEVER_RAISE
    is_quantile = function in QUANTILES
    if is_quantile:  # its axis is not data, but the quantile is
        given = [kwargs.get("axis"), *args[QUANTILES[function] : QUANTILES[function] + 1]]
        require_known([x for x in given if x is not None], function.__name__)
    # NumPy need not overwrite it.
    kwargs = {k: v for k, v in kwargs.items() if k != "overwrite_input"}
    probe = ON_HOST[function]
    trace = current_trace()
    if trace is not None and trace.in_chunks:
        if (transformed := along_axes(function, args, kwargs)) is not None:
            return transformed
        found = by_rows(function, args, kwargs)
        if found is not None:
            return found.call(probe, may_raise, is_quantile)
    return call_on_host(
        _INSTEAD.get(function, function),
        args,
        kwargs,
        probe,
        name=f"{function.__module__}.{function.__name__}",
        may_raise=may_raise,
        ints_are_data=is_quantile,
        side_by_side=_releases_gil(function),
    )


def _releases_gil(function: Any) -> bool:
    """Whether a function releases the GIL for most of its time."""
    return function in (np.sort, np.argsort) or function.__module__ in ("numpy.linalg", "numpy.fft")


# Functions for which shapes and dtypes of arguments decide those of results, each with its probe
# (host.py). Many of them also have a rule, for most calls.
_FUNCTIONS = (
    (
        np,
        zeros,
        "sort argsort partition argpartition lexsort searchsorted histogram histogram2d"
        " histogramdd histogram_bin_edges median percentile quantile nanmedian nanpercentile"
        " nanquantile nanargmax nanargmin digitize interp convolve correlate i0 unwrap packbits"
        " unpackbits isin ravel_multi_index unravel_index poly polyadd polyder"
        " polyint polysub polyval cov corrcoef gradient trapezoid cross kron vander"
        " choose select piecewise apply_along_axis apply_over_axes insert delete resize block"
        " tril triu diagflat mean std var round around sum prod max min amax amin any"
        " all ptp clip count_nonzero argmax argmin cumsum cumprod cumulative_sum cumulative_prod"
        " nancumsum nancumprod pad take take_along_axis einsum tensordot dot vdot inner outer"
        " concatenate concat stack diff ediff1d nan_to_num isclose allclose array_equal"
        " array_equiv sinc fix roll tile nansum nanprod nanmax nanmin nanmean nanstd nanvar"
        " iscomplex isreal isneginf isposinf imag linspace logspace geomspace",
    ),
    (
        np.fft,
        zeros,
        "fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn fftshift"
        " ifftshift",
    ),
    (np, ones, "average"),  # the sum of weights must not be zero
    (
        np.linalg,
        eye,
        "inv solve cholesky det slogdet eigh eigvalsh svd svdvals qr pinv lstsq matrix_rank cond"
        " tensorinv tensorsolve norm vector_norm matrix_norm matrix_power multi_dot cross outer"
        " tensordot matmul vecdot trace",
    ),
)

# Faster functions with equal results, which the host calls instead.
_INSTEAD: dict[Any, Callable[..., Any]] = {np.linalg.cholesky: large_matrices.cholesky}

# Functions that raise nothing when the program runs, because errors depend on shapes and dtypes
# alone.
_NEVER_RAISE = (
    *(np.sort, np.argsort, np.lexsort, np.median, np.nanmedian, np.isin, np.packbits),
    *(np.resize, np.block, np.round, np.linalg.det, np.linalg.slogdet, np.linalg.qr),
)

# Functions whose results have shapes that depend on data: (hint, names).
_DATA_DEPENDENT = (
    (
        UNIQUE_HINT.removeprefix("write "),
        "unique_all unique_counts unique_inverse unique_values",
    ),
    ("np.isin(x, values)", "union1d intersect1d setdiff1d setxor1d"),
    ("a mask", "trim_zeros"),
    ("np.convolve(a, b)", "polymul"),
    ("it outside of the jitted function", "polydiv roots"),
)


def _data_dependent(name: str, alternative: str) -> Callable[..., Any]:
    def handler(*args: Any, **kwargs: Any) -> Any:
        raise shape_depends_on_data(name, f"write {alternative}")

    return handler


@implements(np.unique)
def _unique(ar: Any, *args: Any, **kwargs: Any) -> Any:
    trace = require_trace()
    if args or kwargs or trace.is_segmented or traced(ar).dtype.kind not in "biuf":
        raise shape_depends_on_data("unique", UNIQUE_HINT)
    return unique(ar)


def _array_with_axes(a: Any, name: str) -> Tracer:
    """The argument of a function that finds elements which are not zero. In segments NumPy computes
    it."""
    if require_trace().is_segmented or np.ndim(a) == 0:
        raise shape_depends_on_data(name, NONZERO_HINT)
    return traced(a)


@implements(np.nonzero)
def _nonzero(a: Any) -> Any:
    return nonzero(_array_with_axes(a, "nonzero"))


@implements(np.flatnonzero)
def _flatnonzero(a: Any) -> Any:
    return nonzero(_array_with_axes(np.ravel(a), "flatnonzero"))[0]


@implements(np.argwhere)
def _argwhere(a: Any) -> Any:
    return argwhere(_array_with_axes(a, "argwhere"))


@implements(np.insert)
def _insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    if contains_traced(obj) and traced(obj).dtype == bool:
        raise shape_depends_on_data("insert", "write the indices themselves instead of a mask")
    return call(np.insert, (arr, obj, values, axis), {})


@implements(np.delete)
def _delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    if contains_traced(obj):
        index = traced(obj)
        if index.ndim:  # it may occur twice
            raise shape_depends_on_data(
                "delete", "write np.where(keep, x, 0), or a reduction with where=keep"
            )
        return _without(np.ravel(arr) if axis is None else traced(arr), index, axis or 0)
    return call(np.delete, (arr, obj, axis), {})


def _without(x: Any, index: Any, axis: int) -> Any:
    """x without one element, or one row, along an axis."""
    size = x.shape[axis] if -x.ndim <= axis < x.ndim else None
    if type(size) is not int or not size or index.dtype.kind not in "iu":
        return call(np.delete, (x, index, axis), {})
    place = traced(np.arange(size))[index]  # raises IndexError if the index is out of bounds
    at = np.arange(size - 1)
    return np.take(x, at + (at >= place), axis=axis)


@implements(np.linalg.matrix_power)
def _matrix_power(a: Any, n: Any) -> Any:
    if type(n) is int and n == 1:
        np.linalg.matrix_power(np.ones(np.shape(a)), n)  # raises
        return a if type(a) is Tracer else traced(a)  # (NumPy returns the array itself)
    return call(np.linalg.matrix_power, (a, n), {})


@implements(np.polyfit)
def _polyfit(
    x: Any, y: Any, deg: Any, rcond: Any = None, full: Any = False, w: Any = None, cov: Any = False
) -> Any:
    require_known(deg, "polyfit")
    if full:
        raise shape_depends_on_data("polyfit", "write full=False")
    # The points of the probe must differ.
    return call_on_host(np.polyfit, (x, y, deg, rcond, full, w, cov), {}, various)


def _eigenvalues(function: Any) -> Callable[..., Any]:
    """The rule for eigenvalues, which may be real or complex for real matrices."""

    def handler(a: Any) -> Any:
        if not np.iscomplexobj(a):
            raise UnsupportedOpError(
                f"{function.__name__}: cannot trace it on real numbers (the dtype of the result"
                " depends on data)\nhint: convert them with astype(complex)"
            )
        return call_on_host(function, (a,), {}, eye)

    return handler


for _function in (np.linalg.eig, np.linalg.eigvals):
    implements(_function)(_eigenvalues(_function))


@implements(np.linalg.lstsq)
def _lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    rows, columns = np.shape(a)[-2:]
    arguments = (np.linalg.lstsq, rows > columns, a, b, rcond)
    solution, residuals, rank, values = call_on_host(
        _least_squares, arguments, {}, eye, "numpy.linalg.lstsq"
    )
    if rows > columns:  # there are residuals only if the matrix has full rank
        residuals = residuals[np.broadcast_to(rank == columns, residuals.shape)]
    return solution, residuals, rank, values


def _least_squares(lstsq: Any, has_residuals: bool, a: Any, b: Any, rcond: Any) -> Any:
    """numpy.linalg.lstsq, with NaN as residuals of a matrix without full rank."""
    solution, residuals, rank, values = lstsq(a, b, rcond)
    if has_residuals and residuals.size == 0:
        residuals = np.full(b.shape[1:] or (1,), np.nan, residuals.dtype)
    return solution, residuals, rank, values


class Vectorized:
    """Takes the place of a numpy.vectorize in a trace. When the program runs, it calls the function
    with one element of each array at a time, as NumPy does."""

    def __init__(self, vectorize: np.vectorize) -> None:
        self.real = vectorize

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not contains_traced(args) and not contains_traced(kwargs):
            result = run_known(self.real, args, kwargs)
            return self if result is self.real else result  # used as a decorator
        others = (ones, minus_ones, various)
        try:
            result = call_on_host(
                self.real,
                args,
                kwargs,
                name="numpy.vectorize",
                others=others,
                ints_are_data=True,
            )
        except ConcretizationError as error:
            raise UnsupportedOpError(
                f"numpy.vectorize: cannot trace a function that uses traced arrays ({error})\n"
                "hint: pass them as arguments"
            ) from error
        for x in tracers_in(result) if self.real.signature is None else ():
            laid_out_as(x, tracers_in((args, kwargs)))
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


for _module, _probe, _names in _FUNCTIONS:
    ON_HOST.update(dict.fromkeys(named(_module, _names), _probe))
for _alternative, _names in _DATA_DEPENDENT:
    for _function in named(np, _names):
        implements(_function)(_data_dependent(_function.__name__, _alternative))
