"""Tests of the study `value-guided`: long horizons against enumeration, and small runs against theory."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from trialogue.data import Table
from trialogue.samplers import values
from trialogue.samplers.exact import exact_values, target_distribution, total_variation
from trialogue.verifiers import NoisyValues
from trialogue_lab.ledger import Rows
from trialogue_lab.studies.value_guided import long_horizons
from trialogue_lab.studies.value_guided.config import EXACT, PRESETS, Config
from trialogue_lab.studies.value_guided.dyck import measure_dyck
from trialogue_lab.studies.value_guided.statistics import golden_residual, least_leaf_mass, tree
from trialogue_lab.studies.value_guided.trees import measure_trees
from trialogue_lab.theory.value_guided import action_level_distribution, first_leaf

SMOKE = PRESETS["smoke"]
COINS = Table(lambda _: (0.5, 0.5), 2, max_length=5)


def product_distribution(shares: np.ndarray) -> dict[tuple[int, ...], float]:
    distribution = {(): 1.0}
    for share in shares.tolist():
        distribution = {
            (*x, a): p * q for x, p in distribution.items() for a, q in enumerate((share, 1 - share))
        }
    return distribution


@pytest.mark.parametrize(
    ("counts_from_shares", "log_probs_from_scores"),
    [
        (long_horizons.compute_action_level_shares, action_level_distribution),
        (long_horizons.compute_first_leaf_shares, lambda *tree: first_leaf(*tree).distribution),
    ],
)
@pytest.mark.parametrize("error", [0.0, 0.3])
def test_long_horizon_distributions_agree_with_the_tree(counts_from_shares, log_probs_from_scores, error):
    guide = NoisyValues(long_horizons.ProductValues(0.3), error, "last token")
    shares = counts_from_shares(5, 0.3, error)
    distribution, target = log_probs_from_scores(COINS, guide), target_distribution(COINS, guide)
    assert total_variation(product_distribution(shares), distribution) < 1e-12
    distance = total_variation(distribution, target)
    assert distance < 1e-12 if error == 0 else distance > 0.03
    computed, wrong_share = long_horizons.estimate_variation(shares, 0.3, 0)
    assert computed == pytest.approx(distance, abs=0.005)
    sequences = np.array(list(target))
    above = long_horizons.compute_log_ratios(sequences, shares, 0.3) > 1e-12
    assert math.fsum(p for x, p in target.items() if above[list(target).index(x)]) == pytest.approx(
        wrong_share if error else 0.0, abs=0.005 if error else 1e-9
    )


def test_product_values_are_exact():
    exact = exact_values(COINS, long_horizons.ProductValues(0.3))
    prefixes = [(0,), (0, 1), (1, 1, 0), (0, 1, 0, 0, 1)]
    assert values(long_horizons.ProductValues(0.3), COINS, prefixes).tolist() == pytest.approx(
        [exact(x) for x in prefixes]
    )


def test_trees_agree_with_theory(tmp_path: Path):
    rows = [{"seed": seed, **row} for seed in SMOKE.seeds for row in measure_trees(SMOKE, seed, tmp_path)]
    measured = Rows(rows, "kind", {"seeds": SMOKE.seeds})
    assert golden_residual()(measured).iloc[0] < 1e-12
    assert least_leaf_mass()(measured).iloc[0] >= 1 - 1e-12
    distance, mended = tree("action_level", 4)(measured), tree("first_leaf", 4)(measured)
    assert (distance > mended).all()
    assert (tree("stationary", 4)(measured) < 1e-12).all()
    assert (tree("action_level", 4, EXACT, 0.0)(measured) < 1e-12).all()


def test_sampled_rates_at_long_horizons_agree_with_exact_ones(tmp_path: Path):
    config = Config(long_horizons=(6,), draws=4000)
    for row in long_horizons.measure_long_horizons(config, 0, tmp_path):
        assert row["sampled"] == pytest.approx(row["computed"], abs=0.04)
        assert row["queries"] >= 6


def test_models_of_dyck_strings_have_known_values(tmp_path: Path):
    rows = {(row["rule"], row["values"]): row for row in measure_dyck(SMOKE, 0, tmp_path)}
    assert rows["first leaf", "exact"]["variation"] < 1e-12
    assert rows["first leaf", "exact"]["queries"] == pytest.approx(25)
    assert rows["first leaf", "trained"]["accuracy"] == pytest.approx(1)
    assert rows["rejection", ""]["variation"] == 0
    assert 0 < rows["no rule", ""]["accuracy"] < 1
    assert rows["action level", "noisy"]["variation"] > rows["first leaf", "noisy"]["variation"] > 0
    assert torch.isfinite(torch.tensor([row["queries"] for row in rows.values()])).all()
