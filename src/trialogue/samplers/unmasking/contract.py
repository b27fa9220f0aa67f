"""Base class `Unmasking`, its state, and functions that several samplers use.

A sampler starts from a sequence in which some positions are masked. In each pass, the engine evaluates the model once,
and the sampler reveals some tokens. It may also mask some tokens again. The tokens that are not masked at the start
are the prompt, and never change.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, Self, TypeVar, cast

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import StateT, list_sites
from trialogue.randomness import Choose, no_choice
from trialogue.samplers.cut import Cut
from trialogue.samplers.truncation import temper

AnyState = TypeVar("AnyState")


class Canvas(NamedTuple):
    """Partially revealed sequences, the state of most samplers.

    Attributes:
        tokens: Token ids (rows, length) int64, 0 at masked positions.
        masked: Which positions are masked, (rows, length) bool.
        free: Which positions do not belong to the prompt, (rows, length) bool. All of them if the sampler does not use
            it, so that equal canvases are equal states.
        passes: Number of passes (rows,) int64 since the current block began. It stays 0 if the sampler does not use it,
            so that equal canvases are equal states.
    """

    tokens: Tensor
    masked: Tensor
    free: Tensor
    passes: Tensor

    @classmethod
    def start(cls, tokens: Tensor, masked: Tensor) -> Self:
        """Return a canvas whose free positions are the masked ones.

        Args:
            tokens: Token ids (rows, length) int64.
            masked: Masked positions (rows, length) bool.
        """
        return cls(tokens.masked_fill(masked, 0), masked, masked, torch.zeros_like(tokens[:, 0]))

    def reveal(self, tokens: Tensor, selected: Tensor) -> Self:
        """Return the canvas with `tokens` (rows, length) revealed at the `selected` positions (rows, length)."""
        return self._replace(
            tokens=torch.where(selected, tokens, self.tokens), masked=self.masked & ~selected
        )


class Unmasking(ABC, Generic[StateT]):
    """Base class of samplers that reveal a masked sequence in passes of a masked model.

    A state is a NamedTuple of tensors or states with one entry per row. It has the fields `tokens` and `masked` of a
    `Canvas`. States with equal fields must behave equally, because `exact_distribution` merges them.
    """

    def init(self, tokens: Tensor, masked: Tensor) -> StateT:
        """Return the state before the first pass (default: a `Canvas`).

        Args:
            tokens: Token ids (rows, length) int64. Tokens at masked positions are ignored.
            masked: Which positions are masked, (rows, length) bool. The other positions are the prompt.
        """
        return cast(StateT, Canvas.start(tokens, masked))

    @abstractmethod
    def step(self, state: StateT, conditionals: Tensor, choose: Choose) -> StateT:
        """Return the state after one pass.

        Args:
            state: State before the pass. It must not be modified.
            conditionals: Log-probabilities (rows, length, vocab) of the token at each masked position, given the
                revealed tokens. Entries at other positions are undefined.
            choose: Source of randomness: a function that draws one index per row. It is called with the log-weights of
                the options and the indices of the rows. Within one call, the rows differ.
        """

    def finished(self, state: StateT) -> Tensor:
        """Return which rows (rows,) bool need no further pass (default: rows without masked positions).

        Args:
            state: State of the rows.
        """
        return ~state.masked.any(1)  # type: ignore[attr-defined]

    def accepted(self, state: StateT) -> Tensor:
        """Return which rows (rows,) bool have a valid output (default: all).

        Args:
            state: State of finished rows.
        """
        return torch.ones_like(state.masked[:, 0])  # type: ignore[attr-defined]


def require_unmasking(sampler: object) -> None:
    """Raise `InputError` unless `sampler` is an instance of `Unmasking`."""
    if not isinstance(sampler, Unmasking):
        shown = sampler.__name__ if isinstance(sampler, type) else sampler
        raise InputError(
            "sampler", shown, "give an unmasking sampler, such as Ordered(Confidence(), Fixed(2))"
        )


def map_fields(function: Callable[..., Tensor], *states: AnyState) -> AnyState:
    """Apply a function to each tensor of a state, or to the matching tensors of several states.

    Args:
        function: Function of one tensor per state.
        *states: States of the same type, which may contain further states.
    """
    if isinstance(states[0], Tensor):
        return cast(AnyState, function(*states))
    columns: Any = zip(*cast(Any, states), strict=True)
    return type(states[0])(*(map_fields(function, *column) for column in columns))


def tensors(state: Any) -> list[Tensor]:
    """Return all tensors of a state, in a fixed order."""
    if isinstance(state, Tensor):
        return [state]
    return [tensor for field in state for tensor in tensors(field)]


def select(state: AnyState, rows: Tensor) -> AnyState:
    """Return the given `rows` (n,) of a state, which are indices or a mask."""
    # Indexing by a mask would list its rows again for each field, and is slower than `index_select`.
    index = rows.nonzero()[:, 0] if rows.dtype == torch.bool else rows
    return map_fields(lambda field: field.index_select(0, index), state)


def put(state: AnyState, rows: Tensor, part: AnyState) -> AnyState:
    """Return a state in which the given `rows` (n,) are replaced by the n rows of `part`."""
    return map_fields(lambda field, new: field.index_put((rows,), new), state, part)


def where(condition: Tensor, first: AnyState, second: AnyState) -> AnyState:
    """Return the rows of state `first` where `condition` (rows,) is True, and those of `second` elsewhere."""
    rows = condition.nonzero()[:, 0]
    return put(second, rows, select(first, rows))


def choose_for(rows: Tensor, choose: Choose) -> Choose:
    """Return `choose` for a part of a batch, whose row i is row `rows[i]` of the batch."""
    return lambda log_weights, part: choose(log_weights, rows[part])


class Drawing(NamedTuple):
    """Temperature and truncation of the distributions from which tokens are drawn.

    Attributes:
        temperature: Divisor of the logits. At 0, the most probable token is taken, the first one if probabilities
            differ by less than their rounding errors.
        top_p: Keep the smallest set of most probable tokens whose total probability is at least `top_p`.
    """

    temperature: float
    top_p: float

    def distribution(self, log_probs: Tensor) -> Tensor:
        """Return the log-probabilities (n, vocab) after temperature and truncation of `log_probs` (n, vocab)."""
        if self.temperature == 0:
            best = rounded(log_probs.exp()).argmax(1, keepdim=True)
            return torch.full_like(log_probs, -torch.inf).scatter_(1, best, 0.0)
        tempered = temper(log_probs, self.temperature)
        return tempered if self.top_p == 1 else Cut(top_p=self.top_p)(tempered)

    def draw(self, tokens: Tensor, selected: Tensor, conditionals: Tensor, choose: Choose) -> Tensor:
        """Draw tokens independently at the selected positions.

        Args:
            tokens: Token ids (rows, length) int64.
            selected: Positions (rows, length) bool.
            conditionals: Log-probabilities (rows, length, vocab).
            choose: Source of randomness.

        Returns:
            Token ids (rows, length) int64, which differ from `tokens` at selected positions only.
        """
        tokens = tokens.clone()
        sites, is_padding = list_sites(selected)
        for site, padding in zip(sites.T, is_padding.T, strict=True):
            rows = (~padding).nonzero()[:, 0]
            column = site[rows]
            # A single index is faster than a pair.
            places = rows * conditionals.shape[1] + column
            log_probs = conditionals.flatten(0, 1).index_select(0, places)
            tokens[rows, column] = self.pick(log_probs, rows, choose)
        return tokens

    def pick(self, log_probs: Tensor, rows: Tensor, choose: Choose) -> Tensor:
        """Draw one token for each of the given rows.

        Args:
            log_probs: Log-probabilities (n, vocab) of the model.
            rows: Indices (n,) of the rows.
            choose: Source of randomness.

        Returns:
            Token ids (n,) int64.
        """
        distribution = self.distribution(log_probs)
        return distribution.argmax(1) if self.temperature == 0 else choose(distribution, rows)


Draw = Callable[[Drawing, Tensor, Tensor, Tensor, Choose], Tensor]
"""A function that draws tokens at selected positions, with the arguments of `Drawing.draw`."""


class Plan(NamedTuple):
    """Distribution of the state after a pass in which all positions change independently.

    Attributes:
        changing: Probability (rows, length) float64 that each position changes. A masked position that changes is
            revealed with a random token, and a revealed position is masked.
        passes: The field `passes` (rows,) of the canvas after the pass.
    """

    changing: Tensor
    passes: Tensor


class Planned(Unmasking[Canvas]):
    """Base class of samplers that plan a pass, after which all positions change independently.

    `step` carries out the plan. `exact_distribution` multiplies the probabilities of the positions instead of
    enumerating all choices of `step`.
    """

    @property
    @abstractmethod
    def drawing(self) -> Drawing:
        """Temperature and truncation."""

    @abstractmethod
    def plan(self, state: Canvas, conditionals: Tensor, choose: Choose) -> Plan:
        """Return the plan of the next pass.

        Args:
            state: State before the pass.
            conditionals: Log-probabilities (rows, length, vocab) of the model.
            choose: Source of randomness.
        """

    def step(self, state: Canvas, conditionals: Tensor, choose: Choose, draw: Draw = Drawing.draw) -> Canvas:
        """Plan a pass, and carry it out.

        Args:
            state: State before the pass.
            conditionals: Log-probabilities (rows, length, vocab) of the model.
            choose: Source of randomness.
            draw: Function that draws the tokens (default: independently).

        Returns:
            The state after the pass.
        """
        plan = self.plan(state, conditionals, choose)
        changed = flip(plan.changing, choose)
        tokens = draw(self.drawing, state.tokens, state.masked & changed, conditionals, choose)
        masked = state.masked ^ changed
        return Canvas(tokens.masked_fill(masked, 0), masked, state.free, plan.passes)

    def options(self, state: Canvas, plan: Plan, conditionals: Tensor) -> Tensor:
        """Return the distribution of each position after a pass.

        Args:
            state: State before the pass.
            plan: The plan of the pass.
            conditionals: Log-probabilities (rows, length, vocab) of the model.

        Returns:
            Probabilities (rows, length, vocab + 1) float64 of each token, and of being masked (the last entry).
        """
        rows, sites = (state.masked & (plan.changing > 0)).nonzero().unbind(1)
        drawn = self.drawing.distribution(conditionals[rows, sites]).double().softmax(-1)
        if bool(torch.isnan(drawn).any()):
            raise no_choice()
        changing = plan.changing.clamp(max=1)
        vocab = conditionals.shape[2]
        options = torch.zeros(*state.tokens.shape, vocab + 1, dtype=torch.float64, device=drawn.device)
        options.scatter_(
            2, state.tokens.masked_fill(state.masked, vocab)[:, :, None], 1 - changing[:, :, None]
        )
        options[:, :, vocab] += changing * ~state.masked
        options[rows, sites, :vocab] = changing[rows, sites, None] * drawn
        return options


def flip(probabilities: Tensor, choose: Choose) -> Tensor:
    """Return whether independent events with `probabilities` (rows, length) happen, (rows, length) bool."""
    happened, unsure = probabilities >= 1, (probabilities > 0) & (probabilities < 1)
    for site in unsure.any(0).nonzero()[:, 0].tolist():
        rows = unsure[:, site].nonzero()[:, 0]
        share = probabilities[rows, site]
        options = torch.stack((torch.log1p(-share), share.log()), 1)
        happened[rows, site] = choose(options, rows).bool()
    return happened


def rounded(probabilities: Tensor) -> Tensor:
    """Round probabilities to 9 decimals, or to 5 if they are in single precision, so that ties are recognised."""
    return probabilities.double().round(decimals=9 if probabilities.dtype == torch.float64 else 5)
