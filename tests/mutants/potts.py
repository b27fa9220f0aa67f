"""Parts of Potts chains broken on purpose."""

import torch

from trialogue.data.potts.messages import Messages
from trialogue.data.potts.patterns import StoredPatterns


class UntiltedMessages(Messages):
    """Backward messages that forget the energies."""

    def _step_backward(self, message):
        return message.repeat(self.vocab).view(self.states, self.vocab).logsumexp(1)


class ReversedMessages(Messages):
    """Forward messages that read windows from the right."""

    def _step_forward(self, message):
        weights = self.log_weights.view(self.vocab, self.states) + message
        return weights.view(self.states, self.vocab).logsumexp(1)


class ShortMessages(Messages):
    """One window less."""

    def log_partition(self, windows):
        return super().log_partition(windows - 1)


class RelativePhases(StoredPatterns):
    """Counts phases from each window, so that following a pattern is a wall at every step."""

    def predicted(self, label, begin, length):
        return super().predicted(label, 0, length)

    def nearest(self, tokens, begin=0):
        windows = [super(RelativePhases, self).nearest(row) for row in tokens.unfold(1, self.window, 1)]
        label, distance = (torch.stack([one[part][:, 0] for one in windows]) for part in (0, 1))
        return label, distance


class HighestLabel(StoredPatterns):
    """The highest label wins ties."""

    def nearest(self, tokens, begin=0):
        label, least = super().nearest(tokens, begin)
        windows = label.shape[1]
        for candidate in range(self.labels):
            wrong = (tokens != self.predicted(candidate, begin, tokens.shape[1])).long()
            distance = sum(wrong[:, place : place + windows] for place in range(self.window))
            label = torch.where(distance == least, candidate, label)
        return label, least


class LateMessages(Messages):
    """Tokens know of one window less behind them."""

    def backward_places(self, windows):
        return super().backward_places((windows - 1).clamp(min=0))
