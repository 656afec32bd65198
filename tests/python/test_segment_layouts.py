"""How arrays lie in memory in segments, and what depends on it."""

import numpy as np
import pytest
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
        x[0, 0].item()
        columns, rows = np.zeros(x.shape, order="F") + x[0, 0], np.ones(x.shape) * x[0, 0]
        made = [x, x + 1, (x + 1).T, x.copy("K"), np.zeros_like(x), columns, x @ x.T]
        return lie(*made, columns + rows, (columns + 1) * rows)

    segmented(f, np.arange(6.0).reshape(2, 3))
    segmented(f, np.asfortranarray(np.arange(6.0).reshape(2, 3)))


def test_products_are_in_c_order():
    def f(x):
        result = []
        for y in (np.cov(x.reshape(2, 3)), np.dot(x.reshape(2, 3), x.reshape(3, 2))):
            y.reshape(-1)[0] = x[0].item()
            result.append(y)
        return result

    segmented(f, np.arange(6.0))


def test_methods_of_generators_that_fill_an_array():
    def f(x):
        generator = np.random.default_rng(3)
        x[0].item()
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
        total.item()
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
        y.sum().item()
        return y - 1

    segmented(f, np.arange(12.0).reshape(3, 4))
    assert stored[0] == 2  # y and its sum
