"""Tests that settings out of range are rejected with the name of their field."""

from dataclasses import fields, replace
from typing import Any, get_type_hints

import pytest

from limited_arguments import excluded_values
from trialogue.errors import InputError
from trialogue_lab import studies
from trialogue_lab.studies.joint_from_conditionals.config import Sizes
from trialogue_lab.studies.parallel_gap.config import Instance
from trialogue_lab.studies.potts_coherence.config import Sampled
from trialogue_lab.studies.test_cases.config import MeasuredModel

BUILT_IN = [name for name, module in studies.modules().items() if module.startswith("trialogue_lab.")]
_COLD = Sampled(patterns=2, window=2, temperature=0.05)

CONTRADICTORY: list[tuple[str, dict[str, tuple[Any, ...]]]] = [
    ("clones", {"rank": (400,)}),
    ("constrained-law", {"sizes": ((4, 16),)}),
    ("decoding-laws", {"families": (("no such",),)}),
    ("dyck-attention", {"grid_seeds": ((301,),)}),
    ("dyck-backtracking", {"length": (31,), "prompt_lengths": ((25, 32), (4, 31)), "width": (63,)}),
    ("ising-sampling", {"clique": (11,), "block_sizes": ((11,),)}),
    ("potts-coherence", {"patterns": ((1,),), "lengths": ((3,),), "sampled": ((_COLD,),)}),
    ("topic-optima", {"sizes": (((3, 2, 3),),), "landscape_taus": ((20, 100),), "p_random": (0.95,)}),
    ("topic-pretrained", {"shortest": (129,)}),
    ("translation", {"sets": (3,), "small_sets": (30,), "steps": ((1, 2),), "width": (10,)}),
    ("translation-dependency", {"tested_passes": ((1, 4),), "width": (50,)}),
    ("translation-dependency", {"test_lengths": ((4, 7),), "source_lengths": ((6, 2),)}),
    ("window-coherence", {"periods": (4,), "windows": ((3,), (3, 22)), "best_windows": (22,)}),
    ("window-coherence", {"attention_window": (12,), "horizon": (21,), "temperatures": ((1.0,), (0.6, 1.0))}),
    ("test-cases", {"comparisons": (3,), "planes": (3,), "scratch_seeds": ((1, 7),)}),
    ("value-guided", {"chain_seeds": ((99,),), "remaining": ((5, 3),), "length": (9,)}),
]
"""Fields of studies, and values that contradict another field."""


@pytest.mark.parametrize(("name", "wrong"), CONTRADICTORY)
def test_contradictory_fields_are_rejected(name: str, wrong: dict[str, tuple[Any, ...]]) -> None:
    config = studies.find(name).preset("default")
    for field, values in wrong.items():
        for value in values:
            with pytest.raises(InputError) as caught:
                replace(config, **{field: value})
            assert caught.value.field == field, f"{field}={value!r}: {caught.value}"


@pytest.mark.parametrize("name", BUILT_IN)
def test_error_names_the_field_outside_its_type(name: str) -> None:
    config = studies.find(name).preset("default")
    hints = get_type_hints(type(config), include_extras=True)
    for field in fields(config):
        for value in excluded_values(hints[field.name]) if field.init else ():
            with pytest.raises(InputError) as caught:
                replace(config, **{field.name: value})
            assert caught.value.field == field.name, f"{field.name}={value!r}: {caught.value}"


def test_nested_settings_out_of_range_are_rejected() -> None:
    with pytest.raises(InputError, match=r"^clique=20"):
        Instance(delta=0.1, steps=100, clique=20, sites=20)
    with pytest.raises(InputError, match=r"^masks="):
        Sizes(sites=2, coupling=0.1, field=0.5, samples=10**9, masks=10**11)
    for field, value in (("layer", 5), ("runs", 0), ("layers", (24, 24)), ("together", 0), ("cases", 0)):
        with pytest.raises(InputError, match=f"^{field}="):
            MeasuredModel(**{field: value})


def test_hints_name_the_other_field() -> None:
    for name, changes, hint in (
        ("memorization-text", {"seeds": (0, 2)}, r"seeds=\(0, 2\): the samples are 0 to 1"),
        ("memorization-text", {"trained_shares": (0.3,)}, r"trained_shares=\(0.3,\): choose from shares"),
        ("memorization-text", {"length": 4, "context_lengths": (2, 4)}, "length=4: use rows longer than a"),
        (
            "memorization-text",
            {"widths": (4, 16)},
            r"widths=\(4, 16\): must be at most 15, which is 0.25 of 60",
        ),
        ("memorization-train", {"head_widths": (1, 10)}, "head_widths.*use less than fixed_width = 10"),
        ("topic-pretrained", {"shortest": 50}, "shortest=50: use at most length=24"),
        ("translation-dependency", {"model": "folder"}, "text='': give both a model and a text"),
        ("memorization-train", {"embedding_widths": (5, 10)}, "embedding_widths.*leave out fixed_width = 10"),
    ):
        with pytest.raises(InputError, match=hint):
            replace(studies.find(name).preset("smoke"), **changes)
