"""Faulty judges."""

from trialogue.samplers.prefix.contract.cached_verifier import CachedVerifier


class ForgetfulJudge(CachedVerifier):
    """Call the verifier again for prefixes that were judged before."""

    def _values(self, batch, rows):
        batch.count_verifier_calls(rows)
        return self._parts[0].values(batch, rows)
