"""Tests that settings out of range are rejected with the name of their field."""

import math
from dataclasses import replace
from typing import Any, get_type_hints

import pytest

from refusals import expect_error
from trialogue.errors import InputError
from trialogue_lab import studies
from trialogue_lab.ledger import Count, Seeds
from trialogue_lab.studies.joint_from_conditionals.config import FitProblem
from trialogue_lab.studies.parallel_gap.config import CorollaryInstance
from trialogue_lab.studies.potts_coherence.config import SampledChain
from trialogue_lab.studies.test_cases.config import MeasuredModel

_CHAIN = SampledChain(patterns=2, window=2, temperature=0.5)
_COLD = SampledChain(patterns=2, window=2, temperature=0.05)

OUT_OF_RANGE: list[tuple[str, dict[str, tuple[Any, ...]]]] = [
    ("clones", {"rank": (400,), "layers": ((2, 1),), "sweeps": ((70, 20),), "vocab_size": (256,)}),
    ("constrained-law", {"sizes": ((4, 16), ()), "particles": ((1,),), "tolerance": (0.0,)}),
    ("decoding-laws", {"families": (("no such",), ("sum", "sum")), "concentration": (0.0,)}),
    ("decoding-laws", {"candidates": ((1,),), "drawn_among": ((4, 2),), "error": (-1.0,)}),
    ("dyck-attention", {"grid_seeds": ((301,),)}),
    ("dyck-backtracking", {"p": (0.0,), "q": (1.0,), "ood_p": (1.5,), "threshold": (1.1,), "length": (31,)}),
    ("dyck-backtracking", {"prompt_lengths": ((25, 32), (4, 31)), "width": (63,)}),
    ("exact-rejection", {"history": (1,), "outputs": (1,)}),
    ("gradient-flow", {"size": (1, 5), "samples": (10,), "draws": (0,), "decay": (0.0,), "time": (-1.0,)}),
    ("interaction-order", {"sites": (4,), "vocab_size": (1,), "scale": (0.0,), "gap": (-1.0,)}),
    ("interaction-order", {"starts": ((1,),), "steps": ((1, 2),), "momentum": (1.0,)}),
    ("interaction-order", {"spectrum_sites": (5,), "large_seeds": ((1, 1),), "large_steps": (2,)}),
    ("ising-masking", {"sites": (1, 7), "couplings": ((), (0.3, 0.3), (math.nan,)), "field": (math.inf,)}),
    ("ising-masking", {"sizes": ((), (1000, 300)), "data_sets": (1,)}),
    ("ising-sampling", {"sites": (1,), "clique": (11, 1), "field": (math.nan,)}),
    ("ising-sampling", {"couplings": ((), (2.0, 2.0), (math.inf,)), "chains": (1,)}),
    ("ising-sampling", {"block_sizes": ((), (1, 1), (0,), (11,))}),
    ("joint-from-conditionals", {"data_sets": (1,)}),
    ("mixing-and-learning", {"sites": (2, 9), "couplings": ((), (0.3, 0.3), (-0.1,), (math.inf,))}),
    ("mixing-and-learning", {"field": (math.nan, -1.0), "blocks": (1,)}),
    ("code-values", {"cases": (0, 9), "outputs": (1,), "references": (1,), "max_queries": (0,)}),
    ("one-step-corollary", {"decoder_sites": ((6,),)}),
    ("parallel-gap", {"instances": ((),), "network_sites": ((), (1,), (6,)), "coupling": (0.0, math.inf)}),
    ("potts-coherence", {"patterns": ((), (1,), (2, 2.5), (2, 2)), "windows": ((1,),), "widths": ((0,),)}),
    ("potts-coherence", {"lengths": ((3,), (10, 10)), "sides": ((2,), (5, 5)), "penalties": ((0.0,),)}),
    ("potts-coherence", {"temperatures": ((), (-1.0,), (0.5, 0.5)), "plane_temperatures": ((math.inf,),)}),
    ("potts-coherence", {"sampled": ((), (_COLD,), (_CHAIN, _CHAIN))}),
    ("potts-patterns", {"side": (2,), "colours": ((1,),), "length": (5,)}),
    ("topic-optima", {"sizes": (((3, 2, 3),),), "landscape_taus": ((20, 100),), "p_random": (0.95,)}),
    ("topic-optima", {"taus": ((30, 10),), "many": (4,)}),
    ("topic-pretrained", {"models": (("unknown",),), "shortest": (129,)}),
    ("translation", {"sets": (3,), "small_sets": (30,), "steps": ((1, 2),), "width": (10,)}),
    ("translation", {"hypotheses": ((3, 1),), "columns": ((1,),)}),
    ("translation-dependency", {"tested_passes": ((1, 4),), "width": (50,), "correct": (1.0,)}),
    ("translation-dependency", {"test_lengths": ((4, 7),), "source_lengths": ((6, 2),)}),
    ("window-coherence", {"periods": (4,), "pattern_bits": (1,)}),
    ("window-coherence", {"windows": ((3,), (5, 3), (0, 3), (3, 22), (3, 5.5)), "best_windows": (22,)}),
    ("window-coherence", {"attention_window": (2.5, 12), "horizon": (21,), "noise": (0.0,)}),
    ("window-coherence", {"temperatures": ((1.0,), (0.0, 1.0), (0.6, 1.0))}),
    ("window-coherence", {"exact_temperatures": ((0.5, math.inf),), "learning_rate": (math.nan,)}),
    ("window-coherence", {"training_steps": (9,)}),
    ("power-sampling", {"horizon": (2, 9), "powers": ((), (0.5, 1.0), (4.0, 2.0), (-1.0,)), "futures": (1,)}),
    ("power-sampling", {"end": (0.0, 1.0), "steps": ((), (0, 1)), "lengths": ((3,), (8, 8))}),
    ("power-sampling", {"outputs": (19,), "rollouts": ((0,),), "rollout_draws": (1,)}),
    ("power-sampling", {"chain_horizon": (1, 6), "ended_length": (15,), "ended_power": (0.0,)}),
    ("power-sampling", {"ended_outputs": (19,)}),
    ("query-complexity", {"optimum_lengths": ((3,), (0, 1)), "hidden_lengths": ((4, 2),), "caps": ((0,),)}),
    ("query-complexity", {"search_lengths": ((1, 2), (20,)), "zero_lengths": ((0,),)}),
    ("query-complexity", {"walked_lengths": ((2.0,),), "law_lengths": ((20,),)}),
    ("query-complexity", {"dyck_lengths": ((3, 4), (8,)), "verified_lengths": ((),), "lattice_size": (3,)}),
    ("query-complexity", {"lattice_digits": ((20,),)}),
    ("solution-first", {"objects": ((32,),), "rounds": (1,), "clues": ((17,),), "cost_digits": ((1,),)}),
    ("solution-first", {"density_digits": ((4, 5),)}),
    ("test-cases", {"comparisons": (3,), "planes": (3,), "scratch_seeds": ((1, 7),)}),
    ("test-cases", {"scratch": ({"model": "surrogate"},)}),
    ("type-signature", {"cost_digits": ((3,), (3, 10), (3, 3, 4), (2.5, 3))}),
    ("type-signature", {"training_digits": ((), (4,), (2, 2), (1.5,)), "width": (6,)}),
    ("smc-criteria", {"lengths": ((64, 16), ()), "branch_lengths": ((1, 8),), "trees": (2,)}),
    ("smc-criteria", {"tolerance": (0.0,), "tree_particles": (1, 4), "tree_length": (6,), "levels": (1,)}),
    ("smc-criteria", {"total_error": (0.0,), "draw_particles": (1,), "tilt": (1.0,)}),
    (
        "unmasking",
        {"families": (("no such",),), "noises": ((0.0, 1.0), (0.0, 0.3, 1.0, 6.0)), "sizes": ((3,),)},
    ),
    ("unmasking", {"passes_per_token": ((1.0, 4.0),), "lengths": ((3,), (16,)), "eta": (2.0,)}),
    (
        "unmasking-trained",
        {"clues": (3, 16), "held_out": (0, 288), "digits": (0, 10), "tests": (1,), "width": (6,)},
    ),
    ("unmasking-trained", {"sudoku_steps": ((400,), (200, 100)), "sizes": ((1, 2),), "sums": (10**6,)}),
    ("value-guided", {"chain_seeds": ((99,),), "remaining": ((5, 3), (3, 9)), "length": (9,)}),
    ("value-guided", {"errors": ((0.0,),)}),
]
"""Fields of studies, and values that they reject."""


WRONG_BY_TYPE = [(Seeds, ((), (1, 1), (-1,), (0.5,))), (Count, (0, -1, 1.5))]
"""Types of fields that many studies have, and values that they reject."""


def test_seeds_and_counts_out_of_range_are_rejected_in_every_study() -> None:
    tried = 0
    for name, module in studies.modules().items():
        if not module.startswith("trialogue_lab."):
            continue
        config = studies.find(name).preset("default")
        for field, hint in get_type_hints(type(config), include_extras=True).items():
            for value in (value for kind, values in WRONG_BY_TYPE if hint == kind for value in values):
                with pytest.raises(InputError) as caught:
                    replace(config, **{field: value})
                assert caught.value.field == field, f"{name}: {field}={value!r}: {caught.value}"
                tried += 1
    assert tried > 600


@pytest.mark.parametrize(("name", "wrong"), OUT_OF_RANGE)
def test_fields_out_of_range_are_rejected(name: str, wrong: dict[str, tuple[Any, ...]]) -> None:
    config = studies.find(name).preset("default")
    for field, values in wrong.items():
        for value in values:
            with pytest.raises(InputError) as caught:
                replace(config, **{field: value})
            assert caught.value.field == field, f"{field}={value!r}: {caught.value}"


def test_nested_settings_out_of_range_are_rejected() -> None:
    expect_error(r"^clique=20", CorollaryInstance, delta=0.1, steps=100, clique=20, sites=20)
    expect_error(r"^masks=", FitProblem, sites=2, coupling=0.1, field=0.5, samples=10**9, masks=10**11)
    for field, value in (("layer", 5), ("runs", 0), ("layers", (24, 24)), ("together", 0), ("cases", 0)):
        with pytest.raises(InputError, match=f"^{field}="):
            MeasuredModel(**{field: value})


def test_hints_name_the_other_field() -> None:
    for name, changes, hint in (
        ("memorization-text", {"seeds": (0, 2)}, r"seeds=\(0, 2\): the samples are 0 to 1"),
        ("memorization-text", {"trained_shares": (0.3,)}, r"trained_shares=\(0.3,\): choose from shares"),
        ("memorization-text", {"length": 4, "context_lengths": (2, 4)}, "length=4: use rows longer than a"),
        ("memorization-text", {"widths": (4, 16)}, r"widths=\(4, 16\): .* at most 15, which is 0.25 of 60"),
        ("memorization-train", {"head_widths": (1, 10)}, "head_widths.*use less than fixed_width = 10"),
        ("topic-pretrained", {"shortest": 50}, "shortest=50: use at most length=24"),
        ("translation-dependency", {"model": "folder"}, "text='': give both a model and a text"),
        ("memorization-train", {"embedding_widths": (5, 10)}, "embedding_widths.*leave out fixed_width = 10"),
    ):
        with pytest.raises(InputError, match=hint):
            replace(studies.find(name).preset("smoke"), **changes)
