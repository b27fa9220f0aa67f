"""Probabilities of texts by order of reveal, and the information curve of a distribution."""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

import torch
from torch import Tensor

from trialogue_lab.studies.unmasking.instances import Conditionals, sum_over_masks

Merge = Callable[[Tensor], Tensor]
"""Function that reduces log-probabilities (ways, ...) of the same tokens, revealed in different ways, to one (...)."""
Sites = tuple[int, ...]


def take_mean(logs: Tensor) -> Tensor:
    """Return the mean of log-probabilities (ways, ...)."""
    return logs.mean(0)


def take_best(logs: Tensor) -> Tensor:
    """Return the largest of log-probabilities (ways, ...)."""
    return logs.amax(0)


def take_mixture(logs: Tensor) -> Tensor:
    """Return the log of the mean of the probabilities with logarithms (ways, ...)."""
    return logs.logsumexp(0) - math.log(len(logs))


def equal_sizes(sites: int, size: int) -> list[int]:
    """Return the numbers of positions that successive passes reveal, with the remainder in the last pass."""
    return [min(size, sites - done) for done in range(0, sites, size)]


def score_texts(model: Conditionals, sizes: Sequence[int], merge: Merge, block: int | None = None) -> Tensor:
    """Return a log-probability of each text, merged over all orders in which its positions can be revealed.

    All sets of positions of a pass are equally likely. The value of a set of revealed positions is merged over the sets
    that the last pass may have revealed, for all texts at once.

    Args:
        model: The conditional distributions.
        sizes: Number of positions that each pass reveals.
        merge: How orders are merged.
        block: Number of positions of a block. Blocks are revealed from left to right, one position per pass (default:
            one block).

    Returns:
        Log-probabilities (V, ..., V).
    """
    before: dict[Sites, Tensor] = {(): torch.zeros((), dtype=torch.float64)}
    done = 0
    for size in sizes:
        done += size
        after = {}
        for revealed in _revealed_sets(model.sites, done, block or model.sites):
            ways = [
                _reveal(model, before[rest], rest, new)
                for new in combinations(revealed, size)
                if (rest := tuple(site for site in revealed if site not in new)) in before
            ]
            after[revealed] = merge(torch.stack(ways))
        before = after
    return before[tuple(range(model.sites))]


def _revealed_sets(sites: int, count: int, block: int) -> Iterator[Sites]:
    """Yield the sets of `count` positions that contain all positions of earlier blocks."""
    complete = count // block * block
    for rest in combinations(range(complete, min(complete + block, sites)), count - complete):
        yield (*range(complete), *rest)


def _reveal(model: Conditionals, before: Tensor, rest: Sites, new: Sites) -> Tensor:
    """Return log-probabilities of the tokens at `rest` and `new`, after a pass that reveals `new`.

    Args:
        model: The conditional distributions.
        before: Log-probabilities (V, ..., V) of the tokens at `rest`.
        rest: Positions that were revealed earlier, in ascending order.
        new: Positions that the pass reveals, in ascending order.
    """
    vocab = model.vocab_size
    canvas = tuple(slice(0, vocab) if site in rest else vocab for site in range(model.sites))
    distributions = model.table[canvas]
    revealed = sorted((*rest, *new))
    total = before[tuple(slice(None) if site in rest else None for site in revealed)]
    for site in new:
        # The axis of the token moves to its position among the revealed sites.
        axes = tuple(slice(None) if each in (*rest, site) else None for each in revealed)
        ordered = distributions[..., site, :].movedim(-1, sum(each < site for each in rest))
        total = total + ordered[axes]
    return total


def set_entropies(joint: Tensor) -> list[float]:
    """Return the mean entropy of the tokens at k positions, for k = 0, ..., L, over all sets of k positions.

    Args:
        joint: Probabilities (V, ..., V) with L axes.
    """
    sums, vocab, sites = sum_over_masks(joint), joint.shape[0], joint.ndim
    means = []
    for size in range(sites + 1):
        marginals = (
            sums[tuple(slice(0, vocab) if site in chosen else vocab for site in range(sites))]
            for chosen in combinations(range(sites), size)
        )
        entropies = [float(torch.special.entr(each).sum()) for each in marginals]
        means.append(sum(entropies) / len(entropies))
    return means


def information_curve(entropies: Sequence[float]) -> list[float]:
    """Return the mean mutual information of a token and j other tokens, for j = 0, ..., L - 1.

    Args:
        entropies: The return value of `set_entropies`.
    """
    return [entropies[1] + entropies[j] - entropies[j + 1] for j in range(len(entropies) - 1)]


def riemann_error(curve: Sequence[float], sizes: Sequence[int]) -> float:
    """Return the sum of an information curve minus its left Riemann sum with steps of the given sizes.

    Args:
        curve: Information curve.
        sizes: Number of positions that each pass reveals.
    """
    done, error = 0, 0.0
    for size in sizes:
        error += sum(curve[done + new] - curve[done] for new in range(size))
        done += size
    return error


def random_sizes_error(curve: Sequence[float], passes: int) -> float:
    """Return the expected Riemann error if each position is assigned to a uniformly random pass.

    Args:
        curve: Information curve.
        passes: Number of passes.
    """
    sites = len(curve)
    reached, error = {0: 1.0}, 0.0
    for number in range(passes):
        share, after = 1 / (passes - number), dict[int, float]()
        for done, mass in reached.items():
            for size in range(sites - done + 1):
                chance = (
                    mass * math.comb(sites - done, size) * share**size * (1 - share) ** (sites - done - size)
                )
                after[done + size] = after.get(done + size, 0.0) + chance
                error += chance * sum(curve[done + new] - curve[done] for new in range(size))
        reached = after
    return error


def fewest_passes(curve: Sequence[float], precision: float) -> int:
    """Return the smallest number of passes of a schedule with at most the given Riemann error.

    Args:
        curve: Information curve.
        precision: Largest allowed error.
    """
    sites = len(curve)
    values = torch.tensor([*curve, 0.0], dtype=torch.float64)
    sums = torch.cat((torch.zeros(1, dtype=torch.float64), values[:-1].cumsum(0)))
    # Entry (a, b) is the error of a pass after which b positions are revealed, and a before it.
    counts = torch.arange(sites + 1)
    cost = sums[None] - sums[:, None] - (counts[None] - counts[:, None]) * values[:, None]
    cost = cost.masked_fill(counts[None] <= counts[:, None], math.inf)
    error = torch.full((sites + 1,), math.inf, dtype=torch.float64)
    error[0] = 0.0
    for passes in range(1, sites + 1):
        error = (error[:, None] + cost).amin(0)
        if float(error[-1]) <= precision:
            return passes
    return sites


def coin_curve(shares: tuple[float, float], length: int) -> list[float]:
    """Return the information curve of a sequence of tosses of one of two coins, each chosen with probability 1/2.

    Args:
        shares: Probability of heads of each coin.
        length: Number of tosses.
    """
    entropies = []
    for count in range(length + 1):
        heads = torch.arange(count + 1, dtype=torch.float64)
        ways = math.lgamma(count + 1) - torch.lgamma(heads + 1) - torch.lgamma(count - heads + 1)
        logs = torch.stack(
            [heads * math.log(share) + (count - heads) * math.log1p(-share) for share in shares]
        ).logsumexp(0) - math.log(2)
        entropies.append(float(-((ways + logs).exp() * logs).sum()))
    return information_curve(entropies)
