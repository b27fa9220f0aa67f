"""Faulty truncations."""

import math

import torch

from trialogue.samplers import Truncated


class BoundaryDropping(Truncated):
    """Omit the token that reaches `top_p`."""

    def truncate(self, log_probs):
        ordered, order = log_probs.softmax(-1).sort(dim=-1, descending=True, stable=True)
        kept = ordered.cumsum(-1) <= self.top_p
        kept[:, 0] = True
        masked = ordered.log().masked_fill(~kept, -math.inf).log_softmax(-1)
        return log_probs.scatter(1, order, masked)


class HighestTie(Truncated):
    """Prefer the highest index among equally probable tokens."""

    def truncate(self, log_probs):
        return super().truncate(log_probs.flip(-1)).flip(-1)


class LateTemperature(Truncated):
    """Apply the temperature after the truncation."""

    def truncate(self, log_probs):
        if self.temperature == 0:
            return super().truncate(log_probs)
        cut = Truncated(self.base, 1.0, self.top_p, self.top_k).truncate(log_probs)
        return (cut / self.temperature).log_softmax(-1)


class Unnormalised(Truncated):
    def truncate(self, log_probs):
        kept = super().truncate(log_probs) > -math.inf
        return torch.where(kept, log_probs, -math.inf)


class UntemperedDistributions(Truncated):
    """Omit the temperature for samplers that mask first."""

    def truncate(self, log_probs):
        tempered = Truncated.temper(self, log_probs)
        return self.cut(tempered) if self.cuts else tempered

    def temper(self, log_probs):
        return log_probs


def forgotten_mass(decoding, log_probs, rows):
    """Omit the mass of the kept tokens."""
    return decoding.cut(log_probs, rows), log_probs.new_zeros(len(log_probs), dtype=torch.float64)


def nothing_cut(decoding, log_probs, rows):
    """Keep the tokens that top-k and top-p remove."""
    return log_probs.log_softmax(1), log_probs.logsumexp(1).double()


def cut_twice(decoding, log_probs, rows):
    """Truncate twice."""
    distribution = decoding.cut(decoding.cut(log_probs, rows), rows)
    place = distribution.argmax(1, keepdim=True)
    return distribution, (log_probs - distribution).gather(1, place)[:, 0].double()
