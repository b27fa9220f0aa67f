"""Faulty models of sequences."""

import torch

from trialogue.data import Ising


class Unnormalised(Ising):
    """Return unnormalised weights."""

    def log_probs(self, tokens, masked):
        return super().log_probs(tokens, masked) + 0.1


class Peeking(Ising):
    """Read the tokens under the mask."""

    def log_probs(self, tokens, masked):
        return super().log_probs(tokens, masked & (tokens == 1))


class Batched(Ising):
    """Depend on the number of rows."""

    def log_probs(self, tokens, masked):
        return Ising(self.coupling, self.field / len(tokens)).log_probs(tokens, masked)


class Flat(Ising):
    """Omit the dimension of rows."""

    def log_probs(self, tokens, masked):
        return super().log_probs(tokens, masked)[0]


class StaleSites(Ising):
    """Ignore the fields of other sites in the conditionals."""

    def site_log_probs(self, tokens):
        return Ising(self.coupling, torch.zeros_like(self.field)).site_log_probs(tokens)


class StaleWeights(Ising):
    """Omit the couplings of a single site."""

    def site_log_weights(self, tokens, sites):
        return Ising(torch.zeros_like(self.coupling), self.field).site_log_weights(tokens, sites)


class OtherLogits(Ising):
    """Return logits for twice the inverse temperature."""

    def site_logits(self, tokens):
        return 2 * super().site_logits(tokens)


class ShiftedTokens(Ising):
    """Return logits of the tokens with another additive constant than the logits of all values."""

    def token_logits(self, tokens):
        return super().token_logits(tokens) + 1


class OtherDistribution(Ising):
    """Return consistent conditionals at half the temperature."""

    def __init__(self, coupling, field):
        super().__init__(2 * coupling, 2 * field)


class NoNumber(Ising):
    """Return a NaN energy for one state."""

    def energy(self, tokens):
        return torch.where(tokens.all(1), torch.nan, super().energy(tokens))


class Bottomless(Ising):
    """Return an energy of minus infinity for one state."""

    def energy(self, tokens):
        return torch.where(tokens.all(1), -torch.inf, super().energy(tokens))


class Impossible(Ising):
    """Return an infinite energy for every state."""

    def energy(self, tokens):
        return super().energy(tokens) + torch.inf


class Centred(Ising):
    """Subtract the mean over the batch from the energies."""

    def energy(self, tokens):
        energies = super().energy(tokens)
        return energies - energies.mean()


class Nodewise(Ising):
    """Draw the sites of a block independently given the old state."""

    def draw_block(self, tokens, block, choose):
        drawn, distributions = tokens.clone(), self.site_log_probs(tokens)
        for site in range(self.sites):
            rows = block[:, site].nonzero()[:, 0]
            if len(rows):
                drawn[rows, site] = choose(distributions[rows, site], rows)
        return drawn


class Spilling(Ising):
    """Draw a site next to the block too."""

    def draw_block(self, tokens, block, choose):
        return super().draw_block(tokens, block | block.roll(1, 1), choose)
