"""Parallel decoding transformer of the thesis (equations 4.55 to 4.64), with explicitly constructed weights.

The transformer reads all N tokens of a sequence and predicts a distribution for every position at once.
Propositions 4.1.2 and 4.1.3 state what it can represent. This module constructs its weights for any positive
predictions and for any deterministic map. The first block binds each token to its position, and the second
one looks up the whole sequence in a table.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from trialogue.arrays import Integers, Reals
from trialogue.errors import InputError
from trialogue.oracles import enumerate_sequences
from trialogue.probabilities import validate_probabilities
from trialogue.validation import validated


class Block(NamedTuple):
    """Weights of one transformer block with a single attention head (equations 4.56 and 4.57).

    Attributes:
        w_o: Output projection of attention.
        w_v: Value projection.
        w_k: Key projection.
        w_q: Query projection.
        w_1: Weights of the hidden layer of the feedforward network.
        b_1: Biases of the hidden layer.
        w_2: Weights of the output layer of the feedforward network.
        b_2: Biases of the output layer.
    """

    w_o: Tensor
    w_v: Tensor
    w_k: Tensor
    w_q: Tensor
    w_1: Tensor
    b_1: Tensor
    w_2: Tensor
    b_2: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        """Apply the block to activations.

        Args:
            x: Activations (rows, d, N) of width d at N positions.

        Returns:
            Activations of the same shape.
        """
        scores = (self.w_k @ x).transpose(-2, -1) @ (self.w_q @ x)
        attended = x + self.w_o @ self.w_v @ x @ scores.softmax(-2)
        hidden = (self.w_1 @ attended + self.b_1[:, None]).relu()
        return attended + self.w_2 @ hidden + self.b_2[:, None]


@dataclass(frozen=True)
class ParallelDecoder:
    """Transformer that predicts the tokens of all N positions at once from the current tokens.

    Attributes:
        tokens: Token embeddings (d, V).
        positions: Position embeddings (d, N), which are added to the token embeddings.
        blocks: Transformer blocks.
        w_pred: Weights (V, d) of the prediction head.
        b_pred: Biases (V,) of the prediction head.
    """

    tokens: Tensor
    positions: Tensor
    blocks: tuple[Block, ...]
    w_pred: Tensor
    b_pred: Tensor

    @validated
    def predictions(self, states: Annotated[Tensor, Integers("rows N", least=0)]) -> Tensor:
        """Return the predicted distribution of every position (equation 4.60).

        Args:
            states: Current tokens (rows, N) int64.

        Returns:
            Probabilities (rows, N, V) float64.

        Raises:
            InputError: If the number of positions is wrong.
        """
        if states.shape[1] != self.positions.shape[1]:
            hint = f"give tokens (rows, {self.positions.shape[1]}) below {self.tokens.shape[1]}"
            raise InputError("states", tuple(states.shape), hint)
        x = self.tokens[:, states].movedim(1, 0) + self.positions
        for block in self.blocks:
            x = block(x)
        return (self.w_pred @ x + self.b_pred[:, None]).softmax(-2).transpose(-2, -1)

    def greedy(self, states: Tensor) -> Tensor:
        """Return the most likely token of every position (equation 4.62). The smallest token wins ties.

        Args:
            states: Current tokens (rows, N) int64.

        Returns:
            Next tokens (rows, N) int64.
        """
        distributions = self.predictions(states)
        return (distributions == distributions.amax(-1, keepdim=True)).int().argmax(-1)


@validated
def kernel_decoder(predictions: Annotated[Tensor, Reals("states sites vocab")]) -> ParallelDecoder:
    """Construct a transformer that makes given predictions for every possible input sequence (see Proposition 4.1.3).

    The transformer reads N tokens of a vocabulary of size V and predicts a distribution for every position.

    Args:
        predictions: Positive probabilities (V^N, N, V). Entry (x, j, a) is the probability of token a at position j
            after sequence x, with sequences in the order of `itertools.product`.

    Raises:
        InputError: If the predictions are not positive distributions for every sequence and position.
    """
    hint = "give positive distributions (vocab ** sites, sites, vocab)"
    distributions = predictions.double()
    if distributions.shape[0] != distributions.shape[2] ** distributions.shape[1]:
        raise InputError("predictions", tuple(distributions.shape), hint)
    validate_probabilities("predictions", distributions, tuple(distributions.shape), hint=hint)
    if not bool((distributions > 0).all()):
        raise InputError("predictions", 0.0, hint)
    return _construct_lookup_decoder(distributions.log())


@validated
def map_decoder(
    following: Annotated[Tensor, Integers("states sites", least=0)], vocab_size: int
) -> ParallelDecoder:
    """Construct a transformer whose most likely output is a given function of its input sequence.

    The existence of such a transformer is Proposition 4.1.2 (4.3.4).

    Args:
        following: Output sequence (V^N, N) int64 for each input sequence, in the order of `itertools.product`.
        vocab_size: Number of tokens V.

    Raises:
        InputError: If `following` does not contain one valid sequence for each sequence.
    """
    hint = f"give the next sequence for each of the vocab_size ** sites sequences, with tokens below {vocab_size}"
    if len(following) != vocab_size ** following.shape[1]:
        raise InputError("following", tuple(following.shape), hint)
    if int(following.max()) >= vocab_size:
        raise InputError("following", int(following.max()), hint)
    return _construct_lookup_decoder(one_hot(following, vocab_size).double())


def _construct_lookup_decoder(logits: Tensor) -> ParallelDecoder:
    """Construct the transformer with the given `logits` (sequences, N, |Omega|)."""
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
    # Unit (i, a) of the first block is active at position i if its token is a.
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
    # Zero keys and queries give uniform attention. N times the mean is the sum.
    gather = (sites * eye[:, all_sites], eye[own], nothing, nothing)
    seen = one_hot(enumerate_sequences(vocab, sites), vocab).flatten(1).double() @ eye[all_sites]
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
