"""Potts models on a rectangular grid with periodic boundaries, as tables for Gibbs sampling."""

from typing import Annotated

import numpy as np
import torch
from annotated_types import Ge

from trialogue.data.site_tables import (
    ALIAS_BITS,
    MAX_ENTRIES,
    SiteTables,
    make_alias_entries,
    probability_thresholds,
)
from trialogue.errors import InputError
from trialogue.oracles import enumerate_sequences
from trialogue.validation import Finite, validated


@validated
def potts_grid(
    rows: Annotated[int, Ge(3)],
    columns: Annotated[int, Ge(3)],
    vocab_size: Annotated[int, Ge(2)],
    coupling: Finite,
) -> SiteTables:
    """Return Gibbs sampling tables of a Potts model on a grid with periodic boundaries.

    The model is p(x) ∝ exp(-J / T * number of unequal neighbors). The site in row r and column c has the index r *
    `columns` + c. For two values, the model is equal to `ising_grid` with half the coupling.

    Args:
        rows: Number of rows.
        columns: Number of columns.
        vocab_size: Number of values per site.
        coupling: Coupling divided by the temperature, J / T.

    Raises:
        InputError: If tables for four neighbors of this many values would be too large.
    """
    vocab = vocab_size
    if vocab > 2**ALIAS_BITS or vocab**5 > MAX_ENTRIES:
        most = min(2**ALIAS_BITS, int(MAX_ENTRIES**0.2))
        raise InputError(
            "vocab_size",
            vocab,
            f"the tables for four neighbors would be too large: use at most {most} values",
        )
    beside = enumerate_sequences(vocab, 4)
    equal = (beside[:, :, None] == torch.arange(vocab)).sum(1)
    distribution = (coupling * equal.double()).softmax(1).numpy()
    site = np.arange(rows * columns).reshape(rows, columns)
    neighbours = [np.roll(site, shift, axis).ravel() for axis in (0, 1) for shift in (1, -1)]
    size = vocab if vocab > 2 else 1
    strides = np.tile((size * vocab ** np.arange(3, -1, -1)).astype(np.uint32), (site.size, 1))
    return SiteTables(
        np.stack(neighbours, 1),
        strides,
        np.zeros(site.size, np.uint32),
        make_alias_entries(distribution) if vocab > 2 else probability_thresholds(distribution[:, 1]),
        vocab,
    )
