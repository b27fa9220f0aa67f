"""Exact output distribution and expected cost of an unmasking sampler on a small masked model.

The `step` method of the sampler runs with a `choose` that visits all outcomes, so the result describes the code that
users run. The states form an absorbing Markov chain. States that are equal are merged.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.sparse import coo_array
from torch import Tensor
from tqdm import tqdm

from trialogue.enumeration import enumerate_outcomes
from trialogue.errors import InputError
from trialogue.oracles import Masked
from trialogue.samplers.exact.elimination import AbsorbingChain, require_distribution
from trialogue.samplers.unmasking.checked import ends
from trialogue.samplers.unmasking.contract import Unmasking, map_fields, require_unmasking, select, tensors
from trialogue.samplers.unmasking.engine import evaluate, prompt_canvas, require_masked
from trialogue.validation import Count, Natural, validated

Sequence_ = tuple[int, ...]
_STATES_AT_ONCE = 1024


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
    chain = _Exploration(sampler, oracle, max_states)
    with torch.no_grad(), tqdm(desc="states", unit="state", disable=not progress, leave=False) as bar:
        chain.add(sampler.init(*prompt_canvas(oracle, prompts, length)))
        while chain.expand():
            bar.update(chain.states - bar.n)
    return chain.solve(eos)


class _Exploration:
    """Enumeration of the states that a sampler can reach, with the probabilities of moving between them."""

    def __init__(self, sampler: Unmasking[Any], model: Masked, max_states: int) -> None:
        self._sampler, self._model, self._max_states = sampler, model, max_states
        # States that have been found since the last expansion, which began with number `_expanded`.
        self._waiting: list[Any] = []
        self._expanded = 0
        self._places: dict[bytes, int] = {}
        self._outputs: dict[Sequence_ | None, int] = {None: 0}
        self._positions: list[int] = []
        # Source, target and probability of each move, and source, output and probability of each end.
        self._moves: list[tuple[Tensor, Tensor, Tensor]] = []
        self._ends: list[tuple[Tensor, Tensor, Tensor]] = []

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
        """Take one step from each new state, with all outcomes. Returns whether there were any."""
        if self._expanded == self.states:
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
        outcomes = enumerate_outcomes(
            lambda rows, choose: self._sampler.step(select(state, rows), conditionals[rows], choose),
            len(state.tokens),
        )
        for source, weight, after in outcomes:
            done = self._sampler.finished(after).cpu()
            ended, going = done.nonzero()[:, 0], (~done).nonzero()[:, 0]
            if len(going):
                self._moves.append((first + source[going], self.add(select(after, going)), weight[going]))
            if len(ended):
                last = select(after, ended)
                accepted = self._sampler.accepted(last).tolist()
                outputs = [
                    self._outputs.setdefault(tuple(row) if valid else None, len(self._outputs))
                    for row, valid in zip(last.tokens.tolist(), accepted, strict=True)
                ]
                self._ends.append((first + source[ended], torch.tensor(outputs), weight[ended]))

    def solve(self, eos: int | None) -> UnmaskingDistribution:
        """Return the output distribution and the expected costs."""
        source, target, probability = _joined(self._moves)
        state, output, ending = _joined(self._ends)
        size = self.states
        transitions = coo_array((probability, (source, target)), shape=(size, size)).tocsr()
        chain = AbsorbingChain(transitions, np.bincount(state, ending, size).astype(np.float64))
        visits = chain.visits
        masses = np.bincount(output, visits[state] * ending, len(self._outputs)).tolist()
        require_distribution("probabilities", masses, chain.never_ends)
        probabilities = dict[Sequence_, float]()
        for text, mass in zip(self._outputs, masses, strict=True):
            if text is not None:
                end = int(ends(torch.tensor([text]), eos)[0])
                probabilities[text[:end]] = probabilities.get(text[:end], 0.0) + mass
        return UnmaskingDistribution(
            probabilities=probabilities,
            rejected=masses[0],
            expected_passes=math.fsum(visits),
            expected_positions=float(visits @ np.array(self._positions)),
            states=size,
        )


def _joined(parts: list[tuple[Tensor, Tensor, Tensor]]) -> tuple[Any, Any, Any]:
    """Concatenate triples (row indices, column indices, probabilities) to three NumPy arrays."""
    indices = torch.zeros(0, dtype=torch.int64)
    columns = zip((indices, indices, indices.double()), *parts, strict=True)
    first, second, third = (torch.cat(column).numpy() for column in columns)
    return first, second, third
