"""Programs whose arrays grow and shrink as data decide, as people write them: name -> (function,
arguments, the number of compilations in three calls if nothing is interpreted). There are two for
the operations between two reads, three where lengths differ later that were equal."""

import collections

import numpy as np

PROGRAMS = {}


def program(most, *arguments):
    def add(function):
        PROGRAMS[function.__name__] = function, arguments, most
        return function

    return add


def random(seed):
    return np.random.default_rng(seed)


MAZE = np.array(
    [
        [0, 0, 0, 1, 0, 0, 0, 0],
        [1, 1, 0, 1, 0, 1, 1, 0],
        [0, 0, 0, 0, 0, 1, 0, 0],
        [0, 1, 1, 1, 0, 1, 0, 1],
        [0, 0, 0, 1, 0, 0, 0, 0],
        [1, 1, 0, 1, 1, 1, 1, 0],
        [0, 0, 0, 0, 0, 0, 1, 0],
        [0, 1, 1, 1, 1, 0, 0, 0],
    ]
)


@program(10, MAZE, (0, 0))
def flood_by_frontiers(maze, start):
    """The distances of all cells of a maze."""
    distance = np.full(maze.shape, -1)
    frontier = np.array([start])
    steps = 0
    while len(frontier):
        distance[frontier[:, 0], frontier[:, 1]] = steps
        near = np.concatenate([frontier + d for d in ([0, 1], [1, 0], [0, -1], [-1, 0])])
        inside = ((near >= 0) & (near < maze.shape[0])).all(axis=1)
        near = np.unique(near[inside], axis=0)
        open_ = (maze[near[:, 0], near[:, 1]] == 0) & (distance[near[:, 0], near[:, 1]] < 0)
        frontier = near[open_]
        steps += 1
    return distance, steps


@program(1, MAZE, (0, 0), (7, 7))
def shortest_way(maze, start, goal):
    """A breadth-first search with a queue."""
    before = {start: None}
    queue = collections.deque([start])
    while queue:
        cell = queue.popleft()
        if cell == goal:
            break
        for step in ((0, 1), (1, 0), (0, -1), (-1, 0)):
            row, column = cell[0] + step[0], cell[1] + step[1]
            is_inside = 0 <= row < maze.shape[0] and 0 <= column < maze.shape[1]
            if is_inside and maze[row, column] == 0 and (row, column) not in before:
                before[row, column] = cell
                queue.append((row, column))
    way = []
    while cell is not None:
        way.append(cell)
        cell = before[cell]
    return np.array(way[::-1])


@program(5, random(0).random(400), 1e-3)
def drop_outliers(x, tolerance):
    """Clips the sample until nothing lies outside."""
    rounds = 0
    while True:
        center, spread = x.mean(), x.std()
        inside = np.abs(x - center) <= 1.6 * spread
        if inside.all() or spread < tolerance:
            return x, center, rounds
        x = x[inside]
        rounds += 1


@program(5, random(1).random(300), random(2).random(300))
def active_set(x, target):
    """Newton's iteration for those elements that have not converged."""
    result = np.sqrt(x)
    active = np.arange(len(x))
    y = np.ones(len(x))
    rounds = 0
    while active.size:
        y[active] -= (y[active] ** 2 - x[active]) / (2 * y[active])
        error = np.abs(y - result) * target
        active = np.nonzero(error > 1e-9)[0]
        rounds += 1
    return y, rounds


@program(10, random(3).random((200, 2)), np.concatenate([random(4).random((4, 2)), [[9.0, 9.0]]]))
def k_means_without_empty_clusters(points, centers):
    for rounds in range(100):  # noqa: B007
        distances = ((points[:, None] - centers[None]) ** 2).sum(axis=-1)
        labels = distances.argmin(axis=1)
        used = np.unique(labels)
        new = np.array([points[labels == k].mean(axis=0) for k in used])
        if new.shape == centers.shape and np.allclose(new, centers):
            break
        centers = new
    return centers, labels, rounds


@program(0, 200)
def sieve(n):
    candidates = np.arange(2, n)
    primes = []
    while candidates.size:
        primes.append(int(candidates[0]))
        candidates = candidates[candidates % candidates[0] != 0]
    return primes


@program(7, random(5).random(500), random(6).random(500))
def greedy_intervals(start, length):
    """Takes the interval that ends first, drops what meets it, and so on."""
    stop = start + 0.05 * length
    taken = []
    while stop.size:
        first = stop.argmin()
        end = stop[first]
        taken.append(end)
        later = start > end
        start, stop = start[later], stop[later]
    return np.array(taken)


@program(0, 5.0, 0.7)
def adaptive_steps(end, rate):
    """Heun's method with steps that data decide, and a list of what it found."""

    def f(t, y):
        return np.array([y[1], -rate * y[0] + np.sin(t)])

    t, y, h = 0.0, np.array([1.0, 0.0]), 0.1
    times, states = [t], [y]
    while t < end:
        h = min(h, end - t)
        a = f(t, y)
        b = f(t + h, y + h * a)
        error = np.abs(h * (b - a) / 2).max()
        if error <= 1e-3:
            t, y = t + h, y + h * (a + b) / 2
            times.append(t)
            states.append(y)
        h = h * min(2.0, 0.9 * np.sqrt(1e-3 / max(error, 1e-12)))
    return np.array(times), np.array(states), len(times)


@program(7, random(7).random((40, 40)) < 0.03)
def components(adjacent):
    adjacent = adjacent | adjacent.T
    label = np.full(len(adjacent), -1)
    count = 0
    while (label < 0).any():
        frontier = np.flatnonzero(label < 0)[:1]
        while frontier.size:
            label[frontier] = count
            reached = adjacent[frontier].any(axis=0) & (label < 0)
            frontier = np.flatnonzero(reached)
        count += 1
    return label, count


@program(14, random(8).random(120))
def service_times(service):
    """A queue with one server: arrivals wait in an array that grows and shrinks."""
    clock, waiting, left = 0.0, np.empty(0), []
    arrivals = np.cumsum(service[::-1]) * 0.9
    while len(arrivals) or len(waiting):
        come = arrivals <= clock
        waiting = np.concatenate([waiting, arrivals[come]])
        arrivals = arrivals[~come]
        if waiting.size == 0:
            clock = arrivals[0]
            continue
        clock = clock + service[len(left) % len(service)] * 0.5
        left.append(clock - waiting[0])
        waiting = waiting[1:]
    return np.array(left), np.mean(left)


@program(3, random(9).random(600))
def running_prefixes(x):
    """Parts of an array whose lengths data decide."""
    total, n = 0.0, len(x)
    while n > 1:
        part = x[:n]
        total += part.sum() / n + (part * part).max()
        n = int(n * (0.5 + 0.4 * part[0]))
    return total, n


@program(6, random(10).random(600))
def halves(x):
    """A search by bisection in parts that data choose."""
    low, high = 0, len(x)
    spread = []
    while high - low > 2:
        part = x[low:high]
        middle = (low + high) // 2
        spread.append(part.std())
        if part[: len(part) // 2].sum() > part[len(part) // 2 :].sum():
            high = middle
        else:
            low = middle
    return np.array(spread), low, high


@program(0, 64, 3)
def accepted(n, seed):
    """Rejection sampling until there are enough."""
    generator = np.random.default_rng(seed)
    taken = np.empty(0)
    rounds = 0
    while taken.size < n:
        x = generator.normal(size=n)
        taken = np.concatenate([taken, x[np.abs(np.sin(3 * x)) > 0.6]])
        rounds += 1
    return taken[:n], rounds


@program(11, random(11).integers(0, 9, 80))
def rising_runs(x):
    """The runs of numbers that rise, cut one after the other."""
    lengths = []
    while len(x) > 1:
        falls = np.flatnonzero(np.diff(x) < 0)
        end = falls[0] + 1 if falls.size else len(x)
        lengths.append((end, (x[:end] * np.arange(end)).sum()))
        x = x[end:]
    return lengths


@program(4, random(12).random((50, 2)))
def pareto(points):
    """The points that no other one dominates."""
    found = np.empty((0, 2))
    while len(points):
        first = points[points.sum(axis=1).argmin()]
        found = np.vstack([found, first])
        points = points[(points < first).any(axis=1)]
    return found
