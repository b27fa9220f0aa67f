"""Models of whole sequences broken on purpose."""

import torch

from trialogue.data import Ising


class Unnormalised(Ising):
    """Answers with weights."""

    def log_probs(self, tokens, masked):
        return super().log_probs(tokens, masked) + 0.1


class Peeking(Ising):
    """Looks at the tokens under the mask."""

    def log_probs(self, tokens, masked):
        return super().log_probs(tokens, masked & (tokens == 1))


class Batched(Ising):
    """Answers by how many rows there are."""

    def log_probs(self, tokens, masked):
        return Ising(self.coupling, self.field / len(tokens)).log_probs(tokens, masked)


class Flat(Ising):
    """Leaves out the dimension of rows."""

    def log_probs(self, tokens, masked):
        return super().log_probs(tokens, masked)[0]


class StaleSites(Ising):
    """Answers for single sites as if no other had a field."""

    def site_log_probs(self, tokens):
        return Ising(self.coupling, torch.zeros_like(self.field)).site_log_probs(tokens)


class StaleWeights(Ising):
    """Forgets the couplings of a single site."""

    def site_log_weights(self, tokens, sites):
        return Ising(torch.zeros_like(self.coupling), self.field).site_log_weights(tokens, sites)


class OtherLogits(Ising):
    """Has logits of twice the inverse temperature."""

    def site_logits(self, tokens):
        return 2 * super().site_logits(tokens)


class ShiftedTokens(Ising):
    """Gives the logits of the tokens themselves in another gauge than those of all."""

    def token_logits(self, tokens):
        return super().token_logits(tokens) + 1


class OtherLaw(Ising):
    """Answers consistently, at half the temperature."""

    def __init__(self, coupling, field):
        super().__init__(2 * coupling, 2 * field)


class NoNumber(Ising):
    """Has an energy that is no number, at one state."""

    def energy(self, tokens):
        return torch.where(tokens.all(1), torch.nan, super().energy(tokens))


class Bottomless(Ising):
    """Has an energy of minus infinity."""

    def energy(self, tokens):
        return torch.where(tokens.all(1), -torch.inf, super().energy(tokens))


class Impossible(Ising):
    """Has no state at all."""

    def energy(self, tokens):
        return super().energy(tokens) + torch.inf


class Centred(Ising):
    """Takes the mean over the batch from its energies."""

    def energy(self, tokens):
        energies = super().energy(tokens)
        return energies - energies.mean()


class Nodewise(Ising):
    """Draws the sites of a block independently given the old state."""

    def draw_block(self, tokens, block, choose):
        drawn, distributions = tokens.clone(), self.site_log_probs(tokens)
        for site in range(self.sites):
            rows = block[:, site].nonzero()[:, 0]
            if len(rows):
                drawn[rows, site] = choose(distributions[rows, site], rows)
        return drawn


class Spilling(Ising):
    """Also draws a site beside the block."""

    def draw_block(self, tokens, block, choose):
        return super().draw_block(tokens, block | block.roll(1, 1), choose)
