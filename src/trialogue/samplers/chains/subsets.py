"""Uniformly random subsets of sites."""

import math
from functools import lru_cache
from itertools import combinations

import torch
from torch import Tensor

from trialogue.randomness import Choose

LISTED = 1024
"""Largest number of subsets that are enumerated."""


def choose_subsets(sites: int, size: int, rows: Tensor, choose: Choose) -> Tensor:
    """Draw a uniformly random subset of `size` sites (positions) for each row.

    Args:
        sites: Number of sites.
        size: Number of sites in each subset.
        rows: Rows (n,) int64 whose random streams are used.
        choose: Function that draws one index per row in proportion to given weights.

    Returns:
        Whether each site belongs to the subset, (n, sites) bool.
    """
    if math.comb(sites, size) <= LISTED:
        subsets = _subsets(sites, size, rows.device)
        return subsets[choose(_even(rows, len(subsets)), rows)]
    chosen = torch.zeros(len(rows), sites, dtype=torch.bool, device=rows.device)
    fewer, each = min(size, sites - size), torch.arange(len(rows), device=rows.device)
    for last in range(sites - fewer, sites):
        site = choose(_even(rows, last + 1), rows)
        chosen[each, torch.where(chosen[each, site], last, site)] = True
    return chosen if fewer == size else ~chosen


def choose_site(sites: int, rows: Tensor, choose: Choose) -> Tensor:
    """Draw a uniformly random site (position) for each row.

    Args:
        sites: Number of sites.
        rows: Rows (n,) int64 whose random streams are used.
        choose: Function that draws one index per row in proportion to given weights.

    Returns:
        Indices (n,) int64.
    """
    return choose(_even(rows, sites), rows)


def choose_member(sets: Tensor, rows: Tensor, choose: Choose) -> Tensor:
    """Draw a uniformly random member of each of several sets of sites (positions).

    Args:
        sets: Whether each site belongs to each set, (n, sites) bool. No set is empty.
        rows: Rows (n,) int64 whose random streams are used.
        choose: Function that draws one index per row in proportion to given weights.

    Returns:
        Sites (n,) int64.
    """
    return choose(sets.double().log(), rows)


def choose_members(sets: Tensor, sizes: Tensor, choose: Choose) -> Tensor:
    """Draw a uniformly random subset of each of several sets of sites (positions).

    The members of a subset are drawn in ascending order, so that each subset results from a single sequence of choices.

    Args:
        sets: Whether each site belongs to each set, (rows, sites) bool.
        sizes: Number (rows,) int64 of sites in each subset.
        choose: Function that draws one index per row in proportion to given weights.

    Returns:
        Whether each site belongs to the subset, (rows, sites) bool.
    """
    chosen, rest = torch.zeros_like(sets), sets
    log_factorial = torch.arange(1.0, sets.shape[1] + 2, dtype=torch.float64, device=sets.device).lgamma()
    while len(rows := (sizes > 0).nonzero()[:, 0]):
        members, further = rest[rows], sizes[rows, None] - 1
        after = members.sum(1, keepdim=True) - members.cumsum(1)
        # A site comes first in as many subsets as there are choices of the others among the members after it.
        spare = after - further
        ways = log_factorial[after] - log_factorial[spare.clamp_min(0)]
        site = choose(ways.masked_fill(~members | (spare < 0), -torch.inf), rows)
        chosen[rows, site] = True
        rest = rest.clone()
        rest[rows] &= torch.arange(sets.shape[1], device=sets.device) > site[:, None]
        sizes = sizes - 1
    return chosen


def _even(rows: Tensor, options: int) -> Tensor:
    return torch.zeros((), dtype=torch.float64, device=rows.device).expand(len(rows), options)


@lru_cache(maxsize=64)
def _subsets(sites: int, size: int, device: torch.device) -> Tensor:
    chosen = torch.tensor(list(combinations(range(sites), size)), dtype=torch.int64).to(device)
    return torch.zeros(len(chosen), sites, dtype=torch.bool, device=device).scatter_(1, chosen, True)
