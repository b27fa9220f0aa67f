"""Base class `Sampler`, and functions that several samplers use.

A sampler extends a batch of sequences (rows) token by token. In one step a row may append a token, remove tokens,
continue from another row of its group, wait, or stop. `step` decides this for all rows at once. The engine applies the
changes and counts the cost, so a sampler contains no loop over tokens, no counting and no printing.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Generic, Literal, NamedTuple, Protocol, Self, cast

import torch
from annotated_types import Interval
from torch import Tensor

from trialogue.arrays import require_bools
from trialogue.errors import MOST_COUNTED, InputError
from trialogue.indices import require_floats
from trialogue.oracles import Autoregressive, Decoding, StateT, Tokenizing
from trialogue.randomness import Choose, no_choice
from trialogue.samplers.prefix.batch import kernels
from trialogue.samplers.prefix.contract.cached_verifier import CachedVerifier
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.samplers.prefix.contract.objects import ObjectColumn


class NoState(NamedTuple):
    """Empty state, for samplers that store nothing between steps."""


Uses = Literal["nothing", "verdicts", "ranks", "weights"]
Judges = Literal["prefixes", "outputs"]

_MOST_ROWS = 1 << 16
GroupSize = Annotated[int, Interval(ge=1, le=_MOST_ROWS)]
"""Number of rows per sample. Some tensors have this size squared."""
BoundedCount = Annotated[int, Interval(ge=1, le=MOST_COUNTED)]
"""An integer of at least 1 whose sums fit into int64."""


class Sampler(ABC, Generic[StateT]):
    """Base class of samplers, which build sequences token by token from an autoregressive model.

    A row is one sequence of a batch: a prompt and the completion so far. In one step a row may append a token, lose
    tokens, continue from another row of its group, wait, or stop. A group is the `rows_per_sample` neighbouring rows
    that together produce one sample. A child of a row is the row followed by one more token. The verifier assigns a
    non-negative value to each sequence, and zero rejects it.

    A subclass defines `step`, and `init` if it has a state. It overrides the properties below if their defaults do not
    apply, as class attributes or properties. `check_sampler` compares them with the behaviour of the sampler.

    A sampler registered in `SAMPLERS` is a frozen dataclass whose fields all have defaults. The section `Args` of its
    docstring describes the fields; the command line shows these lines as help texts.
    """

    @property
    def uses(self) -> Uses:
        """How `step` uses the values of the verifier (default: "nothing").

        "nothing": values are not used. "verdicts": only whether a value is positive. "ranks": only which of several
        values is the largest. "weights": the values themselves.
        """
        return "nothing"

    @property
    def uses_targets(self) -> bool:
        """Whether `step` uses the values of a `Target`. Otherwise the engine adds its log-value to the log-weight."""
        return self.uses in ("ranks", "weights")

    @property
    def needs_verifier(self) -> bool:
        """Whether the sampler cannot run without a verifier (default: True, unless `uses` is "nothing")."""
        return self.uses != "nothing"

    @property
    def judges(self) -> Judges:
        """Which sequences the verifier must give a positive value, so that a sample is accepted.

        "prefixes" (default): every prefix, including the complete sequence. "outputs": only the complete sequence.
        """
        return "prefixes"

    @property
    def weighted(self) -> bool:
        """Whether samples have importance weights (default: False).

        If True, the state has a field `log_weight` (rows,) float64, the logarithm of the target weight divided by the
        proposal probability. Multiplying the weights of all rows of a sample by one factor must not change the moves of
        the sampler.
        """
        return False

    @property
    def weights_estimate_mass(self) -> bool:
        """Whether the mean weight of a sampler with weights estimates the accepted mass (default: True).

        If False, the expected weights are proportional to the target, with an unknown factor.
        """
        return True

    @property
    def is_final_when_complete(self) -> bool:
        """Whether complete sequences have their final distribution and weight before `step` marks them as done.

        This matters for a sample that uses up a budget (`max_queries`, `max_steps`) when its sequence is complete. If
        True, it is accepted if the verifier accepts it. If False, it fails. The default is True, unless the sampler is
        weighted or `uses` is "weights".
        """
        return not self.weighted and self.uses != "weights"

    @property
    def masks_first(self) -> bool:
        """Whether tokens that the verifier rejects are removed before top-k and top-p are applied (default: False)."""
        return False

    @property
    def goes_back(self) -> bool:
        """Whether a sequence may lose tokens, or be replaced by another one, before it is done (default: True)."""
        return True

    @property
    def rows_per_sample(self) -> int:
        """Number of neighbouring rows of the batch that together produce one sample, such as particles (default: 1)."""
        return 1

    @property
    def round_size(self) -> int | None:
        """Number of samples of a prompt that start from the same state (default: None, all samples).

        If it is a number, `rows_per_sample` must be 1. The next round of samples of the prompt then starts when all
        samples of the round have ended, from the state that `merged` returns.
        """
        return None

    @property
    def few_children(self) -> bool:
        """Whether the sampler evaluates a verifier without a mask for few next tokens only (default: False)."""
        return False

    @property
    def keeps_prompts(self) -> bool:
        """Whether every sample begins with its prompt (default: True)."""
        return True

    @property
    def failure_reason(self) -> str:
        """Why a sample fails, as a phrase that is shown to users (default: "no token allowed")."""
        return "no token allowed"

    def init(self, decoding: Decoding) -> StateT:
        """Return the state of rows that consist of their prompts (default: a state without fields).

        Args:
            decoding: The batch of sequences (rows), each a prompt and the completion so far.

        Returns:
            A NamedTuple of tensors (rows, ...) or columns `ObjectColumn`. After each step, every row receives the state
            of the row from which it continues.
        """
        del decoding
        return cast(StateT, NoState())

    def merged(self, start: StateT, ends: StateT) -> StateT:
        """Combine the final states of a round of samples into the state from which the next round starts.

        Called only if `round_size` is a number. Override it for samplers that learn from earlier samples.

        Args:
            start: State of one row from which all samples of the finished round started.
            ends: Last states of these samples, in their order.

        Returns:
            The state of one row.
        """
        del ends
        return start

    def remarks(self, state: StateT) -> Sequence[str | None]:
        """Return remarks about how samples ended, as phrases that are shown to users (default: none).

        The remark of a sample that fails replaces `failure_reason`.

        Args:
            state: Last state of the first row of each of n samples.

        Returns:
            One entry for each sample, None for no remark. An empty sequence if there are no remarks.
        """
        del state
        return ()

    @abstractmethod
    def step(
        self, decoding: Decoding, state: StateT, verifier: CachedVerifier, choose: Choose
    ) -> tuple[Moves, StateT]:
        """Decide how each row changes next. The engine then applies the moves.

        Args:
            decoding: The rows of the batch, and the model's next-token distributions.
            state: The state of the rows.
            verifier: Values of rows and of their one-token continuations. It is None if `needs_verifier` is False and
                no verifier is given.
            choose: The only source of randomness: `choose(log_weights, rows)` draws one index per row in proportion to
                weights.

        Returns:
            How each row changes (`Moves`), and the new state. Entry i of the state belongs to row i before the moves.
            The engine afterwards gives every row the state of its `Moves.source`.
        """

    def arranged(self, tokens: Tensor, lengths: Tensor, state: StateT) -> tuple[Tensor, Tensor, StateT]:
        """Sort the rows of each sample into a canonical order (default: unchanged).

        `exact_distribution` calls this after each step. States that differ only in an order of rows without effect on
        the outputs then become equal, which reduces the number of states.

        Args:
            tokens: Token ids (rows, capacity), 0 beyond `lengths`. The rows of a sample are neighbours.
            lengths: Lengths (rows,).
            state: The state of the rows after a step.

        Returns:
            Tokens, lengths and state, with the rows of each sample reordered.
        """
        return tokens, lengths, state

    def in_tokens(self, tokenization: Tokenizing | None) -> "Sampler[Any]":
        """Return the sampler with text fields (such as delimiters) replaced by token ids (default: unchanged).

        Args:
            tokenization: The tokenization of the model, if it has one.

        Returns:
            The sampler, or a copy with replaced fields.

        Raises:
            InputError: If the sampler needs a tokenization and there is none, or no token matches a text.
        """
        del tokenization
        return self

    def state_tensors(self, state: StateT) -> dict[str, Tensor]:
        """Convert the state of one row, from which a round starts, to tensors that a file can store.

        Override this method and `state_from_tensors` if `round_size` can be a number and the state has columns
        `ObjectColumn`.

        Args:
            state: The state.

        Returns:
            The fields of the state by name.
        """
        return cast(dict[str, Tensor], cast(Any, state)._asdict())

    def state_from_tensors(self, tensors: dict[str, Tensor], initial: StateT) -> StateT:
        """Restore a state of one row from the result of `state_tensors`, for example from a file.

        Args:
            tensors: Result of `state_tensors`.
            initial: Initial state of one row, for fields that the tensors do not contain.
        """
        return cast(StateT, cast(Any, initial)._replace(**tensors))


def prepare_sampler(sampler: Sampler[Any], oracle: Autoregressive, verifier: object | None) -> Sampler[Any]:
    """Validate a sampler, and replace texts among its fields by token ids.

    Args:
        sampler: The sampler.
        oracle: The model, whose tokenization is used.
        verifier: The verifier, or None.

    Returns:
        The sampler, or a copy with replaced fields.

    Raises:
        InputError: If `sampler` is a class or not a sampler, lacks the verifier that it needs, or has a text without
            matching tokens.
    """
    require_verifier(sampler, verifier)
    return sampler.in_tokens(oracle.tokenization)


def require_verifier(sampler: Sampler[Any], verifier: object | None) -> None:
    """Raise `InputError` if `sampler` is not an instance of `Sampler`, or needs a verifier that is not given.

    Args:
        sampler: The object to check.
        verifier: A verifier, a list with one verifier or None for each prompt, or None.
    """
    if isinstance(sampler, type):
        raise InputError("sampler", sampler.__name__, f"give an instance: {sampler.__name__}()")
    if not isinstance(sampler, Sampler):
        raise InputError("sampler", sampler, "give an instance of a subclass of Sampler, such as Ancestral()")
    each = verifier if isinstance(verifier, list | tuple) else [verifier]
    if sampler.needs_verifier and all(one is None for one in each):
        raise InputError(
            "verifier", None, f"{type(sampler).__name__} needs a verifier; pass one as `verifier`"
        )


class LogWeightState(NamedTuple):
    """State of a sampler that stores only an importance weight for each row.

    Attributes:
        log_weight: Logarithm (rows,) float64 of the target weight of each row divided by its proposal probability.
    """

    log_weight: Tensor

    @classmethod
    def zero(cls, decoding: Decoding) -> Self:
        """Return importance weight one (log-weight zero) for every row of `decoding`."""
        return cls(torch.zeros(len(decoding.lengths), dtype=torch.float64))


class Weighted(Protocol):
    """Protocol of sampler states with the field `log_weight`, the importance weights of the rows."""

    @property
    def log_weight(self) -> Tensor:
        """Logarithms (rows,) float64 of the target weight of each row divided by its proposal probability."""
        ...


def log_weight(state: tuple[Tensor, ...]) -> Tensor:
    """Return the field `log_weight` (rows,) float64 of the state of a sampler with importance weights."""
    return cast(Weighted, state).log_weight


def select_rows(state: StateT, rows: Tensor) -> StateT:
    """Select rows of a state.

    Args:
        state: A NamedTuple of tensors (rows, ...).
        rows: Row indices (n,) int64.

    Returns:
        A state with n rows, in the order of `rows`.
    """
    return type(state)(*(field[rows] for field in state))


def concatenate_states(states: Sequence[StateT]) -> StateT:
    """Concatenate the states of several batches along the rows.

    Args:
        states: At least one NamedTuple of tensors (rows, ...) or `ObjectColumn`, all of the same type.

    Returns:
        The state of the rows of all batches, in this order.
    """
    columns: list[Any] = [
        ObjectColumn.joined(column) if isinstance(column[0], ObjectColumn) else torch.cat(column)
        for column in zip(*states, strict=True)
    ]
    return type(states[0])(*columns)


def log_values_as_given(decoding: Decoding, log_values: Callable[[Tensor], Tensor]) -> Tensor:
    """Return the log-weight with which a weighted sampler starts each row, before it appends a token.

    The log-weight is 0, except for a prompt that is already complete. Such a prompt is the output, so its log-weight is
    the logarithm of its value.

    Args:
        decoding: The batch of sequences (rows), each a prompt and the completion so far.
        log_values: Function from row indices (n,) int64 to the logarithms (n,) of their values, such as
            `CachedVerifier.log_values`.

    Returns:
        Logarithms (rows,) float64.
    """
    result = torch.zeros(len(decoding.lengths), dtype=torch.float64)
    given = (decoding.complete & (decoding.lengths == decoding.start)).nonzero()[:, 0]
    if given.numel():
        result[given] = log_values(given)
    return result


def mask_tokens(log_probs: Tensor, allowed: Tensor) -> Tensor:
    """Set the log-probabilities of excluded tokens to -inf, without normalising the others.

    Args:
        log_probs: Log-probabilities (n, vocab) float32 or float64.
        allowed: Whether each token is kept, (n, vocab) bool.

    Returns:
        A new tensor (n, vocab).

    Raises:
        InputError: If a dtype or shape is wrong.
    """
    require_floats(
        "log_probs", log_probs, (None, None), "give log-probabilities (n, vocab) in float32 or float64"
    )
    require_bools("allowed", allowed, tuple(log_probs.shape), "give one bool for each log-probability")
    result = torch.empty_like(log_probs, memory_format=torch.contiguous_format)
    kernels.mask(log_probs.numpy(), allowed.numpy(), result.numpy())
    return result


def truncated_distribution(decoding: Decoding, log_probs: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Apply top-k and top-p to log-probabilities, and normalise.

    Args:
        decoding: The rows of the batch, with their truncation settings.
        log_probs: Log-probabilities (n, vocab), not necessarily normalised.
        rows: Rows (n,) int64 to which they belong.

    Returns:
        The truncated and normalised log-probabilities (n, vocab), and the logarithm (n,) float64 of the total
        probability in `log_probs` of the tokens that remain.
    """
    distribution = decoding.cut(log_probs, rows)
    return distribution, log_mass(log_probs, distribution)


def log_mass(log_probs: Tensor, distribution: Tensor) -> Tensor:
    """Return the logarithm of the total probability of the tokens that a truncation has kept.

    Truncation divides the kept probabilities by this total. It is therefore the difference of the two log-probabilities
    of any kept token. The most probable token is used, which every truncation keeps.

    Args:
        log_probs: Log-probabilities (n, vocab) before the truncation.
        distribution: Normalised log-probabilities (n, vocab) after the truncation.

    Returns:
        Logarithms (n,) float64.
    """
    return log_probs.amax(1).double() - distribution.amax(1)


def require_support(log_probs: Tensor) -> None:
    """Raise `InputError` unless every row has a token of positive probability.

    This detects errors of the model. By contrast, a row whose tokens are all excluded by the verifier is a failed
    sample.

    Args:
        log_probs: Log-probabilities (n, vocab) of the model.
    """
    if not bool(torch.isfinite(log_probs.amax(-1)).all()):
        raise no_choice()
