"""Arrays that names stand for after a loop, and that the loop has appended to lists, too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rune_jit.tracing.loops import Body, Loops
from rune_jit.tracing.tracer import Tracer, is_traced_array


class SharedRows:
    """The rows of one loop's appended arrays, and the names that share them."""

    def __init__(
        self,
        loops: Loops,
        body: Body,
        rows: dict[int, tuple[Tracer, list[Tracer]]],
        given: Mapping[int, str],
        after: dict[str, Any],
    ) -> None:
        """`rows`: by the id of a storage in the traced iteration, its array there, and in all
        iterations. `given`: the names of carried arrays, by the ids of their storages at the start
        of an iteration. `after`: the values of names after the iteration."""
        self._loops, self._body, self._rows = loops, body, rows
        self._given, self._after = given, after

    def share(self, made: dict[str, Any]) -> None:
        """Assigns a row to each name that shares its array with a list, and notes which other
        arrays share memory with rows."""
        loops, after = self._loops, self._after
        for like, rows in self._rows.values():
            if self._body.is_older(like._storage):
                others = (x._storage for x in rows)
                loops.share(like._storage, *others, loop=self._body.loop)
        for name, array in made.items():
            if not is_traced_array(array) or not is_traced_array(after.get(name)):
                continue
            for at in self._selected_from(array._storage):
                loops.parts.append((self._body.loop, array, self._rows[at][1]))
            # An array that another name has taken over is that of an earlier iteration.
            new, is_whole = after[name], True
            for earlier in range(len(self._given) + 1):
                is_whole &= not new._steps
                for same, is_same in self._appended_since(new._storage, earlier):
                    if is_whole and is_same:
                        made[name] = same
                    else:
                        loops.share(array._storage, same._storage, loop=self._body.loop)
                        loops.parts.append((self._body.loop, array, [same]))
                if id(new._storage) not in self._given:
                    break
                new = after[self._given[id(new._storage)]]

    def _selected_from(self, storage: Any) -> set[int]:
        """The ids of appended storages one of which an array may be, if data decide which."""
        met, open_ = set[int](), [*self._loops.sharing(storage)]
        while open_:
            one = open_.pop()
            if id(one) not in met:
                open_ += self._loops.sharing(one)
                if (name := self._given.get(id(one))) is not None:
                    open_.append(self._after[name]._storage)
            met.add(id(one))
        return met & self._rows.keys()

    def _appended_since(self, storage: Any, earlier: int) -> Iterator[tuple[Tracer, bool]]:
        """The rows that may share memory with an array, and whether each of them is the array
        itself. The array is that of a storage in the iteration that runs `earlier` iterations
        before the last one. Names carry it to the iterations that follow, which may append it."""
        known = {id(storage): True}  # by id of a storage: whether the array is all of it
        for ago in range(earlier, -1, -1):
            for at, is_whole in known.items():
                like, rows = self._rows.get(at, (None, []))
                if like is not None and ago < len(rows):
                    yield rows[-1 - ago], is_whole and not like._steps
            held: list[Any] = [(at, self._after.get(name)) for at, name in self._given.items()]
            known = {
                at: known[id(x._storage)] and not x._steps
                for at, x in held
                if is_traced_array(x) and id(x._storage) in known
            }
