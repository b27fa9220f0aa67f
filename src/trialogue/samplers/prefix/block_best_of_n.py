"""Blockwise best-of-n sampling."""

from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

import torch
from annotated_types import MinLen
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Decoding, Tokenizing
from trialogue.randomness import Choose
from trialogue.samplers.prefix.best_of_n import keep_best
from trialogue.samplers.prefix.contract.cached_verifier import CachedVerifier
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.samplers.prefix.contract.sampler import BoundedCount, GroupSize, Sampler
from trialogue.validation import Natural, Several, validated


class BlockBestOfNState(NamedTuple):
    """State of `BlockBestOfN`: where the current block of each row began.

    Attributes:
        begun: Length (rows,) int64 of prompt plus completion at which the current block of each row began.
    """

    begun: Tensor


@validated
@dataclass(frozen=True)
class BlockBestOfN(Sampler[BlockBestOfNState]):
    """Draw several candidates for the next block of tokens, and continue from the one with the largest value.

    This is blockwise best-of-n sampling (thesis 3.2.2). A block ends at a delimiter token, after a number of
    tokens, or when the sequence is complete. The verifier evaluates each candidate at the end of its block.
    The sample ends when the best candidate is complete. The tokens of all candidates count as model calls.

    Args:
        candidates: Number of candidates per block (default: 4).
        delimiters: Ids of the tokens that end a block (default: the tokens that contain `block_delimiter`).
        block_tokens: Length of a block in tokens, instead of delimiters.
        min_tokens: A delimiter ends a block of at least this many tokens (default: 1).
        block_delimiter: End a block at a token that contains this text (default: a new line).
    """

    candidates: GroupSize = 4
    delimiters: Several[Natural] = ()
    block_tokens: BoundedCount | None = None
    min_tokens: BoundedCount = 1
    block_delimiter: Annotated[str, MinLen(1)] | None = None
    uses = "ranks"
    judges = "outputs"

    def __post_init__(self) -> None:
        object.__setattr__(self, "delimiters", tuple(sorted(set(self.delimiters))))
        if self.delimiters and self.block_tokens is not None:
            raise InputError("block_tokens", self.block_tokens, "leave it out if delimiters are given")
        if self.block_delimiter is not None and (self.delimiters or self.block_tokens is not None):
            hint = "leave it out if delimiters or block_tokens are given"
            raise InputError("block_delimiter", self.block_delimiter, hint)

    @property
    def rows_per_sample(self) -> int:
        """Number of rows of the batch that belong to one sample, one row for each candidate."""
        return self.candidates

    def in_tokens(self, tokenization: Tokenizing | None) -> "BlockBestOfN":
        """Return the sampler with its delimiter text replaced by the ids of all tokens that contain the text.

        If `delimiters` or `block_tokens` are given, the sampler is returned unchanged.

        Args:
            tokenization: The tokenization of the model, if it has one.

        Returns:
            The sampler, whose `delimiters` are the tokens that contain `block_delimiter`, by default a new line.

        Raises:
            InputError: If the model has no tokenization, or none of its tokens contains the text.
        """
        if self.delimiters or self.block_tokens is not None:
            return self
        if tokenization is None:
            hint = "the model has no tokenization; give delimiters as token ids, or block_tokens"
            raise InputError("delimiters", (), hint)
        text = "\n" if self.block_delimiter is None else self.block_delimiter
        tokens = tokenization.tokens_containing(text).tolist()
        if not tokens:
            hint = "no token of the model contains this text; use a shorter one, or block_tokens"
            raise InputError("block_delimiter", text, hint)
        return replace(self, delimiters=tuple(tokens), block_delimiter=None)

    def init(self, decoding: Decoding) -> BlockBestOfNState:
        """Return the state of rows at their prompts, where their first block begins.

        Args:
            decoding: The batch of sequences (rows), each a prompt and the completion so far.

        Returns:
            The lengths (rows,) of the prompts.

        Raises:
            InputError: If a delimiter is not a token of the vocabulary.
        """
        if self.delimiters and self.delimiters[-1] >= decoding.vocab_size:
            hint = f"use token ids below {decoding.vocab_size}"
            raise InputError("delimiters", self.delimiters[-1], hint)
        return BlockBestOfNState(decoding.lengths.clone())

    def step(
        self, decoding: Decoding, state: BlockBestOfNState, verifier: CachedVerifier, choose: Choose
    ) -> tuple[Moves, BlockBestOfNState]:
        """Append one token to each candidate whose block has not ended, and continue finished samples from their best.

        The candidates of one sample are neighboring rows of the batch. A row whose block has ended waits for
        the others. When all have ended, each becomes a copy of the row with the largest value. If that row is
        complete, they are marked as done. Otherwise each begins a new block with one token.

        Args:
            decoding: The batch of sequences (rows), with the model's next-token distributions.
            state: Lengths at which the current blocks began.
            verifier: Values of the rows at the ends of their blocks.
            choose: Function that draws one index per row in proportion to given weights.

        Returns:
            How each row changes (`Moves`), and the new state.
        """
        n, moves, begun = self.candidates, Moves.stay(decoding), state.begun
        ended = decoding.complete | self._has_block_ended(decoding, decoding.lengths - begun)
        groups = ended.view(-1, n).all(1).nonzero()[:, 0]
        if groups.numel():
            rows = keep_best(decoding, moves, groups, n, verifier)
            moves.done[rows] = decoding.complete[moves.source[rows]]
            begun = begun.clone()
            begun[rows] = moves.length[rows]
            ended[rows] = moves.done[rows]
        growing = (~ended).nonzero()[:, 0]
        if growing.numel():
            moves.token[growing] = choose(decoding.log_probs(moves.source[growing]), growing)
        return moves, BlockBestOfNState(begun)

    def _has_block_ended(self, decoding: Decoding, tokens: Tensor) -> Tensor:
        """Return whether the block of each row (rows,) has ended, given the block lengths `tokens` (rows,) so far."""
        if self.block_tokens is not None:
            return tokens >= self.block_tokens
        last = decoding.tokens.gather(1, (decoding.lengths - 1).clamp_min(0)[:, None])[:, 0]
        return torch.isin(last, torch.tensor(self.delimiters)) & (tokens >= self.min_tokens)
