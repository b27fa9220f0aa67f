"""Settings out of range: the error names the field."""

from dataclasses import replace

import pytest

from trialogue.errors import InputError
from trialogue_lab import studies

CASES = [
    ("clones", "rank", 400),
    ("clones", "layers", (2, 1)),
    ("clones", "sweeps", (70, 20)),
    ("clones", "vocab_size", 256),
    ("constrained-law", "seeds", ()),
    ("constrained-law", "seeds", (1, 1)),
    ("constrained-law", "sizes", (4, 16)),
    ("constrained-law", "sizes", ()),
    ("constrained-law", "particles", (1,)),
    ("constrained-law", "samples", 0),
    ("constrained-law", "tolerance", 0.0),
    ("decoding-laws", "families", ("no such",)),
    ("decoding-laws", "families", ("sum", "sum")),
    ("decoding-laws", "concentration", 0.0),
    ("decoding-laws", "candidates", (1,)),
    ("decoding-laws", "drawn_among", (4, 2)),
    ("decoding-laws", "error", -1.0),
    ("dyck-attention", "grid_seeds", (301,)),
    ("dyck-backtracking", "p", 0.0),
    ("dyck-backtracking", "q", 1.0),
    ("dyck-backtracking", "ood_p", 1.5),
    ("dyck-backtracking", "threshold", 1.1),
    ("dyck-backtracking", "length", 31),
    ("dyck-backtracking", "prompt_lengths", (25, 32)),
    ("dyck-backtracking", "prompt_lengths", (4, 31)),
    ("dyck-backtracking", "draws", 0),
    ("dyck-backtracking", "width", 63),
    ("dyck-backtracking", "steps", 0),
]


@pytest.mark.parametrize(("study", "field", "value"), CASES)
def test_a_field_out_of_range_is_named(study: str, field: str, value: object) -> None:
    with pytest.raises(InputError, match=f"^{field}="):
        replace(studies.find(study).preset("default"), **{field: value})
