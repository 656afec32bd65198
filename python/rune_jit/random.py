"""Random numbers as functions of a key.

A key gives the same numbers on every device, in any order of calls, inside and outside of ``jit``.
Do not use a key twice: `split` makes new keys of it.

    from rune_jit import random

    key = random.key(0)
    a, b = random.split(key, 2)
    x = random.normal(a, (1000,))

A key is a uint32 array of two words. If it is a NumPy array, the numbers are NumPy arrays. If it is
a rune_jit.Array, they are Arrays on its device. Outside of ``jit`` each function is compiled at its
first use.

The generator is Threefry2x32 with 20 rounds (Salmon et al., SC 2011) in counter mode. The cipher of
(i, 0) is pair i of a key's words, the cipher of (i, 1) is key i of a split, and the cipher of
(i, 2) is the key with i folded in."""

# mypy: disable-error-code=no-any-return
from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

from rune_jit import _core
from rune_jit.arrays.array import Array
from rune_jit.calls.jit import jit
from rune_jit.eager.creation import asarray
from rune_jit.tracing.context import current_trace
from rune_jit.tracing.tracer import Tracer

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike, NDArray

__all__ = [
    "bernoulli",
    "bits",
    "choice",
    "exponential",
    "fold_in",
    "key",
    "normal",
    "permutation",
    "randint",
    "split",
    "uniform",
]

Shape = int | Sequence[int]
# The type of a key and of the numbers drawn with it: NumPy's array or Array.
K = TypeVar("K", "NDArray[Any]", Array)

_NUMBERS, _KEYS, _FOLDS = np.uint32(0), np.uint32(1), np.uint32(2)  # the counter's second word
_MOST_PAIRS = 2**32


def _cipher(key: Any, words: Any, purpose: np.uint32) -> Any:
    """The cipher of (word, purpose) for each word: pairs of words. The core has the algorithm."""
    counters = np.stack((words, np.full(words.shape, purpose, np.uint32)), axis=-1)
    trace = current_trace()
    if trace is None:  # NumPy runs the caller
        keys = np.ascontiguousarray(np.broadcast_to(key, counters.shape))
        return _cipher_program(len(words)).run((counters, keys), {})[0]
    known = isinstance(counters, np.ndarray)
    counter = trace.constant(counters) if known else trace.operand(counters)
    return Tracer(trace, trace.builder.threefry(counter, trace.operand(key)))


@functools.lru_cache(maxsize=16)
def _cipher_program(count: int) -> Any:
    builder, pairs = _core.NodeBuilder(), [count, 2]
    inputs = [builder.add(f"placeholder index={i}", [], np.uint32, pairs) for i in range(2)]
    graph = builder.finish([builder.add("threefry", inputs, None, [])])
    return _core.lower(graph, _core.default_device()).compile()


def _pairs(key: Any, count: int, purpose: np.uint32) -> Any:
    if count > _MOST_PAIRS:
        raise ValueError(f"random: cannot draw {count} pairs from one key (at most {_MOST_PAIRS})")
    return _cipher(key, np.arange(count, dtype=np.uint32), purpose)


def _bits(key: Any, shape: tuple[int, ...], width: int) -> Any:
    count = math.prod(shape)
    if width == 64:
        pairs = _pairs(key, count, _NUMBERS).astype(np.uint64)
        return ((pairs[:, 0] << np.uint64(32)) | pairs[:, 1]).reshape(shape)
    words = np.ravel(_pairs(key, (count + 1) // 2, _NUMBERS).T)[:count]
    return words.reshape(shape)


def _uniform(key: Any, shape: tuple[int, ...], dtype: str) -> Any:
    if dtype == "float64":
        return (_bits(key, shape, 64) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return (_bits(key, shape, 32) >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)


def _normal(key: Any, shape: tuple[int, ...], dtype: str) -> Any:
    # Box and Muller (1958): a radius and an angle from two uniform numbers each.
    both = _uniform(key, (2, *shape), dtype)
    real: Any = np.dtype(dtype).type
    radius = np.sqrt(real(-2) * np.log(real(1) - both[0]))
    return radius * np.cos(real(2 * math.pi) * both[1])


def _randint(key: Any, low: int, high: int, shape: tuple[int, ...], dtype: str) -> Any:
    # The bias of a remainder of 64 bits is below (high - low) / 2^64.
    number = _bits(key, shape, 64) % np.uint64(high - low)
    return (number + np.uint64(low % 2**64)).astype(dtype)


def _fold_in(key: Any, number: Any) -> Any:
    word = np.reshape(number, (1,)).astype(np.uint32)
    return _cipher(key, word, _FOLDS)[0]


def _exponential(key: Any, shape: tuple[int, ...], dtype: str) -> Any:
    return -np.log1p(-_uniform(key, shape, dtype))


def _order(key: Any, n: int) -> Any:
    return np.argsort(_bits(key, (n,), 64), kind="stable")


def _permuted(key: Any, x: Any) -> Any:
    return np.take(x, _order(key, x.shape[0]), axis=0)


def _chosen(key: Any, weights: Any, shape: tuple[int, ...]) -> Any:
    ends = np.cumsum(weights)
    return np.searchsorted(ends / ends[-1], _uniform(key, shape, "float64"), side="right")


@functools.lru_cache(maxsize=1024)
def _compiled(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Callable[..., Any]:
    return jit(lambda *arrays: function(*arrays, *arguments), fallback="silent")


def _call(function: Callable[..., Any], arrays: tuple[Any, ...], *arguments: Any) -> Any:
    """Calls function(*arrays, *arguments), where the first array is a key."""
    key = arrays[0] if isinstance(arrays[0], (Tracer, Array)) else np.asarray(arrays[0])
    if key.dtype != np.uint32 or key.shape != (2,):
        raise TypeError(
            f"random: cannot use {key.dtype}{list(key.shape)} as a key (expected uint32[2])\n"
            "hint: random.key(seed) makes one"
        )
    if any(isinstance(x, Tracer) for x in arrays):
        return function(key, *arrays[1:], *arguments)
    return _compiled(function, arguments)(key, *arrays[1:])


def _shape(shape: Any) -> tuple[int, ...]:
    return (int(shape),) if np.ndim(shape) == 0 else tuple(int(n) for n in shape)


def _float(dtype: Any) -> str:
    name: str = np.dtype(dtype).name
    if name not in ("float32", "float64"):
        raise TypeError(f"random: cannot draw {name} (expected float32 or float64)")
    return name


@overload
def key(seed: int, device: None = ...) -> NDArray[Any]: ...
@overload
def key(seed: int, device: str) -> Array: ...
def key(seed: int, device: str | None = None) -> Any:
    """Makes a key from a seed.

    Args:
        seed: an integer of at most 64 bits.
        device: the device of the key. Default: none, and the key is a NumPy array.

    Returns:
        uint32[2]: a NumPy array, or an Array if `device` is given.

    Examples:
        >>> from rune_jit import random
        >>> random.key(7)
        array([0, 7], dtype=uint32)
    """
    words = np.array([(seed >> 32) & 0xFFFFFFFF, seed & 0xFFFFFFFF], np.uint32)
    return words if device is None else asarray(words, device=device)


def split(key: K, n: int = 2) -> K:
    """Makes new keys from a key. Do not use the old key afterwards.

    Args:
        key: uint32[2].
        n: the number of new keys.

    Returns:
        uint32[n, 2].

    Raises:
        TypeError: if `key` is no key.

    Source: Threefry2x32 with 20 rounds, Salmon et al., 2011.

    Examples:
        >>> from rune_jit import random
        >>> first, second = random.split(random.key(0))
        >>> first.shape, bool((first == second).all())
        ((2,), False)
    """
    return _call(_pairs, (key,), int(n), _KEYS)


def fold_in(key: K, number: ArrayLike) -> K:
    """Makes a key from a key and a number, such as a loop counter. Equal numbers give equal keys.

    Args:
        key: uint32[2].
        number: an integer from 0 to 2**32 - 1, or a 0-d array of integers.

    Returns:
        uint32[2].

    Raises:
        TypeError: if `key` is no key.
        ValueError: if the number is out of bounds.

    Source: Threefry2x32 with 20 rounds, Salmon et al., 2011.

    Examples:
        >>> from rune_jit import random
        >>> keys = [random.fold_in(random.key(0), day) for day in range(3)]
        >>> len({tuple(key.tolist()) for key in keys})
        3
    """
    if not isinstance(number, (Tracer, Array)):
        number = np.asarray(number)
        if number.dtype.kind not in "iu" or not 0 <= number < _MOST_PAIRS:
            raise ValueError(f"random.fold_in: cannot fold {number} in (0 to 2^32 - 1)")
    return _call(_fold_in, (key, number))


def bits(key: K, shape: Shape = (), dtype: DTypeLike = np.uint32) -> K:
    """Random bits.

    Args:
        key: uint32[2], from `key` or `split`; an Array gives an Array on its device.
        shape: of the result.
        dtype: uint32 or uint64.

    Returns:
        An array of `shape` and `dtype`. All integers of the dtype have the same probability.

    Raises:
        TypeError: if `key` is no key, or for another dtype.

    Source: Threefry2x32 with 20 rounds, Salmon et al., 2011.

    Examples:
        >>> from rune_jit import random
        >>> random.bits(random.key(0), (2, 3)).shape
        (2, 3)
    """
    name = np.dtype(dtype).name
    if name not in ("uint32", "uint64"):
        raise TypeError(f"random.bits: cannot draw {name} (expected uint32 or uint64)")
    return _call(_bits, (key,), _shape(shape), int(name[4:]))


def uniform(
    key: K,
    shape: Shape = (),
    dtype: DTypeLike = np.float32,
    low: float = 0.0,
    high: float = 1.0,
) -> K:
    """Numbers that are uniform in [low, high).

    Args:
        key: uint32[2], from `key` or `split`; an Array gives an Array on its device.
        shape: of the result.
        dtype: float32 or float64.
        low: the lowest number.
        high: numbers stay below it.

    Returns:
        An array of `shape` and `dtype`. Numbers are low plus multiples of 2**-24 (float32) or
        2**-53 (float64) of the interval.

    Raises:
        TypeError: if `key` is no key, or for another dtype.

    Source: Threefry2x32 with 20 rounds, Salmon et al., 2011.

    Examples:
        >>> from rune_jit import random
        >>> x = random.uniform(random.key(0), (1000,), low=-1.0)
        >>> bool(((-1 <= x) & (x < 1)).all()), x.dtype.name
        (True, 'float32')
    """
    number = _call(_uniform, (key,), _shape(shape), _float(dtype))
    if low == 0 and high == 1:
        return number
    real: Any = np.dtype(dtype).type
    return number * real(high - low) + real(low)


def normal(key: K, shape: Shape = (), dtype: DTypeLike = np.float32) -> K:
    """Numbers with the normal distribution, of mean 0 and variance 1.

    Args:
        key: uint32[2], from `key` or `split`; an Array gives an Array on its device.
        shape: of the result.
        dtype: float32 or float64.

    Returns:
        An array of `shape` and `dtype`.

    Raises:
        TypeError: if `key` is no key, or for another dtype.

    Source: Box and Muller, 1958.

    Examples:
        >>> from rune_jit import random
        >>> x = random.normal(random.key(0), (10_000,))
        >>> bool(abs(x.mean()) < 0.05), bool(abs(x.std() - 1) < 0.05)
        (True, True)
    """
    return _call(_normal, (key,), _shape(shape), _float(dtype))


def randint(key: K, low: int, high: int, shape: Shape = (), dtype: DTypeLike = np.int64) -> K:
    """Integers that are uniform in [low, high).

    Args:
        key: uint32[2], from `key` or `split`; an Array gives an Array on its device.
        low: the lowest integer.
        high: integers stay below it.
        shape: of the result.
        dtype: an integer dtype.

    Returns:
        An array of `shape` and `dtype`. The bias is below (high - low) / 2**64.

    Raises:
        TypeError: if `key` is no key.
        ValueError: if the dtype cannot hold the bounds, or there is no integer between them.

    Source: Threefry2x32 with 20 rounds, Salmon et al., 2011.

    Examples:
        >>> from rune_jit import random
        >>> x = random.randint(random.key(0), 1, 7, (1000,))
        >>> int(x.min()), int(x.max())
        (1, 6)
    """
    limits = np.iinfo(dtype)
    if not limits.min <= low < high <= limits.max + 1 or high - low >= 2**64:
        raise ValueError(f"random.randint: cannot draw {limits.dtype} from [{low}, {high})")
    return _call(_randint, (key,), int(low), int(high), _shape(shape), np.dtype(dtype).name)


def exponential(key: K, shape: Shape = (), dtype: DTypeLike = np.float32) -> K:
    """Numbers with the exponential distribution, of mean 1.

    Args:
        key: uint32[2], from `key` or `split`; an Array gives an Array on its device.
        shape: of the result.
        dtype: float32 or float64.

    Returns:
        An array of `shape` and `dtype`, without negative numbers.

    Raises:
        TypeError: if `key` is no key, or for another dtype.

    Source: Threefry2x32 with 20 rounds, Salmon et al., 2011.

    Examples:
        >>> from rune_jit import random
        >>> x = random.exponential(random.key(0), (10_000,))
        >>> bool(abs(x.mean() - 1) < 0.05)
        True
    """
    return _call(_exponential, (key,), _shape(shape), _float(dtype))


def bernoulli(key: K, p: ArrayLike = 0.5, shape: Shape | None = None) -> K:
    """Draws bools that are True with probability p.

    Args:
        key: uint32[2], from `key` or `split`; an Array gives an Array on its device.
        p: a number or an array, from 0 to 1; it broadcasts to `shape`.
        shape: of the result; default: the shape of `p`.

    Returns:
        An array of bools of `shape`.

    Raises:
        TypeError: if `key` is no key.

    Source: Threefry2x32 with 20 rounds, Salmon et al., 2011.

    Examples:
        >>> from rune_jit import random
        >>> x = random.bernoulli(random.key(0), 0.9, (1000,))
        >>> bool(850 < x.sum() < 950)
        True
    """
    wanted = np.shape(p) if shape is None else _shape(shape)
    if not isinstance(p, (Tracer, Array)):
        p = np.asarray(p, np.float32)
    result: Any = np.less(uniform(key, wanted), p)
    return result


def permutation(key: K, x: Any) -> K:
    """Puts the integers below x, or the rows of an array x, in random order.

    NumPy sorts them, on the host.

    Args:
        key: uint32[2], from `key` or `split`; an Array gives an Array on its device.
        x: an integer, or an array. Its rows are its parts along the first axis.

    Returns:
        int64[x], or an array with the shape and dtype of `x`.

    Raises:
        TypeError: if `key` is no key.

    Source: Threefry2x32 with 20 rounds, Salmon et al., 2011.

    Examples:
        >>> from rune_jit import random
        >>> sorted(random.permutation(random.key(0), 4).tolist())
        [0, 1, 2, 3]
    """
    if np.ndim(x) == 0:
        return _call(_order, (key,), int(x))
    return _call(_permuted, (key, x if isinstance(x, (Tracer, Array)) else np.asarray(x)))


def choice(
    key: K,
    x: Any,
    shape: Shape = (),
    *,
    replace: bool = True,
    p: ArrayLike | None = None,
) -> K:
    """Chooses at random among the integers below x, or among the rows of an array x.

    Args:
        key: uint32[2], from `key` or `split`; an Array gives an Array on its device.
        x: an integer, or an array.
        shape: of the result.
        replace: whether an element may be chosen more than once.
        p: the weights of the elements, not negative and not all 0. Default: equal weights.

    Returns:
        For an integer x, int64 of `shape`. For an array x, an array of its dtype, of shape (*shape,
        *x.shape[1:]).

    Raises:
        TypeError: if `key` is no key.
        ValueError: with replace=False, if more elements are wanted than there are, or if `p` is
            given.

    Source: Threefry2x32 with 20 rounds, Salmon et al., 2011.

    Examples:
        >>> import numpy as np
        >>> from rune_jit import random
        >>> random.choice(random.key(0), np.array([2.5, 3.5]), (3,), p=[0.0, 1.0])
        array([3.5, 3.5, 3.5])
    """
    rows = int(x) if np.ndim(x) == 0 else x.shape[0] if hasattr(x, "shape") else len(x)
    wanted = _shape(shape)
    index: Any
    if not replace:
        count = math.prod(wanted)
        if count > rows or p is not None:
            what = "with weights" if p is not None else f"of {rows}"
            raise ValueError(f"random.choice: cannot choose {count} {what} without replace")
        index = np.reshape(permutation(key, rows)[:count], wanted)
    elif p is None:
        index = randint(key, 0, rows, wanted)
    else:
        weights = p if isinstance(p, (Tracer, Array)) else np.asarray(p, np.float64)
        index = _call(_chosen, (key, weights), wanted)
    result: Any = index if np.ndim(x) == 0 else np.take(x, index, axis=0)
    return result
