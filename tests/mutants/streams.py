"""Streams of random numbers broken on purpose."""

import torch

from trialogue.randomness import Streams, index_of


class NumberedStreams(Streams):
    """Not broken: draws by way of `uniform`, for mutants of it."""

    def choose(self, log_weights, rows):
        return index_of(self.uniform(rows), log_weights)


class PlaceKeyedStreams(Streams):
    """Keyed by where a row enters the batch, not by what it samples."""

    def __init__(self, seed, keys):
        super().__init__(seed, torch.arange(len(keys)))


class MisplacedStreams(Streams):
    """Keeps the first streams where some rows are kept."""

    def select(self, rows):
        super().select(torch.arange(len(rows)))


class SharedStreams(NumberedStreams):
    """One stream for all rows: a number depends on who asked before."""

    asked = 0

    def uniform(self, rows):
        numbers = Streams(0, SharedStreams.asked + torch.arange(len(rows)))
        SharedStreams.asked += len(rows)
        return numbers.uniform(torch.arange(len(rows)))


class StandingStreams(NumberedStreams):
    """Gives the same number again and again."""

    def uniform(self, rows):
        numbers = super().uniform(rows)
        self.counters[rows] -= 1
        return numbers


class EqualStreams(Streams):
    """The same stream for every sample."""

    def __init__(self, seed, keys):
        super().__init__(seed, torch.zeros_like(keys))


class CorrelatedStreams(Streams):
    """Neighbouring samples have streams that overlap: key and counter are only added."""

    def __init__(self, seed, keys):
        super().__init__(seed, torch.zeros_like(keys))
        self.counters += keys


class CoarseStreams(NumberedStreams):
    """Eight bits of every number."""

    def uniform(self, rows):
        return (super().uniform(rows) * 256).floor() / 256
