"""Faulty oracles of numbers."""

import numpy as np

from trialogue.data.puzzles.twenty_questions import TwentyQuestions
from trialogue.data.puzzles.weighted_prefixes import from_digits
from trialogue_lab.data.puzzles.arithmetic import SemiprimeTuples
from trialogue_lab.data.puzzles.hidden_streams import HiddenStream
from trialogue_lab.data.puzzles.random_primes import RandomPrimes


class UnorderedPairs(SemiprimeTuples):
    """Count every product once, although most products belong to two pairs."""

    def _product_weights(self, prefix):
        products = {from_digits(row[:4]) for row in self.states().tolist()}
        rows = [f"{number:04d}" for number in products]
        start = "".join(map(str, prefix))
        return [float(sum(row.startswith(f"{start}{digit}") for row in rows)) for digit in range(10)]


class OneOrderOfFactors(SemiprimeTuples):
    """Write the smaller factor first."""

    def weights(self, prefix):
        weights = super().weights(prefix)
        if self.order == "product-first" and 2 * self.digits <= len(prefix) < 3 * self.digits:
            first = next(digit for digit, weight in enumerate(weights) if weight)
            return [weight * (digit == first) for digit, weight in enumerate(weights)]
        return weights


class LeadingZeros(SemiprimeTuples):
    """Include primes with fewer digits, padded with zeros."""

    def _prime_weights(self, prefix):
        weights = list(super()._prime_weights(prefix))
        return [1.0, *weights[1:]] if not prefix else weights if prefix[0] else [0, 0, 1, 1, 0, 1, 0, 1, 0, 0]


class CarelessProduct(SemiprimeTuples):
    """Lose the carry into the digit before the last two."""

    def weights(self, prefix):
        weights = super().weights(prefix)
        if self.order == "factors-first" and len(prefix) == 4 * self.digits - 3:
            return list(np.roll(weights, 1))
        return weights


class UncheckedFactors(SemiprimeTuples):
    """Accept any number of the right width, whether it is prime or not."""

    def _is_factor(self, number):
        return self._has_width(number)


class CompositePrimes(RandomPrimes):
    """Give all odd last digits the same weight."""

    def weights(self, prefix):
        if len(prefix) == self.digits - 1:
            return [0, 1, 0, 1, 0, 0, 0, 1, 0, 1]
        return super().weights(prefix)


class ForgetfulStream(HiddenStream):
    """Read the first half of the hidden digits twice instead of the second half."""

    def weights(self, prefix):
        half = self.hidden // 2
        if len(prefix) < self.hidden:
            return super().weights(prefix)
        return super().weights((*prefix[:half], *prefix[:half], *prefix[2 * half :]))


class LastAnswerOnly(TwentyQuestions):
    """Use only the last answer."""

    def weights(self, prefix):
        if not prefix:
            return super().weights(prefix)
        question, last = self._question_index(prefix), self._question_index(prefix[:-1])
        fitting = [answers for answers in self._answers if answers[last] == prefix[-1]]
        yes = sum(answers[question] for answers in fitting)
        return [float(len(fitting) - yes), float(yes)]
