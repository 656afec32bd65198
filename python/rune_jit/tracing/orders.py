"""Which results of a trace NumPy would store in Fortran order."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from rune_jit.tracing.storage import Storage, layout, viewed
from rune_jit.tracing.tracer import Tracer


class Orders:
    """The memory orders of a trace's arrays. `fortran_leaves` are the arguments in Fortran
    order, by leaf."""

    def __init__(self, fortran_leaves: set[int]) -> None:
        self._fortran_leaves = fortran_leaves
        self._known: dict[Storage, bool] = {}

    def is_fortran(self, x: Tracer) -> bool:
        """Whether an array or a view surely is Fortran-contiguous, and not C-contiguous."""
        strides = self._strides(x)
        sizes = x._shape
        if strides is None or any(not isinstance(n, int) for n in sizes):
            return False
        stride, sides = 1, 0
        for size, found in zip(sizes, strides, strict=True):
            if size != 1 and found != stride:
                return False
            stride *= size
            sides += size > 1
        return sides > 1 and stride > 0

    def _strides(self, x: Tracer) -> Sequence[int] | None:
        """NumPy's strides of an array, in elements. None if not known."""
        storage = x._storage
        shape = storage.shape
        if any(not isinstance(n, int) for n in shape) or storage.array is not None:
            return None
        if storage.captured is not None:
            return None
        fortran = self._is_whole_fortran(storage)
        if not x._steps and fortran:
            return list(itertools.accumulate((1, *shape[:-1]), lambda a, b: a * max(b, 1)))
        if not x._steps:
            back = list(itertools.accumulate((1, *shape[:0:-1]), lambda a, b: a * max(b, 1)))
            return back[::-1]
        try:
            whole = layout(shape[::-1] if fortran else shape, x.dtype, ())
            dummy = viewed(whole.T if fortran else whole, x._steps)
        except (ValueError, AttributeError):  # a reshape that copies
            return None
        if dummy.dtype != whole.dtype:
            return None  # parts of complex numbers
        return [stride // dummy.itemsize for stride in dummy.strides]

    def _is_whole_fortran(self, storage: Storage) -> bool:
        """Whether NumPy stores a whole array in Fortran order. An array that the trace has written
        to or reshaped counts as C order, in which the program computes it."""
        known, open_ = self._known, [storage]
        while open_:
            last = open_[-1]
            operands = last.order_from if last.in_order_of_operands else ()
            if last in known:
                pass
            elif last.leaf is not None or not operands or last.version or last.reshaped:
                is_fortran = (
                    last.leaf in self._fortran_leaves and not last.version and not last.reshaped
                )
                known[last] = is_fortran
            else:
                is_fortran = False
                unknown = len(open_)
                for x in operands:
                    behind = x._storage
                    if behind not in known:
                        open_.append(behind)
                    elif x._steps or known[behind]:
                        is_fortran = True
                if len(open_) > unknown:
                    continue
                known[last] = is_fortran and self._follows(last, operands)
            open_.pop()
        return known[storage]

    def _follows(self, storage: Storage, operands: tuple[Tracer, ...]) -> bool:
        """Whether the order "K" of operands is Fortran order: all strides of each operand grow from
        axis to axis, and each pair of neighbouring axes occurs in some operand."""
        ndim = len(storage.shape)
        grows = set()
        for x in operands:
            strides = self._strides(x)
            if strides is None:
                return False
            axes = [
                (ndim - len(strides) + axis, abs(stride))
                for axis, (stride, size) in enumerate(zip(strides, x._shape, strict=True))
                if size != 1 and stride
            ]
            for (a, inner), (b, outer) in itertools.combinations(axes, 2):
                if inner >= outer:
                    return False
                if b == a + 1:
                    grows.add(a)
        sides = [axis for axis in range(ndim) if storage.shape[axis] != 1]
        return (
            math.prod(storage.shape) > 0
            and len(sides) > 1
            and all(a in grows and b == a + 1 for a, b in itertools.pairwise(sides))
        )
