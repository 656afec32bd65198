"""Two galaxies of stars meet.

Each star attracts every other one. The leapfrog method advances positions and velocities; it keeps
the energy for long times. NumPy writes a matrix of all pairs several times a step. The compiled
step computes the pairs in registers. Source: Binney and Tremaine, Galactic Dynamics, 3.4.
"""

from __future__ import annotations

import numpy as np
from show import show

import rune_jit

STEPS, STEP, SOFTENING = 20, 0.02, 0.05


def acceleration(position, mass):
    """For position[n, 2] and mass[n], with G = 1; softened, so that no pair collides."""
    apart = position[None, :, :] - position[:, None, :]
    cubed = ((apart**2).sum(axis=2) + SOFTENING**2) ** -1.5
    return (apart * (cubed * mass)[:, :, None]).sum(axis=1)


@rune_jit.jit
def simulate(position, velocity, mass):
    """The positions after each of STEPS leapfrog steps."""
    path = np.empty((STEPS, *position.shape))
    pull = acceleration(position, mass)
    for step in range(STEPS):
        velocity = velocity + 0.5 * STEP * pull
        position = position + STEP * velocity
        pull = acceleration(position, mass)
        velocity = velocity + 0.5 * STEP * pull
        path[step] = position
    return path


def galaxy(random, stars, center, drift):
    """Stars on circles around a heavy one."""
    radius, angle = random.uniform(0.2, 1, stars), random.uniform(0, 2 * np.pi, stars)
    outward = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    around = np.stack([-outward[:, 1], outward[:, 0]], axis=1)
    position = center + radius[:, None] * outward
    velocity = drift + around / np.sqrt(radius)[:, None]
    position[0], velocity[0] = center, drift
    mass = np.full(stars, 1e-4)
    mass[0] = 1
    return position, velocity, mass


def arguments(scale):
    random = np.random.default_rng(0)
    galaxies = [
        galaxy(random, 150 * scale, np.array([-1.0, 0.3]), np.array([0.6, 0.0])),
        galaxy(random, 150 * scale, np.array([1.0, -0.3]), np.array([-0.6, 0.0])),
    ]
    return tuple(np.concatenate(parts) for parts in zip(*galaxies, strict=True))


def draw(figure, path):
    axes = figure.subplots()
    half = path.shape[1] // 2
    for stars, color in ((slice(half), "tab:blue"), (slice(half, None), "tab:red")):
        axes.plot(path[:, stars, 0], path[:, stars, 1], color=color, linewidth=0.4, alpha=0.5)
        axes.plot(*path[-1, stars].T, ".", color=color, markersize=3)
    axes.set(aspect="equal", xlim=(-2.2, 2.2), ylim=(-1.65, 1.65), title="paths of the stars")


if __name__ == "__main__":
    show(__doc__, simulate, arguments, draw)
