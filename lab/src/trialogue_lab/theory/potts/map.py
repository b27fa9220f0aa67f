"""Conversions between autoregressive models and chains of windows (Theorem 1.2 of the document on Potts chains).

A model whose next token depends on the last w tokens has a Hamiltonian with windows of W = w + 1 tokens. Its
Boltzmann distribution at T = 1 is the model itself (equations 7 to 10) if the constant of equation 9 is the
same for all contexts. The text uses a constant per context such that the most likely token has energy zero.
This gives a different distribution, proportional to the product of p(x_i | context) / max_c p(c | context).
Sampling every token at another temperature also differs from the distribution at that temperature, because
its normalizers depend on the context.

Conversely, a chain of windows has exact conditionals p(x_n | x_0 .. x_(n-1)), computed by messages from the
end. They define a model with the same window whose conditionals depend on the distance to the end.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from trialogue.data import PottsChain
from trialogue.errors import InputError
from trialogue.oracles import Autoregressive, PrefixOracle, as_oracle, next_log_probs, whole_sequences
from trialogue.randomness import generator
from trialogue.validation import Count, InstanceOf, Natural, validated

Constant = Literal["global", "per-context"]
"""Interpretation of the constant in equation 9."""

MAX_CONTEXTS = 2**20
"""Largest number of prefixes for which an oracle is evaluated."""
FURTHER = 8
"""Number of tokens beyond the window at which the dependence of the oracle is tested."""
PREFIXES = 1024
"""Number of prefixes tested per length, if there are more."""


@dataclass(frozen=True)
class AutoregressiveHamiltonian:
    """H(x) = boundary[x_0, .., x_(w-1)] + energy of `chain`, for sequences of at least W = w + 1 tokens.

    With the global constant, -log p(x) = H(x) + `boundary_offset` + (L - w) * `offset`, and the smallest
    energies are zero.

    Attributes:
        chain: Equation 9 for tokens with w tokens before them.
        boundary: Sum of the terms of the first w tokens, shape (V,) * w.
        constant: Constant of equation 9.
        offset: Constant subtracted from windows.
        boundary_offset: Constant subtracted from beginnings.
    """

    chain: PottsChain
    boundary: Tensor
    constant: Constant
    offset: float
    boundary_offset: float

    @property
    def vocab_size(self) -> int:
        """Number of tokens V."""
        return self.chain.vocab_size

    def energy(self, tokens: Tensor) -> Tensor:
        """Return H(x) (rows,) float64 of `tokens` (rows, L), L >= W."""
        of_windows = self.chain.energy(tokens)
        first = tokens[:, : self.boundary.ndim].unbind(1)
        return of_windows + (self.boundary[first] if first else self.boundary)

    def log_partition(self, length: int, temperature: float) -> float:
        """Return log Z over all V^L sequences.

        At T = 1 with the global constant, it is the sum of all constants.
        """
        return float(_weights_of_beginnings(self, length, temperature).logsumexp(0))


@validated
def context_log_probs(oracle: Autoregressive, context: Natural) -> Tensor:
    """Return log p(c | last w tokens) (V^w, V) float64 of an oracle with a finite window.

    The function tests whether the oracle depends on earlier tokens: on all prefixes with one more token, and
    on up to `PREFIXES` random prefixes of each length up to `FURTHER` more tokens.

    Args:
        oracle: Oracle without an end-of-sequence token.
        context: Window w.

    Returns:
        Log-probabilities in the order of `itertools.product`.

    Raises:
        InputError: If the oracle ends sequences, or depends on earlier tokens or on the position.
    """
    oracle = as_oracle(oracle)
    if oracle.eos is not None:
        hint = "sequences that end have no length: use an oracle without one"
        raise InputError("oracle.eos", oracle.eos, hint)
    if oracle.max_length is not None and oracle.max_length < context + 2:
        hint = f"whether the last {context} tokens suffice shows after {context + 1}: use longer sequences"
        raise InputError("oracle.max_length", oracle.max_length, hint)
    # The power itself may take forever.
    if context >= MAX_CONTEXTS or (context + 1) * math.log(oracle.vocab_size) > math.log(MAX_CONTEXTS) + 1e-9:
        hint = f"there are {oracle.vocab_size}^{context + 1} contexts: use at most {MAX_CONTEXTS}"
        raise InputError("context", context, hint)
    answer = _prefix_log_probs(oracle, context)
    _require_window(oracle, context, answer)
    return answer.double()


def _require_window(oracle: Autoregressive, width: int, answer: Tensor) -> None:
    """Raise `InputError` if the oracle depends on more than the last `width` tokens."""
    vocab = oracle.vocab_size
    places = vocab ** torch.arange(width - 1, -1, -1)
    longest = width + FURTHER if oracle.max_length is None else min(width + FURTHER, oracle.max_length - 1)
    for length in range(width + 1, longest + 1):
        listed = vocab**length <= PREFIXES or length == width + 1
        draws = generator(0, "looking back", length)
        prefixes = (
            whole_sequences(vocab, length)
            if listed
            else torch.randint(vocab, (PREFIXES, length), generator=draws)
        )
        own = (prefixes[:, length - width :] * places).sum(1)
        further = next_log_probs(oracle, prefixes).log_softmax(1)
        change = float((further.exp() - answer[own].exp()).abs().max())
        # The answers of a network change a little with the length.
        if change > math.sqrt(torch.finfo(answer.dtype).eps):
            back = "one token" if length == width + 1 else f"{length - width} tokens"
            hint = f"what stands {back} further back changes a probability by {change:.2g}: use more"
            raise InputError("context", width, hint)


@validated
def hamiltonian_of(
    oracle: Autoregressive, window: Natural, constant: Constant = "global"
) -> AutoregressiveHamiltonian:
    """Return the Hamiltonian of an oracle with a finite window (equations 7 to 9).

    Args:
        oracle: Oracle whose next token depends on the last w tokens.
        window: Window w. Windows of the chain have W = w + 1 tokens.
        constant: "global" subtracts one constant from all windows and one from all beginnings. "per-context"
            gives the most likely token of each context energy zero, as in the text after equation 8.

    Raises:
        InputError: If a token has probability zero, whose energy is infinite, or `context_log_probs` rejects
            the oracle.
    """
    last, vocab = -context_log_probs(oracle, window), oracle.vocab_size
    terms = [*(-_prefix_log_probs(oracle, length).double() for length in range(window)), last]
    for length, term in enumerate(terms):
        if not bool(torch.isfinite(term).all()):
            context, token = (~torch.isfinite(term)).nonzero()[0].tolist()
            prefix = tuple(whole_sequences(vocab, length)[context].tolist())
            hint = "its energy would be infinite: use an oracle whose probabilities are all positive"
            raise InputError("oracle", f"p({token} | {prefix}) = 0", hint)
    if constant == "per-context":
        terms = [term - term.amin(1, keepdim=True) for term in terms]
    boundary = torch.zeros(1, dtype=torch.float64)
    for term in terms[:-1]:
        boundary = (boundary[:, None] + term).flatten()
    least = float(terms[-1].min()), float(boundary.min())
    chain = PottsChain((terms[-1] - least[0]).view([vocab] * (window + 1)))
    return AutoregressiveHamiltonian(chain, (boundary - least[1]).view([vocab] * window), constant, *least)


class ChainConditionals(PrefixOracle):
    """Exact next-token oracle of p(x) ∝ exp(-H(x) / T) on sequences of `length` tokens.

    Sequences are complete at `length`, without an end-of-sequence token. Messages from the end are computed
    once, so each call costs one row of the energy table.
    """

    def __init__(
        self, chain: PottsChain | AutoregressiveHamiltonian, length: int, temperature: float
    ) -> None:
        beginnings = _weights_of_beginnings(chain, length, temperature)
        inner = chain if isinstance(chain, PottsChain) else chain.chain
        messages = inner.messages(temperature)
        self.vocab_size, self.max_length = inner.vocab_size, int(length)
        self._length, self._context = int(length), inner.window - 1
        self._log_weights = messages.log_weights
        # Which message stands behind each site, from the last one on, and all different ones.
        self._behind = messages.backward_indices(torch.arange(self._length - self._context))
        self._table = messages.backward_table()
        self._first = []
        for known in range(self._context):
            weights = beginnings.view(self.vocab_size**known, self.vocab_size, -1).logsumexp(2)
            self._first.append(weights.log_softmax(1))

    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return log-probabilities (n, V) float64 after the first `lengths` (n,) of `tokens`.

        Raises:
            InputError: If a sequence is complete.
        """
        if len(lengths) and int(lengths.max()) >= self._length:
            hint = f"sequences are complete at {self._length} tokens: ask about shorter ones"
            raise InputError("lengths", int(lengths.max()), hint)
        answer = torch.empty(len(lengths), self.vocab_size, dtype=torch.float64)
        places = self.vocab_size ** torch.arange(self._context - 1, -1, -1)
        for known in lengths[lengths < self._context].unique().tolist():
            rows = (lengths == known).nonzero()[:, 0]
            number = (tokens[rows, :known] * places[self._context - known :]).sum(1)
            answer[rows] = self._first[known][number]
        rows = (lengths >= self._context).nonzero()[:, 0]
        if len(rows):
            begin = lengths[rows, None] - self._context
            context = tokens[rows].gather(1, begin + torch.arange(self._context))
            windows = (context * places).sum(1)[:, None] * self.vocab_size + torch.arange(self.vocab_size)
            place = self._behind[self._length - 1 - lengths[rows]]
            after = self._table[place[:, None], windows % self._table.shape[1]]
            answer[rows] = (self._log_weights[windows] + after).log_softmax(1)
        return answer


def autoregressive_of(
    chain: PottsChain | AutoregressiveHamiltonian, length: int, temperature: float
) -> ChainConditionals:
    """Return the exact next-token oracle of a chain, which every sampler accepts.

    For an `AutoregressiveHamiltonian` with the global constant at T = 1, it is the original model.

    Args:
        chain: Chain or Hamiltonian.
        length: Length of the sequences, at least one window.
        temperature: Positive temperature T.
    """
    return ChainConditionals(chain, length, temperature)


@validated
def _weights_of_beginnings(
    chain: InstanceOf[PottsChain] | InstanceOf[AutoregressiveHamiltonian], length: Count, temperature: float
) -> Tensor:
    """Return log-weights (V^(W-1),) of the first W - 1 tokens, summed over all continuations."""
    inner = chain if isinstance(chain, PottsChain) else chain.chain
    messages = inner.messages(temperature)
    if length < inner.window:
        raise InputError("length", length, f"use at least one window of {inner.window} tokens")
    inner.at(length, temperature)  # refuses energies whose sum overflows
    weights, scale = messages.backward(length - inner.window + 1)
    weights = weights + scale
    if isinstance(chain, PottsChain):
        return weights
    return weights - chain.boundary.flatten() / temperature


def _prefix_log_probs(oracle: Autoregressive, length: int) -> Tensor:
    """Return log p(c | prefix) (V^length, V) for all prefixes of `length` tokens."""
    return next_log_probs(oracle, whole_sequences(oracle.vocab_size, length)).log_softmax(1)
