"""Faulty parts of Potts chains."""

import torch

from trialogue.data.potts.messages import Messages
from trialogue.data.potts.patterns import StoredPatterns


class UntiltedMessages(Messages):
    """Ignore the energies in backward messages."""

    def _step_backward(self, message):
        return message.repeat(self.vocab).view(self.states, self.vocab).logsumexp(1)


class ReversedMessages(Messages):
    """Read windows from the right in forward messages."""

    def _step_forward(self, message):
        weights = self.log_weights.view(self.vocab, self.states) + message
        return weights.view(self.states, self.vocab).logsumexp(1)


class ShortMessages(Messages):
    """Use one window less."""

    def log_partition(self, windows):
        return super().log_partition(windows - 1)


class RelativePhases(StoredPatterns):
    """Count phases from each window, so that following a pattern is a wall at every step."""

    def predicted(self, label, begin, length):
        return super().predicted(label, 0, length)

    def nearest(self, tokens, begin=0):
        windows = [super(RelativePhases, self).nearest(row) for row in tokens.unfold(1, self.window, 1)]
        label, distance = (torch.stack([one[part][:, 0] for one in windows]) for part in (0, 1))
        return label, distance


class HighestLabel(StoredPatterns):
    """Resolve ties in favour of the highest label."""

    def nearest(self, tokens, begin=0):
        label, smallest = super().nearest(tokens, begin)
        windows = label.shape[1]
        for candidate in range(self.labels):
            wrong = (tokens != self.predicted(candidate, begin, tokens.shape[1])).long()
            distance = sum(wrong[:, place : place + windows] for place in range(self.window))
            label = torch.where(distance == smallest, candidate, label)
        return label, smallest


class LateMessages(Messages):
    """Give each token one window less of backward messages."""

    def backward_indices(self, windows):
        return super().backward_indices((windows - 1).clamp(min=0))
