"""Small distributions over sequences, given as joint tables, as energies or as conditionals."""

import torch

from trialogue.data import Ising
from trialogue.oracles import enumerate_sequences
from trialogue.randomness import generator


class FunctionEnergy:
    """An energy given by a function, neither hashable nor weakly referenceable."""

    __slots__ = ("function", "sites", "vocab_size")
    __hash__ = None

    def __init__(self, function, vocab_size=2, sites=None):
        self.function, self.vocab_size, self.sites = function, vocab_size, sites

    def energy(self, tokens):
        return self.function(tokens)


class Energies:
    """An energy with no other methods, defined by a joint distribution (vocab, ..., vocab)."""

    def __init__(self, distribution):
        self.distribution = distribution / distribution.sum()
        self.vocab_size, self.sites = distribution.shape[0], distribution.ndim

    def energy(self, tokens):
        return -self.distribution[tuple(tokens.T)].log()

    def probabilities(self):
        return self.distribution.flatten()


class Conditionals:
    """A masked oracle with the conditionals of a joint distribution (vocab, ..., vocab)."""

    def __init__(self, distribution):
        self._joint = distribution / distribution.sum()
        self.vocab_size, self.sites = distribution.shape[0], distribution.ndim

    def probabilities(self):
        return self._joint.flatten()

    def log_probs(self, tokens, masked):
        states = enumerate_sequences(self.vocab_size, self.sites)
        agree = ((tokens[:, None] == states) | masked[:, None]).all(2)
        weights = agree * self.probabilities()
        here = torch.nn.functional.one_hot(states, self.vocab_size).double()
        marginals = torch.einsum("rs,siv->riv", weights, here)
        return (marginals / marginals.sum(2, keepdim=True)).log()

    def site_log_probs(self, tokens):
        sites = torch.eye(self.sites, dtype=torch.bool)
        each = [self.log_probs(tokens, site.expand(len(tokens), -1))[:, i] for i, site in enumerate(sites)]
        return torch.stack(each, 1)


class Contradictory(Conditionals):
    """Conditionals of one distribution at even sites and of another at odd sites, without a joint distribution."""

    def __init__(self, even, odd):
        super().__init__(even)
        self._odd = Conditionals(odd)

    def log_probs(self, tokens, masked):
        even, odd = super().log_probs(tokens, masked), self._odd.log_probs(tokens, masked)
        return torch.where(torch.arange(self.sites)[:, None] % 2 == 0, even, odd)


def random_joint(seed, vocab, sites):
    return torch.rand([vocab] * sites, generator=generator(seed, "distribution"), dtype=torch.float64) + 0.05


def random_ising(seed, sites, scale=1.0):
    coupling = scale * torch.randn(sites, sites, generator=generator(seed, "coupling"), dtype=torch.float64)
    field = torch.randn(sites, generator=generator(seed, "field"), dtype=torch.float64)
    return Ising(torch.triu(coupling, 1) + torch.triu(coupling, 1).T, field)


def ring(sites, coupling, field=0.0):
    matrix = torch.zeros(sites, sites, dtype=torch.float64)
    for site in range(sites):
        matrix[site, (site + 1) % sites] = matrix[(site + 1) % sites, site] = coupling
    return Ising(matrix, torch.full((sites,), field))


def spins(tokens):
    return 2 * tokens - 1


def block_kernel(distribution, vocab, sites, block, tilt=None):
    """Return P(x, y) = [x = y outside the block] p(y | x outside), from the definition.

    The distribution (states,) is multiplied by `tilt` (states,) if given.
    """
    states = enumerate_sequences(vocab, sites)
    outside = [site for site in range(sites) if site not in block]
    weights = distribution if tilt is None else distribution * tilt
    kernel = torch.zeros(len(states), len(states), dtype=torch.float64)
    for x in range(len(states)):
        same = (states[:, outside] == states[x, outside]).all(1)
        kernel[x, same] = weights[same] / weights[same].sum()
    return kernel
