"""Faulty verifiers."""

import torch

from trialogue.randomness import Streams
from trialogue.verifiers.functions.function import TextVerifier, Threshold
from trialogue.verifiers.languages.grammar import GrammarVerifier
from trialogue.verifiers.random import RandomVerifier


class StrictThreshold(Threshold):
    """Reject a value equal to the threshold."""

    def _converted(self, values):
        return (values > self._threshold).to(values.dtype)


class ForgetfulRandomVerifier(RandomVerifier):
    """Draw a new value at every call."""

    calls = 0

    def values(self, decoding, rows):
        ForgetfulRandomVerifier.calls += 1
        return Streams(self.calls, rows.clone()).uniform(torch.arange(len(rows)))


class EndAnywhere(GrammarVerifier):
    """Allow the end of the sequence after every viable text."""

    def children(self, decoding, rows):
        result = super().children(decoding, rows)
        result[:, decoding.eos] = self.values(decoding, rows)
        return result


class BlindToTheLimit(GrammarVerifier):
    """Require only viability of a continuation that is complete because of its length."""

    def _member_mask(self, key, prefix):
        return self._viable_mask(key, prefix)


class StaleMatcher(GrammarVerifier):
    """Use the matcher of the row's previous text if its own is missing."""

    def _matcher(self, key):
        if key and key not in self._matchers and key[:-8] not in self._matchers and self._matchers:
            return next(reversed(self._matchers.values()))
        return super()._matcher(key)


class Unvalidated(GrammarVerifier):
    """Accept every complete text of the grammar without validation."""

    def __init__(self, language, *arguments):
        super().__init__(language._replace(parse=None), *arguments)


class HastyText(TextVerifier):
    """Decode an unfinished character."""

    def values(self, decoding, rows):
        return super().values(_Ended(decoding), rows)


class _Ended:
    def __init__(self, decoding, ended=True):
        self._decoding, self.complete = decoding, torch.full_like(decoding.complete, ended)

    def __getattr__(self, name):
        return getattr(self._decoding, name)
