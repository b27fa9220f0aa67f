"""The parts of a run: every set of random models, held against the theorems."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from trialogue.samplers.exact import ergodicity
from trialogue_lab.ledger import Part
from trialogue_lab.studies.mixing_and_learning import models
from trialogue_lab.studies.mixing_and_learning.config import ADAPTIVE, WEIGHTED, Config, size_label
from trialogue_lab.theory.masking import pseudolikelihood
from trialogue_lab.theory.masking.block_laws import BlockLaw, block_law, joint_block_dynamics
from trialogue_lab.theory.masking.covariance_bound import bound_covariance

RANK = 1e-9
"""Eigenvalues of a difference of informations below this share of the largest count as zero."""


def parts(config: Config) -> list[Part]:
    """One part per set of models."""
    return [Part(f"seed-{seed}", partial(_measured, config, seed)) for seed in config.seeds]


def _measured(config: Config, seed: int, _: Path) -> Iterator[dict[str, Any]]:
    places = range(config.models)
    for coupling in config.couplings:
        ising = [models.random_ising(config.sites, coupling, config.field, seed, place) for place in places]
        for row in bound_rows(config, ising, seed):
            yield {"kind": "bound", "seed": seed, "coupling": coupling, **row}
        for row in more_rows(ising):
            yield {"kind": "more", "seed": seed, "coupling": coupling, "family": "Ising", **row}
    families = [models.random_family(config.sites, seed, place) for place in places]
    for row in more_rows(families):
        yield {"kind": "more", "seed": seed, "family": models.RandomFamily.name, **row}


def bound_rows(config: Config, targets: list[Any], seed: int) -> Iterator[dict[str, Any]]:
    """One row per mask law: what it costs to learn under it, beside the bound, over the models `targets`."""
    numbers: dict[str, list[dict[str, float]]] = {}
    for place, model in enumerate(targets):
        first: float | None = None
        for name, law in laws(config, seed, place).items():
            one = bound_of(model, law)
            if name not in (WEIGHTED, ADAPTIVE):
                size = int(law.blocks[0].sum())
                first = one["constant"] if first is None else first
                one["gain"] = size * one["constant"] / first
                one["of_independent"] = one["best"] * size / model.sites
                one["constant_error"] = abs(one["constant"] * size / model.sites - 1)
            if name == ADAPTIVE and place == 0:
                one["classes"] = classes_of_pairs(model, law)
            numbers.setdefault(name, []).append(one)
    for name, values in numbers.items():
        yield {"law": name, "models": len(values), **summary(values)}


def laws(config: Config, seed: int, place: int) -> dict[str, BlockLaw]:
    """Every mask law that a model is learned under: all k in turn, then random blocks, then random adaptive ones."""
    every = {
        size_label(size): block_law(config.sites, 2, block_size=size) for size in range(1, config.sites + 1)
    }
    return every | {
        WEIGHTED: models.random_law(config.sites, config.blocks, False, seed, place),
        ADAPTIVE: models.random_law(config.sites, config.blocks, True, seed, place),
    }


def bound_of(model: pseudolikelihood.ExponentialFamily, law: BlockLaw) -> dict[str, float]:
    """Theorems 4.1.2 and 4.1.3 on one model: C, the smallest constant in its place, and how far Gamma is from both.

    `slack` is the smallest eigenvalue of C I^{-1} - Gamma and `efficiency` that of Gamma - I^{-1}, each in units of
    the largest of the first matrix; `information_slack` is the smallest of I_PL - I / C. `tightness` is the best
    constant over C, `trace_share` is Tr Gamma / (C Tr I^{-1}).
    """
    probabilities, features = pseudolikelihood.enumerated(model)
    bound = bound_covariance(probabilities, features, law)
    fisher = pseudolikelihood.fisher_information(probabilities, features).inverse()
    gamma = pseudolikelihood.pseudolikelihood_information(probabilities, features, law).inverse()
    return {
        "constant": bound.constant,
        "best": bound.best,
        "tightness": bound.best / bound.constant,
        "slack": bound.slack / (bound.constant * _largest(fisher)),
        "information_slack": bound.information_slack,
        "efficiency": float(torch.linalg.eigvalsh(gamma - fisher)[0]) / _largest(gamma),
        "trace": float(gamma.trace()),
        "trace_share": float(gamma.trace() / (bound.constant * fisher.trace())),
    }


def classes_of_pairs(model: pseudolikelihood.ExponentialFamily, law: BlockLaw) -> float:
    """In how many classes the chain of eq. (4.26) on (X, K) falls: it has a Poincaré constant only if in one."""
    probabilities, _ = pseudolikelihood.enumerated(model)
    return float(ergodicity(joint_block_dynamics(probabilities, law)).closed_classes)


def summary(values: list[dict[str, float]]) -> dict[str, float]:
    """Extremes and means over models of what the claims and figures read."""

    def over(name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.array([value[name] for value in values if name in value])

    found = {name: over(name).min() for name in ("slack", "information_slack", "efficiency")}
    for name in ("tightness", "trace_share"):
        shares = over(name)
        found |= {f"{name}_least": shares.min(), name: shares.mean(), f"{name}_most": shares.max()}
    found |= {f"log_{name}": np.log(over(name)).mean() for name in ("constant", "trace")}
    for name in ("gain", "of_independent", "constant_error", "classes"):
        if len(over(name)):
            found[f"{name}_most"] = over(name).max()
    return {name: float(value) for name, value in found.items()}


def more_rows(targets: list[Any]) -> Iterator[dict[str, Any]]:
    """Theorem 4.1.1, one row per step from k to k + 1 masked sites, over the models `targets`.

    `smallest` is the least and `smallest_most` the largest over models of the smallest eigenvalue of
    Gamma^k - Gamma^{k+1}, in units of Tr Gamma^k; `trace_drop` the least of 1 - Tr Gamma^{k+1} / Tr Gamma^k;
    `rank_most` the most directions in which anything is gained; `identity` the largest error of I^{k+1} = I^k + C.
    """
    for step, gains in enumerate(zip(*map(_gains, targets), strict=True)):
        over = {name: [gain[name] for gain in gains] for name in gains[0]}
        yield {
            "masked": step + 1,
            "parameters": len(targets[0].parameters),
            "smallest": min(over["smallest"]),
            "smallest_most": max(over["smallest"]),
            "trace_drop": min(over["trace_drop"]),
            "rank_most": max(over["rank"]),
            "identity": max(over["identity"]),
        }


def _gains(model: Any) -> list[dict[str, float]]:
    """What masking one site more gains on one model, for every step from k to k + 1."""
    probabilities, features = pseudolikelihood.enumerated(model)
    theorem = pseudolikelihood.masking_more(model)
    information = [
        pseudolikelihood.pseudolikelihood_information(
            probabilities, features, block_law(model.sites, 2, block_size=size)
        )
        for size in range(1, model.sites + 1)
    ]
    traces = [float(matrix.inverse().trace()) for matrix in information]
    return [
        {
            "smallest": float(theorem.smallest_eigenvalue[step]) / traces[step],
            "trace_drop": 1 - traces[step + 1] / traces[step],
            "rank": float(_rank(information[step + 1] - information[step], information[step])),
            "identity": float(theorem.identity_discrepancy[step]),
        }
        for step in range(model.sites - 1)
    ]


def _rank(gain: Tensor, information: Tensor) -> int:
    """In how many directions the information grows, by eigenvalues relative to the information there was."""
    factor = torch.linalg.cholesky(information)
    half = torch.linalg.solve_triangular(factor, gain, upper=False)
    relative = torch.linalg.eigvalsh(torch.linalg.solve_triangular(factor, half.T, upper=False))
    return int((relative > RANK * float(relative[-1])).sum())


def _largest(matrix: Tensor) -> float:
    return float(torch.linalg.eigvalsh(matrix)[-1])
