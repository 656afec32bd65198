"""Work in several threads at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TypeVar

Item = TypeVar("Item")


def in_threads(work: Callable[[Item], object], items: Iterable[Item]) -> None:
    """Calls `work` for each item, in a thread of its own. Raises the first thread's exception."""
    errors: list[BaseException] = []

    def run(item: Item) -> None:
        try:
            work(item)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(item,)) for item in items]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
