"""Shows a function on its way through the compiler: graph, schedule, kernels, Metal and CPU source.

    python examples/show_source.py

Nothing is compiled or run, so the text for any device can be read on any machine.
"""

from __future__ import annotations

import numpy as np

import rune_jit


@rune_jit.jit
def softmax(x):
    shifted = np.exp(x - x.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def main() -> None:
    x = np.zeros((128, 1000), np.float32)
    on_cpu = softmax.lower(x)
    sections = {
        "graph": on_cpu.graph,
        "schedule": on_cpu.schedule,
        "kernels": "\n".join(on_cpu.kernels),
        "Metal source": on_cpu.source("metal"),
        "LLVM IR": on_cpu.source("cpu"),
        "costs": "\n".join(f"{name:14} {cost:g}" for name, cost in on_cpu.cost_analysis().items()),
        "explained": on_cpu.explain(),
    }
    for title, text in sections.items():
        print(f"==== {title}\n{text.rstrip()}\n")


if __name__ == "__main__":
    main()
