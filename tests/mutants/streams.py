"""Faulty streams of random numbers."""

import torch

from trialogue.randomness import Streams, select_index


class NumberedStreams(Streams):
    """A correct base class that draws with `uniform`, for faulty subclasses."""

    def choose(self, log_weights, rows):
        return select_index(self.uniform(rows), log_weights)


class PlaceKeyedStreams(Streams):
    """Identify a stream by the place of its row in the batch."""

    def __init__(self, seed, keys):
        super().__init__(seed, torch.arange(len(keys)))


class MisplacedStreams(Streams):
    """Keep the first streams instead of the selected ones."""

    def select(self, rows):
        super().select(torch.arange(len(rows)))


class SharedStreams(NumberedStreams):
    """Use one stream for all rows, so that a number depends on earlier calls."""

    drawn = 0

    def uniform(self, rows):
        numbers = Streams(0, SharedStreams.drawn + torch.arange(len(rows)))
        SharedStreams.drawn += len(rows)
        return numbers.uniform(torch.arange(len(rows)))


class StandingStreams(NumberedStreams):
    """Return the same number repeatedly."""

    def uniform(self, rows):
        numbers = super().uniform(rows)
        self.counters[rows] -= 1
        return numbers


class EqualStreams(Streams):
    """Use the same stream for every sample."""

    def __init__(self, seed, keys):
        super().__init__(seed, torch.zeros_like(keys))


class CorrelatedStreams(Streams):
    """Add key and counter, so that the streams of neighbouring samples overlap."""

    def __init__(self, seed, keys):
        super().__init__(seed, torch.zeros_like(keys))
        self.counters += keys


class CoarseStreams(NumberedStreams):
    """Return only eight bits of every number."""

    def uniform(self, rows):
        return (super().uniform(rows) * 256).floor() / 256
