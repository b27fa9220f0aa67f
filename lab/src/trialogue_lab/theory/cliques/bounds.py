"""Bounds on k-Gibbs and independent parallel sampling of a ferromagnetic clique.

The models follow Definition 4.1.12 with unordered pairs: p(x) ∝ exp(sum_i h_i x_i + J sum x_i x_j). The
second sum is over unordered pairs of a clique; the other sites are independent. In R_1 and R_{-1}, the whole
clique is up or down. Assumption 4.1.5 requires h_G = sum of the clique's fields > sum of |h_i| outside it,
and J - ||h||_1 >= J_0 > 0. `chains` computes exact values.
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
    """Largest constants of Assumption 4.1.5: `excess` is J_0 = J - ||h||_1, and `clique_field` is h_G."""

    sites: int
    clique: int
    excess: float
    clique_field: float


def clique_assumption(model: Ising) -> CliqueAssumption:
    """Return J_0 and h_G of a clique model (Assumption 4.1.5).

    Args:
        model: Ising model with one clique of equal couplings.

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
        raise InputError("coupling", excess, "J - ||h||_1 must be positive: use a larger coupling")
    return CliqueAssumption(model.sites, int(members.sum()), excess, clique_field)


class ModeOrdering(NamedTuple):
    """Smallest log-ratios of Proposition 4.3.3 over all states x in R_1, y in R_{-1} and z elsewhere.

    Attributes:
        up_over_down: log p(x) / p(y), which must be positive.
        down_over_rest: log p(y) / p(z) - 2 J_0, which must be non-negative. Equality occurs.
        flip_residual: |log p(x) / p(f(x)) - 2 h_G|, which must be 0. The map f flips the clique.
    """

    up_over_down: float
    down_over_rest: float
    flip_residual: float


def mode_ordering(model: Ising) -> ModeOrdering:
    """Compute Proposition 4.3.3 by enumeration under Assumption 4.1.5.

    `down_over_rest` is infinite if there is no state outside R_1 and R_{-1}.
    """
    _, _, excess, clique_field = clique_assumption(model)
    states = model.states()
    log_weights = -model.energy(states)
    inside = states[:, model.members]
    up, down = inside.all(1), ~inside.any(1)
    rest = log_weights[~(up | down)]
    # States with the same spins outside the clique stand in the same order in both modes.
    flips = log_weights[up] - log_weights[down]
    return ModeOrdering(
        float(log_weights[up].min() - log_weights[down].max()),
        float(log_weights[down].min() - rest.max()) - 2 * excess if len(rest) else math.inf,
        float((flips - 2 * clique_field).abs().max()),
    )


class HittingBound(NamedTuple):
    """Proposition 4.1.4: each step enters R_1 with probability at least `rate` = 1 - c_{R1}, from any state.

    k-Gibbs visits R_1 within `steps` = ceil(log delta / log c_{R1}) steps with probability at least 1 -
    delta.
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
    """Compute Proposition 4.1.4 for k-Gibbs under Assumption 4.1.5.

    1 - c_{R1} = binom(N - |C|, k - |C|) / binom(N, k) e^{2(J_0 + h_G)} / (e^{2(J_0 + h_G)} + e^{2 J_0} +
    2^{|C|} - 2).

    Args:
        sites: Number of sites N.
        clique: Size |C| of the clique.
        block_size: Block size k, from |C| to N.
        excess: J_0.
        clique_field: h_G.
        delta: Allowed probability of failure.

    Raises:
        InputError: If the assumptions fail.
    """
    require_most("clique", clique, sites)
    if not clique <= block_size <= sites:
        raise InputError("block_size", block_size, f"use from clique={clique} to sites={sites}")
    covered = float(log_binomial(sites - clique, block_size - clique) - log_binomial(sites, block_size))
    # In logarithms, relative to the numerator: neither 2^{|C|} nor a small rate need fit into a float.
    rest = clique * math.log(2) + math.log1p(-(2.0 ** (1 - clique))) - 2 * (excess + clique_field)
    rate = math.exp(covered - float(logsumexp([0.0, -2 * clique_field, rest])))
    if rate < sys.float_info.min:
        hint = "its bound on the rate is below double precision: use a smaller one"
        raise InputError("clique", clique, hint)
    steps = 1 if rate >= 1 else math.ceil(math.log(delta) / math.log1p(-rate) - 1e-12)
    return HittingBound(rate, max(steps, 1))


class StuckBound(NamedTuple):
    """Proposition 4.1.5: started with sum_C x_i <= -2, independent parallel sampling stays there for `steps` steps.

    This holds with probability at least 1 - delta. `exponent` is c_stuck, and `steps` = floor(delta / 2
    e^{c_stuck}).
    """

    exponent: float
    steps: int


@validated
def stuck_bound(clique: AtLeastTwo, excess: Positive, delta: Probability = 0.5) -> StuckBound:
    """Compute Proposition 4.1.5 for independent parallel sampling under Assumption 4.1.5.

    c_stuck = 2 (-1 + tanh(J_0) |C| / 2)^2 / |C|. The proposition also requires |C| tanh J_0 > 2, which is
    missing in the source. Without it, the statement fails (|C| = 2, J_0 = 1e-4, delta = .74). For most
    moderate parameters `steps` is zero, so the bound is not informative.

    Args:
        clique: Size |C| of the clique.
        excess: J_0.
        delta: Allowed probability of failure.

    Raises:
        InputError: If the assumptions fail.
    """
    margin = math.tanh(excess) * clique / 2 - 1
    if clique == 2:
        raise InputError("clique", clique, "clique * tanh(excess) must exceed 2: use at least 3")
    if not margin > 0:
        hint = f"clique * tanh(excess) must exceed 2: use a larger one for clique={clique}"
        raise InputError("excess", excess, hint)
    exponent = 2 * margin**2 / clique
    # Beyond 2^53 a float is a whole number, and no chain is run for longer.
    steps = math.floor(delta / 2 * math.exp(min(exponent, 600.0)))
    return StuckBound(exponent, steps)


class OneStep(NamedTuple):
    """Rates of Propositions 4.1.4 and 4.1.5 under the assumptions of Corollary 4.1.1.

    Attributes:
        hitting_rate: At least 1 - delta / 2: k-Gibbs is in R_1 after one step.
        stuck_exponent: At least ln(4 M / delta): independent parallel sampling avoids R_1 for M steps. Both
            hold together with probability 1 - delta.
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
) -> OneStep:
    """Compute Corollary 4.1.1: one step of k-Gibbs against M steps of independent parallel sampling.

    Both start at sum_C x_i <= -2. Assumption 4.1.6 requires |C| >= 8 (1 + ln(4 M / delta)), h_G >= 1/2 ln(2
    (4 - delta) / delta) and J_0 >= 1/2 |C| ln 2. Assumption 4.1.7 requires k >= max(|C|, N - delta (N + 1) /
    ((4 - delta) |C| + delta)). Assumption 4.1.5 must hold as well.

    Args:
        sites: Number of sites N.
        clique: Size |C| of the clique.
        block_size: Block size k.
        excess: J_0.
        clique_field: h_G.
        delta: Allowed probability of failure.
        steps: Number M of parallel steps.

    Raises:
        InputError: If an assumption fails; the error names the first one.
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
    return OneStep(
        hitting_bound(sites, clique, block_size, excess, clique_field, delta / 2).rate,
        stuck_bound(clique, excess, delta / 2).exponent,
    )


class LeastParameters(NamedTuple):
    """Smallest parameters of Assumption 4.1.6; `excess` is J_0 for the given clique."""

    clique: int
    clique_field: float
    excess: float


@validated
def smallest_parameters(clique: AtLeastTwo, *, delta: Probability, steps: Count) -> LeastParameters:
    """Return the smallest |C|, h_G and J_0 of Assumption 4.1.6 for M = `steps` and |C| = `clique`."""
    return LeastParameters(
        math.ceil(8 * (1 + math.log(4 * steps / delta))),
        math.log(2 * (4 - delta) / delta) / 2,
        clique * math.log(2) / 2,
    )


@validated
def smallest_block_size(sites: AtLeastTwo, clique: AtLeastTwo, delta: Probability) -> int:
    """Return the smallest k of Assumption 4.1.7: max(|C|, N - delta (N + 1) / ((4 - delta) |C| + delta))."""
    require_most("clique", clique, sites)
    return max(clique, math.ceil(sites - delta * (sites + 1) / ((4 - delta) * clique + delta) - 1e-9))
