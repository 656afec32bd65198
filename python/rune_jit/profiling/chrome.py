"""A profile in the Trace Event Format, which Perfetto and chrome://tracing open.

Source: "Trace Event Format", Google,
docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rune_jit.profiling.profile import Profile

_KINDS = {"read": "read of a value", "numpy": "call on NumPy", "inside": "NumPy's function"}


def write(profile: Profile, path: str | os.PathLike[str]) -> None:
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"traceEvents": events(profile), "displayTimeUnit": "ns"}, file)


def events(profile: Profile) -> list[dict[str, Any]]:
    """The events of a profile. Times are in microseconds since the profile's begin."""
    process = os.getpid()
    threads: dict[int, int] = {}

    def interval(
        name: str, category: str, begin_ns: float, ns: float, thread: int, **args: Any
    ) -> dict[str, Any]:
        number = threads.setdefault(thread, len(threads) + 1)
        return {
            "name": name,
            "cat": category,
            "ph": "X",
            "ts": begin_ns / 1000,
            "dur": ns / 1000,
            "pid": process,
            "tid": number,
            "args": {key: value for key, value in args.items() if value},
        }

    found = [
        interval(i.name, i.kind, i.begin_ns, i.ns, i.thread, line=i.detail)
        for i in profile.intervals
    ]
    for c in profile.compilations:
        event = c.event
        parts = {f"{part}_s": seconds for part, seconds in c.parts.items()}
        found.append(
            interval(
                f"compile {c.function}", "compilation", event.begin_ns, event.ns, event.thread,
                cause=c.cause, became=c.outcome, line=c.site, operations=c.operations, **parts,
            )
        )  # fmt: skip
    for kind, event in profile.events:
        name = f"{_KINDS[kind]}: {event.name}"
        found.append(
            interval(name, kind, event.begin_ns, event.ns, event.thread, detail=event.detail)
        )
    for device, use in profile.memory.items():
        points = [(0.0, use.begin), *use.points.tolist()]
        found += [
            {
                "name": f"memory in use on {device}",
                "ph": "C",
                "ts": at / 1000,
                "pid": process,
                "args": {"bytes": live},
            }
            for at, live in points
        ]
    names = profile.threads
    found += [
        {
            "name": "thread_name",
            "ph": "M",
            "pid": process,
            "tid": number,
            "args": {"name": names.get(thread, f"thread {number}")},
        }
        for thread, number in threads.items()
    ]
    return found
