"""Faulty verifiers."""

from dataclasses import replace

import torch

from trialogue.oracles import Verifier
from trialogue.randomness import Streams
from trialogue.verifiers.combination import Product
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


class LengthKeyedRandomVerifier(RandomVerifier):
    """Depend on the length only."""

    def values(self, decoding, rows):
        return Streams(self._seed, decoding.lengths[rows]).uniform(torch.arange(len(rows)))


class EndAnywhere(GrammarVerifier):
    """Allow the end of the sequence after every viable text."""

    def children(self, decoding, rows):
        result = super().children(decoding, rows)
        result[:, decoding.eos] = self.values(decoding, rows)
        return result


class NoEnd(GrammarVerifier):
    """Never allow the end of the sequence."""

    def children(self, decoding, rows):
        result = super().children(decoding, rows)
        result[:, decoding.eos] = False
        return result


class BlindToTheLimit(GrammarVerifier):
    """Require only viability of a continuation that is complete because of its length."""

    def _member_mask(self, key, prefix):
        return self._viable_mask(key, prefix)


class PrefixForMember(GrammarVerifier):
    """Accept complete texts that are only viable prefixes."""

    def _prefix(self, key):
        prefix = super()._prefix(key)
        return prefix and replace(prefix, accepted=True)


class MemberForPrefix(GrammarVerifier):
    """Accept only prefixes that are members."""

    def _prefix(self, key):
        prefix = super()._prefix(key)
        return prefix if prefix is None or prefix.accepted or not key else None


class WithoutEnd(GrammarVerifier):
    """Treat the end of the sequence as part of the text."""

    def values(self, decoding, rows):
        result = super().values(decoding, rows)
        last = decoding.tokens[rows, (decoding.lengths[rows] - 1).clamp_min(0)]
        return result & (last != decoding.eos)


class StaleMatcher(GrammarVerifier):
    """Use the matcher of the row's previous text if its own is missing."""

    def _matcher(self, key):
        if key and key not in self._matchers and key[:-8] not in self._matchers and self._matchers:
            return next(reversed(self._matchers.values()))
        return super()._matcher(key)


class MovedMatcher(GrammarVerifier):
    """Keep a matcher under the text that it has moved past."""

    def _matcher(self, key):
        held = self._matchers.get(key[:-8]) if key and key not in self._matchers else None
        matcher = super()._matcher(key)
        if held is not None:
            self._matchers[key[:-8]] = held
        return matcher


class Unvalidated(GrammarVerifier):
    """Accept every complete text of the grammar without validation."""

    def __init__(self, language, *arguments):
        super().__init__(language._replace(parse=None), *arguments)


class UnvalidatedAtTheLimit(GrammarVerifier):
    """Accept every text of the grammar that ends at the limit, without validation."""

    def _member_mask(self, key, prefix):
        accepts, self._accepts = self._accepts, lambda text: True
        members = super()._member_mask(key, prefix)
        self._accepts = accepts
        return members


class PromptJudging(GrammarVerifier):
    """CachedVerifier prompt and completion together."""

    def values(self, decoding, rows):
        return super().values(_FromTheStart(decoding), rows)


class _FromTheStart:
    def __init__(self, decoding):
        self._decoding, self.start = decoding, torch.zeros_like(decoding.start)

    def __getattr__(self, name):
        return getattr(self._decoding, name)


class HastyText(TextVerifier):
    """Decode an unfinished character."""

    def values(self, decoding, rows):
        return super().values(_Ended(decoding), rows)


class PatientText(TextVerifier):
    """Hold back incomplete bytes even at the end."""

    def values(self, decoding, rows):
        return super().values(_Ended(decoding, False), rows)


class ScopelessText(TextVerifier):
    """Pass the prompt to the function for every scope."""

    def values(self, decoding, rows):
        return super().values(_FromTheStart(decoding), rows)


class _Ended:
    def __init__(self, decoding, ended=True):
        self._decoding, self.complete = decoding, torch.full_like(decoding.complete, ended)

    def __getattr__(self, name):
        return getattr(self._decoding, name)


class Sum(Product):
    """Add the values instead of multiplying them."""

    def __init__(self, *verifiers):
        super().__init__(*verifiers)
        self.parts = (_Summing(self.parts),)


class _Summing(Verifier):
    def __init__(self, verifiers):
        self._verifiers = verifiers

    def values(self, decoding, rows):
        return sum(verifier.values(decoding, rows) for verifier in self._verifiers)


class FirstOnly(Product):
    """Use the first verifier only."""

    def __init__(self, *verifiers):
        super().__init__(*verifiers[:1])
