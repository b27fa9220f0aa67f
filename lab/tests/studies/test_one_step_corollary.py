"""Tests of the study `one-step-corollary`: instances, bounds and decoders."""

from trialogue_lab.ledger import Rows
from trialogue_lab.studies.one_step_corollary import STUDY
from trialogue_lab.studies.one_step_corollary.config import PRESETS, Config
from trialogue_lab.studies.one_step_corollary.measure import measure_decoders
from trialogue_lab.studies.one_step_corollary.statistics import largest_error
from trialogue_lab.studies.parallel_gap.cliques import measure_one_step, simulate_corollary
from trialogue_lab.studies.parallel_gap.statistics import both_events


def test_twelve_instances_are_simulated() -> None:
    labels = [one.label for one in Config().instances]
    assert len(labels) == len(set(labels)) == 12
    assert max(one.sites for one in Config().instances) == 440


def test_chain_of_bounds_requires_a_constant_of_one_sixteenth() -> None:
    rows = Rows(list(measure_one_step(Config().instances)))
    excess = {claim.id: claim.statistic for claim in STUDY.claims if claim.id.startswith("chain-of-bounds")}
    assert excess["chain-of-bounds-with-16"](rows).item() >= 0
    assert excess["chain-of-bounds-with-4"](rows).item() < -0.5


def test_constructed_decoders_follow_their_map() -> None:
    assert all(row["states_apart"] == 0 and row["kernel_error"] < 1e-9 for row in measure_decoders((2, 3)))


def test_simulated_shares_agree_with_exact_probabilities() -> None:
    smoke = PRESETS["smoke"]
    rows = [row for seed in (0, 1) for row in simulate_corollary(smoke.instances, 300, (seed,))]
    found = Rows(rows)
    assert (both_events()(found) > 0).all()
    assert largest_error()(found).max() < 0.06
