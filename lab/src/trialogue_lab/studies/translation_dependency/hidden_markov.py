"""The exact distribution of the output of a hidden Markov chain, and its perfect denoiser.

The chain emits one token per state until it ends. The distribution is a masked model and an energy, so that Markov
chains can sample from it.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from trialogue.arrays import integer_tensor, real_tensor, require_bools
from trialogue.errors import InputError
from trialogue.indices import index_tensor
from trialogue.oracles import Energy, Masked
from trialogue.probabilities import validate_probabilities
from trialogue.validation import Count, InstanceOf, Natural, Share, validated


class HiddenMarkov(Masked, Energy):
    """Distribution of the token sequences that a hidden Markov chain emits.

    The chain has K hidden states and a vocabulary of V tokens. In each state it emits one token, and then
    ends or moves to another state. Probabilities are computed by the forward-backward algorithm.

    Args:
        initial: Probabilities (K,) of the first state.
        transitions: Probabilities (K, K) of the moves from each state.
        emissions: Probabilities (K, V) of the tokens in each state.
        ending: Probabilities (K,) that the chain ends after each state. Each row of `transitions` plus its
            `ending` sums to one.

    Raises:
        InputError: If the arguments are not such probabilities. Methods raise it for invalid token ids and
            for sequences of probability zero.
    """

    def __init__(self, initial: Any, transitions: Any, emissions: Any, ending: Any) -> None:
        self.emissions = real_tensor("emissions", emissions, "give probabilities")
        states, self.vocab_size = self.emissions.shape
        validate_probabilities("emissions", self.emissions, (states, self.vocab_size))
        self.initial = validate_probabilities("initial", initial, (states,))
        self.transitions = real_tensor("transitions", transitions, "give probabilities")
        self.ending = real_tensor("ending", ending, "give probabilities")
        for field, shape in (("transitions", (states, states)), ("ending", (states,))):
            if getattr(self, field).shape != shape:
                raise InputError(field, tuple(getattr(self, field).shape), f"use the shape {shape}")
        validate_probabilities(
            "ending",
            torch.cat((self.transitions, self.ending[:, None]), 1),
            (states, states + 1),
            tolerance=1e-9,
            hint="each ending and its row of transitions must be non-negative and together sum to one",
        )

    def energy(self, tokens: Tensor) -> Tensor:
        """Return the negative log-probability of sequences and their length.

        Args:
            tokens: Token ids (rows, N).

        Returns:
            -log p(N, x) (rows,) float64, which is +inf for impossible sequences.
        """
        tokens = self.checked_tokens(tokens)
        message = self.initial.expand(len(tokens), -1)
        total = torch.zeros(len(tokens), dtype=torch.float64)
        for site in range(tokens.shape[1]):
            if site:
                message = message @ self.transitions
            message, logs = _normalize(message * self.emissions.T[tokens[:, site]])
            total += logs
        return -(total + (message @ self.ending).log())

    @validated
    def length_log_probs(self, longest: Natural) -> Tensor:
        """Return the log-probabilities of the sequence lengths. No sequence is empty.

        Args:
            longest: Largest length.

        Returns:
            Log-probabilities (longest + 1,) of the lengths 0, ..., `longest`.
        """
        probabilities, message = [0.0], self.initial
        for _ in range(longest):
            probabilities.append(float(message @ self.ending))
            message = message @ self.transitions
        return torch.tensor(probabilities, dtype=torch.float64).log()

    def log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """Return the log-probabilities of each token, given the other unmasked tokens and the length.

        Args:
            tokens: Token ids (rows, N).
            masked: Whether each token is masked (rows, N).

        Returns:
            Log-probabilities (rows, N, V).
        """
        tokens = self.checked_tokens(tokens, masked)
        evidence = self.emissions.T[tokens].masked_fill(masked[:, :, None], 1.0)
        return self.posterior_log_probs(evidence, lambda states: states @ self.emissions)

    def refined_log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """Return the log-probabilities of each token, given the other unmasked tokens and the length.

        The result is the same as that of `log_probs`, because the distribution has no noise.

        Args:
            tokens: Token ids (rows, N).
            masked: Whether each token is masked (rows, N).

        Returns:
            Log-probabilities (rows, N, V).
        """
        return self.log_probs(tokens, masked)

    def checked_tokens(self, tokens: Tensor, masked: Tensor | None = None) -> Tensor:
        """Validate token ids, and set masked sites to 0.

        Args:
            tokens: Token ids (rows, N).
            masked: Whether each token is masked (rows, N). None if no token is masked.

        Returns:
            Token ids (rows, N), int64.

        Raises:
            InputError: If an unmasked token is not between 0 and V - 1, or an argument has another shape.
        """
        hint = f"use token ids from 0 to {self.vocab_size - 1}, of shape (rows, sites)"
        ids = integer_tensor("tokens", tokens, hint)
        if masked is not None:
            require_bools("masked", masked, tuple(ids.shape), "give one bool for each token")
            ids = ids.masked_fill(masked, 0)
        return index_tensor("tokens", ids, (None, None), self.vocab_size, shape_hint=hint, range_hint=hint)

    def posterior_log_probs(self, evidence: Tensor, token_weights: Callable[[Tensor], Tensor]) -> Tensor:
        """Return the log-probabilities of the token at each site, given observations at all sites.

        Args:
            evidence: Likelihood (rows, N, K) of the observation at each site, given the hidden state.
            token_weights: Function that maps weights of the hidden states (rows, N, K) to weights of the
                tokens (rows, N, V). The weights of a site are those given all other sites.

        Returns:
            Normalized log-probabilities (rows, N, V).

        Raises:
            InputError: If the observations of a row have probability zero.
        """
        rows, sites, states = evidence.shape
        forward = torch.empty(rows, sites, states, dtype=torch.float64)
        backward = torch.empty_like(forward)
        message = self.initial.expand(rows, -1)
        for site in range(sites):
            forward[:, site] = message
            message, _ = _normalize((message * evidence[:, site]) @ self.transitions)
        message = self.ending.expand(rows, -1)
        for site in range(sites - 1, -1, -1):
            backward[:, site] = message
            message, _ = _normalize((message * evidence[:, site]) @ self.transitions.T)
        weights = token_weights(forward * backward)
        total = weights.sum(2, keepdim=True)
        if not bool((total > 0).all()):
            row = int((total <= 0).any(1)[:, 0].nonzero()[0])
            hint = f"row {row} has probability zero: give sequences that the chain can emit"
            raise InputError("tokens", (rows, sites), hint)
        return (weights / total).log()


class Denoiser(Masked):
    """Perfect denoiser, which predicts the clean tokens x from a noisy sequence y.

    It returns the exact log p(x_i | y) for sequences of a given length, as a perfectly trained model of
    iterative refinement would. Masked tokens of y are ignored.

    Args:
        clean: Distribution of the clean sequences x.
        correct: Probability that a token of y is the token of x. Otherwise it is uniform over the noise
            tokens.
        noise_tokens: Number of noise tokens, at least the vocabulary size of `clean`.
    """

    @validated
    def __init__(self, clean: InstanceOf[HiddenMarkov], correct: Share, noise_tokens: Count) -> None:
        self.clean, self.correct, self.noise_tokens = clean, correct, noise_tokens
        self.vocab_size = clean.vocab_size
        if noise_tokens < clean.vocab_size:
            hint = f"use at least the vocabulary size {clean.vocab_size}"
            raise InputError("noise_tokens", noise_tokens, hint)

    def log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """Return the log-probabilities of each token, given the other unmasked tokens without noise.

        Args:
            tokens: Clean token ids (rows, N).
            masked: Whether each token is masked (rows, N).

        Returns:
            Log-probabilities (rows, N, V).
        """
        return self.clean.log_probs(tokens, masked)

    def refined_log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """Return the log-probabilities of the clean token at every site, given the unmasked noisy tokens.

        Args:
            tokens: Noisy token ids (rows, N).
            masked: Whether each token is masked (rows, N).

        Returns:
            Log-probabilities (rows, N, V).
        """
        clean, vocab = self.clean, self.vocab_size
        channel = torch.full((vocab, vocab), (1 - self.correct) / self.noise_tokens, dtype=torch.float64)
        channel += self.correct * torch.eye(vocab, dtype=torch.float64)
        tokens, hidden = clean.checked_tokens(tokens, masked), masked[:, :, None]
        noisy = channel.T[tokens].masked_fill(hidden, 1.0)
        evidence = (clean.emissions @ channel).T[tokens].masked_fill(hidden, 1.0)
        return clean.posterior_log_probs(evidence, lambda states: (states @ clean.emissions) * noisy)


def _normalize(message: Tensor) -> tuple[Tensor, Tensor]:
    """Return `message` (rows, K) divided by its sums, and the logarithms (rows,) of the sums.

    Zero rows stay zero.
    """
    total = message.sum(1)
    return message / torch.where(total > 0, total, 1.0)[:, None], total.log()
