"""Structured distributions by the names that commands know them by.

A package adds one by an entry point of the group `trialogue.distributions`. Its value is a function, or a class, whose
keyword arguments are values of JSON. It returns a model of whole sequences (see `trialogue.oracles`), or a pair of an
autoregressive oracle and the texts of its tokens.
"""

from collections.abc import Callable, Sequence
from typing import Any

from trialogue.data.dyck.language import Dyck
from trialogue.data.ising.grid import ising_grid
from trialogue.data.ising.model import Ising
from trialogue.data.potts.chain import PottsChain
from trialogue.data.potts.distribution import PottsDistribution
from trialogue.data.table import Table
from trialogue.oracles import Autoregressive
from trialogue.registry import Registry
from trialogue.validation import Count, Finite, validated

Spelled = tuple[Autoregressive, Sequence[str]]
"""An oracle, and the texts of its tokens."""

_BRACKETS = ("[", "]", "(", ")", "{", "}", "<", ">")


def uniform(tokens: Sequence[str], length: int | None = None) -> Spelled:
    """Return the oracle that gives every token the same probability at every position."""
    size = len(tokens)
    return Table(lambda _: [1 / size] * size, size, max_length=length), tokens


def dyck(**arguments: Any) -> Spelled:
    """Return the `Dyck` distribution with these arguments, its tokens written as brackets."""
    distribution = Dyck(**arguments)
    pairs = [(f"<{t}", f"{t}>") for t in range(len(_BRACKETS) // 2, len(distribution.type_probs))]
    return distribution, (*_BRACKETS, *(text for pair in pairs for text in pair))[: distribution.vocab_size]


@validated
def ising(sites: Count, coupling: Finite = 0.5, field: Finite = 0.0) -> Ising:
    """Return the Ising model of a ring of spins (see `ising_grid` for the arguments)."""
    return ising_grid(1, sites, coupling, field=field)


def potts(length: int, temperature: float, **arguments: Any) -> PottsDistribution:
    """Return the distribution of a `PottsChain` that stores patterns (see `PottsChain.from_patterns`)."""
    return PottsChain.from_patterns(**arguments).at(length, temperature)


DISTRIBUTIONS: Registry[Callable[..., Any]] = Registry(
    "trialogue.distributions",
    "distribution",
    {
        "dyck": dyck,
        "uniform": uniform,
        "ising": ising,
        "ising-grid": ising_grid,
        "ising-clique": Ising.clique,
        "potts": potts,
        "many-body": "trialogue.data.many_body.model:ManyBody.random",
    },
)
"""Structured distributions by name: functions of their arguments."""
