"""Verifiers broken on purpose."""

import torch

from trialogue.inference.verifiers.function import Threshold
from trialogue.inference.verifiers.random import RandomVerifier
from trialogue.randomness import Streams


class StrictThreshold(Threshold):
    """Rejects a value that equals the threshold."""

    def _verdicts(self, values):
        return (values > self._threshold).to(values.dtype)


class ForgetfulRandomVerifier(RandomVerifier):
    """Draws anew whenever it is asked."""

    calls = 0

    def values(self, decoding, rows):
        ForgetfulRandomVerifier.calls += 1
        return Streams(self.calls, rows.clone()).uniform(torch.arange(len(rows)))


class LengthKeyedRandomVerifier(RandomVerifier):
    """A function of the length alone."""

    def values(self, decoding, rows):
        return Streams(self._seed, decoding.lengths[rows]).uniform(torch.arange(len(rows)))
