"""Uniform distributions on given sequences, and a chi-square test of samples against them."""

import torch
from scipy import stats


def uniform_distribution(states: torch.Tensor) -> dict[tuple[int, ...], float]:
    """Return the uniform distribution on the rows of `states` (n, L)."""
    return {tuple(row): 1 / len(states) for row in states.tolist()}


def uniform_p_value(rows: torch.Tensor, states: torch.Tensor) -> float:
    """Return the p-value of `rows` (n, L) under the uniform distribution on `states`, or 0 if a row is not a state."""
    place = {tuple(row): index for index, row in enumerate(states.tolist())}
    places = [place.get(tuple(row), len(place)) for row in rows.tolist()]
    counts = torch.bincount(torch.tensor(places), minlength=len(place) + 1)
    return 0.0 if counts[-1] else float(stats.chisquare(counts[:-1].numpy()).pvalue)
