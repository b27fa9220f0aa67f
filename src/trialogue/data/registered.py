"""Registry of structured distributions, which commands find by name.

Packages can add distributions with entry points in the group `trialogue.distributions`. The value is a function
or a class with JSON values as keyword arguments. It returns a model of whole sequences (see `trialogue.oracles`),
or a pair of an autoregressive oracle and the texts of its tokens.
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

OracleWithTexts = tuple[Autoregressive, Sequence[str]]
"""Oracle, and the texts of its tokens."""

_BRACKETS = ("[", "]", "(", ")", "{", "}", "<", ">")


def uniform(tokens: Sequence[str], length: int | None = None) -> OracleWithTexts:
    """Return an oracle with a uniform distribution of the next token.

    Args:
        tokens: Texts of the tokens.
        length: Maximum number of tokens of a sequence (default: no maximum).

    Returns:
        Oracle, and the texts of its tokens.
    """
    size = len(tokens)
    return Table(lambda _: [1 / size] * size, size, max_length=length), tokens


def dyck(**arguments: Any) -> OracleWithTexts:
    """Return a distribution of bracket strings.

    Args:
        **arguments: Arguments of `Dyck`.

    Returns:
        `Dyck` distribution, and the texts of its tokens: "[", "]", "(", ")" and so on.
    """
    distribution = Dyck(**arguments)
    pairs = [(f"<{t}", f"{t}>") for t in range(len(_BRACKETS) // 2, len(distribution.type_probs))]
    return distribution, (*_BRACKETS, *(text for pair in pairs for text in pair))[: distribution.vocab_size]


@validated
def ising(sites: Count, coupling: Finite = 0.5, field: Finite = 0.0) -> Ising:
    """Return an Ising model of a ring of spins.

    The distribution is p(x) ∝ exp(coupling * sum over neighbors of x_i x_j + field * sum of x_i) of spins x_i = ±1.

    Args:
        sites: Number of spins.
        coupling: Coupling of neighbors, divided by the temperature (default: 0.5).
        field: Field on every spin, divided by the temperature (default: 0).
    """
    return ising_grid(1, sites, coupling, field=field)


def potts(length: int, temperature: float, **arguments: Any) -> PottsDistribution:
    """Return the distribution of a Potts chain with stored patterns.

    Args:
        length: Number of tokens of a sequence.
        temperature: Temperature, in the unit of the energies.
        **arguments: Arguments of `PottsChain.from_patterns`.
    """
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
"""Functions that create structured distributions, by name."""
