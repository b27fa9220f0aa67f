"""Base class `Sampler`, and functions that several samplers use."""

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

    A subclass defines `step`, which decides for each sequence whether to append a token, remove tokens, copy
    another sequence, wait, or stop. It defines `init` if it stores a state between steps. The properties
    describe the sampler; override them, as class attributes or properties, if their defaults do not apply.
    `check_sampler` compares them with the behaviour of the sampler.

    A row is one sequence of the batch: a prompt and the completion so far. Each sample has `rows_per_sample`
    neighboring rows, its group. The verifier assigns a non-negative value to each sequence, and zero rejects
    it.

    A sampler registered in `SAMPLERS` is a frozen dataclass whose fields all have defaults. The section
    `Args` of its docstring describes the fields; the command line shows these lines as help texts.
    """

    @property
    def uses(self) -> Uses:
        """How `step` uses the values of the verifier (default: "nothing").

        "nothing": not at all. "verdicts": only whether a value is positive. "ranks": only which of several
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
        """Which sequences must have a positive value for a sample to be accepted.

        "prefixes" (default): every prefix and the complete sequence. "outputs": only the complete sequence.
        """
        return "prefixes"

    @property
    def weighted(self) -> bool:
        """Whether samples have importance weights (default: False).

        If True, the state has a field `log_weight` (rows,) float64, the logarithm of target over proposal. A
        common factor of the weights of a sample's rows must not change the moves of the sampler.
        """
        return False

    @property
    def is_exact(self) -> bool:
        """Whether accepted samples without a remark follow the target exactly and need no weights (default: False)."""
        return False

    @property
    def weights_estimate_mass(self) -> bool:
        """Whether the mean weight estimates the sum of p(x) V(x) over sequences x (default: True).

        If False, weights are correct up to an unknown common factor.
        """
        return True

    @property
    def is_final_when_complete(self) -> bool:
        """Whether a complete sequence is a valid sample even if the run ends before `step` marks it as done.

        This matters if a sample uses up a budget (`max_queries`, `max_steps`) at this moment. If False, such
        a sample fails. The default is True, unless the sampler is weighted or `uses` is "weights".
        """
        return not self.weighted and self.uses != "weights"

    @property
    def masks_first(self) -> bool:
        """Whether tokens that the verifier rejects are removed before top-k and top-p are applied (default: False)."""
        return False

    @property
    def goes_back(self) -> bool:
        """Whether a sequence may lose tokens or be replaced by another one (default: True)."""
        return True

    @property
    def rows_per_sample(self) -> int:
        """Number of neighbouring rows of the batch that together produce one sample, such as particles (default: 1)."""
        return 1

    @property
    def round_size(self) -> int | None:
        """Number of samples of a prompt that start from the same state (default: None, all samples).

        If it is a number, `rows_per_sample` must be 1. When all samples of a round have ended, `merged`
        combines their states, and the next round starts from the result.
        """
        return None

    @property
    def few_children(self) -> bool:
        """Whether a verifier without a mask is evaluated for few of the possible next tokens only (default: False)."""
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
            A NamedTuple of tensors (rows, ...) or columns `ObjectColumn`.
        """
        del decoding
        return cast(StateT, NoState())

    def merged(self, start: StateT, ends: StateT) -> StateT:
        """Combine the final states of a round of samples into the state from which the next round starts.

        Override it for samplers that learn from earlier samples (`round_size`).

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

        For a sample that fails, the remark replaces `failure_reason`.

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
        """Sort the rows of each sample into a canonical order, if the order has no effect (default: unchanged).

        `exact_distribution` then needs to enumerate fewer states.

        Args:
            tokens: Token ids (rows, capacity), 0 beyond `lengths`. The rows of a sample are neighbors.
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
        """Convert the state from which a round of samples starts to tensors that can be stored in a file.

        Override this method and `state_from_tensors` if the state has columns `ObjectColumn` and `round_size`
        can be a number.

        Args:
            state: The state of one row.

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
    """Return the log-weight with which a weighted sampler starts each row.

    It is 0, or the logarithm of the row's value if the prompt is already complete and thus the output.

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

    Truncation divides kept probabilities by this total, so it is the ratio before and after for any kept
    token.

    Args:
        log_probs: Log-probabilities (n, vocab) before the truncation.
        distribution: Normalised log-probabilities (n, vocab) after the truncation.

    Returns:
        Logarithms (n,) float64.
    """
    return log_probs.amax(1).double() - distribution.amax(1)


def require_support(log_probs: Tensor) -> None:
    """Raise `InputError` unless the model gives some token of every row a positive probability.

    Args:
        log_probs: Log-probabilities (n, vocab) of the model.
    """
    if not bool(torch.isfinite(log_probs.amax(-1)).all()):
        raise no_choice()
