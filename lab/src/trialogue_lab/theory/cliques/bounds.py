"""Bounds on two samplers of an Ising model with one clique (thesis, section 4.1).

The model has N spins x_i = ±1 and p(x) ∝ exp(sum_i h_i x_i + J sum x_i x_j). The second sum is over pairs of
spins in the clique, a set C of |C| spins. All other spins are independent. In the states R_1, all spins of
the clique are up (+1).

- k-Gibbs resamples k uniformly chosen spins jointly in each step.
- Independent parallel sampling resamples every spin given the previous values of all others.

The bounds hold under Assumption 4.1.5 (see `CliqueAssumption`). The module `chains` computes exact values for
comparison.
"""

import math
import sys
from typing import Annotated, NamedTuple

import torch
from annotated_types import Ge
from scipy.special import logsumexp

from trialogue.data.ising.model import Ising
from trialogue.errors import InputError
from trialogue.validation import Count, Positive, Probability, validated
from trialogue_lab.theory.cliques.chains import log_binomial, require_most

AtLeastTwo = Annotated[int, Ge(2)]
"""An integer of at least 2."""


class CliqueAssumption(NamedTuple):
    """Parameters of an Ising model with one clique, for which published bounds hold (Assumption 4.1.5 of the thesis).

    A clique is a set of equally coupled spins x_i = ±1. The model is p(x) ∝ exp(sum_i h_i x_i + J sum x_i
    x_j), where the second sum is over pairs of spins in the clique.

    Attributes:
        sites: Number of spins of the model.
        clique: Number of spins in the clique.
        excess: J_0 > 0, the coupling J minus the sum of |h_i| over all spins.
        clique_field: h_G, the sum of h_i in the clique. It is larger than the sum of |h_i| outside.
    """

    sites: int
    clique: int
    excess: float
    clique_field: float


def clique_assumption(model: Ising) -> CliqueAssumption:
    """Check whether the bounds of this module apply to an Ising model, and return its constants.

    The model must have one clique, a set of coupled spins. The conditions are Assumption 4.1.5 (see
    `CliqueAssumption`).

    Args:
        model: Ising model with one clique and otherwise independent spins.

    Raises:
        InputError: If the model has no such clique or violates the assumption.
    """
    members = model.members if isinstance(model, Ising) else None
    if members is None or int(members.sum()) < 2:
        hint = "use one clique of equal couplings, such as Ising.clique"
        raise InputError("model", type(model).__name__, hint)
    inside, outside = model.field[members], model.field[~members]
    first, second = torch.nonzero(members)[:2, 0].tolist()
    clique_field = float(inside.sum())
    others = float(outside.abs().sum())
    if not clique_field > others:
        raise InputError("field", clique_field, f"the clique's fields must sum to more than {others:g}")
    excess = float(model.coupling[first, second]) - float(inside.abs().sum()) - others
    if not excess > 0:
        raise InputError(
            "coupling", excess, "the coupling must exceed the sum of all |fields|: use a larger coupling"
        )
    return CliqueAssumption(model.sites, int(members.sum()), excess, clique_field)


class ModeComparison(NamedTuple):
    """Differences of log-probabilities that show which states of an Ising model with a clique are most likely.

    In states x, all spins of the clique are up. In states y, all of them are down. All other states are called z
    (Proposition 4.3.3).

    Attributes:
        up_over_down: Smallest log p(x) - log p(y). It is positive by the proposition.
        down_over_rest: Smallest log p(y) - log p(z) - 2 J_0. It is at least 0 by the proposition.
        flip_residual: Largest |log p(x) - log p(f(x)) - 2 h_G|, where f flips all spins of the clique. It is
            0 up to rounding.
    """

    up_over_down: float
    down_over_rest: float
    flip_residual: float


def compare_modes(model: Ising) -> ModeComparison:
    """Compare the log-probabilities of the two modes of an Ising model with a clique (Proposition 4.3.3).

    A clique is a set of coupled spins. In one mode, all of its spins are up, and in the other one, all are down. All
    states are enumerated.

    Args:
        model: Ising model that satisfies Assumption 4.1.5 (see `clique_assumption`).

    Raises:
        InputError: If the model violates the assumption.
    """
    _, _, excess, clique_field = clique_assumption(model)
    states = model.states()
    log_weights = -model.energy(states)
    inside = states[:, model.members]
    up, down = inside.all(1), ~inside.any(1)
    rest = log_weights[~(up | down)]
    # Both modes list the spins outside the clique in the same order.
    flips = log_weights[up] - log_weights[down]
    return ModeComparison(
        float(log_weights[up].min() - log_weights[down].max()),
        float(log_weights[down].min() - rest.max()) - 2 * excess if len(rest) else math.inf,
        float((flips - 2 * clique_field).abs().max()),
    )


class HittingBound(NamedTuple):
    """Upper bound on the number of steps until k-Gibbs has all spins of the clique up (Proposition 4.1.4).

    k-Gibbs resamples k random spins jointly in each step. A clique is a set of coupled spins.

    Attributes:
        rate: Lower bound on the probability that one step ends with all spins up, from any state. The thesis calls it 1
            - c_{R1}.
        steps: Number of steps ceil(log delta / log c_{R1}), within which this happens with a probability of at least 1
            - delta.
    """

    rate: float
    steps: int


@validated
def hitting_bound(
    sites: AtLeastTwo,
    clique: AtLeastTwo,
    block_size: Count,
    excess: Positive,
    clique_field: Positive,
    delta: Probability = 0.5,
) -> HittingBound:
    """Return an upper bound on the number of steps until k-Gibbs has turned all coupled spins of an Ising model up.

    The coupled spins are called a clique. k-Gibbs resamples k random spins jointly in each step. By Proposition 4.1.4,
    one step turns all spins of the clique up with at least this probability:

        binom(N - |C|, k - |C|) / binom(N, k) * e^{2(J_0 + h_G)} / (e^{2(J_0 + h_G)} + e^{2 J_0} + 2^{|C|} - 2)

    The model must satisfy Assumption 4.1.5 (see `CliqueAssumption`).

    Args:
        sites: Number N of spins of the model.
        clique: Number |C| of spins in the clique.
        block_size: Number k of spins resampled jointly in each step, from |C| to N.
        excess: J_0, the coupling minus the sum of all absolute fields.
        clique_field: h_G, the sum of the fields in the clique.
        delta: Allowed probability that the returned number of steps is not enough.

    Raises:
        InputError: If the sizes are out of range, or the bound on the probability is below double precision.
    """
    require_most("clique", clique, sites)
    if not clique <= block_size <= sites:
        raise InputError("block_size", block_size, f"use from clique={clique} to sites={sites}")
    covered = float(log_binomial(sites - clique, block_size - clique) - log_binomial(sites, block_size))
    # Logarithms relative to the numerator avoid overflow of 2^{|C|} and underflow of the rate.
    rest = clique * math.log(2) + math.log1p(-(2.0 ** (1 - clique))) - 2 * (excess + clique_field)
    rate = math.exp(covered - float(logsumexp([0.0, -2 * clique_field, rest])))
    if rate < sys.float_info.min:
        hint = "the bound on the rate is below double precision: use a smaller clique"
        raise InputError("clique", clique, hint)
    steps = 1 if rate >= 1 else math.ceil(math.log(delta) / math.log1p(-rate) - 1e-12)
    return HittingBound(rate, max(steps, 1))


class StuckBound(NamedTuple):
    """Lower bound on how long a parallel sampler stays in the less likely mode of an Ising model (Proposition 4.1.5).

    The model has a clique of coupled spins. The sampler resamples every spin given the previous values of all others.
    If the spins ±1 of the clique sum to at most -2 at the start, they do so for `steps` steps, with a probability of at
    least 1 - delta.

    Attributes:
        exponent: Constant c_stuck of the proposition.
        steps: Number of steps floor(delta / 2 e^{c_stuck}).
    """

    exponent: float
    steps: int


@validated
def stuck_bound(clique: AtLeastTwo, excess: Positive, delta: Probability = 0.5) -> StuckBound:
    """Return a lower bound on how long a parallel sampler stays in the less likely mode of a clique.

    The clique is a set C of coupled spins ±1, and its less likely mode is all spins down. The exponent of
    Proposition 4.1.5 is c_stuck = 2 (-1 + tanh(J_0) |C| / 2)^2 / |C|. For moderate parameters, the bound is
    often zero. The model must satisfy Assumption 4.1.5 (see `CliqueAssumption`).

    Args:
        clique: Number |C| of spins in the clique.
        excess: J_0, the coupling minus the sum of all absolute fields.
        delta: Allowed probability that the sum of the clique's spins exceeds -2 earlier.

    Raises:
        InputError: If |C| tanh J_0 <= 2. The thesis omits this condition, without which its statement is
            false.
    """
    margin = math.tanh(excess) * clique / 2 - 1
    if clique == 2:
        raise InputError("clique", clique, "clique * tanh(excess) must exceed 2: use at least 3")
    if not margin > 0:
        hint = f"clique * tanh(excess) must exceed 2: use a larger excess, or more than clique={clique} spins"
        raise InputError("excess", excess, hint)
    exponent = 2 * margin**2 / clique
    # The cap avoids overflow; no chain is run for that many steps.
    steps = math.floor(delta / 2 * math.exp(min(exponent, 600.0)))
    return StuckBound(exponent, steps)


class OneStepBounds(NamedTuple):
    """Bounds that compare one joint step of a sampler with M steps of parallel sampling (Corollary 4.1.1).

    One step of k-Gibbs resamples k random spins of an Ising model jointly. With a probability of at least 1 - delta, it
    turns all coupled spins up, and M parallel steps do not.

    Attributes:
        hitting_rate: Lower bound on the probability that one step of k-Gibbs turns all spins up, at least 1 -
            delta / 2.
        stuck_exponent: Exponent c_stuck of `StuckBound`, at least ln(4 M / delta).
    """

    hitting_rate: float
    stuck_exponent: float


@validated
def one_step_corollary(
    sites: AtLeastTwo,
    clique: AtLeastTwo,
    block_size: Count,
    excess: Positive,
    clique_field: Positive,
    *,
    delta: Probability,
    steps: Count,
) -> OneStepBounds:
    """Return bounds that compare one joint step of a sampler with M independent parallel steps (Corollary 4.1.1).

    The sampled Ising model has a clique C of coupled spins. With high probability, one step of k-Gibbs turns all of
    them up, but M steps of independent parallel sampling do not. The assumptions are:

    - Assumption 4.1.6: |C| >= 8 (1 + ln(4 M / delta)), h_G >= 1/2 ln(2 (4 - delta) / delta) and J_0 >= 1/2 |C| ln 2.
    - Assumption 4.1.7: k >= max(|C|, N - delta (N + 1) / ((4 - delta) |C| + delta)).
    - Assumption 4.1.5 (see `CliqueAssumption`), which is not checked here.

    Args:
        sites: Number N of spins of the model.
        clique: Number |C| of spins in the clique.
        block_size: Number k of spins that k-Gibbs resamples jointly.
        excess: J_0, the coupling minus the sum of all absolute fields.
        clique_field: h_G, the sum of the fields in the clique.
        delta: Allowed probability of failure.
        steps: Number M of steps of independent parallel sampling.

    Raises:
        InputError: If an assumption fails. The error names the first one.
    """
    needed = smallest_parameters(clique, delta=delta, steps=steps)
    least_block = smallest_block_size(sites, clique, delta)
    for field, value, least in (
        ("clique", clique, needed.clique),
        ("clique_field", clique_field, needed.clique_field),
        ("excess", excess, needed.excess),
        ("block_size", block_size, least_block),
    ):
        if value < least:
            raise InputError(field, value, f"use at least {least:g}")
    return OneStepBounds(
        hitting_bound(sites, clique, block_size, excess, clique_field, delta / 2).rate,
        stuck_bound(clique, excess, delta / 2).exponent,
    )


class SmallestParameters(NamedTuple):
    """Smallest parameters of a clique (set of coupled spins) for which `one_step_corollary` holds (Assumption 4.1.6).

    Attributes:
        clique: Number |C| of spins in the clique.
        clique_field: Sum h_G of the fields in the clique.
        excess: J_0, the coupling minus the sum of all absolute fields, for the given clique.
    """

    clique: int
    clique_field: float
    excess: float


@validated
def smallest_parameters(clique: AtLeastTwo, *, delta: Probability, steps: Count) -> SmallestParameters:
    """Return the smallest parameters of a clique to which `one_step_corollary` applies (Assumption 4.1.6).

    A clique is a set of coupled spins of an Ising model.

    Args:
        clique: Number |C| of spins in the clique, which determines the smallest J_0.
        delta: Allowed probability of failure.
        steps: Number M of steps of independent parallel sampling.
    """
    return SmallestParameters(
        math.ceil(8 * (1 + math.log(4 * steps / delta))),
        math.log(2 * (4 - delta) / delta) / 2,
        clique * math.log(2) / 2,
    )


@validated
def smallest_block_size(sites: AtLeastTwo, clique: AtLeastTwo, delta: Probability) -> int:
    """Return the smallest number k of jointly resampled spins to which `one_step_corollary` applies (Assumption 4.1.7).

    It is max(|C|, N - delta (N + 1) / ((4 - delta) |C| + delta)), rounded up.

    Args:
        sites: Number N of spins of the model.
        clique: Number |C| of spins in the clique.
        delta: Allowed probability of failure.
    """
    require_most("clique", clique, sites)
    return max(clique, math.ceil(sites - delta * (sites + 1) / ((4 - delta) * clique + delta) - 1e-9))
