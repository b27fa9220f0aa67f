"""The contract of a walk: what each row of the batch does next, decided from where it stands.

An autoregressive sampler is a walk on the tree of prefixes. At a node a row may append a child token, go back to
an ancestor, continue from another row of its group, wait, or stop. `step` says which, for all rows at once; the
engine applies it, counts, and comes back. A walk contains no loop over tokens, no counting and no printing.
"""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.inference.walks.judge import Judge
from trialogue.inference.walks.moves import Moves
from trialogue.models.tokenization import Tokenization
from trialogue.oracles import Autoregressive, Decoding, StateT
from trialogue.randomness import Choose, no_choice


class NoState(NamedTuple):
    """The state of a walk that needs none."""


class Memoryless:
    """A walk that keeps nothing between its steps."""

    def init(self, decoding: Decoding) -> NoState:
        """Nothing to keep."""
        del decoding
        return NoState()


@runtime_checkable
class Walk(Protocol[StateT]):
    """A sampler on the tree of prefixes.

    The engine gathers its state along `Moves.source`, and reports a field `log_weight` of it as that of the sample.
    What a run must know of a walk beforehand the walk says itself. One that is registered in `WALKS` is a frozen
    dataclass that can be made without arguments, its fields named like no option of `trialogue generate`.
    """

    @property
    def rows_per_sample(self) -> int:
        """Rows that one sample moves: 1, or the size of its group."""
        ...

    @property
    def needs_verifier(self) -> bool:
        """Whether `step` consults the verifier."""
        ...

    @property
    def judges_whole(self) -> bool:
        """Whether a sample may be accepted although prefixes of it have the value zero."""
        ...

    @property
    def needs_verdicts(self) -> bool:
        """Whether a value of zero rejects, and how great others are makes no difference to what is drawn."""
        ...

    @property
    def weighted(self) -> bool:
        """Whether samples have weights: the state has a field `log_weight` (rows,), log of target over proposal."""
        ...

    def init(self, decoding: Decoding) -> StateT:
        """Return the state of rows that stand at their prompts."""
        ...

    def step(
        self, decoding: Decoding, state: StateT, verifier: Judge, choose: Choose
    ) -> tuple[Moves, StateT]:
        """Decide what each row does next, and the state it keeps (before the gathering along `source`)."""
        ...


@runtime_checkable
class Worded(Protocol):
    """A walk some of whose fields are texts, which stand for tokens of whichever oracle it runs on."""

    def in_tokens(self, tokenization: Tokenization | None) -> Walk[Any]:
        """Return the walk with tokens in place of texts.

        Raises `InputError` where there is no tokenization, or no such tokens.
        """
        ...


def runnable(walk: Walk[Any], oracle: Autoregressive, verifier: object | None) -> Walk[Any]:
    """The walk as it runs on `oracle`, texts among its fields as tokens.

    Raises `InputError` for a class in place of a walk, a walk without the verifier that it needs, and texts that the
    oracle has no tokens for.
    """
    if isinstance(walk, type):
        raise InputError("walk", walk.__name__, f"give an instance: {walk.__name__}()")
    if not (hasattr(walk, "init") and hasattr(walk, "step")):
        raise InputError("walk", walk, "give a walk, such as Ancestral(): something with init and step")
    if not isinstance(oracle, Autoregressive) or isinstance(oracle, type):
        mend = (
            "give an oracle, with vocab_size, eos, max_length and open (see trialogue.oracles.Autoregressive)"
        )
        raise InputError("oracle", oracle, mend)
    if walk.needs_verifier and verifier is None:
        raise InputError("verifier", None, f"{type(walk).__name__} needs one")
    return walk.in_tokens(getattr(oracle, "tokenization", None)) if isinstance(walk, Worded) else walk


def take(state: StateT, rows: Tensor) -> StateT:
    """The state of `rows` (n,), in that order."""
    return type(state)(*(field[rows] for field in state))


def join(first: StateT, second: StateT) -> StateT:
    """The states of two batches, one after the other."""
    return type(first)(*(torch.cat(pair) for pair in zip(first, second, strict=True)))


def log_values_as_given(decoding: Decoding, verifier: Judge) -> Tensor:
    """Logarithms (rows,) float64 of the values of prompts that are complete as they stand, zero of all other rows.

    For walks with weights: the value of a prompt counts as one, unless the prompt is the output.
    """
    log_values = torch.zeros(len(decoding.lengths), dtype=torch.float64)
    given = (decoding.complete & (decoding.lengths == decoding.start)).nonzero()[:, 0]
    if given.numel():
        log_values[given] = verifier.values(given).log()
    return log_values


def require_support(log_probs: Tensor) -> None:
    """Raise `InputError` unless every row of `log_probs` (n, vocab) gives some token a positive probability.

    For walks that exclude tokens: a row on which nothing is left has failed only if the oracle had offered something.
    """
    if not bool(torch.isfinite(log_probs.amax(-1)).all()):
        raise no_choice()
