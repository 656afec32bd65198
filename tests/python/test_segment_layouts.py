"""How arrays lie in memory in segments, and what depends on it."""

from typing import Any

import numpy as np
import pytest
from compare import assert_same
from segment_checks import check, never_numpy, segmented, x

import rune_jit
from rune_jit.tracing.programs import Programs

__all__ = ["never_numpy"]  # a fixture of all tests here


@pytest.mark.parametrize("turn", [np.asfortranarray, np.ascontiguousarray, np.transpose])
def test_flags_and_strides_of_computed_arrays(turn):
    def lie(*arrays):
        return [
            (a.flags.c_contiguous, a.flags.f_contiguous, a.flags.fnc, a.strides) for a in arrays
        ]

    def f(x):
        x = turn(x)
        x[0, 0].tolist()
        columns, rows = np.zeros(x.shape, order="F") + x[0, 0], np.ones(x.shape) * x[0, 0]
        made = [x, x + 1, (x + 1).T, x.copy("K"), np.zeros_like(x), columns, x @ x.T]
        return lie(*made, columns + rows, (columns + 1) * rows)

    segmented(f, np.arange(6.0).reshape(2, 3))
    segmented(f, np.asfortranarray(np.arange(6.0).reshape(2, 3)))


def test_products_are_in_c_order():
    def f(x):
        result = []
        for y in (np.cov(x.reshape(2, 3)), np.dot(x.reshape(2, 3), x.reshape(3, 2))):
            y.reshape(-1)[0] = x[0].tolist()
            result.append(y)
        return result

    segmented(f, np.arange(6.0))


def test_methods_of_generators_that_fill_an_array():
    def f(x):
        generator = np.random.default_rng(3)
        x[0].tolist()
        other = np.empty_like(x)
        return generator.permuted(x, out=other) is other, other, generator.random(out=x)

    jitted = rune_jit.jit(f)
    for _ in range(3):
        check(jitted(x()), f(x()))


@pytest.mark.parametrize(
    "shape, at, axis", [((0, 3), [5], 1), ((2, 0, 3), 7, -1), ((0, 0), [5], 1)]
)
def test_indices_into_an_array_without_elements(shape, at, axis):
    for function in (lambda x: np.take(x, at, axis), lambda x: x.take(at, axis)):
        check(rune_jit.jit(function)(np.zeros(shape)), function(np.zeros(shape)))
    for bad in ((0,), (3, 0)):
        with pytest.raises(IndexError):
            rune_jit.jit(lambda x: np.take(x, [5], 0))(np.zeros(bad))


def test_out_of_memory_that_is_not_traced(tmp_path, monkeypatch):
    """As functions of installed libraries give it."""
    (tmp_path / "site-packages").mkdir()
    monkeypatch.syspath_prepend(tmp_path / "site-packages")
    (tmp_path / "site-packages" / "filling.py").write_text(
        "import numpy as np\n"
        "def fill(function, x, shape, *args):\n"
        "    out = np.full(shape, 7.0)\n"
        "    function(x, *args, out=out)\n"
        "    return out\n"
    )
    from filling import fill

    def f(x):
        total = x.sum()
        total.tolist()
        return (
            fill(np.clip, x * 2, x.shape, 0, None),
            fill(np.clip, total, (), 0, None),
            fill(np.sum, x * 2, ()),
            fill(np.mean, x * 2, (), 0),
            fill(np.cumsum, x * 2, x.shape),
        )

    segmented(f, x())


@pytest.mark.parametrize("part", [slice(None), slice(1, None)])
def test_what_is_computed_on_the_way_is_not_stored(part, monkeypatch):
    """How a result lies in memory follows from its operands: where that is C order, nothing must
    hold them until the result is used."""
    stored = []

    def run(self, segment, memory):
        stored.append(len(segment.outputs))
        return run_segment(self, segment, memory)

    run_segment = Programs.run
    monkeypatch.setattr(Programs, "run", run)

    def f(x):
        y = np.sqrt(np.where(x[part] > 2, x[part] * 3, 1.0) + 1) * 2
        y.sum().tolist()
        return y - 1

    segmented(f, np.arange(12.0).reshape(3, 4))
    assert stored[0] == 2  # y and its sum


class Tagged(np.ndarray):
    """A subclass, whose arrays are not traced."""

    def __new__(cls, values: Any) -> Any:
        return np.asarray(values).view(cls)

    def plain_total(self) -> Any:
        return self.view(np.ndarray).sum()


def test_subclasses_are_viewed_as_numpys_arrays() -> None:
    def f(x: Any) -> Any:
        scale = x.max().tolist()
        tagged = Tagged([1.0, 2.0, 3.0])
        sums = tagged + x
        tagged[0] = 7.0  # after it has been read
        views = tagged.view(np.ndarray), tagged.view(type=np.ndarray), x.view(np.ndarray)
        large = x[x > 0.2]
        kinds = isinstance(large, np.ndarray), isinstance(x.sum(), np.ndarray)
        made = np.ndarray((2, 3))
        made[:] = x
        same = type(x) is np.ndarray, type(tagged) is np.ndarray, type(large) is np.ndarray
        return views, sums.view(np.ndarray), kinds, same, made * scale, Tagged(x * 2).plain_total()

    jitted = rune_jit.jit(f)
    for seed in range(3):
        x = np.random.default_rng(seed).random(3)
        assert_same(jitted(x), f(x))


def test_flags_are_assigned_by_numpys_names() -> None:
    def f(x: Any, name: str) -> Any:
        y = x * x.max().tolist()
        y.flags[name] = False
        assert not y.flags.writeable
        y[0] = 1.0

    jitted = rune_jit.jit(f)
    for name in ("WRITEABLE", "W", "nothing"):
        with pytest.raises((ValueError, KeyError)) as wanted:
            f(np.ones(3), name)
        with pytest.raises(wanted.type, match="read-only" if name[0] == "W" else "flag"):
            jitted(np.ones(3), name)


def test_masks_without_elements_stay_masks() -> None:
    def f(x: Any, rows: Any) -> Any:
        limit = x.max().tolist()
        is_large = x[:, 0] > limit
        signs, chosen = np.sign(x)[is_large], rows[is_large]
        found = chosen[signs == 0]
        chosen[signs > 0] = 5
        return found, found.shape, chosen.shape, rows[is_large, 0]

    jitted = rune_jit.jit(f)
    for seed in range(3):
        x = np.random.default_rng(seed).random((5, 3))
        assert_same(jitted(x, np.arange(15).reshape(5, 3)), f(x, np.arange(15).reshape(5, 3)))


@pytest.mark.parametrize("axis", [0, 1])
def test_concatenations_of_several_orders(axis):
    """C order decides if the operands disagree."""

    def f(x):
        a, results = x.T, []
        x[0, 0].tolist()
        for parts in ([a, a * 1.0], [a, np.ones(a.shape)], [a[:1], a[1:]], [a.copy(), a]):
            joined = np.concatenate(parts, axis=axis)
            flat = joined.ravel()
            flat += 1
            results.append((joined, joined.flags.c_contiguous, joined.strides))
        return results

    segmented(f, np.arange(12.0).reshape(3, 4))


OF_OTHER_ORDERS = {
    "stack": lambda y: np.stack([y, y]),
    "a later stack": lambda y: np.stack([y, y], -1),
    "einsum": lambda y: np.einsum("ij,ij->ij", y, y),
    "einsum of two": lambda y: np.einsum("ij,kj->ik", y, y),
    "mean": lambda y: np.stack([y, y]).mean(axis=0),
    "sum": lambda y: np.stack([y, y], 1).sum(axis=1),
    "any": lambda y: np.lib.stride_tricks.sliding_window_view(y > 3, (2, 2)).any(axis=(-1, -2)),
    "cov": np.cov,
    "dstack": lambda y: np.dstack([y, y]),
    "delete": lambda y: np.delete(y, 0, axis=0),
    "insert": lambda y: np.insert(y, 0, 1, axis=0),
    "along": lambda y: np.apply_along_axis(np.sort, 0, y),
    "cross": lambda y: np.cross(y[:, :3], y[:, :3] + 1),
    "digitize": lambda y: np.digitize(y, [1, 2]),
    "interp": lambda y: np.interp(y, [0, 1], [1, 2]),
    "qr": lambda y: np.linalg.qr(y)[0],
    "positions": lambda y: y[:, [0, 1]],
}


@pytest.mark.parametrize("name", OF_OTHER_ORDERS)
@pytest.mark.parametrize("turn", [np.transpose, lambda x: x[:, ::-1]], ids=["turned", "mirrored"])
def test_results_that_are_not_elementwise(name, turn):
    """Their layout decides whether ravel is a view, to which a write reaches the result."""

    def f(x):
        y = turn(x)
        x[0, 0].tolist()
        made = OF_OTHER_ORDERS[name](y)
        flat, rows = made.ravel(), made.reshape(len(made), -1)
        flat[0], rows[0, 1] = 0, 1
        return made, flat, rows, made.flags.c_contiguous, made.flags.f_contiguous, made.strides

    segmented(f, np.arange(12.0).reshape(3, 4))


def test_a_histogram_of_two_axes_is_part_of_a_larger_array():
    def f(x):
        made = np.histogram2d(x, x[::-1], 3)[0]
        flat = made.ravel()
        flat[0] = 7
        return made, flat

    jitted = rune_jit.jit(f)
    for _ in range(3):
        check(jitted(x()), f(x()))


@pytest.mark.parametrize("find", [np.nonzero, np.where, lambda a: np.argwhere(a).T])
def test_positions_along_several_axes_are_columns_of_one_array(find):
    def f(x):
        rows, columns = find(x > 4)
        flat = rows.ravel()
        flat[0], columns.reshape(-1)[1] = 7, 8
        return (
            rows,
            columns,
            flat,
            rows.strides,
            columns.flags.c_contiguous,
            x[rows % 3, columns % 3],
        )

    segmented(f, np.arange(12.0).reshape(3, 4))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 2,
        lambda x: x[0] + (x > 0),
        lambda x: (x + 0j).imag,
        lambda x: (x[:, [0, 1]], x[0:, [2, 0]]),
        lambda x: np.add.outer(x, x[0]),
        lambda x: np.linspace(x, x + 1, 3, axis=-1),
        lambda x: (np.cumsum(x, axis=1), np.sort(x)),
        lambda x: (x.T, x.T + 1, np.moveaxis(x * 2, 0, 1)),
    ],
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_results_lie_as_numpys(function, order):
    def f(x):
        return function(x) if x.sum() > 0 else x

    jitted = rune_jit.jit(f)
    for _ in range(3):
        x = np.array(np.arange(6.0).reshape(2, 3), order=order)
        got, expected = (y if type(y) is tuple else (y,) for y in (jitted(x), f(x)))
        check(got, expected)
        assert [y.strides for y in got] == [y.strides for y in expected]


@pytest.mark.parametrize("order", ["C", "F"])
def test_full_of_a_computed_number(order):
    def f(x):
        x[0].tolist()
        return np.full((2, 3), x[0], order=order)

    jitted = rune_jit.jit(f)
    for _ in range(3):
        found, wanted = jitted(np.arange(3.0)), f(np.arange(3.0))
        np.testing.assert_array_equal(found, wanted)
        assert found.strides == wanted.strides


def test_results_of_loops_that_are_programs_of_their_own():
    def f(x):
        x[0].tolist()
        y = x
        for _ in range(6):
            y = y * 2 + 1
        return y

    jitted = rune_jit.jit(f)
    for _ in range(3):
        x = np.asfortranarray(np.arange(12.0).reshape(3, 4))
        assert jitted(x).flags.f_contiguous
        assert_same(jitted(x), f(x))
    assert "loop" in jitted.explain()


def test_results_of_loops_that_share_memory_are_written_to():
    def f(x):
        x[0].tolist()
        a = u = x
        for i in range(6):
            a = a * 2 - i
            u = a[::-1]
        u[0] = 77
        return a * 2, u

    jitted = rune_jit.jit(f)
    for _ in range(3):
        assert_same(jitted(np.arange(4.0)), f(np.arange(4.0)))
