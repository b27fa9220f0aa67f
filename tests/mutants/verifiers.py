"""Faulty verifiers."""

import torch

from trialogue.randomness import Streams
from trialogue.verifiers.random import RandomVerifier


class ForgetfulRandomVerifier(RandomVerifier):
    """Draw a new value at every call."""

    calls = 0

    def values(self, decoding, rows):
        ForgetfulRandomVerifier.calls += 1
        return Streams(self.calls, rows.clone()).uniform(torch.arange(len(rows)))
