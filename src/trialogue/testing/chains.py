"""What every Markov chain must satisfy: its exact transitions, and how copies of it run.

`check_chain` is all of it; the parts are functions of their own, for a chain or a model that needs only some.
"""

import math
from typing import Any

import torch
from torch import Tensor

from trialogue.data import Ising
from trialogue.errors import InputError
from trialogue.oracles import Chain, Energy, SequenceModel, as_chain, as_model, whole_sequences
from trialogue.randomness import generator
from trialogue.samplers.chains.engine import ChainRun, run_chain
from trialogue.samplers.exact.chains import chain_transitions
from trialogue.testing.requirements import require

ALPHA = 1e-9
"""How often a check by frequencies rejects a chain that is right."""
STEPS = 23
"""Steps of the runs whose paths are compared."""


def check_chain(
    chain: Chain[Any],
    model: SequenceModel | None = None,
    *,
    sites: int | None = None,
    target: Tensor | None = None,
    invariant: bool = True,
    seed: int = 0,
) -> None:
    """Hold `chain` on `model` to the distributions of chains; raises `AssertionError` that names the one it breaks.

    One step is a distribution for every state, and leaves `target` (V^N,) as it is unless `invariant` is False: p(x) of
    the states in the order of `itertools.product`, by default the distribution of the model, where that is an `Energy`.
    A copy depends on its seed, its start and its number alone; samples, traces and stopping times are those of its
    path; and what runs is what the exact transitions say. `model` is small enough to list its states, by default an
    Ising model of four spins, and `sites` is N where it has no number of its own.

    Raises `InputError` where the chain cannot run on the model, and for a masked oracle without a `target`.
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
    """An Ising model of random couplings and fields of order one: every state has a probability of its own."""
    coupling = torch.randn(sites, sites, generator=generator(seed, "coupling"), dtype=torch.float64).triu(1)
    field = torch.randn(sites, generator=generator(seed, "field"), dtype=torch.float64)
    return Ising(coupling + coupling.T, field)


def law_of(model: SequenceModel, sites: int | None = None) -> Tensor:
    """p(x) (V^N,) float64 of all sequences, from their energies; raises `InputError` for a model without energies."""
    asked = as_model(model)
    if not isinstance(asked, Energy):
        raise InputError("target", None, f"{type(asked).__name__} has no energies: give p(x) of every state")
    states = whole_sequences(asked.vocab_size, sites_in(model, sites), asked.device or "cpu")
    return (-asked.energy(states).double()).softmax(0).cpu()


def sites_in(model: SequenceModel, sites: int | None) -> int:
    """N: that of the model, or `sites`; raises `InputError` where neither says."""
    number = sites if sites is not None else as_model(model).sites
    if number is None:
        raise InputError("sites", None, f"{type(model).__name__} has any number of sites: say how many")
    return number


def check_transitions(chain: Chain[Any], model: SequenceModel, *, sites: int | None = None) -> None:
    """Every state has a distribution of what comes next."""
    as_chain(chain)
    matrix = chain_transitions(chain, model, sites=sites)
    states = int(as_model(model).vocab_size) ** sites_in(model, sites)
    require(
        matrix.shape == (states, states),
        chain,
        f"has transitions of shape {tuple(matrix.shape)}, not {states}^2",
    )
    require(float(matrix.min()) >= 0, chain, f"has a transition of probability {float(matrix.min()):.3g}")
    worst = float((matrix.sum(1) - 1).abs().max())
    require(worst <= 1e-12, chain, f"has transitions from a state that sum to one but for {worst:.3g}")


def stationarity_error(
    chain: Chain[Any], model: SequenceModel, *, sites: int | None = None, target: Tensor | None = None
) -> float:
    """How far one step moves the `target` (V^N,), in total variation; by default the distribution of the model."""
    distribution = law_of(model, sites) if target is None else target.double()
    return float((distribution @ chain_transitions(chain, model, sites=sites) - distribution).abs().sum() / 2)


def check_invariance(
    chain: Chain[Any],
    model: SequenceModel,
    *,
    sites: int | None = None,
    target: Tensor | None = None,
    tolerance: float = 1e-12,
) -> None:
    """One step leaves the target as it is, to `tolerance` in total variation."""
    error = stationarity_error(chain, model, sites=sites, target=target)
    require(error <= tolerance, chain, f"moves its target by {error:.3g} in total variation in one step")


def check_repeatability(
    chain: Chain[Any], model: SequenceModel, *, sites: int | None = None, seed: int = 0
) -> None:
    """The same seed gives the same tokens, another one others; the start is left as it is."""
    start = starts(model, 50, sites, seed)
    given = start.clone()
    first, again = (_run(chain, model, start, seed).tokens for _ in range(2))
    require(torch.equal(start, given), chain, "writes into the tokens that it starts from")
    require(torch.equal(first, again), chain, "gives other tokens when it runs again with the same seed")
    other = _run(chain, model, start, seed + 1).tokens
    require(not torch.equal(first, other), chain, "gives the same tokens with another seed")


def check_independence(
    chain: Chain[Any], model: SequenceModel, *, sites: int | None = None, seed: int = 0
) -> None:
    """A copy does not depend on the others: alone, among some of them, or in another order it is the same."""
    start = starts(model, 10, sites, seed)
    whole = _run(chain, model, start, seed).tokens
    require(len(whole.unique(dim=0)) > 1, chain, "leaves ten copies in one state")
    number = torch.arange(len(start))
    parts = [part for size in (1, 3) for part in number.split(size)]
    for rows in (*parts, torch.randperm(len(start), generator=generator(seed, "order"))):
        alone = _run(chain, model, start[rows], seed, chain_ids=rows).tokens
        told = f"takes copies {rows.tolist()} elsewhere when they run by themselves or in this order"
        require(torch.equal(alone, whole[rows]), chain, told)


def check_stopping(
    chain: Chain[Any], model: SequenceModel, *, sites: int | None = None, seed: int = 0
) -> None:
    """A copy that stops does so in the first state of its path that fulfils the predicate; the others go on alike."""
    start = starts(model, 10, sites, seed)
    last = int(as_model(model).vocab_size) - 1
    half = -(-start.shape[1] // 2)

    def there(tokens: Tensor) -> Tensor:
        return (tokens[..., :half] == last).all(-1)

    paths = torch.cat((start[None], _run(chain, model, start, seed, thin=1).samples))
    stopped = _run(chain, model, start, seed, until=there)
    for copy, steps in enumerate(stopped.steps.tolist()):
        times = there(paths[:, copy]).nonzero()[:, 0].tolist()
        expected = times[0] if times else STEPS
        require(steps == expected, chain, f"stops copy {copy} after {steps} steps, not {expected}")
        require(
            bool(stopped.reached[copy]) == bool(times), chain, f"tells wrongly whether copy {copy} arrived"
        )
        same = torch.equal(stopped.tokens[copy], paths[steps, copy])
        require(same, chain, f"leaves copy {copy} elsewhere when others stop before it")


def check_samples(
    chain: Chain[Any], model: SequenceModel, *, sites: int | None = None, seed: int = 0
) -> None:
    """Samples are states of the path: every `thin` steps, after the burn-in."""
    start = starts(model, 5, sites, seed)
    path = _run(chain, model, start, seed, thin=1)
    require(
        path.samples.shape == (STEPS, *start.shape), chain, f"keeps {len(path.samples)} of {STEPS} states"
    )
    require(torch.equal(path.samples[-1], path.tokens), chain, "ends elsewhere than its last sample")
    thinned = _run(chain, model, start, seed, thin=4, burn_in=3, steps=18)
    require(torch.equal(thinned.samples, path.samples[6:20:4]), chain, "takes samples from another path")
    require(torch.equal(thinned.tokens, path.samples[20]), chain, "ends elsewhere with a burn-in")


def check_trace(chain: Chain[Any], model: SequenceModel, *, sites: int | None = None, seed: int = 0) -> None:
    """The trace replays to the states."""
    start = starts(model, 5, sites, seed)
    run = _run(chain, model, start, seed, thin=1, trace=True)
    assert run.trace is not None
    ordered = torch.equal(run.trace.step, run.trace.step.sort(stable=True).values)
    require(ordered, chain, "has a trace out of order")
    tokens = start.clone()
    for step, states in enumerate(run.samples, 1):
        now = run.trace.step == step
        tokens[run.trace.chain[now], run.trace.site[now]] = run.trace.token[now]
        require(torch.equal(tokens, states), chain, f"has a trace that lacks what changed in step {step}")


def check_frequencies(
    chain: Chain[Any], model: SequenceModel, *, sites: int | None = None, copies: int = 20_000, seed: int = 0
) -> None:
    """Where copies stand after three steps is what the exact transitions say."""
    excess = frequency_excess(chain, chain, model, sites=sites, copies=copies, seed=seed)
    told = f"is {excess:.3g} further in L1 from its exact transitions than chance allows"
    require(excess < 0, chain, told)


def frequency_excess(
    chain: Chain[Any],
    reference: Chain[Any],
    model: SequenceModel,
    *,
    sites: int | None = None,
    copies: int = 20_000,
    seed: int = 0,
) -> float:
    """By how much three steps of `chain` from one state are further in L1 from those of `reference` than chance.

    By chance the distance exceeds the radius of Weissman et al. (2003) with probability at most `ALPHA`; a distribution
    that is further than twice the radius is told apart as surely.
    """
    start = starts(model, 1, sites, seed).expand(copies, -1)
    run = run_chain(chain, model, start=start, steps=3, seed=seed, require_ergodic=False)
    vocab, number = int(as_model(model).vocab_size), start.shape[1]
    places = vocab ** torch.arange(number - 1, -1, -1)
    matrix = torch.linalg.matrix_power(chain_transitions(reference, model, sites=sites), 3)
    expected = matrix[int((start[0].cpu() * places).sum())]
    counts = torch.bincount((run.tokens.cpu() * places).sum(1), minlength=len(expected))
    radius = math.sqrt(2 * (len(expected) * math.log(2) - math.log(ALPHA)) / copies)
    return float((counts / copies - expected).abs().sum()) - radius


def starts(model: SequenceModel, copies: int, sites: int | None = None, seed: int = 0) -> Tensor:
    """Uniformly random tokens (copies, N) for `model`, where it lies."""
    asked = as_model(model)
    shape = (copies, sites_in(model, sites))
    drawn = torch.randint(asked.vocab_size, shape, generator=generator(seed, "starts"))
    return drawn.to(asked.device or "cpu")


def _run(chain: Chain[Any], model: SequenceModel, start: Tensor, seed: int, **settings: Any) -> ChainRun:
    asked = {"steps": STEPS, "require_ergodic": False, **settings}
    return run_chain(chain, model, start=start, seed=seed, **asked)
