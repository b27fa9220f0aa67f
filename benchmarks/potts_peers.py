"""Alternative exact samplers of a Potts chain, run by `potts.py` in a Python environment with some of their packages.

The script reads the log-weights of the windows (V, V, V) from a file. Each line of output is a JSON object with the
name of a contender. It also has the missing package, or the number of sequences, the CPU seconds of sampling without
messages and compilation, and the energy of each sequence over the temperature.

    python benchmarks/potts_peers.py log_weights.npy 1000
"""

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

# The libraries read these variables when they are imported.
os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"

import numpy as np

REPEATS = 2

Measured = tuple[int, float, Any]
"""Number of sequences, CPU seconds of the fastest repetition, and the sequences (n, L)."""


def timed(run: Callable[[int], Any]) -> tuple[float, Any]:
    """Return the minimum CPU time over several repetitions, and the result of the last one."""
    seconds = []
    for repeat in range(REPEATS):
        began = time.process_time()
        answer = run(repeat)
        seconds.append(time.process_time() - began)
    return min(seconds), answer


def cumulative_laws(weights: Any, length: int) -> tuple[Any, Any]:
    """Return the cumulative probabilities of the first pair (V^2,), and of each later token (L - 2, V^2, V)."""
    vocab = len(weights)
    message, distributions = np.zeros((vocab, vocab)), []
    for _ in range(length - 2):
        joint = weights + message
        largest = joint.max(2, keepdims=True)
        sums = np.exp(joint - largest).cumsum(2)
        distributions.append((sums / sums[:, :, -1:]).reshape(vocab * vocab, vocab))
        message = largest[:, :, 0] + np.log(sums[:, :, -1])
        message -= message.max()
    first = np.exp(message.ravel()).cumsum()
    return first / first[-1], np.stack(distributions[::-1])


def numpy_loop(weights: Any, length: int) -> Measured:
    """Sample all sequences in parallel, site by site, by inversion of the cumulative distribution."""
    n, vocab = 10_000, len(weights)
    first, distributions = cumulative_laws(weights, length)

    def draw(repeat: int) -> Any:
        rng = np.random.default_rng(repeat)  # noqa: TID251
        pair = np.searchsorted(first, rng.random(n))
        tokens = np.empty((length, n), np.int64)
        tokens[0], tokens[1] = pair // vocab, pair % vocab
        for site in range(2, length):
            token = (distributions[site - 2][pair] < rng.random(n)[:, None]).sum(1)
            tokens[site] = token
            pair = pair % vocab * vocab + token
        return tokens.T

    return n, *timed(draw)


def torch_loop(weights: Any, length: int) -> Measured:
    """Sample like `numpy_loop` with tensor operations of torch, on one thread."""
    import torch

    torch.set_num_threads(1)
    n, vocab = 10_000, len(weights)
    first, distributions = (
        torch.from_numpy(distribution) for distribution in cumulative_laws(weights, length)
    )

    def draw(repeat: int) -> Any:
        generator = torch.Generator().manual_seed(repeat)  # noqa: TID251
        numbers = torch.rand(n, generator=generator, dtype=torch.float64)
        pair = torch.searchsorted(first, numbers)
        tokens = torch.empty(length, n, dtype=torch.int64)
        tokens[0], tokens[1] = pair // vocab, pair % vocab
        for site in range(2, length):
            numbers = torch.rand(n, 1, generator=generator, dtype=torch.float64)
            token = (distributions[site - 2][pair] < numbers).sum(1)
            tokens[site] = token
            pair = pair % vocab * vocab + token
        return tokens.T.numpy()

    return n, *timed(draw)


def dynamax(weights: Any, length: int) -> Measured:
    """Sample from a hidden Markov model whose states are pairs of tokens, with the row sums as likelihoods."""
    import jax
    import jax.numpy as jnp
    from dynamax.hidden_markov_model import hmm_posterior_sample

    n, vocab = 256, len(weights)
    states = vocab * vocab
    dense = np.zeros((states, states))
    for pair in range(states):
        for token in range(vocab):
            dense[pair, pair % vocab * vocab + token] = np.exp(weights[pair // vocab, pair % vocab, token])
    rows = dense.sum(1)
    steps = length - 1
    likelihood = np.tile(np.log(rows), (steps, 1))
    likelihood[-1] = 0
    initial = jnp.full(states, 1 / states)
    matrix, likelihood = jnp.asarray(dense / rows[:, None]), jnp.asarray(likelihood)
    draw_all = jax.jit(jax.vmap(lambda key: hmm_posterior_sample(key, initial, matrix, likelihood)[1]))
    # Exclude compilation from the measured time.
    draw_all(jax.random.split(jax.random.key(9), n)).block_until_ready()

    def draw(repeat: int) -> Any:
        return np.asarray(draw_all(jax.random.split(jax.random.key(repeat), n)).block_until_ready())

    seconds, pairs = timed(draw)
    return n, seconds, np.concatenate((pairs[:, :1] // vocab, pairs % vocab), 1)


CONTENDERS: dict[str, Callable[[Any, int], Measured]] = {
    "numpy loop": numpy_loop,
    "torch loop": torch_loop,
    "dynamax": dynamax,
}


def main() -> None:
    """Measure all contenders and print one line for each."""
    weights, length = np.load(sys.argv[1]), int(sys.argv[2])
    for name, measure in CONTENDERS.items():
        line: dict[str, Any] = {"name": name}
        try:
            line["sequences"], line["seconds"], tokens = measure(weights, length)
            energies = -weights[tokens[:, :-2], tokens[:, 1:-1], tokens[:, 2:]].sum(1)
            line["energies"] = [float(energy) for energy in energies]
        except ImportError as error:
            line["missing"] = str(error)
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
