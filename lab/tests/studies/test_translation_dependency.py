"""Tests of exact distributions, statistics of known rows, and small networks of `translation-dependency`."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from trialogue.oracles import enumerate_sequences
from trialogue_lab.analysis.adjacent_attention import AdjacentAttention
from trialogue_lab.ledger import Rows
from trialogue_lab.studies.translation_dependency import statistics
from trialogue_lab.studies.translation_dependency.attention import summarize_attention
from trialogue_lab.studies.translation_dependency.config import (
    CONDITIONALS,
    DENOISER,
    LENGTHS,
    ONE_STAGE,
    ORDER,
    PRESETS,
    TWIN,
    TWO_STAGES,
    Sentence,
)
from trialogue_lab.studies.translation_dependency.exact import (
    TrueDistribution,
    measure_chains,
    measure_sentence,
)
from trialogue_lab.studies.translation_dependency.hidden_markov import Denoiser
from trialogue_lab.studies.translation_dependency.networks import (
    _remove_last_token,
    compute_perfect_distributions,
    list_short_sources,
    measure_network,
    sample_targets,
)
from trialogue_lab.studies.translation_dependency.parallel_steps import compute_refinement_distributions

SMOKE = PRESETS["smoke"]
PAIR = Sentence(name="a pair", words=((1, 1), (1, 1)))


def _of(rows, **values):
    return [row for row in rows if all(row.get(key) == value for key, value in values.items())]


def test_losses_of_the_first_pass_and_of_a_teacher_have_known_values(tmp_path):
    rows = list(measure_sentence(PAIR, replace(SMOKE, couplings=(0.0, 3.0), passes=2), tmp_path))
    stay = math.exp(3) / (math.exp(3) + 1)
    entropy = -sum(p * math.log(p) for p in (stay, 1 - stay))
    for coupling, lost in ((0.0, 0.0), (3.0, math.log(2) - entropy)):
        (truth,) = _of(rows, kind="truth", coupling=coupling)
        assert truth["total_correlation"] == pytest.approx(lost, abs=0.01)
        for sampler in (CONDITIONALS, DENOISER):
            (first,) = _of(rows, kind="refined", coupling=coupling, sampler=sampler, passes=1)
            assert first["divergence"] == pytest.approx(truth["total_correlation"], abs=1e-12)
        (taught,) = _of(rows, kind="alike", coupling=coupling)
        assert taught["divergence"] < 1e-12
        # The language gives the teacher's only translation the probability that both words have the first style.
        assert taught["from_truth"] == pytest.approx(1 - (stay if coupling else 0.5) / 2, abs=0.01)


def test_chains_with_an_invariant_distribution_converge_to_it(tmp_path):
    rows = list(measure_chains(ORDER, replace(SMOKE, chain_passes=20), tmp_path))
    (ruled,) = _of(rows, sampler="chain rule")
    assert ruled["divergence"] < 1e-9
    assert ruled["passes"] == pytest.approx(3)
    for sampler in ("Gibbs", "Gibbs of pairs"):
        found = [row["divergence"] for row in _of(rows, sampler=sampler)]
        assert np.diff(found).max() < 1e-9
        assert found[-1] < 0.01
    assert _of(rows, sampler=CONDITIONALS)[-1]["divergence"] > 1


def test_comparison_with_the_exact_distribution_has_known_values():
    truth = TrueDistribution(LENGTHS.translations(1.0), LENGTHS.translations(1.0, slips=0.0), LENGTHS.longest)
    assert sum(truth.lengths.values()) == pytest.approx(1)
    self_comparison = truth.compared(truth.distributions)
    assert self_comparison["divergence"] == pytest.approx(0, abs=1e-12)
    assert self_comparison["valid"] > 0.99
    joint = {length: weight * truth.distributions[length] for length, weight in truth.lengths.items()}
    assert truth.joint(joint) == pytest.approx((0, 0), abs=1e-12)
    reduced = {length: weights * 0.5 for length, weights in joint.items()}
    assert truth.joint(reduced) == pytest.approx((math.log(2), 0.5))


def _table(kind, columns, *lines, **values):
    """Return rows of one kind from lines of columns and constant `values`."""
    return [{"kind": kind, **values, **dict(zip(columns.split(), line, strict=True))} for line in lines]


def test_extremes_are_over_sentences_and_couplings():
    columns = "sentence sampler coupling passes divergence"
    gaps = [
        *((("order", CONDITIONALS), each) for each in ((0.0, 1, 0.1), (1.0, 1, 0.4), (2.0, 1, 0.5))),
        *((("order", CONDITIONALS), each) for each in ((1.0, 2, 0.3), (2.0, 2, 0.6))),
        *((("styles", CONDITIONALS), each) for each in ((0.0, 1, 0.1), (1.0, 1, 0.9), (2.0, 1, 0.7))),
        *((("order", DENOISER), each) for each in ((0.0, 1, 0.2), (1.0, 1, 0.1), (2.0, 1, 0.3))),
        *((("order", DENOISER), each) for each in ((1.0, 2, 0.2), (2.0, 2, 0.2))),
    ]
    rows = Rows(_table("refined", columns, *((*names, *each) for names, each in gaps)))
    assert statistics.least_rise(CONDITIONALS, 1)(rows).tolist() == pytest.approx([-0.2])
    assert statistics.least_lead(2)(rows).tolist() == pytest.approx([0.1])
    assert statistics.most_undone(DENOISER)(rows).tolist() == pytest.approx([0.1])
    chains = [("Gibbs", "a", 0.1), ("Gibbs", "b", 0.3), (CONDITIONALS, "a", 0.5), (CONDITIONALS, "b", 0.4)]
    rows = Rows(_table("chain", "sampler sentence divergence", *chains, passes=10))
    assert statistics.chains_lead("Gibbs", CONDITIONALS, 10)(rows).tolist() == pytest.approx([0.1])


def test_stutter_of_swapped_words_has_known_values():
    found = (("order", 0.2, 0.3), ("all of them", 0.2, 0.1), ("styles", 0.0, 0.05))
    columns, setting = "sentence swapping stutter", {"sampler": CONDITIONALS, "passes": 10}
    truth = [(sentence, swapping, 0.01) for sentence, swapping, _ in found]
    rows = _table("refined", columns, *found, coupling=1.0, **setting)
    rows += _table("truth", columns, *truth, coupling=1.0)
    assert statistics.kept_stutter(CONDITIONALS, 10)(Rows(rows)).tolist() == pytest.approx([0.09])


def test_statistics_have_one_number_per_training():
    refiner = {"arm": TWO_STAGES, "keep": "stutter", "passes": 4}
    common = {"arm": ONE_STAGE, "passes": 4, "seed": 0, "perfect_divergence": 0.5}
    rows = Rows(
        _table("quality", "seed stutter", (0, 0.3), (1, 0.1), **refiner)
        + _table("quality", "seed stutter", (0, 0.1), (1, 0.1), arm=TWIN, keep="nothing", passes=0)
        + _table("law", "divergence", (1.0,), (2.0,), **common)
        + _table("attention", "stutter", (True,), (False,), arm=TWO_STAGES, seed=0, own_mean=0.1)
    )
    assert statistics.excess_stutter(2)(rows).tolist() == pytest.approx([0.1, -0.1])
    assert statistics.listed(ONE_STAGE, "divergence - 2 * perfect_divergence", 4)(
        rows
    ).tolist() == pytest.approx([0.5])
    difference = statistics.attention("own_mean", True) - statistics.attention("own_mean", False)
    assert difference(rows).tolist() == [0.0]


def test_attention_rows_split_the_pairs():
    stutter = np.array([True, False, False])
    heads = np.array([[0.1, 0.3], [0.2, 0.2], [0.4, 0.6]])
    pairs = AdjacentAttention(stutter, heads, heads, heads, heads, heads, np.array([0, 0, 1]))
    yes, no = summarize_attention(pairs)
    assert (yes["pairs"], no["pairs"]) == (1, 2)
    assert yes["variation_least"] == pytest.approx(0.1)
    assert no["variation_most"] == pytest.approx(0.4)
    assert no["own_overlap_2"] == pytest.approx(0.4)
    assert [row["stutter"] for row in summarize_attention(pairs._replace(stutter=~stutter | True))] == [True]
    assert [row["stutter"] for row in summarize_attention(pairs.where(pairs.target == 1))] == [False]
    assert not list(summarize_attention(pairs.where(pairs.target == 2)))


def test_the_last_token_is_removed_from_a_distribution():
    probabilities = torch.arange(27.0)
    assert _remove_last_token(probabilities, 3, 3).tolist() == [0, 1, 3, 4, 9, 10, 12, 13]


def test_perfect_refinement_starts_from_the_same_targets():
    config = replace(SMOKE, starts=3, passes=2)
    (source,) = list_short_sources(config)
    model = config.language().condition(source)
    states = enumerate_sequences(len(model.alphabet), 2)
    prior = (-model.energy(states)).softmax(0)
    expected = torch.zeros(len(states), dtype=torch.float64)
    targets = sample_targets(config, 2, 5)
    targets[0, 0] = int(model.alphabet[0])
    for target in targets:
        right = torch.from_numpy(model.alphabet)[states] == target
        noise = config.correct * right.double() + (1 - config.correct) / config.noise_tokens
        posterior = prior * noise.prod(1)
        posterior = (posterior / posterior.sum()).view((len(model.alphabet),) * 2)
        expected += torch.outer(posterior.sum(1), posterior.sum(0)).flatten() / len(targets)
    first, second = compute_perfect_distributions(config, model, targets)
    assert (first - expected).abs().max() < 1e-12
    masks = compute_refinement_distributions(Denoiser(model, config.correct, config.noise_tokens), 2, 0)[0]
    assert (first - masks).abs().max() > 1e-3
    assert (second - first).abs().max() > 1e-3


def test_small_networks_give_complete_rows(tmp_path):
    config = replace(SMOKE, training_steps=2, sources=10)
    (source,) = list_short_sources(config)
    assert len(config.language().condition(source).alphabet) <= 6
    twin = list(measure_network(config, TWIN, 0, tmp_path))
    (row,) = _of(twin, kind="law")
    assert 0 < row["outside"] < 1
    assert row["divergence"] > 1
    refiner = list(measure_network(config, ONE_STAGE, 0, tmp_path))
    rows_by_pass = _of(refiner, kind="law")
    assert [row["passes"] for row in rows_by_pass] == [1, 2, 3, 4]
    assert all(row["divergence"] > row["perfect_divergence"] for row in rows_by_pass)
    assert len(_of(refiner, kind="quality")) == 8
    assert _of(refiner, kind="attention")
