"""A judge broken on purpose."""

import math

import torch

from trialogue.samplers.prefix.judge import Judge


class ForgetfulJudge(Judge):
    """Asks the verifier again about prefixes it has judged."""

    def _values(self, batch, rows):
        batch.count_verifier_calls(rows)
        return self._parts[0].values(batch, rows)


class UnnarrowedJudge(Judge):
    """Asks the slow part about every child, whatever the others say."""

    def children(self, rows, support):
        slow, fast = self._parts[-1:], self._parts[:-1]
        self._parts = slow
        values = super().children(rows, support)
        self._parts = fast
        return values * super().children(rows, support)


class LastPartJudge(Judge):
    """Takes the value of the part that was asked child by child for the product."""

    def _values(self, batch, rows, parts=None, others=None):
        return super()._values(batch, rows, parts, None if others is None else others.sign())


class HopefulJudge(Judge):
    """Takes what is kept if all others are accepted for what is kept."""

    def _missing(self, known, hoped, judged, cut):
        kept = cut(torch.where(judged, known, hoped)) > -math.inf
        return (kept & ~judged).sum(1)


class ContentJudge(Judge):
    """Is content with the first that are accepted."""

    def _missing(self, known, hoped, judged, cut):
        missing = super()._missing(known, hoped, judged, cut)
        accepted = (judged & (known > -math.inf)).any(1)
        return missing.masked_fill(accepted, 0)


class BoundlessJudge(Judge):
    """Takes 1 for the greatest value."""

    def _missing(self, known, hoped, judged, cut):
        return super()._missing(known, hoped - math.log(3.0), judged, cut)
