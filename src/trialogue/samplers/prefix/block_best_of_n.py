"""Block best of n: grow n candidates of the next block and go on from the one that the verifier values most."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from trialogue.errors import InputError, counter, whole_number
from trialogue.oracles import Decoding, Tokenizing
from trialogue.randomness import Choose
from trialogue.samplers.prefix.judge import Judge
from trialogue.samplers.prefix.moves import Moves
from trialogue.samplers.prefix.sampler import Sampler


class Block(NamedTuple):
    """Length (rows,) at which the block of each row began."""

    begun: Tensor


@dataclass(frozen=True)
class BlockBestOfN(Sampler[Block]):
    """Grow `candidates` of the next block; all go on from the first with the greatest value (thesis 3.2.2).

    A block ends at a token of `delimiters` once it has at least `min_tokens` tokens, or after `block_tokens` tokens.
    Without either the delimiters are the oracle's tokens that contain the text `block_delimiter` (a new line, where
    that is left out as well). A complete sequence ends its block as well, and the sample ends where the best candidate
    is complete. Every candidate's tokens are queries. The verifier is asked for a value of each candidate at the end of
    its block: a prefix, or a complete sequence.
    """

    candidates: int = 4
    delimiters: tuple[int, ...] = ()
    block_tokens: int | None = None
    min_tokens: int = 1
    block_delimiter: str | None = None
    uses = "ranks"
    judges = "outputs"

    def __post_init__(self) -> None:
        counter("candidates", self.candidates, 1)
        counter("min_tokens", self.min_tokens, 1)
        if isinstance(self.delimiters, str | bytes) or not isinstance(self.delimiters, Iterable):
            raise InputError("delimiters", self.delimiters, "give token ids; block_delimiter takes a text")
        # From whatever holds them: a field that is hashed, as samplers are.
        delimiters = tuple(sorted({whole_number("delimiters", token, 0) for token in self.delimiters}))
        object.__setattr__(self, "delimiters", delimiters)
        if self.block_tokens is not None:
            counter("block_tokens", self.block_tokens, 1)
            if delimiters:
                raise InputError("block_tokens", self.block_tokens, "leave it out where delimiters are given")
        if self.block_delimiter is not None:
            if delimiters or self.block_tokens is not None:
                hint = "leave it out where delimiters or block_tokens are given"
                raise InputError("block_delimiter", self.block_delimiter, hint)
            if not (isinstance(self.block_delimiter, str) and self.block_delimiter):
                raise InputError("block_delimiter", self.block_delimiter, "give a text that is not empty")

    @property
    def rows_per_sample(self) -> int:
        """One row per candidate."""
        return self.candidates

    def in_tokens(self, tokenization: Tokenizing | None) -> "BlockBestOfN":
        """Return the sampler with the tokens that end a block, unless it counts tokens or has them already.

        Raises `InputError` where there is no tokenization, and where no token contains the text.
        """
        if self.delimiters or self.block_tokens is not None:
            return self
        if tokenization is None:
            hint = "give the tokens that end a block, or block_tokens: the oracle has no tokenization"
            raise InputError("delimiters", (), hint)
        text = "\n" if self.block_delimiter is None else self.block_delimiter
        tokens = tokenization.tokens_containing(text).tolist()
        if not tokens:
            hint = "no token of the model contains it: use a shorter one, or block_tokens"
            raise InputError("block_delimiter", text, hint)
        return replace(self, delimiters=tuple(tokens), block_delimiter=None)

    def init(self, decoding: Decoding) -> Block:
        """The first block begins where the rows stand."""
        if self.delimiters and self.delimiters[-1] >= decoding.vocab_size:
            hint = f"use token ids below {decoding.vocab_size}"
            raise InputError("delimiters", self.delimiters[-1], hint)
        return Block(decoding.lengths.clone())

    def step(self, decoding: Decoding, state: Block, verifier: Judge, choose: Choose) -> tuple[Moves, Block]:
        """Select in the groups whose blocks have ended, then append one token to every row within a block."""
        n, moves, begun = self.candidates, Moves.stay(decoding), state.begun
        ended = decoding.complete | self._ended(decoding, decoding.lengths - begun)
        groups = ended.view(-1, n).all(1).nonzero()[:, 0]
        if groups.numel():
            rows = groups[:, None] * n + torch.arange(n)
            best = verifier.values(rows.flatten()).view(-1, n).argmax(1)
            moves.source[rows] = rows.gather(1, best[:, None])
            moves.length[rows] = decoding.lengths[moves.source[rows]]
            moves.done[rows] = decoding.complete[moves.source[rows]]
            begun = begun.clone()
            begun[rows] = moves.length[rows]
            ended[rows] = moves.done[rows]
        growing = (~ended).nonzero()[:, 0]
        if growing.numel():
            moves.token[growing] = choose(decoding.log_probs(moves.source[growing]), growing)
        return moves, Block(begun)

    def _ended(self, decoding: Decoding, tokens: Tensor) -> Tensor:
        """Which rows (rows,) stand at the end of a block of `tokens` (rows,) tokens."""
        if self.block_tokens is not None:
            return tokens >= self.block_tokens
        last = decoding.tokens.gather(1, (decoding.lengths - 1).clamp_min(0)[:, None])[:, 0]
        return torch.isin(last, torch.tensor(self.delimiters)) & (tokens >= self.min_tokens)
