"""The contract of a sampler: what each row of the batch does next, decided from where it stands.

An autoregressive sampler is a sampler on the tree of prefixes. At a node a row may append a child token, go back to
an ancestor, continue from another row of its group, wait, or stop. `step` says which, for all rows at once; the
engine applies it, counts, and comes back. A sampler contains no loop over tokens, no counting and no printing.
"""

from abc import ABC, abstractmethod
from typing import Any, Generic, Literal, NamedTuple, Protocol, cast

import torch
from torch import Tensor

from trialogue.arrays import require_bools
from trialogue.errors import InputError
from trialogue.indices import require_floats
from trialogue.oracles import Autoregressive, Decoding, StateT, Tokenizing
from trialogue.randomness import Choose, no_choice
from trialogue.samplers.prefix.batch import kernels
from trialogue.samplers.prefix.judge import Judge
from trialogue.samplers.prefix.moves import Moves


class NoState(NamedTuple):
    """The state of a sampler that needs none."""


Uses = Literal["nothing", "verdicts", "ranks", "weights"]
Judges = Literal["prefixes", "outputs"]


class Sampler(ABC, Generic[StateT]):
    """A sampler on the tree of prefixes.

    What a run must know of a sampler beforehand the sampler says itself: a subclass states what differs from the
    defaults, as attributes of the class or as properties. One that is registered in `SAMPLERS` is a frozen dataclass
    that can be made without arguments, its fields named like no option of `trialogue generate`.
    """

    @property
    def uses(self) -> Uses:
        """What `step` uses of the verifier.

        "nothing": it needs none. "verdicts": whether a value is positive; how great it is makes no difference to what
        is drawn. "ranks": which of several values is greatest. "weights": the values themselves.
        """
        return "nothing"

    @property
    def judges(self) -> Judges:
        """What has to have a positive value: "prefixes" of a sample as well, or its "outputs" alone."""
        return "prefixes"

    @property
    def weighted(self) -> bool:
        """Whether samples have weights: the state has a field `log_weight` (rows,), log of target over proposal.

        What a sampler does is to be the same where the weights of all rows of a sample are multiplied by one factor.
        """
        return False

    @property
    def masks_first(self) -> bool:
        """Whether top-k and top-p cut what the verifier leaves of a distribution, in place of the distribution
        itself.
        """
        return False

    @property
    def goes_back(self) -> bool:
        """Whether a sample may lose tokens again before it is finished, or continue from another row."""
        return True

    @property
    def rows_per_sample(self) -> int:
        """Rows that one sample moves: 1, or the size of its group."""
        return 1

    @property
    def few_children(self) -> bool:
        """Whether it needs the values of the likeliest children alone."""
        return False

    @property
    def fails_by(self) -> str:
        """Why a sample fails that has no way on, in words."""
        return "no token allowed"

    @property
    def keeps_prompts(self) -> bool:
        """Whether samples begin with their prompts: no sampler goes back into those, unless it says so."""
        return True

    @property
    def failure(self) -> str:
        """Why a sample fails, in words; by default none, which is that no token was left that it may take."""
        return ""

    def init(self, decoding: Decoding) -> StateT:
        """The state of rows that stand at their prompts: a NamedTuple of tensors (rows, ...), by default without any.

        The engine gathers it along `Moves.source`.
        """
        del decoding
        return cast(StateT, NoState())

    @abstractmethod
    def step(
        self, decoding: Decoding, state: StateT, verifier: Judge, choose: Choose
    ) -> tuple[Moves, StateT]:
        """Decide what each row does next, and the state it keeps (before the gathering along `source`)."""

    def arranged(self, tokens: Tensor, lengths: Tensor, state: StateT) -> tuple[Tensor, Tensor, StateT]:
        """The rows of samples in one of the arrangements that lead to the same distribution of outputs, by default as
        they are.

        `tokens` (rows, capacity), 0 beyond `lengths` (rows,), and the `state` are what rows have after a step, those of
        a sample one after the other. Equal arrangements of what is alike spare exact distributions states.
        """
        return tokens, lengths, state

    def in_tokens(self, tokenization: Tokenizing | None) -> "Sampler[Any]":
        """The sampler with tokens in place of the texts among its fields, by default itself: it has none.

        Raises `InputError` where there is no tokenization, or no such tokens.
        """
        del tokenization
        return self


def runnable(sampler: Sampler[Any], oracle: Autoregressive, verifier: object | None) -> Sampler[Any]:
    """The sampler as it runs on `oracle`, texts among its fields as tokens.

    Raises `InputError` for a class in place of a sampler, a sampler without the verifier that it needs, and texts that
    the oracle has no tokens for.
    """
    require_verifier(sampler, verifier)
    return sampler.in_tokens(oracle.tokenization)


def require_verifier(sampler: Sampler[Any], verifier: object | None) -> None:
    """Raise `InputError` for a class in place of a sampler, and for a sampler without the verifier that it needs."""
    if isinstance(sampler, type):
        raise InputError("sampler", sampler.__name__, f"give an instance: {sampler.__name__}()")
    if not isinstance(sampler, Sampler):
        raise InputError("sampler", sampler, "give an instance of a subclass of Sampler, such as Ancestral()")
    each = verifier if isinstance(verifier, list | tuple) else [verifier]
    if sampler.uses != "nothing" and all(one is None for one in each):
        raise InputError("verifier", None, f"{type(sampler).__name__} needs one")


class Weighted(Protocol):
    """The state of a sampler that is weighted."""

    @property
    def log_weight(self) -> Tensor:
        """Logarithms (rows,) float64 of target over proposal."""
        ...


def log_weight(state: tuple[Tensor, ...]) -> Tensor:
    """Log-weights (rows,) float64 by the `state` of a sampler that is weighted."""
    return cast(Weighted, state).log_weight


def take(state: StateT, rows: Tensor) -> StateT:
    """The state of `rows` (n,), in that order."""
    return type(state)(*(field[rows] for field in state))


def join(first: StateT, second: StateT) -> StateT:
    """The states of two batches, one after the other."""
    return type(first)(*(torch.cat(pair) for pair in zip(first, second, strict=True)))


def log_values_as_given(decoding: Decoding, verifier: Judge) -> Tensor:
    """Logarithms (rows,) float64 of the values of prompts that are complete as they stand, zero of all other rows.

    For samplers with weights: the value of a prompt counts as one, unless the prompt is the output.
    """
    log_values = torch.zeros(len(decoding.lengths), dtype=torch.float64)
    given = (decoding.complete & (decoding.lengths == decoding.start)).nonzero()[:, 0]
    if given.numel():
        log_values[given] = verifier.values(given).log()
    return log_values


def masked(log_laws: Tensor, allowed: Tensor) -> Tensor:
    """`log_laws` (n, vocab) on the CPU where `allowed` (n, vocab) bool, and -inf elsewhere.

    Raises `InputError` for other types and shapes.
    """
    require_floats(
        "log_laws", log_laws, (None, None), "give log-probabilities (n, vocab) in float32 or float64"
    )
    require_bools("allowed", allowed, tuple(log_laws.shape), "give one bool for each log-probability")
    result = torch.empty_like(log_laws, memory_format=torch.contiguous_format)
    kernels.mask(log_laws.numpy(), allowed.numpy(), result.numpy())
    return result


def cut_law(decoding: Decoding, log_laws: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """What top-k and top-p keep of `log_laws` (n, vocab), renormalised, and the log-masses (n,) float64 of that.

    They are distributions of `rows` (n,), and need not be normalised; each has a token of positive weight.
    """
    distribution = decoding.cut(log_laws, rows)
    return distribution, log_mass(log_laws, distribution)


def log_mass(log_laws: Tensor, distribution: Tensor) -> Tensor:
    """Log-masses (n,) float64 by which `log_laws` (n, vocab) were divided to make `distribution` (n, vocab) of their
    likeliest.

    Read off the likeliest token, which every cut keeps: summing over all takes a hundred times as long.
    """
    return log_laws.amax(1).double() - distribution.amax(1)


def require_support(log_probs: Tensor) -> None:
    """Raise `InputError` unless every row of `log_probs` (n, vocab) gives some token a positive probability.

    For samplers that exclude tokens: a row on which nothing is left has failed only if the oracle had offered
    something.
    """
    if not bool(torch.isfinite(log_probs.amax(-1)).all()):
        raise no_choice()
