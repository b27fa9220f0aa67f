"""Reference implementations of all samplers in rational arithmetic, without tensors or the engine."""

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any

from trialogue.data import Table
from trialogue.randomness import numpy_generator
from trialogue.samplers import SAMPLERS
from trialogue.testing.trees import RandomTree

from . import reference_distributions
from .power_references import PowerReference

Prefix = tuple[int, ...]
Distribution = dict[Prefix, Fraction]
Grade = Callable[[Prefix], Fraction]
END = "end"
FAIL = "fail"
LARGEST_VALUE = 1e12


class RationalTree:
    """A prefix tree with a value for each prefix, computed with the exact rational values of floats."""

    vocab: int
    horizon: int
    eos: int | None

    def conditional(self, prefix: Prefix) -> tuple[float, ...]:
        raise NotImplementedError

    def value(self, prefix: Prefix) -> float:
        raise NotImplementedError

    def complete(self, prefix: Prefix) -> bool:
        return len(prefix) >= self.horizon or (self.eos is not None and prefix[-1:] == (self.eos,))

    def children(self, prefix: Prefix) -> list[tuple[Prefix, Fraction]]:
        """Return the children of positive probability, from the floats that `conditional` returns."""
        weights = [Fraction(weight) for weight in self.conditional(prefix)]
        return [((*prefix, token), weight / sum(weights)) for token, weight in enumerate(weights) if weight]

    def distribution(self, prefix: Prefix = (), mass: Fraction = Fraction(1)) -> Distribution:
        if self.complete(prefix):
            return {prefix: mass}
        found: Distribution = {}
        for child, p in self.children(prefix):
            found |= self.distribution(child, mass * p)
        return found

    def exact_value(self, prefix: Prefix) -> Fraction:
        return Fraction(self.value(prefix))

    def verdict(self, prefix: Prefix) -> Fraction:
        return Fraction(self.value(prefix) > 0)

    def table(self) -> Table:
        return Table(self.conditional, self.vocab, eos=self.eos, max_length=self.horizon)


@dataclass(frozen=True)
class ExtremeTree(RationalTree):
    """A random tree with probabilities down to 1e-18 and values that are 0 or between 1e-12 and 1e12."""

    seed: int
    vocab: int = 2
    horizon: int = 2
    eos: int | None = None
    allowed: float = 0.7

    @cache  # noqa: B019 (trees are small)
    def conditional(self, prefix: Prefix) -> tuple[float, ...]:
        """Return the weights of the next tokens as exact floats. The largest weight is 1.0."""
        generator = numpy_generator(self.seed, "conditional", prefix)
        weights = 10.0 ** -generator.uniform(0, 18, self.vocab)
        weights[generator.integers(self.vocab)] = 1.0
        return tuple(weights.tolist())

    @cache  # noqa: B019
    def value(self, prefix: Prefix) -> float:
        generator = numpy_generator(self.seed, "value", prefix)
        exponent, allowed = generator.uniform(-12, 12), generator.random() < self.allowed
        return float(10.0**exponent) if allowed else 0.0


class ValuedTree(RationalTree):
    """A `RandomTree` with the values that a function `rule` returns."""

    def __init__(self, tree: RandomTree, rule: Callable[[Prefix], float]) -> None:
        self.vocab, self.horizon, self.eos = tree.vocab, tree.horizon, tree.eos
        self._tree, self._rule = tree, rule

    def conditional(self, prefix: Prefix) -> tuple[float, ...]:
        return self._tree.conditional(prefix)

    def value(self, prefix: Prefix) -> float:
        return float(self._rule(prefix))


@dataclass
class Expected:
    """The exact result of a sampler: output distribution, failures, expected calls and expected weights."""

    distribution: Distribution
    calls: Fraction | float
    failed: Fraction = Fraction(0)
    never: Fraction = Fraction(0)
    weights: Distribution | None = field(default=None)


def length(tree: RationalTree) -> Fraction:
    return sum((p * len(x) for x, p in tree.distribution().items()), Fraction(0))


def rejection(tree: RationalTree, acceptance: Grade) -> Expected:
    kept = {x: p * acceptance(x) for x, p in tree.distribution().items()}
    total = sum(kept.values(), Fraction(0))
    if not total:
        return Expected({}, math.inf, never=Fraction(1))
    return Expected({x: p / total for x, p in kept.items()}, length(tree) / total)


def adaptive_rejection(sampler: Any, tree: RationalTree) -> Expected:
    """Follow all sets of prefixes that attempts can have rejected. A set determines the next attempt."""
    found = Expected(defaultdict(Fraction), Fraction(0))

    def open_mass(prefix: Prefix, rejected: frozenset[Prefix]) -> Fraction:
        if prefix in rejected:
            return Fraction(0)
        if tree.complete(prefix) or not any(one[: len(prefix)] == prefix for one in rejected):
            return Fraction(1)
        return sum((p * open_mass(child, rejected) for child, p in tree.children(prefix)), Fraction(0))

    def attempt(prefix: Prefix, mass: Fraction, rejected: frozenset[Prefix]) -> None:
        if prefix and not tree.value(prefix):
            following[rejected | {prefix}] += mass
        elif tree.complete(prefix):
            found.distribution[prefix] += mass
        else:
            found.calls += mass
            total = open_mass(prefix, rejected)
            for child, p in tree.children(prefix):
                if left := open_mass(child, rejected):
                    attempt(child, mass * p * left / total, rejected)

    states, attempts = {frozenset[Prefix](): Fraction(1)}, 0
    while states:
        following = defaultdict(Fraction)
        for rejected, mass in states.items():
            if attempts == sampler.max_attempts or not open_mass((), rejected):
                found.failed += mass
            else:
                attempt((), mass, rejected)
        states, attempts = following, attempts + 1
    return found


def tokenwise(sampler: Any, tree: RationalTree) -> Expected:
    found, limit = Expected({}, Fraction(0)), sampler.max_rejections

    def grow(prefix: Prefix, mass: Fraction) -> None:
        if tree.complete(prefix):
            found.distribution[prefix] = mass
            return
        kept = [(child, p) for child, p in tree.children(prefix) if tree.value(child) > 0]
        accepted = sum((p for _, p in kept), Fraction(0))
        if limit is None:
            found.calls += mass / accepted if kept else math.inf
            if not kept:
                found.never += mass
        else:
            missed = (1 - accepted) ** limit
            found.calls += mass * ((1 - missed) / accepted if kept else limit)
            found.failed += mass * missed
            mass *= 1 - missed
        for child, p in kept:
            grow(child, mass * p / accepted)

    grow((), Fraction(1))
    return found


def masked(tree: RationalTree, grade: Grade, final_grade: Grade) -> Expected:
    """Draw a child in proportion to p times its grade. The weight is p of the output times its final grade."""
    found = Expected({}, Fraction(0), weights={})

    def grow(prefix: Prefix, mass: Fraction, own: Fraction) -> None:
        if tree.complete(prefix):
            found.distribution[prefix], found.weights[prefix] = mass, own * final_grade(prefix)
            return
        found.calls += mass
        weighed = [(child, p, p * grade(child)) for child, p in tree.children(prefix)]
        total = sum((weight for _, _, weight in weighed), Fraction(0))
        if not total:
            found.failed += mass
        for child, p, weight in weighed:
            if weight:
                grow(child, mass * weight / total, own * p)

    grow((), Fraction(1), Fraction(1))
    return found


def best_of_n(sampler: Any, tree: RationalTree) -> Expected:
    """Return the expected result. The best of n has value v with probability F(v)^n - F(v-)^n."""
    masses: dict[float, Fraction] = defaultdict(Fraction)
    for x, p in tree.distribution().items():
        masses[tree.value(x)] += p
    below, greatest = Fraction(0), {}
    for value, mass in sorted(masses.items()):
        greatest[value] = ((below + mass) ** sampler.candidates - below**sampler.candidates) / mass
        below += mass
    distribution = {x: p * greatest[tree.value(x)] for x, p in tree.distribution().items()}
    return Expected(distribution, sampler.candidates * length(tree))


def blocks(tree: RationalTree, start: Prefix, ends: Callable[[Prefix], bool]) -> Distribution:
    """Return the distribution of the prefix at which a block after `start` ends."""
    found: Distribution = {}
    growing = [(start, Fraction(1))]
    while growing:
        prefix, mass = growing.pop(0)
        if tree.complete(prefix) or ends(prefix[len(start) :]):
            found[prefix] = mass
        else:
            growing += [(child, mass * p) for child, p in tree.children(prefix)]
    return found


def candidates_of(
    tree: RationalTree, prefix: Prefix, ends: Callable[[Prefix], bool], number: int
) -> tuple[list[tuple[Fraction, list[Prefix]]], Fraction]:
    """Return all tuples of `number` independent blocks with their probabilities, and the expected number of tokens."""
    after = blocks(tree, prefix, ends)
    tuples = [
        (math.prod((after[end] for end in chosen), start=Fraction(1)), list(chosen))
        for chosen in itertools.product(after, repeat=number)
    ]
    calls = sum((p * (len(end) - len(prefix)) for end, p in after.items()), Fraction(0))
    return tuples, number * calls


def block_best_of_n(sampler: Any, tree: RationalTree) -> Expected:
    found = Expected(defaultdict(Fraction), Fraction(0))

    def ends(block: Prefix) -> bool:
        if sampler.block_tokens is not None:
            return len(block) == sampler.block_tokens
        return len(block) >= sampler.min_tokens and block[-1] in sampler.delimiters

    def grow(prefix: Prefix, mass: Fraction) -> None:
        if tree.complete(prefix):
            found.distribution[prefix] += mass
            return
        tuples, calls = candidates_of(tree, prefix, ends, sampler.candidates)
        found.calls += mass * calls
        best: Distribution = defaultdict(Fraction)
        for p, chosen in tuples:
            best[max(chosen, key=tree.value)] += p
        for end, p in best.items():
            grow(end, mass * p)

    grow((), Fraction(1))
    return found


def backtracking(sampler: Any, tree: RationalTree) -> Expected:
    def rule(prefix: Prefix) -> bool:
        return tree.value(prefix) > 0

    if sampler.redo == "accumulated":
        once = sampler.once_per_prefix
        distribution, calls = reference_distributions.released_backtracking(
            tree, rule, sampler.quota, sampler.stride, once_per_prefix=once
        )
    else:
        distribution, calls = reference_distributions.backtracking(
            tree, rule, sampler.quota, sampler.stride, argmax_redo=sampler.argmax_redo, redo=sampler.redo
        )
    return Expected(distribution, calls)


State = tuple
Move = tuple[Fraction, str | State, Prefix | None]


def chain(start: State, moves: Callable[[State], tuple[list[Move], Fraction]]) -> Expected:
    """Solve an absorbing chain by Gaussian elimination over the rationals.

    `moves` returns the moves of a state (probability, next state or END or FAIL, output) and its expected
    calls. Either every state can reach an end, or no state can.
    """
    states, rows, calls, outputs = [start], {}, {}, {}
    for state in states:
        row: dict[State, Fraction] = defaultdict(Fraction)
        ends: dict[Prefix | None, Fraction] = defaultdict(Fraction)
        options, calls[state] = moves(state)
        for p, target, output in options:
            if target == END:
                ends[output] += p
            elif target == FAIL:
                ends[None] += p
            elif p:
                row[target] += p
                if target not in rows and target not in states:
                    states.append(target)
        rows[state], outputs[state] = row, ends
    if not any(outputs.values()):
        return Expected({}, math.inf, never=Fraction(1))
    # The value of a state is its own yield plus the mean value of its successors. The start is solved last.
    for state in reversed(states):
        stay = rows[state].pop(state, Fraction(0))
        yields = outputs[state]
        for numbers in (rows[state], yields):
            for key in numbers:
                numbers[key] /= 1 - stay
        calls[state] /= 1 - stay
        for other in states:
            if other != state and state in rows[other]:
                p = rows[other].pop(state)
                for target, q in rows[state].items():
                    rows[other][target] += p * q
                for output, q in yields.items():
                    outputs[other][output] += p * q
                calls[other] += p * calls[state]
    distribution = dict(outputs[start])
    return Expected(distribution, calls[start], failed=distribution.pop(None, Fraction(0)))


def neighbours(
    tree: RationalTree, prefix: Prefix, momentum: float, up: bool
) -> list[tuple[Fraction, Prefix, bool]]:
    """Return the probability of each move to the parent or a child, and whether the move goes up."""
    parent = tree.exact_value(prefix) if prefix else Fraction(0)
    below = [] if tree.complete(prefix) else tree.children(prefix)
    children = [(child, p * tree.exact_value(child)) for child, p in below]
    forward = sum((weight for _, weight in children), Fraction(0))
    turn = Fraction(momentum) * min(parent, forward)
    if turn and up:
        children = [(child, weight * (1 - turn / forward)) for child, weight in children]
    elif turn:
        parent -= turn
    weighed = [(parent, prefix[:-1], True), *((weight, child, False) for child, weight in children)]
    total = sum((weight for weight, _, _ in weighed), Fraction(0))
    return [(weight / total, target, heading) for weight, target, heading in weighed if weight]


def value_guided(sampler: Any, tree: RationalTree) -> Expected:
    wait = Fraction(1, 2) if sampler.lazy else Fraction(0)

    def moves(state: State) -> tuple[list[Move], Fraction]:
        prefix, up = state
        if tree.complete(prefix):
            return [(Fraction(1), END, prefix)], Fraction(0)
        options = neighbours(tree, prefix, sampler.momentum, up)
        if not options:
            return [(wait, state, None), (1 - wait, FAIL, None)], 1 - wait
        after = [
            (p * (1 - wait), (target, heading and sampler.momentum > 0), None)
            for p, target, heading in options
        ]
        return [(wait, state, None), *after], 1 - wait

    return chain(((), False), moves)


def stationary_value_guided(sampler: Any, tree: RationalTree) -> Expected:
    """Propagate the distribution of one try step by step. Tries are independent."""
    wait = Fraction(1, 2) if sampler.lazy else Fraction(0)
    steps = sampler.steps or 4 * tree.horizon**2
    distributions, stuck, calls = [{(): Fraction(1)}], [Fraction(0)], [Fraction(0)]
    for _ in range(steps):
        after: Distribution = defaultdict(Fraction)
        unable = called = Fraction(0)
        for prefix, mass in distributions[-1].items():
            options = neighbours(tree, prefix, 0.0, False)
            if not tree.complete(prefix):
                called += mass * (1 - wait)
            after[prefix] += mass * wait
            if not options:
                unable += mass * (1 - wait)
            for p, target, _ in options:
                after[target] += mass * (1 - wait) * p
        distributions.append(after)
        stuck.append(stuck[-1] + unable)
        calls.append(calls[-1] + called)
    taken = [steps] if sampler.node == "last" else range(1, steps + 1)
    share = Fraction(1, len(taken))
    distribution: Distribution = defaultdict(Fraction)
    failed = called = again = Fraction(0)
    for number in taken:
        failed, called = failed + share * stuck[number], called + share * calls[number]
        for prefix, mass in distributions[number].items():
            if tree.complete(prefix):
                distribution[prefix] += share * mass
            else:
                again += share * mass
    if sampler.tries is None:
        if again == 1:
            return Expected({}, math.inf, never=Fraction(1))
        begun = 1 / (1 - again)
        return Expected(
            {x: p * begun for x, p in distribution.items()}, called * begun, failed=failed * begun
        )
    begun = sum(again**number for number in range(sampler.tries))
    failed = failed * begun + again**sampler.tries
    return Expected({x: p * begun for x, p in distribution.items()}, called * begun, failed=failed)


def block_value_guided(sampler: Any, tree: RationalTree) -> Expected:
    def moves(state: State) -> tuple[list[Move], Fraction]:
        prefix = state
        if tree.complete(prefix):
            return [(Fraction(1), END, prefix)], Fraction(0)
        tuples, calls = candidates_of(
            tree, prefix, lambda block: len(block) == sampler.block_tokens, sampler.candidates
        )
        options: list[Move] = []
        for p, chosen in tuples:
            weighed = [(tree.exact_value(end), end) for end in chosen]
            if prefix:
                weighed.append(
                    (sampler.candidates * tree.exact_value(prefix), prefix[: -sampler.block_tokens])
                )
            total = sum((weight for weight, _ in weighed), Fraction(0))
            if not total:
                options.append((p, prefix, None))
            options += [(p * weight / total, target, None) for weight, target in weighed if weight]
        return options, calls

    return chain((), moves)


def accepted_draws(tree: RationalTree, prefix: Prefix) -> Iterable[tuple[Fraction, Prefix | None, Fraction]]:
    """Yield the outcomes of weighted rejection after `prefix`: probability, first accepted child, estimated mass Z'."""
    children = tree.children(prefix)

    def draw(
        left: list[tuple[Prefix, Fraction]], p: Fraction, first: Prefix | None, inverse: Fraction
    ) -> Iterable[tuple[Fraction, Prefix | None, Fraction]]:
        mass = sum((q for _, q in left), Fraction(0))
        if not left:
            yield p, None, Fraction(0)
            return
        for child, q in left:
            if tree.value(child) > 0:
                if first is not None:
                    yield p * q / mass, first, 1 / inverse
                else:
                    yield from draw(left, p * q / mass, child, inverse)
            else:
                rest = [other for other in left if other[0] != child]
                remaining = sum((q for _, q in rest), Fraction(0))
                more = inverse + 1 / remaining if rest else inverse
                yield from draw(rest, p * q / mass, first, more)

    yield from draw(children, Fraction(1), None, Fraction(1))


def sequential_monte_carlo(sampler: Any, tree: RationalTree) -> Expected:
    """Enumerate all resampling steps and draws. A particle is a pair (prefix y, p(y) / q(y))."""
    found = Expected(defaultdict(Fraction), Fraction(0), weights=defaultdict(Fraction))
    n, mask = sampler.particles, sampler.proposal == "mask"

    def outlook(prefix: Prefix) -> Fraction:
        if mask and not tree.complete(prefix):
            return sum((p * tree.exact_value(child) for child, p in tree.children(prefix)), Fraction(0))
        return tree.exact_value(prefix) if prefix else Fraction(1)

    def ancestors(weights: list[Fraction]) -> Iterable[tuple[Fraction, list[int]]]:
        total = sum(weights)
        if sampler.resampling == "multinomial":
            for chosen in itertools.product(range(n), repeat=n):
                yield math.prod((weights[one] / total for one in chosen), start=Fraction(1)), list(chosen)
            return
        bounds = [n * sum(weights[: one + 1]) / total for one in range(n)]
        cuts = sorted({Fraction(0), Fraction(1), *(bound % 1 for bound in bounds)})
        for low, high in itertools.pairwise(cuts):
            u = (low + high) / 2
            yield high - low, [next(i for i in range(n) if j + u < bounds[i]) for j in range(n)]

    def draws(prefix: Prefix) -> Iterable[tuple[Fraction, Prefix, Fraction]]:
        """Yield the probability of a draw, the child, and the factor that multiplies p / q."""
        if sampler.proposal == "oracle":
            yield from ((p, child, Fraction(1)) for child, p in tree.children(prefix))
        elif mask:
            total = outlook(prefix)
            for child, p in tree.children(prefix):
                if value := tree.exact_value(child):
                    yield p * value / total, child, total / value
        else:
            yield from ((p, child or prefix, mass) for p, child, mass in accepted_draws(tree, prefix))

    def step(particles: tuple[tuple[Prefix, Fraction], ...], p: Fraction) -> None:
        weights = [ratio * outlook(prefix) if ratio else Fraction(0) for prefix, ratio in particles]
        if mask:
            active = sum(bool(ratio) and not tree.complete(prefix) for prefix, ratio in particles)
            found.calls += p * active
        total = sum(weights, Fraction(0))
        if not total:  # The first particle remains. If it is complete, it is an output of weight zero.
            if tree.complete(particles[0][0]):
                found.distribution[particles[0][0]] += p
            else:
                found.failed += p
            return
        if all(
            not weight or tree.complete(prefix)
            for weight, (prefix, _) in zip(weights, particles, strict=True)
        ):
            for weight, (prefix, _) in zip(weights, particles, strict=True):
                found.distribution[prefix] += p * weight / total
                found.weights[prefix] += p * weight / n
            return
        alive = tuple(
            (prefix, ratio if weight else Fraction(0))
            for weight, (prefix, ratio) in zip(weights, particles, strict=True)
        )
        size = total**2 / sum(weight**2 for weight in weights)
        options = [(Fraction(1), alive)]
        if size < Fraction(sampler.ess_threshold) * n * (1 - Fraction(1, 10**9)):
            options = [
                (q, tuple((alive[i][0], total / n / outlook(alive[i][0])) for i in chosen))
                for q, chosen in ancestors(weights)
                if q
            ]
        for q, chosen in options:
            extend(chosen, p * q)

    def extend(particles: tuple[tuple[Prefix, Fraction], ...], p: Fraction) -> None:
        each = []
        for prefix, ratio in particles:
            if ratio and not tree.complete(prefix):
                found.calls += 0 if mask else p
                each.append([(q, (child, ratio * factor)) for q, child, factor in draws(prefix)])
            else:
                each.append([(Fraction(1), (prefix, ratio))])
        merged: dict[tuple[tuple[Prefix, Fraction], ...], Fraction] = defaultdict(Fraction)
        for drawn in itertools.product(*each):
            merged[tuple(particle for _, particle in drawn)] += p * math.prod(
                (q for q, _ in drawn), start=Fraction(1)
            )
        for following, q in merged.items():
            step(following, q)

    step((((), Fraction(1)),) * n, Fraction(1))
    return found


def power_metropolis(sampler: Any, tree: RationalTree) -> Expected:
    found, calls = PowerReference(sampler, tree, tree.exact_value).output()
    failed = sum((p for x, p in found.items() if not tree.complete(x)), Fraction(0))
    return Expected({x: p for x, p in found.items() if tree.complete(x)}, calls, failed)


REFERENCES: dict[str, Callable[[Any, RationalTree], Expected]] = {
    "ancestral": lambda sampler, tree: Expected(tree.distribution(), length(tree)),
    "exact": adaptive_rejection,
    "rejection": lambda sampler, tree: rejection(tree, tree.verdict),
    "outcome-rejection": lambda sampler, tree: rejection(
        tree, lambda x: tree.exact_value(x) / Fraction(sampler.most)
    ),
    "tokenwise-rejection": tokenwise,
    "masked-decoding": lambda sampler, tree: masked(tree, tree.verdict, tree.verdict),
    "weighted-rejection": lambda sampler, tree: masked(tree, tree.verdict, tree.exact_value),
    "action-level": lambda sampler, tree: masked(tree, tree.exact_value, tree.exact_value),
    "best-of-n": best_of_n,
    "block-best-of-n": block_best_of_n,
    "backtracking": backtracking,
    "value-guided": value_guided,
    "stationary-value-guided": stationary_value_guided,
    "block-value-guided": block_value_guided,
    "power-metropolis": power_metropolis,
    "smc": sequential_monte_carlo,
}


def expected(sampler: object, tree: RationalTree) -> Expected:
    """Return the expected result of the sampler. A subclass must match its base class."""
    kinds = {SAMPLERS[name]: reference for name, reference in REFERENCES.items()}
    reference = next(kinds[kind] for kind in type(sampler).__mro__ if kind in kinds)
    return reference(sampler, tree)
