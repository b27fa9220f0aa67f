"""Faulty parts of Potts chains."""

import torch

from trialogue.data.potts.messages import Messages
from trialogue.data.potts.patterns import StoredPatterns


class UntiltedMessages(Messages):
    """Ignore the energies in backward messages."""

    def _step_backward(self, message):
        return message.repeat(self.vocab).view(self.states, self.vocab).logsumexp(1)


class RelativePhases(StoredPatterns):
    """Count phases from each window, so that following a pattern is a wall at every step."""

    def predicted(self, label, begin, length):
        return super().predicted(label, 0, length)

    def nearest(self, tokens, begin=0):
        windows = [super(RelativePhases, self).nearest(row) for row in tokens.unfold(1, self.window, 1)]
        label, distance = (torch.stack([one[part][:, 0] for one in windows]) for part in (0, 1))
        return label, distance
