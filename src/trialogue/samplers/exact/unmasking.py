"""Exact output distribution and expected cost of an unmasking sampler on a small masked model.

The `step` method of the sampler runs with a `choose` that visits all outcomes, so the result describes the code that
users run. If `step` carries out a plan (`Planned`), only the plan runs in this way, and the independent changes of the
positions are multiplied. The states form an absorbing Markov chain. States that are equal are merged.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from scipy.sparse import coo_array
from torch import Tensor
from tqdm import tqdm

from trialogue.enumeration import enumerate_outcomes
from trialogue.errors import InputError
from trialogue.oracles import Masked
from trialogue.samplers.exact.digit_products import multiply_digits, total_mass
from trialogue.samplers.exact.elimination import AbsorbingChain, require_distribution
from trialogue.samplers.unmasking.checked import ends
from trialogue.samplers.unmasking.contract import (
    Canvas,
    Planned,
    Unmasking,
    map_fields,
    require_unmasking,
    select,
    tensors,
)
from trialogue.samplers.unmasking.engine import evaluate, prompt_canvas, require_masked
from trialogue.validation import Count, Natural, validated

Sequence_ = tuple[int, ...]
_STATES_AT_ONCE = 1024
_LARGEST_CODE = 1 << 24
"""Largest number of a canvas, which bounds the size of a table."""
_UNKNOWN = np.iinfo(np.int64).min


@dataclass(frozen=True)
class UnmaskingDistribution:
    """Exact output distribution and cost of an unmasking sampler.

    Args:
        probabilities: Probability of each accepted output (token ids). Together with `rejected` they sum to one.
        rejected: Probability of an output that the sampler does not accept. 0 without a verifier (`Checked`).
        expected_passes: Expected number of passes, each of which evaluates the model on one row.
        expected_positions: Expected sum of the numbers of masked positions over the passes.
        states: Number of states of the Markov chain that describes the sampler.
    """

    probabilities: dict[Sequence_, float]
    rejected: float
    expected_passes: float
    expected_positions: float
    states: int


@validated
def unmasking_distribution(
    sampler: Unmasking[Any],
    model: Masked,
    *,
    prompt: Tensor | Sequence[int | None] | None = None,
    length: Count | None = None,
    eos: Natural | None = None,
    max_states: Count = 1_000_000,
    progress: bool = False,
) -> UnmaskingDistribution:
    """Compute the output distribution and the expected cost of an unmasking sampler, without sampling.

    The cost is exponential in the number of masked positions. A pass that changes all positions at random, as in
    `ReMDM`, has the most outcomes.

    Args:
        sampler: The sampler.
        model: A small masked model.
        prompt: Token ids (N,) with -1 or None at masked positions (default: everything is masked).
        length: Length N if there is no prompt and the model has no fixed number of sites.
        eos: End-of-sequence token. Outputs are cut after the first one, and equal outputs are merged (default: none).
        max_states: Largest number of states of the Markov chain (default: 1,000,000).
        progress: Whether to count the states on standard error (default: False).

    Returns:
        Probabilities of the outputs, and the expected numbers of passes and predicted positions.

    Raises:
        InputError: If there are more states, or `unmask` would raise it.
    """
    require_unmasking(sampler)
    oracle = require_masked(model)
    prompts: Any = prompt if prompt is None else prompt[None] if isinstance(prompt, Tensor) else [prompt]
    start = sampler.init(*prompt_canvas(oracle, prompts, length))
    with torch.no_grad(), tqdm(desc="states", unit="state", disable=not progress, leave=False) as bar:
        for stores_moves in (False, True):
            chain = _Exploration(sampler, oracle, max_states, stores_moves)
            chain.add(start)
            bar.reset()
            while chain.expand():
                bar.update(chain.states - bar.n)
            if not chain.returns:
                break
    return chain.solve(eos)


class _Exploration:
    """Enumeration of the states that a sampler can reach, with the probabilities of moving between them.

    If every state leads to states that are expanded later, the expected visits of a state are known before its
    expansion, so that moves need not be stored. Otherwise, `returns` becomes True, and the exploration must be
    repeated.

    Args:
        sampler: The sampler.
        model: The model.
        max_states: Largest number of states.
        stores_moves: Whether to store all moves between states.
    """

    def __init__(self, sampler: Unmasking[Any], model: Masked, max_states: int, stores_moves: bool) -> None:
        self._sampler, self._model, self._max_states = sampler, model, max_states
        self._stores_moves, self.returns = stores_moves, False
        # Expected visits of the states found so far, and probabilities of the outputs, unless moves are stored.
        self._visits, self._masses = np.ones(1), np.zeros(1)
        # States that have been found since the last expansion, which began with number `_expanded`.
        self._waiting: list[Any] = []
        self._expanded = 0
        self._places: dict[bytes, int] = {}
        self._outputs: dict[Sequence_ | None, int] = {None: 0}
        self._positions: list[int] = []
        # Result of `_classify` for each canvas. The digits of its number are the tokens, or `vocab_size` for a mask.
        self._nodes = np.zeros(0, np.int64)
        self._canvases = 0
        # Source, target and probability of each move, and source, output and probability of each end.
        self._moves: list[tuple[Any, Any, Any]] = []
        self._ends: list[tuple[Any, Any, Any]] = []

    @property
    def states(self) -> int:
        """Number of states found."""
        return len(self._places)

    def add(self, state: Any) -> Tensor:
        """Return the index (rows,) of each row's state in the list of all states.

        States that were not found before are appended to the list. The next call of `expand` computes the steps from
        them.
        """
        fields = tensors(state)
        columns = [
            field.reshape(len(field), -1).contiguous().cpu().numpy().view(np.uint8) for field in fields
        ]
        keys = np.concatenate(columns, 1)
        first, known, new = self.states, self._places, list[int]()
        places = [known.setdefault(key, len(known)) for key in keys.view(f"V{keys.shape[1]}")[:, 0].tolist()]
        for row, place in enumerate(places):
            if place == first + len(new):
                new.append(row)
        if self.states > self._max_states:
            hint = "use a shorter sequence, or increase `max_states`"
            raise InputError("max_states", self._max_states, hint)
        self._waiting.append(select(state, torch.tensor(new, dtype=torch.int64, device=fields[0].device)))
        self._positions += state.masked.sum(1)[new].tolist()
        return torch.tensor(places, dtype=torch.int64)

    def expand(self) -> bool:
        """Take one step from each new state, with all outcomes. Returns whether the exploration goes on."""
        if self._expanded == self.states or self.returns:
            return False
        states = map_fields(lambda *parts: torch.cat(parts), *self._waiting)
        self._waiting = []
        for rows in torch.arange(self.states - self._expanded).split(_STATES_AT_ONCE):
            self._expand(self._expanded, select(states, rows))
            self._expanded += len(rows)
        return True

    def _expand(self, first: int, state: Any) -> None:
        """Take one step from each row of `state`, whose indices begin with `first`."""
        conditionals = evaluate(self._model, state.tokens, state.masked)
        if self._is_planned(state):
            self._expand_plans(first, state, conditionals)
            return
        outcomes = enumerate_outcomes(
            lambda rows, choose: self._sampler.step(select(state, rows), conditionals[rows], choose),
            len(state.tokens),
        )
        for source, weight, after in outcomes:
            sources, nodes, weights = (first + source).numpy(), self._classify(after), weight.numpy()
            if self._stores_moves:
                self._record(sources, nodes, weights)
            else:
                self._receive(nodes, self._visits[sources] * weights, first + len(state.tokens))

    def _is_planned(self, state: Any) -> bool:
        """Return whether the sampler plans its passes, and the canvases after a pass have small numbers."""
        if not isinstance(self._sampler, Planned) or type(self._sampler).step is not Planned.step:
            return False
        self._canvases = (int(self._model.vocab_size) + 1) ** state.tokens.shape[1]
        return isinstance(state, Canvas) and self._canvases * (int(state.passes.max()) + 2) <= _LARGEST_CODE

    def _expand_plans(self, first: int, state: Canvas, conditionals: Tensor) -> None:
        """Take one step from each row of `state`, by multiplying the probabilities of the positions."""
        sampler = cast(Planned, self._sampler)
        plans = enumerate_outcomes(
            lambda rows, choose: sampler.plan(select(state, rows), conditionals[rows], choose),
            len(state.tokens),
        )
        for source, weight, plan in plans:
            options = sampler.options(select(state, source), plan, conditionals[source]).cpu().numpy()
            sources, weights = (first + source).numpy(), weight.numpy()
            offsets = plan.passes.cpu().numpy()[:, None] * self._canvases
            if self._stores_moves:
                for rows, factors, codes in multiply_digits(options):
                    nodes, shares = (
                        self._find(codes + offsets[rows], state.free[:1]),
                        factors * weights[rows, None],
                    )
                    self._record(np.repeat(sources[rows], codes.shape[1]), nodes.ravel(), shares.ravel())
            else:
                mass = total_mass(options, offsets, self._visits[sources] * weights, self._canvases)
                reached = np.flatnonzero(mass)
                self._receive(self._find(reached, state.free[:1]), mass[reached], first + len(state.tokens))

    def _find(self, codes: Any, free: Tensor) -> Any:
        """Return the result of `_classify` for the canvases with the numbers `codes`."""
        size = int(codes.max()) + 1
        if size > len(self._nodes):
            self._nodes = np.pad(self._nodes, (0, size - len(self._nodes)), constant_values=_UNKNOWN)
        seen = np.zeros(size, bool)
        seen[codes] = True
        new = np.flatnonzero(seen & (self._nodes[:size] == _UNKNOWN))
        if len(new):
            digits, vocab = list[Tensor](), int(self._model.vocab_size)
            rest = torch.from_numpy(new % self._canvases).to(free.device)
            for _ in range(free.shape[1]):
                digits.append(rest % (vocab + 1))
                rest = rest // (vocab + 1)
            tokens = torch.stack(digits, 1)
            masked = tokens == vocab
            passes = torch.from_numpy(new // self._canvases).to(free.device)
            after = Canvas(tokens.masked_fill(masked, 0), masked, free.expand_as(masked), passes)
            self._nodes[new] = self._classify(after)
        return self._nodes[codes]

    def _classify(self, after: Any) -> Any:
        """Return the index (rows,) of each unfinished state, and -1 minus the index of the output of each other one."""
        done = self._sampler.finished(after).cpu()
        ended, going = done.nonzero()[:, 0], (~done).nonzero()[:, 0]
        nodes = np.empty(len(done), np.int64)
        if len(going):
            nodes[going.numpy()] = self.add(select(after, going)).numpy()
        if len(ended):
            last = select(after, ended)
            accepted = self._sampler.accepted(last).tolist()
            nodes[ended.numpy()] = [
                -1 - self._outputs.setdefault(tuple(row) if valid else None, len(self._outputs))
                for row, valid in zip(last.tokens.tolist(), accepted, strict=True)
            ]
        return nodes

    def _receive(self, nodes: Any, masses: Any, expanded: int) -> None:
        """Add to the expected visits of the states, and to the probabilities of the outputs, that `_classify` returns.

        Args:
            nodes: Results (n,) of `_classify`.
            masses: Their expected visits (n,).
            expanded: Number of states whose visits must not change any more.
        """
        going = nodes >= 0
        self.returns |= bool((nodes[going] < expanded).any())
        missing = self.states - len(self._visits)
        self._visits = np.pad(self._visits, (0, missing)) + np.bincount(
            nodes[going], masses[going], self.states
        )
        outputs = np.bincount(-1 - nodes[~going], masses[~going], len(self._outputs))
        self._masses = np.pad(self._masses, (0, len(outputs) - len(self._masses))) + outputs

    def _record(self, sources: Any, nodes: Any, weights: Any) -> None:
        """Store the probabilities of moving from states to the states and outputs that `_classify` returns."""
        going = nodes >= 0
        if going.all():  # A copy would take time.
            self._moves.append((sources, nodes, weights))
            return
        self._moves.append((sources[going], nodes[going], weights[going]))
        self._ends.append((sources[~going], -1 - nodes[~going], weights[~going]))

    def solve(self, eos: int | None) -> UnmaskingDistribution:
        """Return the output distribution and the expected costs."""
        size, never_ends = self.states, 0.0
        visits: Any = self._visits
        masses: Any = self._masses
        if self._stores_moves:
            source, target, probability = _joined(self._moves)
            state, output, ending = _joined(self._ends)
            transitions = coo_array((probability, (source, target)), shape=(size, size)).tocsr()
            chain = AbsorbingChain(transitions, np.bincount(state, ending, size).astype(np.float64))
            visits, never_ends = chain.visits, chain.never_ends
            masses = np.bincount(output, visits[state] * ending, len(self._outputs))
        require_distribution("probabilities", masses.tolist(), never_ends)
        probabilities = dict[Sequence_, float]()
        for text, mass in zip(self._outputs, masses.tolist(), strict=True):
            if text is not None:
                end = int(ends(torch.tensor([text]), eos)[0])
                probabilities[text[:end]] = probabilities.get(text[:end], 0.0) + mass
        return UnmaskingDistribution(
            probabilities=probabilities,
            rejected=float(masses[0]),
            expected_passes=math.fsum(visits),
            expected_positions=float(visits @ np.array(self._positions)),
            states=size,
        )


def _joined(parts: list[tuple[Any, Any, Any]]) -> tuple[Any, Any, Any]:
    """Concatenate triples (row indices, column indices, probabilities)."""
    indices = np.zeros(0, np.int64)
    first, second, third = zip((indices, indices, np.zeros(0)), *parts, strict=True)
    return np.concatenate(first), np.concatenate(second), np.concatenate(third)
