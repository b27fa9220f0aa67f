"""Verifiers broken on purpose."""

from dataclasses import replace

import torch

from trialogue.oracles import Verifier
from trialogue.randomness import Streams
from trialogue.verifiers.combination import Product
from trialogue.verifiers.function import TextVerifier, Threshold
from trialogue.verifiers.grammar import GrammarVerifier
from trialogue.verifiers.random import RandomVerifier


class StrictThreshold(Threshold):
    """Rejects a value that equals the threshold."""

    def _converted(self, values):
        return (values > self._threshold).to(values.dtype)


class ForgetfulRandomVerifier(RandomVerifier):
    """Draws anew whenever it is asked."""

    calls = 0

    def values(self, decoding, rows):
        ForgetfulRandomVerifier.calls += 1
        return Streams(self.calls, rows.clone()).uniform(torch.arange(len(rows)))


class LengthKeyedRandomVerifier(RandomVerifier):
    """A function of the length alone."""

    def values(self, decoding, rows):
        return Streams(self._seed, decoding.lengths[rows]).uniform(torch.arange(len(rows)))


class EndAnywhere(GrammarVerifier):
    """Lets a sequence end wherever its text is viable."""

    def children(self, decoding, rows):
        answers = super().children(decoding, rows)
        answers[:, decoding.eos] = self.values(decoding, rows)
        return answers


class NoEnd(GrammarVerifier):
    """Never lets a sequence end."""

    def children(self, decoding, rows):
        answers = super().children(decoding, rows)
        answers[:, decoding.eos] = False
        return answers


class BlindToTheLimit(GrammarVerifier):
    """Asks only for viability where a continuation is complete because of its length."""

    def _members(self, key, prefix):
        return self._viable(key, prefix)


class PrefixForMember(GrammarVerifier):
    """Takes complete texts that could be continued to one of the language."""

    def _prefix(self, key):
        prefix = super()._prefix(key)
        return prefix and replace(prefix, accepted=True)


class MemberForPrefix(GrammarVerifier):
    """Takes no prefix that is not in the language itself."""

    def _prefix(self, key):
        prefix = super()._prefix(key)
        return prefix if prefix is None or prefix.accepted or not key else None


class WithoutEnd(GrammarVerifier):
    """Takes the end of sequence for a part of the text."""

    def values(self, decoding, rows):
        answers = super().values(decoding, rows)
        last = decoding.tokens[rows, (decoding.lengths[rows] - 1).clamp_min(0)]
        return answers & (last != decoding.eos)


class StaleMatcher(GrammarVerifier):
    """Takes the matcher of the row's former text where there is none of its own."""

    def _matcher(self, key):
        if key and key not in self._matchers and key[:-8] not in self._matchers and self._matchers:
            return next(reversed(self._matchers.values()))
        return super()._matcher(key)


class MovedMatcher(GrammarVerifier):
    """Leaves a matcher filed under the text from which it has moved on."""

    def _matcher(self, key):
        held = self._matchers.get(key[:-8]) if key and key not in self._matchers else None
        matcher = super()._matcher(key)
        if held is not None:
            self._matchers[key[:-8]] = held
        return matcher


class Unvalidated(GrammarVerifier):
    """Takes every complete text of the grammar."""

    def __init__(self, language, *arguments):
        super().__init__(language._replace(parse=None), *arguments)


class UnvalidatedAtTheLimit(GrammarVerifier):
    """Takes every text of the grammar that ends at the limit."""

    def _members(self, key, prefix):
        accepts, self._accepts = self._accepts, lambda text: True
        members = super()._members(key, prefix)
        self._accepts = accepts
        return members


class PromptJudging(GrammarVerifier):
    """Judges prompt and completion."""

    def values(self, decoding, rows):
        return super().values(_FromTheStart(decoding), rows)


class _FromTheStart:
    def __init__(self, decoding):
        self._decoding, self.start = decoding, torch.zeros_like(decoding.start)

    def __getattr__(self, name):
        return getattr(self._decoding, name)


class HastyText(TextVerifier):
    """Decodes an unfinished character."""

    def values(self, decoding, rows):
        return super().values(_Ended(decoding), rows)


class PatientText(TextVerifier):
    """Holds bytes back also where nothing more comes."""

    def values(self, decoding, rows):
        return super().values(_Ended(decoding, False), rows)


class ScopelessText(TextVerifier):
    """Shows the prompt, whatever the scope."""

    def values(self, decoding, rows):
        return super().values(_FromTheStart(decoding), rows)


class _Ended:
    def __init__(self, decoding, ended=True):
        self._decoding, self.complete = decoding, torch.full_like(decoding.complete, ended)

    def __getattr__(self, name):
        return getattr(self._decoding, name)


class Sum(Product):
    """Adds the values."""

    def __init__(self, *verifiers):
        super().__init__(*verifiers)
        self.parts = (_Summing(self.parts),)


class _Summing(Verifier):
    def __init__(self, verifiers):
        self._verifiers = verifiers

    def values(self, decoding, rows):
        return sum(verifier.values(decoding, rows) for verifier in self._verifiers)


class FirstOnly(Product):
    """Forgets all parts but the first."""

    def __init__(self, *verifiers):
        super().__init__(*verifiers[:1])
