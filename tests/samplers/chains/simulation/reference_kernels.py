"""Reference implementations of the compiled kernels in Python integers, and a goodness-of-fit test."""

import math

import numpy as np
import torch
from scipy import stats

from samplers.chains.small_models import ring
from trialogue.data import Ising
from trialogue.randomness import Streams, derive_seed, generator

SIGNIFICANCE = 1e-9
GAMMA = 0x9E3779B97F4A7C15


def disordered(sites, seed=1, scale=0.5):
    """Return a model with different couplings, some of them zero, and different fields."""
    draw = torch.randn(sites, sites + 1, generator=generator(seed, "couplings"), dtype=torch.float64) * scale
    upper = (draw[:, :sites] * (draw[:, :sites].abs() > scale / 2)).triu(1)
    return Ising(upper + upper.T, draw[:, sites])


def star(sites):
    """Return a model of one site coupled to all others by -0.4, and a last site without neighbours."""
    matrix = torch.zeros(sites, sites, dtype=torch.float64)
    matrix[0, 1 : sites - 1] = matrix[1 : sites - 1, 0] = -0.4
    return Ising(matrix, torch.linspace(-0.3, 0.5, sites, dtype=torch.float64))


SMALL_MODELS = {
    "ring": ring(7, 0.5),
    "clique": Ising.clique(6, 4, 0.3, 0.1),
    "disordered": disordered(8),
    "frozen": disordered(6, scale=300.0),
    "star": star(5),
}


def p_value(tokens, distribution, vocab=2):
    """Return the chi-square p-value of independent states (n, N) for probabilities (vocab^N,).

    States are ordered as in `itertools.product`.
    """
    weights = vocab ** torch.arange(tokens.shape[1] - 1, -1, -1)
    counts = torch.bincount(tokens @ weights, minlength=len(distribution)).double().numpy()
    distribution = np.asarray(distribution)
    return float(
        stats.chi2.sf(
            ((counts - len(tokens) * distribution) ** 2 / (len(tokens) * distribution)).sum(),
            len(distribution) - 1,
        )
    )


def mix(x):
    """Apply the output function of SplitMix64."""
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
    return x ^ x >> 31


def stream(seed, name, key, count):
    """Return the first numbers of the SplitMix64 stream that seeds a generator."""
    start = int(Streams(derive_seed(seed, name), torch.tensor([key])).keys[0]) % 2**64
    return [mix((start + (place + 1) * GAMMA) % 2**64) for place in range(count)]


def rotated(x, shift, bits):
    return (x << shift | x >> bits - shift) % 2**bits


class Xoshiro:
    """The generators xoshiro128+ with 32 bits and xoshiro256++ with 64 bits."""

    def __init__(self, state, bits):
        self.state, self.bits = list(state), bits

    def next(self):
        a, b, c, d = self.state
        bits, modulus = self.bits, 2**self.bits
        number = (a + d) % modulus if bits == 32 else (rotated((a + d) % modulus, 23, 64) + a) % modulus
        shifted = (b << (9 if bits == 32 else 17)) % modulus
        c, d = c ^ a, d ^ b
        b, a = b ^ c, a ^ d
        self.state = [a, b, c ^ shifted, rotated(d, 11 if bits == 32 else 45, bits)]
        return number


def draw_token(tables, tokens, site, number):
    """Return the value that `tables` assign to `site` for a random integer `number` of 32 bits."""
    neighbours = [tokens[neighbour] for neighbour in tables.neighbours[site]]
    strides = [int(stride) for stride in tables.strides[site]]
    place = int(tables.offsets[site]) + sum(map(int.__mul__, strides, neighbours))
    if tables.vocab_size == 2:
        return int(number < int(tables.entries[place]))
    column, rest = divmod(number * tables.vocab_size, 2**32)
    threshold, alias = divmod(int(tables.entries[place + column]), 32)
    return column if rest // 32 < threshold else alias


def heat_bath(tables, chain, seed, sweeps):
    """Return the tokens (N,) of one chain of `HeatBath` after some sweeps."""
    words = [
        half for number in stream(seed, "heat-bath", chain, 2) for half in (number % 2**32, number >> 32)
    ]
    numbers, vocab = Xoshiro(words, 32), tables.vocab_size
    tokens = [numbers.next() * vocab >> 32 for _ in range(tables.sites)]
    if vocab == 2:
        tokens = [1 - token for token in tokens]
    for _ in range(sweeps):
        for site in range(tables.sites):
            tokens[site] = draw_token(tables, tokens, site, numbers.next())
    return tokens


def multispin(model, words, seed, sweeps):
    """Return the spins (64 * words, N) of the first block of `Multispin`.

    A chain reads its number bit by bit until no chain's bits equal the leading bits of a longer threshold.
    """
    numbers = [Xoshiro(stream(seed, "multispin", word, 4), 64) for word in range(words)]

    def drawn(thresholds):
        """Return the drawn bits of every chain as a number in units of 2^-52."""
        prefix, drawn_bits = [0] * (64 * words), 0
        open_ends = True
        while open_ends:
            for _ in range(4):
                random = [generator.next() for generator in numbers]
                prefix = [2 * bits + (random[c // 64] >> c % 64) % 2 for c, bits in enumerate(prefix)]
            drawn_bits += 4
            rest = 52 - drawn_bits
            open_ends = any(t % 2**rest and t >> rest in prefix for t in thresholds)
        return [bits << rest for bits in prefix]

    spins = [[0] * model.sites for _ in range(64 * words)]
    for site in range(model.sites):
        for chain, number in enumerate(drawn([2**51])):
            spins[chain][site] = int(number < 2**51)
    near = [row.nonzero()[:, 0].tolist() for row in model.coupling]
    for _ in range(sweeps):
        for site, neighbours in enumerate(near):
            coupling = float(model.coupling[site].sum()) / max(1, len(neighbours))
            distributions = []
            for up in range(len(neighbours) + 1):
                local = coupling * (2 * up - len(neighbours)) + float(model.field[site])
                distributions.append((round(2**52 / (1 + math.exp(-2 * abs(local)))), local < 0))
            numbers_now = drawn({t for t, _ in distributions})
            for chain, row in enumerate(spins):
                threshold, flipped = distributions[sum(row[neighbour] for neighbour in neighbours)]
                row[site] = int((numbers_now[chain] < threshold) != flipped)
    return spins
