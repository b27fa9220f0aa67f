"""Conversions between next-token models and Potts chains (Theorem 1.2 of the document on Potts chains).

A Potts chain is a distribution p(x) ∝ exp(-energy / T) over sequences, where the energy is a sum over windows
of neighboring tokens and T is the temperature.

From a model to a chain: if the next token depends on the last w tokens, the energy of a window of w + 1
tokens is -log p(token | context) plus a constant (equations 7 to 10). With one constant for all contexts, the
chain at T = 1 has the distribution of the model. With one constant per context, as in the document, it does
not. At other temperatures, the chain differs from sampling each token at this temperature.

From a chain to a model: the chain's exact conditionals p(x_n | x_0 .. x_(n-1)) define a next-token model with
the same window. They depend on the distance to the end of the sequence.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from trialogue.data import PottsChain
from trialogue.errors import InputError
from trialogue.oracles import Autoregressive, PrefixOracle, as_oracle, enumerate_sequences, next_log_probs
from trialogue.randomness import generator
from trialogue.validation import Count, InstanceOf, Natural, validated

Constant = Literal["global", "per-context"]
"""Constant added to the energies in equation 9: one for all contexts, or one per context."""

MAX_CONTEXTS = 2**20
"""Largest number of prefixes for which a model is evaluated."""
FURTHER = 8
"""Number of tokens before the window that are varied to test that they have no effect."""
PREFIXES = 1024
"""Number of prefixes tested per length, if there are more."""


@dataclass(frozen=True)
class AutoregressiveHamiltonian:
    """Energy function of an autoregressive model whose next token depends on the last w tokens.

    The energy of a sequence is the energy of its first w tokens (`boundary`) plus the energies of all windows
    of w + 1 tokens (`chain`). Energies are negative log-probabilities plus a constant.

    Attributes:
        chain: Chain of windows of w + 1 tokens, with the energies of equation 9.
        boundary: Energies (V,) * w of the first w tokens, which have shorter contexts.
        constant: "global" for one constant, so that -log p = energy + `boundary_offset` + (L - w) * `offset`
            for L tokens. "per-context" for one constant per context, so that the most likely token has energy
            zero.
        offset: Number subtracted from the energies of all windows, so that the smallest is zero.
        boundary_offset: Number subtracted from `boundary`, so that the smallest entry is zero.
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
        """Return the energy H(x) of each sequence.

        Args:
            tokens: Sequences (rows, L) int64 of at least w + 1 tokens.

        Returns:
            Energies (rows,) float64.
        """
        of_windows = self.chain.energy(tokens)
        first = tokens[:, : self.boundary.ndim].unbind(1)
        return of_windows + (self.boundary[first] if first else self.boundary)

    def log_partition(self, length: int, temperature: float) -> float:
        """Return log Z, where Z is the sum of exp(-H(x) / T) over all sequences.

        Args:
            length: Number of tokens in a sequence, at least w + 1.
            temperature: Temperature T.
        """
        return float(_compute_beginning_weights(self, length, temperature).logsumexp(0))


@validated
def context_log_probs(oracle: Autoregressive, context: Natural) -> Tensor:
    """Return the next-token log-probabilities for every context of a model with a finite window.

    The model is called with short and with random longer prefixes, to test that only the last w tokens
    matter.

    Args:
        oracle: Next-token model without an end-of-sequence token.
        context: Number w of previous tokens on which the next token depends.

    Returns:
        Log-probabilities (V^w, V) float64. Row i belongs to the i-th context in the order of
        `itertools.product`.

    Raises:
        InputError: If the model ends sequences, or depends on earlier tokens or on the position, or there are
            too many contexts.
    """
    oracle = as_oracle(oracle)
    if oracle.eos is not None:
        hint = "sequences must not end early: use an oracle without an end-of-sequence token"
        raise InputError("oracle.eos", oracle.eos, hint)
    if oracle.max_length is not None and oracle.max_length < context + 2:
        hint = f"sequences of at least {context + 1} tokens are needed to test whether the last {context} suffice"
        raise InputError("oracle.max_length", oracle.max_length, hint)
    # Computing the power itself could take very long, so compare logarithms.
    if context >= MAX_CONTEXTS or (context + 1) * math.log(oracle.vocab_size) > math.log(MAX_CONTEXTS) + 1e-9:
        hint = f"there are {oracle.vocab_size}^{context + 1} contexts: use at most {MAX_CONTEXTS}"
        raise InputError("context", context, hint)
    answer = _compute_prefix_log_probs(oracle, context)
    _require_window(oracle, context, answer)
    return answer.double()


def _require_window(oracle: Autoregressive, width: int, answer: Tensor) -> None:
    """Raise `InputError` if the model depends on more than the last `width` tokens."""
    vocab = oracle.vocab_size
    places = vocab ** torch.arange(width - 1, -1, -1)
    longest = width + FURTHER if oracle.max_length is None else min(width + FURTHER, oracle.max_length - 1)
    for length in range(width + 1, longest + 1):
        listed = vocab**length <= PREFIXES or length == width + 1
        draws = generator(0, "looking back", length)
        prefixes = (
            enumerate_sequences(vocab, length)
            if listed
            else torch.randint(vocab, (PREFIXES, length), generator=draws)
        )
        own = (prefixes[:, length - width :] * places).sum(1)
        further = next_log_probs(oracle, prefixes).log_softmax(1)
        change = float((further.exp() - answer[own].exp()).abs().max())
        # The outputs of a neural network vary slightly with the sequence length.
        if change > math.sqrt(torch.finfo(answer.dtype).eps):
            back = "one position" if length == width + 1 else f"{length - width} positions"
            hint = f"the token {back} before the window changes a probability by {change:.2g}: use a larger window"
            raise InputError("context", width, hint)


@validated
def convert_to_hamiltonian(
    oracle: Autoregressive, window: Natural, constant: Constant = "global"
) -> AutoregressiveHamiltonian:
    """Convert a next-token model into an energy function with the same distribution (equations 7 to 9).

    The next token of the model depends on the last w tokens only.

    Args:
        oracle: Model whose next token depends on the last w tokens.
        window: Number w of previous tokens. The windows of the resulting chain have w + 1 tokens.
        constant: "global" subtracts the same constant for all contexts, so that exp(-energy) is proportional to the
            model's probability. "per-context" gives the most likely token of each context energy zero, as in the text
            after equation 8, which changes the distribution.

    Raises:
        InputError: If a token has probability zero, whose energy is infinite, or `context_log_probs` rejects the model.
    """
    last, vocab = -context_log_probs(oracle, window), oracle.vocab_size
    terms = [*(-_compute_prefix_log_probs(oracle, length).double() for length in range(window)), last]
    for length, term in enumerate(terms):
        if not bool(torch.isfinite(term).all()):
            context, token = (~torch.isfinite(term)).nonzero()[0].tolist()
            prefix = tuple(enumerate_sequences(vocab, length)[context].tolist())
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
    """Next-token model whose sequences have exactly the distribution p(x) ∝ exp(-H(x) / T).

    Sequences are complete after `length` tokens, and there is no end-of-sequence token. Sums over all continuations are
    computed once by the constructor.

    Args:
        chain: Potts chain or energy function with the energies H(x).
        length: Number of tokens in a sequence, at least one window.
        temperature: Positive temperature T.
    """

    def __init__(
        self, chain: PottsChain | AutoregressiveHamiltonian, length: int, temperature: float
    ) -> None:
        beginnings = _compute_beginning_weights(chain, length, temperature)
        inner = chain if isinstance(chain, PottsChain) else chain.chain
        messages = inner.messages(temperature)
        self.vocab_size, self.max_length = inner.vocab_size, int(length)
        self._length, self._context = int(length), inner.window - 1
        self._log_weights = messages.log_weights
        # Index of the message from the right for each site, starting with the last one.
        self._behind = messages.backward_indices(torch.arange(self._length - self._context))
        self._table = messages.backward_table()
        self._first = []
        for known in range(self._context):
            weights = beginnings.view(self.vocab_size**known, self.vocab_size, -1).logsumexp(2)
            self._first.append(weights.log_softmax(1))

    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return the next-token log-probabilities of each row.

        Args:
            tokens: Token ids (n, columns) int64.
            lengths: Number of tokens (n,) of each row that belong to the prefix.

        Returns:
            Log-probabilities (n, V) float64.

        Raises:
            InputError: If a row is already complete.
        """
        if len(lengths) and int(lengths.max()) >= self._length:
            hint = f"sequences are complete at {self._length} tokens: give shorter ones"
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


def convert_to_autoregressive(
    chain: PottsChain | AutoregressiveHamiltonian, length: int, temperature: float
) -> ChainConditionals:
    """Convert a Potts chain into a next-token model with the same distribution p(x) ∝ exp(-H(x) / T).

    For an `AutoregressiveHamiltonian` with the "global" constant at T = 1, it is the original model.

    Args:
        chain: Potts chain or energy function with the energies H(x).
        length: Number of tokens in a sequence, at least one window.
        temperature: Positive temperature T.
    """
    return ChainConditionals(chain, length, temperature)


@validated
def _compute_beginning_weights(
    chain: InstanceOf[PottsChain] | InstanceOf[AutoregressiveHamiltonian], length: Count, temperature: float
) -> Tensor:
    """Return log-weights (V^(W-1),) of the first W - 1 tokens, summed over all continuations."""
    inner = chain if isinstance(chain, PottsChain) else chain.chain
    messages = inner.messages(temperature)
    if length < inner.window:
        raise InputError("length", length, f"use at least one window of {inner.window} tokens")
    inner.at(length, temperature)  # Raises an error if the sum of energies overflows.
    weights, scale = messages.backward(length - inner.window + 1)
    weights = weights + scale
    if isinstance(chain, PottsChain):
        return weights
    return weights - chain.boundary.flatten() / temperature


def _compute_prefix_log_probs(oracle: Autoregressive, length: int) -> Tensor:
    """Return log p(c | prefix) (V^length, V) for all prefixes of `length` tokens."""
    return next_log_probs(oracle, enumerate_sequences(oracle.vocab_size, length)).log_softmax(1)
