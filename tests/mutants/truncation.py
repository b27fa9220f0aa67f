"""Faulty truncations."""

import math

from trialogue.samplers import Truncated


class BoundaryDropping(Truncated):
    """Omit the token that reaches `top_p`."""

    def truncate(self, log_probs):
        ordered, order = log_probs.softmax(-1).sort(dim=-1, descending=True, stable=True)
        kept = ordered.cumsum(-1) <= self.top_p
        kept[:, 0] = True
        masked = ordered.log().masked_fill(~kept, -math.inf).log_softmax(-1)
        return log_probs.scatter(1, order, masked)


class LateTemperature(Truncated):
    """Apply the temperature after the truncation."""

    def truncate(self, log_probs):
        if self.temperature == 0:
            return super().truncate(log_probs)
        cut = Truncated(self.base, 1.0, self.top_p, self.top_k).truncate(log_probs)
        return (cut / self.temperature).log_softmax(-1)


def cut_twice(decoding, log_probs, rows):
    """Truncate twice."""
    distribution = decoding.cut(decoding.cut(log_probs, rows), rows)
    place = distribution.argmax(1, keepdim=True)
    return distribution, (log_probs - distribution).gather(1, place)[:, 0].double()
