"""Exact output distribution and expected cost of an unmasking sampler on a small masked model.

The `step` method of the sampler runs with a `choose` that visits all outcomes, so the result describes the code that
users run. If `step` carries out a plan (`Planned`), only the plan runs in this way, and the independent changes of the
positions are multiplied.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from trialogue.oracles import Masked
from trialogue.samplers.exact.checked_states import CheckedExploration, RestartedExploration
from trialogue.samplers.exact.elimination import require_distribution
from trialogue.samplers.exact.unmasking_states import Exploration, Sequence_
from trialogue.samplers.unmasking.checked import ends
from trialogue.samplers.unmasking.contract import Unmasking, require_unmasking
from trialogue.samplers.unmasking.engine import prompt_canvas, require_masked
from trialogue.validation import Count, Natural, validated


@dataclass(frozen=True)
class UnmaskingDistribution:
    """Exact output distribution and cost of an unmasking sampler.

    Args:
        probabilities: Probability of each accepted output (token ids). Together with `rejected` they sum to one.
        rejected: Probability of an output that the sampler does not accept. 0 without a verifier (`Checked`).
        expected_passes: Expected number of passes, each of which evaluates the model on one row.
        expected_positions: Expected sum of the numbers of masked positions over the passes.
        states: Number of states of the Markov chain that describes the sampler. For `Checked`, states that differ in
            the number of remaining rejections count once.
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
        length: Length N if there is no prompt (default: number of sites of the model, or `max_length` of the
            configuration of a `MaskedTransformer`).
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
        chain: Exploration
        if RestartedExploration.applies(sampler):
            chain = RestartedExploration(sampler, oracle, max_states)
        elif CheckedExploration.applies(sampler):
            chain = CheckedExploration(sampler, oracle, max_states)
        else:
            chain = Exploration(sampler, oracle, max_states, stores_moves=False)
        _explore(chain, start, bar)
        if chain.returns and CheckedExploration.applies(sampler):
            chain = CheckedExploration(sampler, oracle, max_states)
            _explore(chain, start, bar)
        elif chain.returns:
            chain = Exploration(sampler, oracle, max_states, stores_moves=True)
            _explore(chain, start, bar)
    costs = chain.solve()
    require_distribution("probabilities", costs.masses.tolist(), costs.never_ends)
    probabilities = dict[Sequence_, float]()
    for text, mass in zip(chain.outputs, costs.masses.tolist(), strict=True):
        if text is not None:
            end = int(ends(torch.tensor([text]), eos)[0])
            probabilities[text[:end]] = probabilities.get(text[:end], 0.0) + mass
    return UnmaskingDistribution(
        probabilities=probabilities,
        rejected=float(costs.masses[0]),
        expected_passes=costs.passes,
        expected_positions=costs.positions,
        states=chain.states,
    )


def _explore(chain: Exploration, start: Any, bar: Any) -> None:
    """Find all states that the sampler reaches from a state, with their number on a progress bar."""
    chain.add(start)
    bar.reset()
    while chain.expand():
        bar.update(chain.states - bar.n)
