"""Lists that loops make longer at the front: as fast as at the end, and in NumPy's order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from loop_checks import both, rolled

BACK = np.random.default_rng(3).integers(0, 5, (40, 5))
PARENTS = np.maximum(np.arange(50) - 1 - np.arange(50) % 3, 0)


def test_paths_of_known_length() -> None:
    def by_insert(back: Any) -> Any:
        path = [int(np.argmax(back[-1]))]
        for t in range(len(back) - 1, 0, -1):
            path.insert(0, int(back[t, path[0]]))
        return path, path[0], np.array(path)

    def of_rows(back: Any) -> Any:
        rows = []
        for row in back:
            rows.insert(0, row * 2)
        return np.array(rows)

    rolled(by_insert, BACK)
    rolled(of_rows, BACK)


def test_sums_with_the_list() -> None:
    def f(back: Any) -> Any:
        path = [np.argmax(back[-1])]
        for t in range(len(back) - 1, 0, -1):
            path = [back[t, path[0]]] + path  # noqa: RUF005
        return path

    rolled(f, BACK)


def test_paths_whose_length_data_decide() -> None:
    def f(parents: Any, goal: int) -> Any:
        k = goal
        path = [goal]
        while k != 0:
            k = parents[k]
            path.insert(0, k)
        return path

    for goal in (0, 7, 49):
        both(f, PARENTS, goal)


@pytest.mark.parametrize("n", [0, 1, 6])
def test_whatever_else_sees_the_list_sees_it_in_order(n: int) -> None:
    def other_name(x: Any, n: int) -> Any:
        found = [x[0]]
        other, seen = found, []
        for i in range(n):
            found.insert(0, x[i])
            seen.append(list(other))
        return found, seen

    def read_elsewhere(x: Any, n: int) -> Any:
        found = [x[0]]
        for i in range(n):
            found.insert(0, x[i] + found[-1] + found[len(found) // 2])
        return found

    def appended_too(x: Any, n: int) -> Any:
        found = [x[0]]
        for i in range(n):
            found.insert(0, x[i])
            found.append(-x[i])
        return found

    def returned_early(x: Any, n: int) -> Any:
        found = [x[0], x[1]]
        for i in range(n):
            found.insert(0, x[i])
            if i == 3:
                return found
        return found, len(found)

    def captured(x: Any, n: int) -> Any:
        found = [x[0]]
        first = lambda: found[0]  # noqa: E731
        for i in range(n):
            found.insert(0, first() + x[i])
        return found

    def handled(x: Any, n: int) -> Any:
        found = [x[0]]
        try:
            for i in range(n):
                found.insert(0, x[i])
                if i == 4:
                    raise KeyError(i)
        except KeyError:
            return found, "raised"
        return found

    def within(x: Any, n: int) -> Any:
        found, kept = [x[0]], []
        for k in range(3):
            for i in range(n):
                found.insert(0, x[i] * k)
            kept.append(found[0] - found[-1])
        return found, kept

    def several(x: Any, n: int) -> Any:
        found = [x[0], x[1]]
        for i in range(n):
            found = [x[i], x[i] + 1, *found]
        for i in range(n):
            found = [*x[i : i + 2]] + found  # noqa: RUF005
        return found

    x = np.arange(8.0)
    for f in (other_name, read_elsewhere, appended_too, returned_early, captured, handled):
        both(f, x, n)
    both(within, x, n)
    both(several, x, n)


def test_empty_lists_raise() -> None:
    def f(x: Any) -> Any:
        found = []
        for i in range(3):
            found.insert(0, x[i] + found[0])
        return found

    with pytest.raises(IndexError, match="list index out of range"):
        both(f, np.arange(4.0))
