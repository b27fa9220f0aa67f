"""Faulty judges."""

import math

import torch

from trialogue.samplers.prefix.contract.cached_verifier import CachedVerifier


class ForgetfulJudge(CachedVerifier):
    """Call the verifier again for prefixes that were judged before."""

    def _values(self, batch, rows):
        batch.count_verifier_calls(rows)
        return self._parts[0].values(batch, rows)


class UnnarrowedJudge(CachedVerifier):
    """Call the slow verifier for every child, even if the other verifiers reject it."""

    def children(self, rows, support):
        slow, fast = self._parts[-1:], self._parts[:-1]
        self._parts = slow
        values = super().children(rows, support)
        self._parts = fast
        return values * super().children(rows, support)


class HopefulJudge(CachedVerifier):
    """Treat the largest possible truncation as the final one."""

    def _count_missing_values(self, log_weights, upper_bounds, is_known, truncate):
        kept = truncate(torch.where(is_known, log_weights, upper_bounds)) > -math.inf
        return (kept & ~is_known).sum(1)
