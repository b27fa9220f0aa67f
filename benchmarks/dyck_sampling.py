"""Speed of the compiled Dyck sampler on 1 and 2 threads, compared with a sampler vectorized with NumPy.

Both sample from the distribution of the thesis (length 32, type probabilities 0.2 and 0.8, opening probability 0.5)
into int64 arrays. Rounds alternate, so that the load of the machine affects all contenders. The table shows medians.
"""

import sys
import time
from collections.abc import Callable

import numpy as np
import torch

from record import Record
from trialogue.data.dyck.language import Dyck
from trialogue.randomness import numpy_generator

ROUNDS = 7


def numpy_sample(dyck: Dyck, n: int, seed: int) -> np.ndarray:
    """Sample all strings in parallel, one position at a time."""
    rng = numpy_generator(seed, "numpy dyck")
    tokens = np.empty((n, dyck.length), np.int64)
    stack = np.zeros((dyck.length // 2 + 2, n), np.int64)
    depth, strings = np.zeros(n, np.int64), np.arange(n)
    cumulative = np.cumsum(dyck.type_probs)[:-1]
    for i in range(dyck.length):
        opens = (depth == 0) | ((depth < dyck.length - i) & (rng.random(n) < dyck.open_prob))
        kind = np.searchsorted(cumulative, rng.random(n), side="right")
        tokens[:, i] = np.where(opens, 2 * kind, 2 * stack[depth, strings] + 1)
        depth += np.where(opens, 1, -1)
        opened = np.flatnonzero(opens)
        stack[depth[opened], opened] = kind[opened]
    return tokens


def seconds(draw: Callable[[], object]) -> float:
    """Return the wall time of one call."""
    start = time.perf_counter()
    draw()
    return time.perf_counter() - start


def main(n: int = 500_000) -> None:
    record = Record("dyck_sampling")
    dyck = Dyck()
    assert bool(dyck.is_member(torch.from_numpy(numpy_sample(dyck, 1000, 0))).all())
    dyck.sample(10)

    def compiled(threads: int) -> Callable[[], object]:
        def draw() -> object:
            torch.set_num_threads(threads)
            return dyck.sample(n)

        return draw

    contenders = {
        "numpy, 1 thread": (lambda: numpy_sample(dyck, n // 5, 0), n // 5),
        "trialogue, 1 thread": (compiled(1), n),
        "trialogue, 2 threads": (compiled(2), n),
    }
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name, (draw, _) in contenders.items():
            times[name].append(seconds(draw))
    rates = {
        name: rows * dyck.length / float(np.median(times[name])) for name, (_, rows) in contenders.items()
    }
    for name, rate in rates.items():
        record.add(name, rate, what="tokens/s")
        print(f"{name:22} {rate / 1e6:8.1f} million tokens/s {rate / rates['numpy, 1 thread']:6.1f} x")
    if "--record" in sys.argv:
        record.write()


if __name__ == "__main__":
    main()
