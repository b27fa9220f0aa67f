"""Brute-force implementation of Potts chains from their definitions."""

import math
from itertools import pairwise, product

import torch

from trialogue.data import PottsChain
from trialogue.randomness import generator


def random_table(seed: int, vocab: int, window: int) -> torch.Tensor:
    return 2 * torch.rand([vocab] * window, generator=generator(seed, "table"), dtype=torch.float64)


def sequences(vocab: int, length: int) -> torch.Tensor:
    return torch.tensor(list(product(range(vocab), repeat=length)))


def energy(chain: PottsChain, x: list[int]) -> float:
    windows = range(len(x) - chain.window + 1)
    return sum(float(chain.energies[tuple(x[i : i + chain.window])]) for i in windows)


def distribution(chain: PottsChain, length: int, temperature: float) -> tuple[torch.Tensor, float]:
    """Return the probabilities (V^L,) of all sequences, and log Z."""
    energies = [energy(chain, x) for x in product(range(chain.vocab_size), repeat=length)]
    least = min(energies)
    weights = [math.exp((least - one) / temperature) for one in energies]
    total = math.fsum(weights)
    return torch.tensor(weights, dtype=torch.float64) / total, math.log(total) - least / temperature


def label(chain: PottsChain, window: list[int], site: int) -> int:
    """Return the lowest label p * period + f with the smallest Hamming distance to the window at `site`."""
    patterns = [pattern.tolist() for pattern in chain.patterns]
    period = len(patterns[0])
    wrong = {
        p * period + f: sum(token != pattern[(site + f + j) % period] for j, token in enumerate(window))
        for p, pattern in enumerate(patterns)
        for f in range(period)
    }
    return min(wrong, key=lambda one: (wrong[one], one))


def labels(chain: PottsChain, x: list[int]) -> list[int]:
    windows = range(len(x) - chain.window + 1)
    return [label(chain, x[i : i + chain.window], i) for i in windows]


def walls(chain: PottsChain, length: int) -> torch.Tensor:
    """Return the positions (V^L, L - W) bool where the label of each sequence changes."""
    followed = [labels(chain, list(x)) for x in product(range(chain.vocab_size), repeat=length)]
    return torch.tensor([[a != b for a, b in pairwise(one)] for one in followed])
