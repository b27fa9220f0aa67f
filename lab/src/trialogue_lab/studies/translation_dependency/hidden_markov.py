"""The exact distribution of what a hidden Markov chain writes, one token at each of its states, until it ends.

It is a masked oracle and an energy, for chains, and `Denoiser` reconstructs corrupted sequences.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from trialogue.arrays import real_tensor, require_bools, whole_tensor
from trialogue.errors import InputError
from trialogue.oracles import Energy, Masked
from trialogue.probabilities import checked_probabilities
from trialogue.validation import Count, InstanceOf, Natural, Share, validated

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
        self.emissions = real_tensor("emissions", emissions, "give probabilities").double()
        states, self.vocab_size = self.emissions.shape
        checked_probabilities("emissions", self.emissions, (states, self.vocab_size))
        self.initial = checked_probabilities("initial", initial, (states,))
        self.transitions = real_tensor("transitions", transitions, "give probabilities").double()
        self.ending = real_tensor("ending", ending, "give probabilities").double()
        for field, shape in (("transitions", (states, states)), ("ending", (states,))):
            if getattr(self, field).shape != shape:
                raise InputError(field, tuple(getattr(self, field).shape), f"use the shape {shape}")
        checked_probabilities(
            "ending",
            torch.cat((self.transitions, self.ending[:, None]), 1),
            (states, states + 1),
            tolerance=_ROUNDING,
            hint="with the moves of its state each must sum to one, and none be negative",
        )

    def energy(self, tokens: Tensor) -> Tensor:
        """-log p(N, x) (rows,) float64 of `tokens` (rows, N); +inf where it is zero."""
        tokens = self.words(tokens)
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
        evidence = self.emissions.T[self.words(tokens, masked)].masked_fill(masked[:, :, None], 1.0)
        return self.site_laws(evidence, lambda states: states @ self.emissions)

    def refined_log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """log p(x_i | x outside the mask and i, N) (rows, N, V) of every site, in the same two passes."""
        return self.log_probs(tokens, masked)

    def words(self, tokens: Tensor, masked: Tensor | None = None) -> Tensor:
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

    def site_laws(self, evidence: Tensor, law: Callable[[Tensor], Tensor]) -> Tensor:
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
    """`law`, refined by a perfect denoiser: log p(x_i | y, N) where y is x with the noise of PaDIR's first stage.

    Each token of y is that of x with probability `correct`, else uniform over `among` tokens, at least the V of the
    law. It is a perfect network of iterative refinement. Masked sites are predicted by the law, without noise.
    """

    @validated
    def __init__(self, law: InstanceOf[HiddenMarkov], correct: Share, among: Count) -> None:
        self.law, self.correct, self.among = law, correct, among
        self.vocab_size = law.vocab_size
        if among < law.vocab_size:
            raise InputError("among", among, f"use at least the {law.vocab_size} tokens of the law")

    def log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """log p(x_i | x outside the mask, N) (rows, N, V)."""
        return self.law.log_probs(tokens, masked)

    def refined_log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """log p(x_i | tokens outside the mask, with noise, N) (rows, N, V)."""
        law, vocab = self.law, self.vocab_size
        channel = torch.full((vocab, vocab), (1 - self.correct) / self.among, dtype=torch.float64)
        channel += self.correct * torch.eye(vocab, dtype=torch.float64)
        tokens, hidden = law.words(tokens, masked), masked[:, :, None]
        noisy = channel.T[tokens].masked_fill(hidden, 1.0)
        evidence = (law.emissions @ channel).T[tokens].masked_fill(hidden, 1.0)
        return law.site_laws(evidence, lambda states: (states @ law.emissions) * noisy)


def _scaled(message: Tensor) -> tuple[Tensor, Tensor]:
    """`message` (rows, K) summing to one, and the logarithm (rows,) of what it summed to; zero stays zero."""
    total = message.sum(1)
    return message / torch.where(total > 0, total, 1.0)[:, None], total.log()
