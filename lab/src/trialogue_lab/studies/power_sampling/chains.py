"""Exact output distributions of Metropolis-Hastings chains on short texts.

A step of a chain cuts the current text at a random position and samples a new end. The "corrected" step has
the target as its stationary distribution. The "released" step follows the published code: its acceptance
ratio omits the number of positions at which a text can be cut, and it compares texts only up to the length of
the proposal.
"""

import math
from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from trialogue.data import Table
from trialogue.randomness import numpy_generator
from trialogue_lab.studies.power_sampling.config import RELEASED

Text = tuple[int, ...]
Array = NDArray[np.float64]
VOCAB = 3
EOS = 0


class TextTree:
    """Random model p of short texts, and Markov chains that sample from the normalized power p^alpha.

    Unnormalized probabilities of tokens are uniformly random between 0.1 and 1.1, so that no token is improbable.

    Args:
        seed: Seed of the model.
        horizon: Maximum number of tokens of a text.
        end: Probability that a text ends after each token. The other tokens share the rest at random. With 0, no token
            ends a text, and all texts have the same length.
        alpha: Power of the probability of a text. Proposals are sampled at temperature 1 / alpha.
    """

    def __init__(self, seed: int, horizon: int, end: float, alpha: float) -> None:
        self.horizon, self.end, self.alpha, self._seed = horizon, end, alpha, seed
        self.next_probs = cache(self._next_probs)
        self.completions = cache(self._completions)
        self.transitions = cache(self._transitions)

    def _next_probs(self, prefix: Text) -> list[float]:
        """Return the probabilities (V,) of the next token after a prefix."""
        stream = numpy_generator(self._seed, "power-sampling", "texts", prefix)
        number = VOCAB - 1 if self.end else VOCAB
        shares = 0.1 + stream.random(number)
        probs: list[float] = ((1 - self.end) * shares / shares.sum()).tolist()
        return [self.end, *probs] if self.end else probs

    def oracle(self) -> Table:
        """Return the model as a `Table`, which the library's samplers accept."""
        eos = EOS if self.end else None
        return Table(self.next_probs, VOCAB, eos=eos, max_length=self.horizon)

    def ended(self, text: Text) -> bool:
        """Return whether a text ends with the end-of-sequence token."""
        return self.end > 0 and text[-1:] == (EOS,)

    def _completions(self, prefix: Text, length: int) -> dict[Text, tuple[float, float]]:
        """Return the texts of at most `length` tokens that begin with a prefix.

        Each text has two log-probabilities: under the proposal distribution q, and under the model p.
        """
        if self.ended(prefix) or len(prefix) >= length:
            return {prefix: (0.0, 0.0)}
        log_p = np.log(self.next_probs(prefix))
        log_q = self.alpha * log_p - np.logaddexp.reduce(self.alpha * log_p)
        return {
            text: (float(log_q[token]) + q, float(log_p[token]) + p)
            for token in range(VOCAB)
            for text, (q, p) in self.completions((*prefix, token), length).items()
        }

    def target(self) -> dict[Text, float]:
        """Return the target probability p(x)^alpha / Z of every complete text x."""
        log_weights = {x: self.alpha * p for x, (_, p) in self.completions((), self.horizon).items()}
        total = np.logaddexp.reduce(list(log_weights.values()))
        return {x: math.exp(log_weight - total) for x, log_weight in log_weights.items()}

    def _transitions(self, length: int, chain: str) -> tuple[list[Text], Array]:
        """Return the states of a chain, and its transition matrix.

        Args:
            length: Maximum length of the texts in the current block.
            chain: Name of the chain, "corrected" or "released".

        Returns:
            The n texts that the chain can visit, and transition probabilities (n, n).
        """
        texts = self._texts(length, chain)
        places = {text: place for place, text in enumerate(texts)}
        matrix = np.zeros((len(texts), len(texts)))
        for x, place in places.items():
            for cut in range(len(x)):
                bound = len(x) if chain == RELEASED else length
                for y, (log_q, _) in self.completions(x[:cut], bound).items():
                    accepted = math.exp(min(0.0, self._log_ratio(x, y, chain)))
                    share = math.exp(log_q) / len(x)
                    matrix[place, places[y]] += share * accepted
                    matrix[place, place] += share * (1 - accepted)
        return texts, matrix

    def output(self, steps: int, blocks: int, chain: str) -> dict[Text, float]:
        """Return the output distribution of a chain over complete texts.

        The sum is less than one if the chain can return an incomplete text.

        Args:
            steps: Number of steps per block.
            blocks: Number of blocks.
            chain: Name of the chain, "corrected" or "released".
        """
        block = -(-self.horizon // blocks)
        found: dict[Text, float] = {}
        state: dict[Text, float] = {(): 1.0}
        for number in range(1, blocks + 1):
            length = min(number * block, self.horizon)
            texts, matrix = self.transitions(length, chain)
            places = {text: place for place, text in enumerate(texts)}
            start = np.zeros(len(texts))
            for x, mass in state.items():
                bound = min(len(x) + block, self.horizon) if chain == RELEASED else length
                for y, (log_q, _) in self.completions(x, bound).items():
                    start[places[y]] += mass * math.exp(log_q)
            after = start @ np.linalg.matrix_power(matrix, steps)
            state = {}
            for x, mass in zip(texts, after.tolist(), strict=True):
                complete = length == self.horizon if chain != RELEASED else self.is_complete(x)
                kept = found if complete else state
                kept[x] = kept.get(x, 0.0) + mass
        return found

    def is_complete(self, text: Text) -> bool:
        """Return whether a text has ended or has the maximum length."""
        return self.ended(text) or len(text) == self.horizon

    def _texts(self, length: int, chain: str) -> list[Text]:
        """Return the texts that a chain can visit. The released chain also visits shortened texts."""
        if chain != RELEASED:
            return list(self.completions((), length))
        return list(self._prefixes((), self.horizon))

    def _prefixes(self, prefix: Text, length: int) -> Iterator[Text]:
        if prefix:
            yield prefix
        if not self.ended(prefix) and len(prefix) < length:
            for token in range(VOCAB):
                yield from self._prefixes((*prefix, token), length)

    def _log_ratio(self, x: Text, y: Text, chain: str) -> float:
        """Return the log of the Metropolis-Hastings ratio for replacing text `x` by proposal `y`."""
        compared = x[: len(y)] if chain == RELEASED else x
        (old_q, old_p), (new_q, new_p) = (self.completions((), len(text))[text] for text in (compared, y))
        log_ratio = self.alpha * (new_p - old_p) - (new_q - old_q)
        return log_ratio if chain == RELEASED else log_ratio + math.log(len(x) / len(y))
