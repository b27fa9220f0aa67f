"""Checks of Markov chains: their exact transition probabilities, and how parallel copies run.

`check_chain` runs all checks. Each check is also available as a function.
"""

import math
from typing import Any

import torch
from torch import Tensor

from trialogue.data import Ising
from trialogue.errors import InputError
from trialogue.oracles import Chain, Energy, SequenceModel, as_chain, as_model, enumerate_sequences
from trialogue.randomness import generator
from trialogue.samplers.chains.engine import ChainRun, run_chain
from trialogue.samplers.exact.chains import chain_transitions
from trialogue.testing.requirements import require

ALPHA = 1e-9
"""Probability that a frequency check rejects a correct chain."""
STEPS = 23
"""Number of steps of the runs whose paths are compared."""


def check_chain(
    chain: Chain[Any],
    model: SequenceModel | None = None,
    *,
    sites: int | None = None,
    target: Tensor | None = None,
    invariant: bool = True,
    seed: int = 0,
) -> None:
    """Check that `chain` satisfies the requirements for Markov chains on a small model.

    The checks are:

    - The transition probabilities from every state sum to 1. The target is invariant.
    - A copy of the chain depends only on its seed, start and id. Samples, traces and stopping times match its path.
    - The frequencies of states agree with the exact transition probabilities.

    Args:
        chain: Chain to check.
        model: Model whose states can be enumerated (default: an Ising model of four spins).
        sites: Number of sites N (default: the model's own number).
        target: Target distribution (V^N,), the probabilities of all states in the order of `itertools.product`
            (default: the distribution of the model, which must then be an `Energy`).
        invariant: Whether to check that the target distribution is invariant (default: True).
        seed: Random seed (default: 0).

    Raises:
        AssertionError: If a requirement is violated.
        InputError: If the chain cannot run on the model, or the target of a masked oracle is missing.
    """
    model = small_ising() if model is None else model
    check_transitions(chain, model, sites=sites)
    if invariant:
        check_invariance(chain, model, sites=sites, target=target)
    check_repeatability(chain, model, sites=sites, seed=seed)
    check_independence(chain, model, sites=sites, seed=seed)
    check_stopping(chain, model, sites=sites, seed=seed)
    check_samples(chain, model, sites=sites, seed=seed)
    check_trace(chain, model, sites=sites, seed=seed)
    check_frequencies(chain, model, sites=sites, seed=seed)


def small_ising(sites: int = 4, seed: int = 1) -> Ising:
    """Return a small Ising model with random couplings and fields of order 1.

    All states have different probabilities, with probability 1.

    Args:
        sites: Number of spins (default: 4).
        seed: Random seed (default: 1).
    """
    coupling = torch.randn(sites, sites, generator=generator(seed, "coupling"), dtype=torch.float64).triu(1)
    field = torch.randn(sites, generator=generator(seed, "field"), dtype=torch.float64)
    return Ising(coupling + coupling.T, field)


def model_distribution(model: SequenceModel, sites: int | None = None) -> Tensor:
    """Compute the probabilities of all sequences of an energy-based model.

    Args:
        model: Model with energies E(x), which define p(x) ∝ exp(-E(x)).
        sites: Length N of the sequences (default: the model's own number of sites).

    Returns:
        Probabilities (V^N,) float64 in the order of `itertools.product`, where V is the number of values of a site.

    Raises:
        InputError: If the model has no energies.
    """
    asked = as_model(model)
    if not isinstance(asked, Energy):
        raise InputError(
            "target", None, f"{type(asked).__name__} has no energies; pass the probability of every state"
        )
    states = enumerate_sequences(asked.vocab_size, number_of_sites(model, sites), asked.device or "cpu")
    return (-asked.energy(states).double()).softmax(0).cpu()


def number_of_sites(model: SequenceModel, sites: int | None) -> int:
    """Return the sequence length N of a model.

    Args:
        model: Model of sequences.
        sites: Number to return (default: the model's own number of sites).

    Raises:
        InputError: If the model has no number of sites and `sites` is None.
    """
    number = sites if sites is not None else as_model(model).sites
    if number is None:
        raise InputError(
            "sites", None, f"{type(model).__name__} has no fixed number of sites; pass the number"
        )
    return number


def check_transitions(chain: Chain[Any], model: SequenceModel, *, sites: int | None = None) -> None:
    """Check that the transition matrix of a Markov chain is valid.

    All transition probabilities must be at least 0, and the probabilities from each state must sum to 1.

    Args:
        chain: Markov chain to check.
        model: Model whose states can be enumerated.
        sites: Number of sites N (default: the model's own number).

    Raises:
        AssertionError: If the matrix is not valid.
    """
    as_chain(chain)
    matrix = chain_transitions(chain, model, sites=sites)
    states = int(as_model(model).vocab_size) ** number_of_sites(model, sites)
    require(
        matrix.shape == (states, states),
        chain,
        f"transition matrix has the shape {tuple(matrix.shape)} instead of {states}^2",
    )
    require(float(matrix.min()) >= 0, chain, f"has a transition with probability {float(matrix.min()):.3g}")
    worst = float((matrix.sum(1) - 1).abs().max())
    require(worst <= 1e-12, chain, f"has transition probabilities whose sum differs from 1 by {worst:.3g}")


def stationarity_error(
    chain: Chain[Any], model: SequenceModel, *, sites: int | None = None, target: Tensor | None = None
) -> float:
    """Return how much one step of a Markov chain changes its target distribution.

    Args:
        chain: Markov chain.
        model: Model whose states can be enumerated.
        sites: Number of sites N (default: the model's own number).
        target: Probabilities (V^N,) of all states under the target distribution (default: distribution of the model).
    """
    distribution = model_distribution(model, sites) if target is None else target.double()
    return float((distribution @ chain_transitions(chain, model, sites=sites) - distribution).abs().sum() / 2)


def check_invariance(
    chain: Chain[Any],
    model: SequenceModel,
    *,
    sites: int | None = None,
    target: Tensor | None = None,
    tolerance: float = 1e-12,
) -> None:
    """Check that one step of a Markov chain does not change its target distribution.

    Args:
        chain: Markov chain to check.
        model: Model whose states can be enumerated.
        sites: Number of sites N (default: the model's own number).
        target: Probabilities (V^N,) of all states under the target distribution (default: distribution of the model).
        tolerance: Largest allowed change in total variation distance (default: 1e-12).

    Raises:
        AssertionError: If the change is larger.
    """
    error = stationarity_error(chain, model, sites=sites, target=target)
    require(error <= tolerance, chain, f"changes its target by {error:.3g} in total variation in one step")


def check_repeatability(
    chain: Chain[Any], model: SequenceModel, *, sites: int | None = None, seed: int = 0
) -> None:
    """Check that runs of a Markov chain are equal for equal seeds and differ for different seeds.

    The tensor of start sequences must not be modified.

    Args:
        chain: Markov chain to check.
        model: Model of sequences.
        sites: Number of sites N (default: the model's own number).
        seed: Random seed (default: 0).

    Raises:
        AssertionError: If a requirement is violated.
    """
    start = random_starts(model, 50, sites, seed)
    given = start.clone()
    first, again = (_run(chain, model, start, seed).tokens for _ in range(2))
    require(torch.equal(start, given), chain, "modifies the tensor of its start")
    require(torch.equal(first, again), chain, "returns different tokens for the same seed")
    other = _run(chain, model, start, seed + 1).tokens
    require(not torch.equal(first, other), chain, "returns the same tokens for different seeds")


def check_independence(
    chain: Chain[Any], model: SequenceModel, *, sites: int | None = None, seed: int = 0
) -> None:
    """Check that parallel copies of a Markov chain do not influence each other.

    The path of a copy must not depend on the number of other copies or on their order.

    Args:
        chain: Markov chain to check.
        model: Model of sequences.
        sites: Number of sites N (default: the model's own number).
        seed: Random seed (default: 0).

    Raises:
        AssertionError: If a requirement is violated.
    """
    start = random_starts(model, 10, sites, seed)
    together = _run(chain, model, start, seed).tokens
    require(len(together.unique(dim=0)) > 1, chain, "leaves ten copies in the same state")
    number = torch.arange(len(start))
    parts = [part for size in (1, 3) for part in number.split(size)]
    for rows in (*parts, torch.randperm(len(start), generator=generator(seed, "order"))):
        alone = _run(chain, model, start[rows], seed, chain_ids=rows).tokens
        message = f"moves copies {rows.tolist()} differently if they run separately or in this order"
        require(torch.equal(alone, together[rows]), chain, message)


def check_stopping(
    chain: Chain[Any], model: SequenceModel, *, sites: int | None = None, seed: int = 0
) -> None:
    """Check that each copy of a Markov chain stops in the first state that satisfies a stopping condition.

    Copies that stop must not influence the other copies.

    Args:
        chain: Markov chain to check.
        model: Model of sequences.
        sites: Number of sites N (default: the model's own number).
        seed: Random seed (default: 0).

    Raises:
        AssertionError: If a requirement is violated.
    """
    start = random_starts(model, 10, sites, seed)
    last = int(as_model(model).vocab_size) - 1
    half = -(-start.shape[1] // 2)

    def satisfies_predicate(tokens: Tensor) -> Tensor:
        return (tokens[..., :half] == last).all(-1)

    paths = torch.cat((start[None], _run(chain, model, start, seed, thin=1).samples))
    stopped = _run(chain, model, start, seed, until=satisfies_predicate)
    for copy, steps in enumerate(stopped.steps.tolist()):
        times = satisfies_predicate(paths[:, copy]).nonzero()[:, 0].tolist()
        expected = times[0] if times else STEPS
        require(steps == expected, chain, f"stops copy {copy} after {steps} steps instead of {expected}")
        require(
            bool(stopped.reached[copy]) == bool(times),
            chain,
            f"reports wrongly whether copy {copy} satisfied the predicate",
        )
        same = torch.equal(stopped.tokens[copy], paths[steps, copy])
        require(same, chain, f"moves copy {copy} differently if other copies stop")


def check_samples(
    chain: Chain[Any], model: SequenceModel, *, sites: int | None = None, seed: int = 0
) -> None:
    """Check that the returned samples are the states of the chain after the burn-in, at intervals of `thin` steps.

    Args:
        chain: Markov chain to check.
        model: Model of sequences.
        sites: Number of sites N (default: the model's own number).
        seed: Random seed (default: 0).

    Raises:
        AssertionError: If a requirement is violated.
    """
    start = random_starts(model, 5, sites, seed)
    path = _run(chain, model, start, seed, thin=1)
    require(
        path.samples.shape == (STEPS, *start.shape), chain, f"returns {len(path.samples)} of {STEPS} states"
    )
    require(
        torch.equal(path.samples[-1], path.tokens), chain, "has final tokens that differ from the last sample"
    )
    thinned = _run(chain, model, start, seed, thin=4, burn_in=3, steps=18)
    require(
        torch.equal(thinned.samples, path.samples[6:20:4]),
        chain,
        "takes samples from another path if thinned",
    )
    require(torch.equal(thinned.tokens, path.samples[20]), chain, "has different final tokens with a burn-in")


def check_trace(chain: Chain[Any], model: SequenceModel, *, sites: int | None = None, seed: int = 0) -> None:
    """Check that the recorded trace of token changes reproduces the states of a Markov chain.

    Args:
        chain: Markov chain to check.
        model: Model of sequences.
        sites: Number of sites N (default: the model's own number).
        seed: Random seed (default: 0).

    Raises:
        AssertionError: If the trace is not sorted by step or lacks a change.
    """
    start = random_starts(model, 5, sites, seed)
    run = _run(chain, model, start, seed, thin=1, trace=True)
    assert run.trace is not None
    ordered = torch.equal(run.trace.step, run.trace.step.sort(stable=True).values)
    require(ordered, chain, "has a trace that is not sorted by step")
    tokens = start.clone()
    for step, states in enumerate(run.samples, 1):
        now = run.trace.step == step
        tokens[run.trace.chain[now], run.trace.site[now]] = run.trace.token[now]
        require(torch.equal(tokens, states), chain, f"has a trace that lacks a change of step {step}")


def check_frequencies(
    chain: Chain[Any], model: SequenceModel, *, sites: int | None = None, copies: int = 20_000, seed: int = 0
) -> None:
    """Check that simulated frequencies of states agree with the exact transition probabilities of a Markov chain.

    All copies start in the same state and run for three steps.

    Args:
        chain: Markov chain to check.
        model: Model whose states can be enumerated.
        sites: Number of sites N (default: the model's own number).
        copies: Number of independent copies (default: 20,000).
        seed: Random seed (default: 0).

    Raises:
        AssertionError: If the difference is too large. A correct chain fails with probability at most 1e-9.
    """
    excess = frequency_excess(chain, chain, model, sites=sites, copies=copies, seed=seed)
    message = f"exceeds the allowed L1 distance from its exact transitions by {excess:.3g}"
    require(excess < 0, chain, message)


def frequency_excess(
    chain: Chain[Any],
    reference: Chain[Any],
    model: SequenceModel,
    *,
    sites: int | None = None,
    copies: int = 20_000,
    seed: int = 0,
) -> float:
    """Return how much simulated frequencies of states exceed the largest allowed difference from exact probabilities.

    Copies of `chain` start in the same state and run for three steps. The result is the L1 distance of their
    states from the exact probabilities of `reference`, minus an upper bound of it (Weissman et al. 2003). If
    both chains are equal, the result is positive with probability at most 1e-9. If their distributions differ
    by more than twice the bound, it is negative with probability at most 1e-9.

    Args:
        chain: Chain to simulate.
        reference: Chain with the expected transition probabilities.
        model: Model whose states can be enumerated.
        sites: Number of sites N (default: the model's own number).
        copies: Number of independent copies (default: 20,000).
        seed: Random seed (default: 0).

    Returns:
        L1 distance minus its upper bound.
    """
    start = random_starts(model, 1, sites, seed).expand(copies, -1)
    run = run_chain(chain, model, start=start, steps=3, seed=seed, require_ergodic=False)
    vocab, number = int(as_model(model).vocab_size), start.shape[1]
    places = vocab ** torch.arange(number - 1, -1, -1)
    matrix = torch.linalg.matrix_power(chain_transitions(reference, model, sites=sites), 3)
    expected = matrix[int((start[0].cpu() * places).sum())]
    counts = torch.bincount((run.tokens.cpu() * places).sum(1), minlength=len(expected))
    radius = math.sqrt(2 * (len(expected) * math.log(2) - math.log(ALPHA)) / copies)
    return float((counts / copies - expected).abs().sum()) - radius


def random_starts(model: SequenceModel, copies: int, sites: int | None = None, seed: int = 0) -> Tensor:
    """Return sequences of independent, uniformly random tokens, as start states of Markov chains.

    Args:
        model: Model that defines the number of token values and the device.
        copies: Number of sequences.
        sites: Length N of the sequences (default: the model's own number of sites).
        seed: Random seed (default: 0).

    Returns:
        Sequences (copies, N) int64.
    """
    asked = as_model(model)
    shape = (copies, number_of_sites(model, sites))
    drawn = torch.randint(asked.vocab_size, shape, generator=generator(seed, "starts"))
    return drawn.to(asked.device or "cpu")


def _run(chain: Chain[Any], model: SequenceModel, start: Tensor, seed: int, **settings: Any) -> ChainRun:
    asked = {"steps": STEPS, "require_ergodic": False, **settings}
    return run_chain(chain, model, start=start, seed=seed, **asked)
