"""NumPy's functions that count elements by value. A count is a scatter that adds ones."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from rune_jit import _core
from rune_jit.rules import host, on_host
from rune_jit.rules.coercions import refuse_unless, traced
from rune_jit.rules.compositions import sorts_before
from rune_jit.rules.host import shape_depends_on_data
from rune_jit.rules.known import known, plain
from rune_jit.rules.table import implements
from rune_jit.tracing.context import require_trace
from rune_jit.tracing.tracer import Tracer, contains_traced


def _counted(at: Any, count: int, weights: Any = None) -> Tracer:
    """How often each of the numbers 0 .. count - 1 occurs in the int64 array `at`, whose elements
    must be in this range. With weights, the sums of these as float64."""
    trace = require_trace()
    builder = trace.builder
    dtype = np.dtype(np.intp if weights is None else np.float64)
    target = builder.full([count], 0, dtype)
    index = trace.array(at)
    if index.ndim and 0 in index.shape:
        return Tracer(trace, target)
    if count < 2**31:  # positions of int32 take half the memory
        index = builder.astype(index, np.dtype(np.int32))
    builder.assume_range(index, 0, count - 1)
    what = builder.full(list(index.shape), 1, dtype)
    if weights is not None:
        what = builder.astype(trace.array(weights), dtype)
    return Tracer(trace, builder.scatter(target, [index], what, "add"))


# Functions whose elements are positions themselves.


def _sample(x: Any) -> Any:
    """An array of zeros with x's dtype and at most one element, to get NumPy's errors about
    types."""
    if x is None:
        return None
    x = traced(x)
    return np.zeros([min(n, 1) if isinstance(n, int) else 1 for n in x.shape], x.dtype)


@implements(np.bincount)
def _bincount(x: Any, /, weights: Any = None, minlength: Any = 0) -> Any:
    host.require_known(minlength, "bincount")
    least = plain(minlength)
    of_types = np.bincount(_sample(x), _sample(weights), least)
    if 0 in np.shape(x):
        return known(of_types)
    if weights is not None and np.shape(weights) != np.shape(x):
        raise ValueError("The weights and list don't have the same length.")
    if contains_traced(x) or isinstance(x, _core.ArrayBase):
        x = traced(x).astype(np.int64)
        length = _length_of_counts(x, int(least))
        x = np.clip(x, 0, max(length - 1, 0))
    else:
        length = len(np.bincount(plain(x), minlength=least))
    return _counted(x, length, weights) if length else known(of_types[:0])


def _length_of_counts(x: Any, least: int) -> int:
    """The length of numpy.bincount(x, minlength=least) at this call."""
    trace = require_trace()
    if trace.is_in_loop and least and trace.may_guess:
        inside: Any = np.all((x >= 0) & (x < least))
        trace.guess()
        trace.builder.assume(inside._value_in(trace))
        return least
    negative = "'list' argument must have no negative elements"
    trace.must_be_equal(trace.operand(np.any(x < 0)), False, negative)
    last = np.maximum(np.max(x), least - 1)
    return trace.assume_size(trace.operand(last), least - 1 if least else None) + 1


# Histograms.


class _Bins(NamedTuple):
    """Bins of equal widths."""

    edges: Any
    first: Any  # the first edge, not rounded to the dtype of `edges`
    width: Any  # of all bins together
    within: Any  # which elements are in a bin; True: all


def _width(first: Any, last: Any) -> Any:
    """last - first >= 0, which may exceed a signed dtype."""
    dtype = np.result_type(first, last)
    if dtype.kind != "i":
        return np.subtract(last, first, dtype=dtype)
    unsigned = np.dtype(f"u{dtype.itemsize}")
    last, first = (traced(x).astype(dtype).astype(unsigned) for x in (last, first))
    return last - first


def _bins_of_range(a: Any, bins: Any, limits: Any) -> _Bins:
    edges = known(np.histogram_bin_edges(np.zeros(0, a.dtype), bins, limits))
    first, last = limits
    if first == last:
        first, last = first - 0.5, last + 0.5
    with np.errstate(all="ignore"):
        refuse_unless(bool(np.isfinite(last - first)), "histogram of an infinite range")
    return _Bins(edges, first, _width(first, last), (a >= first) & (a <= last))


def _bins_of_data(a: Any, bins: Any) -> _Bins:
    count = operator.index(bins)
    least, most = np.min(a), np.max(a)
    dtype = a.dtype if a.dtype.kind == "f" else np.dtype(np.float64)
    margin = np.where(least == most, dtype.type(0.5), dtype.type(0))
    first, last = least.astype(dtype) - margin, most.astype(dtype) + margin
    width = np.where(least == most, last - first, _width(least, most).astype(dtype))
    edges = np.linspace(first, last, count + 1, dtype=dtype)
    trace = require_trace()
    for wrong, message in (
        (~np.isfinite(width), "autodetected range of the data is not finite"),
        (
            np.any(edges[:-1] >= edges[1:]),
            f"Too many bins for data range. Cannot create {count} finite-sized bins.",
        ),
    ):
        trace.must_be_equal(trace.operand(wrong), False, message)
    return _Bins(edges, first, width, True)


def _places_in(bins: _Bins, a: Any, count: int) -> Any:
    """The bin of each element that is in a bin. This is NumPy's algorithm: it computes the bin by a
    division, and corrects it by comparisons with the edges, because rounding may give a
    neighbouring bin."""
    a = a.astype(bins.edges.dtype, copy=False)
    scaled = np.subtract(a, bins.first, dtype=a.dtype) / bins.width * count
    place = np.clip(np.where(bins.within, scaled, 0).astype(np.intp), 0, count - 1)
    trace = require_trace()
    trace.builder.assume_range(trace.array(place), 0, count - 1)
    below = a < bins.edges[:-1][place]
    above = (a >= bins.edges[1:][place]) & (place != count - 1)
    return place - below + (above & ~below)


def _places_between(edges: Any, a: Any) -> tuple[Any, Any]:
    """For each element, the number of the last edge that is not above it, and whether the element
    is in a bin. NaN is above all other numbers."""
    count, dtype = len(edges) - 1, np.result_type(edges, a)
    edges, a = edges.astype(dtype), a.astype(dtype)
    at = np.searchsorted(edges[:-1], a, side="right") - 1
    return np.maximum(at, 0), (at >= 0) & ~sorts_before(edges[count], a)


@implements(np.histogram)
def _histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    if np.ndim(bins) == 0:
        host.require_known(bins, "histogram", _BINS)
    if isinstance(bins, str):
        raise shape_depends_on_data("histogram", _BINS)
    a = traced(a)
    a = a.astype(np.uint8) if a.dtype == bool else a
    is_rare = a.dtype.kind not in "iuf" or a.dtype == np.float16 or 0 in a.shape
    refuse_unless(not is_rare and not contains_traced(range), "histogram of this kind")
    if weights is not None:
        weights = traced(weights)
        refuse_unless(not np.iscomplexobj(weights), "histogram with complex weights")
        refuse_unless(weights.shape == np.shape(a), "histogram of these weights")
        weights = np.ravel(weights)
    a = np.ravel(a)
    edges: Any
    if np.ndim(bins) == 0:
        # NumPy's errors.
        np.histogram_bin_edges(np.zeros(0, a.dtype), bins, range)
        count = operator.index(bins)
        refuse_unless(a.dtype.itemsize == 8 or count < 2**24, "histogram of as many bins")
        uniform = _bins_of_data(a, bins) if range is None else _bins_of_range(a, bins, range)
        place, within, edges = _places_in(uniform, a, count), uniform.within, uniform.edges
    else:
        edges = traced(bins)
        count = len(bins) - 1
        refuse_unless(weights is None and edges.ndim == 1 and count > 0, "histogram of these bins")
        refuse_unless(np.result_type(a, edges).kind in "iuf", "histogram of these bins")
        trace = require_trace()
        decreases = trace.operand(np.any(edges[:-1] > edges[1:]))
        message = "`bins` must increase monotonically, when an array"
        trace.must_be_equal(decreases, False, message)
        place, within = _places_between(edges, a)
    if within is True:
        counts = _counted(place, count, weights)
    else:  # one more for elements outside of all bins
        counts = _counted(np.where(within, place, count), count + 1, weights)[:-1]
    if weights is not None:
        counts = counts.astype(weights.dtype)
    if density:
        counts = counts / np.diff(edges).astype(np.float64) / np.sum(counts)
    return counts, edges


@implements(np.histogram_bin_edges)
def _histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    if np.ndim(bins) == 0:
        host.require_known(bins, "histogram_bin_edges", _BINS)
    if isinstance(bins, str):
        raise shape_depends_on_data("histogram_bin_edges", _BINS)
    return on_host.call(np.histogram_bin_edges, (a, bins, range, weights), {})


_BINS = "write a number of bins, or their edges: histogram(x, edges)"
