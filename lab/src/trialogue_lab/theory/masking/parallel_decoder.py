"""Parallel decoding transformer of equations 4.55 to 4.64 with explicit weights for any product kernel or map.

Propositions 4.1.2 and 4.1.3 (4.3.4 and 4.3.5) of the thesis use universal approximation; this module
constructs the weights. Two blocks look up the whole state in a table. The first block binds each token to its
position. The second block gathers all tokens with uniform attention and has one hidden unit for each state
and position. The embedding width is 2 |Omega| + N + 2 N |Omega|, and the hidden width is N |Omega|^N.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from trialogue.arrays import Integers, Reals
from trialogue.errors import InputError
from trialogue.oracles import whole_sequences
from trialogue.probabilities import checked_probabilities
from trialogue.validation import validated


class Block(NamedTuple):
    """Weights of one block with a single head (equations 4.56 and 4.57), named as in the thesis."""

    w_o: Tensor
    w_v: Tensor
    w_k: Tensor
    w_q: Tensor
    w_1: Tensor
    b_1: Tensor
    w_2: Tensor
    b_2: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        """Return t(X) for `x` (rows, d, N)."""
        scores = (self.w_k @ x).transpose(-2, -1) @ (self.w_q @ x)
        attended = x + self.w_o @ self.w_v @ x @ scores.softmax(-2)
        hidden = (self.w_1 @ attended + self.b_1[:, None]).relu()
        return attended + self.w_2 @ hidden + self.b_2[:, None]


@dataclass(frozen=True)
class ParallelDecoder:
    """Parallel decoding transformer that adds token embeddings (d, |Omega|) and position embeddings (d, N)."""

    tokens: Tensor
    positions: Tensor
    blocks: tuple[Block, ...]
    w_pred: Tensor
    b_pred: Tensor

    @validated
    def predictions(self, states: Annotated[Tensor, Integers("rows N", least=0)]) -> Tensor:
        """Return the distributions of every position (equation 4.60).

        Args:
            states: Tokens (rows, N) int64.

        Returns:
            Probabilities (rows, N, |Omega|) float64.
        """
        if states.shape[1] != self.positions.shape[1]:
            hint = f"give tokens (rows, {self.positions.shape[1]}) below {self.tokens.shape[1]}"
            raise InputError("states", tuple(states.shape), hint)
        x = self.tokens[:, states].movedim(1, 0) + self.positions
        for block in self.blocks:
            x = block(x)
        return (self.w_pred @ x + self.b_pred[:, None]).softmax(-2).transpose(-2, -1)

    def greedy(self, states: Tensor) -> Tensor:
        """Return the next states (rows, N) by s_argmax (equation 4.62). The smallest token wins ties."""
        distributions = self.predictions(states)
        return (distributions == distributions.amax(-1, keepdim=True)).int().argmax(-1)


@validated
def kernel_decoder(predictions: Annotated[Tensor, Reals("states sites vocab")]) -> ParallelDecoder:
    """Construct a decoder with the given positive predictions (the positive half of Proposition 4.1.3).

    Args:
        predictions: Positive probabilities (|Omega|^N, N, |Omega|).

    Raises:
        InputError: If the predictions are not positive distributions for every state and position.
    """
    hint = "give positive laws (vocab ** sites, sites, vocab)"
    distributions = predictions.double()
    if distributions.shape[0] != distributions.shape[2] ** distributions.shape[1]:
        raise InputError("predictions", tuple(distributions.shape), hint)
    checked_probabilities("predictions", distributions, tuple(distributions.shape), hint=hint)
    if not bool((distributions > 0).all()):
        raise InputError("predictions", 0.0, hint)
    return _lookup(distributions.log())


@validated
def map_decoder(
    following: Annotated[Tensor, Integers("states sites", least=0)], vocab_size: int
) -> ParallelDecoder:
    """Construct a decoder whose greedy step is a given map (Propositions 4.1.2 and 4.3.4).

    Args:
        following: Next state (|Omega|^N, N) for each state, in the order of `itertools.product`.
        vocab_size: Number of tokens |Omega|.

    Raises:
        InputError: If `following` does not contain one valid state for each state.
    """
    hint = f"give the state after each of vocab_size ** sites states, of tokens below {vocab_size}"
    if len(following) != vocab_size ** following.shape[1]:
        raise InputError("following", tuple(following.shape), hint)
    if int(following.max()) >= vocab_size:
        raise InputError("following", int(following.max()), hint)
    return _lookup(one_hot(following, vocab_size).double())


def _lookup(logits: Tensor) -> ParallelDecoder:
    """Construct the decoder with the given `logits` (states, N, |Omega|)."""
    states, sites, vocab = logits.shape
    bound = sites * vocab
    token, position, own, all_sites, out = torch.arange(2 * vocab + sites + 2 * bound).split(
        [vocab, sites, bound, bound, vocab]
    )
    width = int(out[-1]) + 1

    def zeros(rows: int, columns: int) -> Tensor:
        return torch.zeros(rows, columns, dtype=torch.float64)

    eye = torch.eye(width, dtype=torch.float64)
    nothing = zeros(bound, width)
    # Unit (i, a) of the first block is on at position i where token a stands there.
    pairs = eye[position].repeat_interleave(vocab, 0) + eye[token].repeat(sites, 1)
    bind = Block(
        zeros(width, bound),
        nothing,
        nothing,
        nothing,
        pairs,
        -torch.ones(bound, dtype=torch.float64),
        eye[:, own],
        torch.zeros(width, dtype=torch.float64),
    )
    # Keys and queries that are zero attend everywhere alike; N times the mean is the sum.
    gather = (sites * eye[:, all_sites], eye[own], nothing, nothing)
    seen = one_hot(whole_sequences(vocab, sites), vocab).flatten(1).double() @ eye[all_sites]
    units = seen.repeat_interleave(sites, 0) + eye[position].repeat(states, 1)
    look_up = Block(
        *gather,
        units,
        torch.full((states * sites,), -float(sites), dtype=torch.float64),
        eye[:, out] @ logits.reshape(states * sites, vocab).T,
        torch.zeros(width, dtype=torch.float64),
    )
    return ParallelDecoder(
        eye[:, token], eye[:, position], (bind, look_up), eye[out], torch.zeros(vocab, dtype=torch.float64)
    )
