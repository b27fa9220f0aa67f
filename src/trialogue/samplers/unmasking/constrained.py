"""Unmasking with a regular language, whose masks keep the tokens with which each text can still be completed."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Verifier
from trialogue.randomness import Choose
from trialogue.samplers.unmasking.contract import (
    Drawing,
    Planned,
    Unmasking,
    choose_for,
    put,
    require_unmasking,
    select,
)
from trialogue.samplers.unmasking.ordered import DrawThenSelect, Ordered
from trialogue.validation import Count, Natural, validated
from trialogue.verifiers.languages.automaton import NEVER, TokenAutomaton
from trialogue.verifiers.languages.language_verifier import LanguageVerifier

_FEW = 16
"""Only the allowed log-probabilities are read if they are fewer than those of all tokens divided by this number."""
_ENTRIES_AT_ONCE = 2**19
"""Number of log-probabilities that are normalised at once, so that they stay in the cache."""


class ConstrainedState(NamedTuple):
    """State of `Constrained`.

    Attributes:
        tokens: Token ids (rows, length) int64, 0 at masked positions.
        masked: Masked positions (rows, length) bool.
        free: Positions (rows, length) bool that do not belong to the prompt.
        inner: State of the wrapped sampler.
        possible: Whether the model gives a positive probability to an allowed token at each masked position, (rows,)
            bool. If not, the row is finished and not accepted.
    """

    tokens: Tensor
    masked: Tensor
    free: Tensor
    inner: Any
    possible: Tensor


@validated
@dataclass(frozen=True)
class Constrained(Unmasking[ConstrainedState]):
    """Draw only tokens with which the text can still be completed to a text of a regular language.

    The text begins at the first masked position. Before a pass, all other tokens get probability 0 at each masked
    position, and the conditionals are normalised, before positions are selected and before temperature and truncation.
    The positions of one pass are drawn from left to right. The masks change after each of them, but the conditionals do
    not. All outputs are texts of the language.

    As with masked decoding of autoregressive models, the distribution differs from the model's distribution restricted
    to the language, also with one position per pass. `Checked` samples from that distribution.

    Args:
        verifier: `GrammarVerifier.regex` or `GrammarVerifier.choice`.
        sampler: The wrapped sampler: `Ordered`, `DrawThenSelect` or `ReMDM` (default: `Ordered()`).
        eos: End-of-sequence token. The text ends before the first one, and all tokens may follow (default: none, so
            that the text fills all positions).
        judged_length: Number of tokens at the beginning after which the text ends. Set it if the sequence ends with
            tokens that do not belong to the text (default: all).

    Raises:
        InputError: If the verifier is not that of a regular language, its automaton is too large, or another sampler is
            wrapped. Before the first pass, if no text of the language fits the prompt.
    """

    verifier: Verifier
    sampler: Unmasking[Any] = field(default_factory=Ordered)
    eos: Natural | None = None
    judged_length: Count | None = None

    def __post_init__(self) -> None:
        require_unmasking(self.sampler)
        if not isinstance(self.sampler, Planned | DrawThenSelect):
            hint = "wrap Ordered, DrawThenSelect or ReMDM, whose draws can be restricted"
            raise InputError("sampler", self.sampler, hint)
        _ = self._automaton

    @cached_property
    def _automaton(self) -> TokenAutomaton:
        if not isinstance(self.verifier, LanguageVerifier):
            hint = "use a regular expression or a list of choices. Checked rejects texts with any verifier"
            raise InputError("verifier", type(self.verifier).__name__, hint)
        return self.verifier.automaton(self.eos)

    def init(self, tokens: Tensor, masked: Tensor) -> ConstrainedState:
        """Return the state before the first pass, given `tokens` and `masked` positions (rows, length).

        Raises:
            InputError: If no text of the language fits the prompt.
        """
        size = len(self._automaton.token_class)
        if len(tokens) and int(tokens.max()) >= size:
            raise InputError("prompts", int(tokens.max()), f"the verifier has {size} tokens")
        inner = self.sampler.init(tokens, masked)
        possible = torch.ones_like(masked[:, 0])
        state = ConstrainedState(inner.tokens, masked, masked, inner, possible)
        fits = _Canvases(self, state).backward[:, 0, 0]
        if not fits.all():
            raise self._no_text(masked[int(fits.argmin())])
        return state

    def _no_text(self, masked: Tensor) -> InputError:
        """Return the error for a prompt with `masked` positions (length,) that no text of the language fits."""
        count = int(masked[: self.judged_length].sum())
        fills = "fits into" if self.eos is not None else "exactly fills"
        shortest = int(self._automaton.shortest_completions()[0])
        known = "" if shortest == NEVER else f" The shortest one has {shortest} tokens."
        hint = f"no text that the verifier accepts {fills} them.{known} Mask another number of positions"
        return InputError("prompts", f"{count} masked positions", hint)

    def step(self, state: ConstrainedState, conditionals: Tensor, choose: Choose) -> ConstrainedState:
        """Restrict the conditionals, and take a pass of the wrapped sampler.

        Args:
            state: State before the pass.
            conditionals: Log-probabilities (rows, length, vocab) of the model.
            choose: Source of randomness.

        Returns:
            The state after the pass.

        Raises:
            InputError: If the verifier and the model have different vocabularies.
        """
        size = len(self._automaton.token_class)
        if conditionals.shape[2] != size:
            raise InputError("verifier", f"{size} tokens", f"the model has {conditionals.shape[2]} tokens")
        canvases = _Canvases(self, state)
        restricted, possible = canvases.restricted(conditionals)
        rows = possible.nonzero()[:, 0]
        if not len(rows):
            return state._replace(possible=possible)
        if len(rows) < len(possible):
            # A copy of all conditionals takes time.
            canvases, restricted = _Canvases(self, select(state, rows)), restricted[rows]
        part = cast("Planned | DrawThenSelect", self.sampler).step(
            select(state.inner, rows), restricted, choose_for(rows, choose), canvases.draw
        )
        # Rows without a possible token keep their state, whose text can still be completed.
        possible[rows] = canvases.possible
        inner = put(state.inner, rows[canvases.possible], select(part, canvases.possible))
        return ConstrainedState(inner.tokens, inner.masked, state.free, inner, possible)

    def finished(self, state: ConstrainedState) -> Tensor:
        """Return which rows (rows,) bool of a state have a complete text, or cannot be completed."""
        return self.sampler.finished(state.inner) | ~state.possible

    def accepted(self, state: ConstrainedState) -> Tensor:
        """Return which rows (rows,) bool of a state have a text of the language."""
        return state.possible


class _Canvases:
    """Partially revealed texts, with the states of the automaton that the tokens on either side of a position allow.

    Attributes:
        possible: Whether the model gives a positive probability to an allowed token at each drawn position, (rows,).
        forward: States (rows, length + 1, states) bool that some tokens at the masked positions before a position lead
            to.
        backward: States (rows, length + 1, states) bool from which some tokens at the masked positions from a position
            on lead to the end of a text.
    """

    def __init__(self, sampler: Constrained, state: ConstrainedState) -> None:
        self._automaton = automaton = sampler._automaton
        self._tokens, self._masked = state.tokens.cpu().numpy(), state.masked.cpu().numpy()
        rows, length = self._tokens.shape
        place = np.arange(length)
        # Other tokens do not change the state.
        self._inside = state.free.cpu().numpy().cumsum(1) > 0
        self._inside &= place < (sampler.judged_length or length)
        self.possible = torch.ones(rows, dtype=torch.bool, device=state.tokens.device)
        self.forward = np.zeros((rows, length + 1, len(automaton.accepting)), np.bool_)
        self.forward[:, 0, 0] = True
        self.backward = np.empty_like(self.forward)
        self.backward[:, length] = automaton.accepting
        for site in range(length - 1, -1, -1):
            self.backward[:, site] = self._before(self.backward[:, site + 1], site)
        for site in range(length):
            self.forward[:, site + 1] = self._after(self.forward[:, site], site)

    def _before(self, states: NDArray[np.bool_], site: int) -> NDArray[np.bool_]:
        """Return the states (rows, states) from which the tokens at a position may lead to `states`."""
        found, inside = states.copy(), self._inside[:, site]
        hidden, shown = inside & self._masked[:, site], inside & ~self._masked[:, site]
        if hidden.any():
            found[hidden] = (self._automaton.reachable @ states[hidden].T.astype(np.float32)).T > 0
        if shown.any():
            columns = self._automaton.moves[self._automaton.token_class[self._tokens[shown, site]]]
            found[shown] = np.take_along_axis(states[shown], columns, 1)
        return found

    def _after(self, states: NDArray[np.bool_], site: int) -> NDArray[np.bool_]:
        """Return the states (rows, states) to which the tokens at a position may lead from `states`."""
        found, inside = states.copy(), self._inside[:, site]
        hidden, shown = inside & self._masked[:, site], inside & ~self._masked[:, site]
        if hidden.any():
            found[hidden] = (self._automaton.reachable.T @ states[hidden].T.astype(np.float32)).T > 0
        if shown.any():
            found[shown] = False
            rows, sources = (states & shown[:, None]).nonzero()
            classes = self._automaton.token_class[self._tokens[rows, site]]
            found[rows, self._automaton.moves[classes, sources]] = True
        return found

    def restricted(self, conditionals: Tensor) -> tuple[Tensor, Tensor]:
        """Restrict the conditionals of all masked positions to allowed tokens.

        Args:
            conditionals: Log-probabilities (rows, length, vocab).

        Returns:
            Log-probabilities (rows, length, vocab), and which rows (rows,) bool have a possible token at each position.
        """
        rows, sites = self._masked.nonzero()
        found = torch.full_like(conditionals, -torch.inf)
        before, after = self.forward[rows, sites], self.backward[rows, sites + 1]
        places = torch.from_numpy(rows * conditionals.shape[1] + sites).to(found.device)
        flat = conditionals.flatten(0, 1), found.flatten(0, 1)
        possible = self._restrict(*flat, places, before, after, self._inside[rows, sites])
        impossible = torch.from_numpy(rows).to(possible.device)[~possible]
        return found, torch.ones_like(self.possible).index_fill_(0, impossible, False)

    def _restrict(
        self,
        log_probs: Tensor,
        found: Tensor,
        rows: Tensor,
        before: NDArray[np.bool_],
        after: NDArray[np.bool_],
        inside: NDArray[np.bool_],
    ) -> Tensor:
        """Restrict the given `rows` (n,) of log-probabilities (m, vocab) to the tokens between given states.

        Args:
            log_probs: Log-probabilities of the model.
            found: Result, which is -inf. The allowed entries of the rows are modified in place.
            rows: Indices of the rows.
            before: States (n, states) before each token.
            after: States (n, states) that may follow each token.
            inside: Whether each token belongs to the text, (n,). All tokens are allowed elsewhere.

        Returns:
            Which of the rows have a possible token, (n,) bool.
        """
        possible = torch.ones(len(rows), dtype=torch.bool, device=rows.device)
        states = np.packbits(np.concatenate((before, after, inside[:, None]), 1), axis=1)
        _, first, group = np.unique(states, axis=0, return_index=True, return_inverse=True)
        vocab = log_probs.shape[1]
        for number, row in enumerate(first.tolist()):
            following = self._automaton.moves[:, before[row].nonzero()[0]]
            allowed = after[row][following].any(1)[self._automaton.token_class] | ~inside[row]
            members = torch.from_numpy((group.ravel() == number).nonzero()[0]).to(rows.device)
            tokens = torch.from_numpy(allowed.nonzero()[0]).to(rows.device)
            if len(tokens) == 0:
                possible[members] = False
                continue
            few = len(tokens) * _FEW < vocab
            excluded = torch.from_numpy(np.where(allowed, 0.0, -np.inf)).to(log_probs)
            for part in members.split(max(1, _ENTRIES_AT_ONCE // vocab)):
                places = rows[part]
                kept = log_probs[places[:, None], tokens] if few else log_probs.index_select(0, places)
                kept = kept if few or len(tokens) == vocab else kept.add_(excluded)
                alive = kept.amax(1) != -torch.inf
                possible[part] = alive
                kept = kept.log_softmax(1).masked_fill_(~alive[:, None], -torch.inf)
                if few:
                    found[places[:, None], tokens] = kept
                else:
                    found.index_copy_(0, places, kept)
        return possible

    def draw(
        self, drawing: Drawing, tokens: Tensor, selected: Tensor, conditionals: Tensor, choose: Choose
    ) -> Tensor:
        """Draw tokens at the selected positions from left to right, so that the text can still be completed.

        Args:
            drawing: Temperature and truncation.
            tokens: Token ids (rows, length) int64.
            selected: Positions (rows, length) bool.
            conditionals: Restricted log-probabilities (rows, length, vocab).
            choose: Source of randomness.

        Returns:
            Token ids (rows, length) int64, which differ from `tokens` at selected positions only.
        """
        tokens = tokens.clone()
        sites = selected.any(0).nonzero()[:, 0].tolist()
        several = bool((selected.sum(1) > 1).any())
        masked = self._masked
        states = self.forward[:, sites[0]] if sites else self.forward[:, 0]
        for site in range(sites[0], sites[-1] + 1) if sites else ():
            states = states if several else self.forward[:, site]
            rows = (selected[:, site] & self.possible).nonzero()[:, 0]
            if len(rows):
                here = rows.cpu().numpy()
                log_probs = conditionals[rows, site]
                found = torch.full_like(log_probs, -torch.inf)
                part = torch.arange(len(rows), device=rows.device)
                ends, inside = self.backward[here, site + 1], self._inside[here, site]
                alive = self._restrict(log_probs, found, part, states[here], ends, inside)
                self.possible[rows[~alive]] = False
                rows = rows[alive]
                if len(rows):
                    tokens[rows, site] = drawing.pick(found[alive], rows, choose)
            if several:
                self._masked = masked & ~selected.cpu().numpy()
                self._tokens = tokens.cpu().numpy()
                states = self._after(states, site)
        self._masked = masked
        return tokens
