"""Reference output distributions and costs, computed by recursion in plain Python without tensors."""

import math
from collections import defaultdict
from collections.abc import Callable

from trialogue.testing.trees import ExactDistribution, Prefix, RandomTree

Rule = Callable[[Prefix], float | bool]


def normalised(distribution: ExactDistribution) -> ExactDistribution:
    total = math.fsum(distribution.values())
    return {x: weight / total for x, weight in distribution.items() if weight > 0}


def restricted(tree: RandomTree, rule: Rule, prompt: Prefix = ()) -> ExactDistribution:
    """Return p(x) V(x), normalised over the completions of `prompt`."""
    return normalised({x: p * rule(x) for x, p in tree.distribution(prompt).items()})


def rejection_queries(tree: RandomTree, rule: Rule, prompt: Prefix = ()) -> float:
    """Return the expected length of a completion divided by its acceptance probability (Wald's identity)."""
    distribution = tree.distribution(prompt)
    length = math.fsum(p * (len(x) - len(prompt)) for x, p in distribution.items())
    return length / math.fsum(p for x, p in distribution.items() if rule(x))


def tokenwise(
    tree: RandomTree, rule: Rule, prefix: Prefix = (), mass: float = 1.0
) -> tuple[ExactDistribution, float, float]:
    """Return the distribution q, the expected queries C, and the mass of prefixes without an accepted child.

    q(s) = prod p(s_t|s_<t) 1[V(s_<=t)] / a(s_<t) with a(s) = P_{t ~ O(s)}[V(s o t)], and C is the sum of q(s)
    / a(s) over the reachable prefixes.
    """
    if tree.complete(prefix):
        return {prefix: mass}, 0.0, 0.0
    accepted = [(child, p) for child, p in tree.children(prefix) if rule(child)]
    if not accepted:
        return {}, math.inf, mass
    total = math.fsum(p for _, p in accepted)
    distribution, queries, stuck = {}, mass / total, 0.0
    for child, p in accepted:
        below, more, lost = tokenwise(tree, rule, child, mass * p / total)
        distribution |= below
        queries, stuck = queries + more, stuck + lost
    return distribution, queries, stuck


def truncation(probabilities, temperature=1.0, top_p=1.0, top_k=None, min_p=0.0) -> list[float]:
    """Apply temperature, top-k, top-p and min-p to a list of weights, in this order, and normalise the rest."""
    order = sorted(range(len(probabilities)), key=lambda token: (-probabilities[token], token))
    if temperature == 0:
        return [float(token == order[0]) for token in range(len(probabilities))]
    # Dividing by the maximum prevents underflow at low temperature.
    greatest = max(probabilities)
    sharpened = [(p / greatest) ** (1 / temperature) for p in probabilities]
    kept = order[:top_k]
    total, reached, chosen = math.fsum(sharpened[token] for token in kept), 0.0, []
    for token in kept:
        if reached >= top_p:
            break
        chosen.append(token)
        reached += sharpened[token] / total
    chosen = [token for token in chosen if sharpened[token] >= min_p]
    total = math.fsum(sharpened[token] for token in chosen)
    return [sharpened[token] / total if token in chosen else 0.0 for token in range(len(probabilities))]


def masked_first(
    tree: RandomTree, value: Rule, **cut: float
) -> tuple[ExactDistribution, ExactDistribution, float]:
    """Return the outputs of sampling from p_T V after top-k, top-p and min-p.

    Returns:
        The distribution of outputs x, the weights p_T(x) V(x), and the probability of failure. At temperature
    0,
        p_T is p and the token with the largest p V is chosen.
    """
    temperature = cut.pop("temperature", 1.0)
    distribution, weights, stuck = {}, {}, 0.0
    below: list[tuple[Prefix, float, float]] = [((), 1.0, 1.0)]
    while below:
        prefix, drawn, own = below.pop()
        if tree.complete(prefix):
            distribution[prefix], weights[prefix] = drawn, own * value(prefix)
            continue
        tempered = truncation(tree.conditional(prefix), temperature or 1.0)
        mass = [p * value((*prefix, token)) for token, p in enumerate(tempered)]
        if not any(mass):
            stuck += drawn
            continue
        for token, q in enumerate(truncation(mass, min(temperature, 1.0) and 1.0, **cut)):
            if q:
                below.append(((*prefix, token), drawn * q, own * tempered[token]))
    return distribution, weights, stuck


def backtracking(
    tree: RandomTree,
    rule: Rule,
    quota: int,
    stride: int,
    *,
    argmax_redo: bool = True,
    redo: str = "stride",
    erase_prompt: bool = False,
    prompt: Prefix = (),
) -> tuple[ExactDistribution, float]:
    """Return the distribution of x o s and the expected calls to O of Algorithm 1 of the thesis.

    A redo ends early at the end of the sequence or at the horizon. With `erase_prompt`, erasing counts from
    the end of x o s. Without it, erasing stops at x.
    """
    distribution: dict[Prefix, float] = defaultdict(int)
    queries = 0

    def loop(s: Prefix, left: int, mass: float, calls: int) -> None:
        nonlocal queries
        if tree.complete(s):
            distribution[s] += mass
            queries += mass * calls
            return
        for drawn, probability in tree.children(s):
            if left > 0 and not rule(drawn):
                kept = max(len(drawn) - stride, 0 if erase_prompt else len(prompt))
                again, redone = drawn[:kept], 0
                required = len(drawn) - kept if redo == "erased" else stride
                while argmax_redo and redone < required and not tree.complete(again):
                    conditional = tree.conditional(again)
                    again, redone = (*again, conditional.index(max(conditional))), redone + 1
                loop(again, left - 1, mass * probability, calls + 1 + redone)
            else:
                loop(drawn, left, mass * probability, calls + 1)

    loop(prompt, quota, 1, 0)
    return dict(distribution), queries


def released_backtracking(
    tree: RandomTree,
    rule: Rule,
    quota: int,
    stride: int,
    *,
    erase_prompt: bool = False,
    once_per_prefix: bool = False,
    prompt: Prefix = (),
) -> tuple[ExactDistribution, float]:
    """Return the distribution of x o s and the expected calls to O of the code released with the thesis.

    Before each token, the verifier judges the current prefix if part of it may be erased. The next token is
    greedy while its position in the completion is below the number of tokens erased so far.
    """
    distribution: dict[Prefix, float] = defaultdict(int)
    queries = 0

    def loop(s: Prefix, left: int, erased: int, seen: frozenset[Prefix], mass: float, calls: int) -> None:
        nonlocal queries
        if tree.complete(s):
            distribution[s] += mass
            queries += mass * calls
            return
        erasable = len(s) if erase_prompt else len(s) - len(prompt)
        if left and erasable and not (once_per_prefix and s in seen) and not rule(s):
            back = min(stride, erasable)
            seen, s, left, erased = seen | {s}, s[: len(s) - back], left - 1, erased + back
        if len(s) - len(prompt) < erased:
            conditional = tree.conditional(s)
            loop((*s, conditional.index(max(conditional))), left, erased, seen, mass, calls + 1)
        else:
            for drawn, probability in tree.children(s):
                loop(drawn, left, erased, seen, mass * probability, calls + 1)

    loop(prompt, quota, 0, frozenset(), 1, 0)
    return dict(distribution), queries


def expected_value(tree: RandomTree, rule: Rule) -> Callable[[Prefix], float]:
    """Return the value function V*(y) = E[V(x) | y] of a rule on complete sequences."""

    def value(prefix: Prefix) -> float:
        if tree.complete(prefix):
            return float(rule(prefix))
        return math.fsum(p * value(child) for child, p in tree.children(prefix))

    return value


def largest_difference(first: ExactDistribution, second: ExactDistribution) -> float:
    """Return the largest absolute difference between two distributions."""
    outcomes = first.keys() | second.keys()
    return max((abs(first.get(x, 0.0) - second.get(x, 0.0)) for x in outcomes), default=0.0)
