"""The law of what a hidden Markov chain writes, one token at each of its states, until it ends: all of it exact.

One law under every contract: as a law of whole sequences it answers for masked sites and has an energy, for chains; as
an oracle of prefixes it says what comes next, for walks; and as a denoiser it says what a corrupted sequence was.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from trialogue.arrays import real_tensor, require_bools, whole_tensor
from trialogue.errors import InputError, probability, whole_number
from trialogue.indices import site_indices
from trialogue.oracles import Energy, Masked, PrefixOracle
from trialogue.probabilities import checked_probabilities
from trialogue.validation import Natural, validated

_ROUNDING = 1e-9


class HiddenMarkov(Masked, Energy):
    """Sequences written by a chain that starts by `initial` (K,), moves by `transitions` (K, K), and ends by `ending`.

    At each state it writes a token by `emissions` (K, V), and then ends with probability `ending` (K,), or moves on:
    rows of `transitions` and `ending` together sum to one. Of a sequence of N tokens the energy is -log p(N, x), so
    that as a law of N sites it is p(x | N); a length that cannot occur has no such law. Every answer is a pass forward
    and one backward over the sequence (Rabiner 1989). Raises `InputError` for what are no such probabilities, and,
    where asked about a site, for others that cannot occur together.
    """

    def __init__(self, initial: Any, transitions: Any, emissions: Any, ending: Any) -> None:
        self.initial = _checked("initial", initial, 1)
        self.transitions = _checked("transitions", transitions, 2)
        self.emissions = _checked("emissions", emissions, 2)
        self.ending = _checked("ending", ending, 1)
        states = len(self.initial)
        for field, shape in (("transitions", (states, states)), ("ending", (states,))):
            if getattr(self, field).shape != shape:
                raise InputError(field, tuple(getattr(self, field).shape), f"use the shape {shape}")
        if len(self.emissions) != states:
            raise InputError(
                "emissions", tuple(self.emissions.shape), f"give a row for each of {states} states"
            )
        checked_probabilities("initial", self.initial, (states,))
        checked_probabilities("emissions", self.emissions, tuple(self.emissions.shape))
        if not bool(((self.transitions.sum(1) + self.ending - 1).abs() < _ROUNDING).all()):
            raise InputError("ending", self.ending, "with the moves of its state each must sum to one")
        self.vocab_size = self.emissions.shape[1]

    def energy(self, tokens: Tensor) -> Tensor:
        """-log p(N, x) (rows,) float64 of `tokens` (rows, N); +inf where it is zero."""
        tokens = self._words(tokens)
        message = self.initial.expand(len(tokens), -1)
        total = torch.zeros(len(tokens), dtype=torch.float64)
        for site in range(tokens.shape[1]):
            if site:
                message = message @ self.transitions
            message, logs = _scaled(message * self.emissions.T[tokens[:, site]])
            total += logs
        return -(total + (message @ self.ending).log())

    @validated
    def length_log_probs(self, longest: Natural) -> Tensor:
        """log p(N) (longest + 1,) of the lengths 0 to `longest`, whatever is written; sequences are not empty."""
        found, message = [0.0], self.initial
        for _ in range(longest):
            found.append(float(message @ self.ending))
            message = message @ self.transitions
        return torch.tensor(found, dtype=torch.float64).log()

    def log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """log p(x_i | x outside the mask, N) (rows, N, V) of each masked site by itself."""
        evidence = self.emissions.T[self._words(tokens, masked)].masked_fill(masked[:, :, None], 1.0)
        return self._site_laws(evidence, lambda states: states @ self.emissions)

    def site_log_probs(self, tokens: Tensor) -> Tensor:
        """log p(x_i | all others, N) (rows, N, V) of every site."""
        return self._site_laws(self.emissions.T[self._words(tokens)], lambda states: states @ self.emissions)

    def site_log_weights(self, tokens: Tensor, sites: Tensor) -> Tensor:
        """log p(x_i | all others, N) (rows, V) of one site of each row; `sites` (rows,)."""
        weights = self.site_log_probs(tokens)
        return weights[torch.arange(len(tokens)), site_indices(sites, len(tokens), tokens.shape[1])]

    def refined_log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """log p(x_i | x outside the mask and i, N) (rows, N, V) of every site, in the same two passes."""
        return self.log_probs(tokens, masked)

    def denoised_log_probs(
        self, tokens: Tensor, masked: Tensor, correct: float, among: int | None = None
    ) -> Tensor:
        """log p(x_i | y, N) (rows, N, V) where y = `tokens` is x with noise: what a perfect denoiser answers.

        Each token of y is that of x with probability `correct`, else uniform over `among` tokens, by default and at
        least the V of the law: the noise of PaDIR's first stage. Of those at `masked` nothing is known.
        """
        share = probability("correct", correct)
        others = self.vocab_size if among is None else whole_number("among", among, self.vocab_size)
        channel = torch.full((self.vocab_size,) * 2, (1 - share) / others, dtype=torch.float64)
        channel += share * torch.eye(self.vocab_size, dtype=torch.float64)
        tokens, hidden = self._words(tokens, masked), masked[:, :, None]
        noisy = channel.T[tokens].masked_fill(hidden, 1.0)
        evidence = (self.emissions @ channel).T[tokens].masked_fill(hidden, 1.0)
        return self._site_laws(evidence, lambda states: (states @ self.emissions) * noisy)

    def _words(self, tokens: Tensor, masked: Tensor | None = None) -> Tensor:
        """Return `tokens` (rows, N) as int64; raises `InputError` for others than 0 to V - 1 outside of `masked`."""
        hint = f"use token ids from 0 to {self.vocab_size - 1}, of shape (rows, sites)"
        words = whole_tensor("tokens", tokens, hint)
        if words.ndim != 2:
            raise InputError("tokens", tuple(words.shape), hint)
        if masked is not None:
            require_bools("masked", masked, tuple(words.shape), "give one bool for each token")
            words = words.masked_fill(masked, 0)
        wrong = words[(words < 0) | (words >= self.vocab_size)]
        if len(wrong):
            raise InputError("tokens", int(wrong[0]), hint)
        return words

    def _site_laws(self, evidence: Tensor, law: Callable[[Tensor], Tensor]) -> Tensor:
        """Normalised logarithms of `law` of the states (rows, N, K) that all sites but each itself speak for.

        `evidence` (rows, N, K) is what the token at a site speaks for.
        """
        rows, sites, states = evidence.shape
        before = torch.empty(rows, sites, states, dtype=torch.float64)
        behind = torch.empty_like(before)
        message = self.initial.expand(rows, -1)
        for site in range(sites):
            before[:, site] = message
            message, _ = _scaled((message * evidence[:, site]) @ self.transitions)
        message = self.ending.expand(rows, -1)
        for site in range(sites - 1, -1, -1):
            behind[:, site] = message
            message, _ = _scaled((message * evidence[:, site]) @ self.transitions.T)
        weights = law(before * behind)
        total = weights.sum(2, keepdim=True)
        if not bool((total > 0).all()):
            row = int((total <= 0).any(1)[:, 0].nonzero()[0])
            hint = f"row {row} of them cannot occur, so that a site has no law given the others"
            raise InputError("tokens", (rows, sites), hint)
        return (weights / total).log()


class Denoiser(Masked):
    """`law`, refined by what reads every token, its own too, and knows that a share `correct` of them is right.

    The others are uniform over `among` tokens (`HiddenMarkov.denoised_log_probs`): a perfect network of iterative
    refinement. What is asked of masked sites alone is the law's, where no noise is assumed.
    """

    def __init__(self, law: HiddenMarkov, correct: float, among: int | None = None) -> None:
        self.law, self.correct, self.among = law, probability("correct", correct), among
        self.vocab_size = law.vocab_size

    def log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """log p(x_i | x outside the mask, N) (rows, N, V)."""
        return self.law.log_probs(tokens, masked)

    def refined_log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """log p(x_i | tokens outside the mask, with noise, N) (rows, N, V)."""
        return self.law.denoised_log_probs(tokens, masked, self.correct, self.among)


class HiddenMarkovPrefixes(PrefixOracle):
    """`law` from left to right: V tokens, and the end of sequence V; a prefix that cannot occur raises `InputError`."""

    def __init__(self, law: HiddenMarkov) -> None:
        self.law = law
        self.vocab_size = law.vocab_size + 1
        self.eos = law.vocab_size

    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Log-probabilities (n, V + 1) after the first `lengths` (n,) of `tokens` (n, capacity)."""
        law, rows = self.law, len(tokens)
        answer = torch.full((rows, self.vocab_size), -math.inf, dtype=torch.float64)
        weights = torch.empty(rows, self.vocab_size, dtype=torch.float64)
        message, ending = law.initial.expand(rows, -1), torch.zeros(rows, dtype=torch.float64)
        for length in range(int(lengths.max()) + 1 if rows else 0):
            weights[:, :-1], weights[:, -1] = message @ law.emissions, ending
            answer = torch.where((lengths == length)[:, None], weights, answer)
            if length < tokens.shape[1]:
                written = tokens[:, length].clamp(0, law.vocab_size - 1)
                here, _ = _scaled(message * law.emissions.T[written])
                message, ending = here @ law.transitions, here @ law.ending
        total = answer.sum(1, keepdim=True)
        if not bool((total > 0).all()):
            raise InputError("tokens", tuple(tokens.shape), "one of the prefixes cannot occur")
        return (answer / total).log()


def _scaled(message: Tensor) -> tuple[Tensor, Tensor]:
    """`message` (rows, K) summing to one, and the logarithm (rows,) of what it summed to; zero stays zero."""
    total = message.sum(1)
    return message / torch.where(total > 0, total, 1.0)[:, None], total.log()


def _checked(field: str, values: Any, axes: int) -> Tensor:
    tensor = real_tensor(field, values, "give probabilities")
    if tensor.ndim != axes or not bool((tensor >= 0).all()):
        raise InputError(field, tuple(tensor.shape), f"give probabilities along {axes} axes")
    return tensor.double()
