"""Which laws are easy to sample and hard to emit token by token, and what does a place to hide one's work change?

The post "Theoretical Limitations of Autoregressive Models" on tuples of two random primes and their product: written
[p, q, pq] every digit is easy, written [pq, p, q] a generator of the exact law is a factoring algorithm. Laws,
reductions, bounds and work-arounds are computed by enumeration; what a digit costs is counted as the primes grow.

Small transformers are then trained on both orders with the same number of tuples, and on the hard order with p and q
in a hidden stream before it (whose sequences are half as long again, so that it also computes more per tuple). The
sizes are far below those where factoring is hard for a computer: networks show what is hard to learn, not what is
hard to compute. Not in the post.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trialogue.errors import InputError, whole_number
from trialogue.ledger.study import Study, require_seeds
from trialogue.studies.type_signature_claims import CLAIMS
from trialogue.studies.type_signature_costs import cost_rows
from trialogue.studies.type_signature_exact import exact_rows
from trialogue.studies.type_signature_figures import FIGURES
from trialogue.studies.type_signature_networks import Training, network_rows
from trialogue.studies.type_signature_rows import STREAMS
from trialogue.studies.type_signature_tables import TABLES


@dataclass(frozen=True)
class Config:
    """The overlap bound is tried on `vectors` vectors of chances.

    Costs are means over `cost_samples` tuples, per seed of `cost_seeds`, for primes of each of `cost_digits`.

    Networks of `width` are trained on primes of each of `training_digits`, per seed of `training_seeds`, for
    `training_steps` steps on batches of `batch_size` tuples; then they emit `emitted` tuples each.
    """

    vectors: int = 1500
    cost_digits: tuple[int, ...] = (2, 3, 4, 5, 6, 7)
    cost_samples: int = 20
    cost_seeds: tuple[int, ...] = tuple(range(10))
    training_digits: tuple[int, ...] = (1, 2, 3)
    training_seeds: tuple[int, ...] = tuple(range(7))
    training_steps: int = 1000
    batch_size: int = 64
    width: int = 64
    emitted: int = 1000

    def __post_init__(self) -> None:
        for field in ("cost_seeds", "training_seeds"):
            require_seeds(field, getattr(self, field))
        for field, fewest, largest, mend in (
            ("cost_digits", 2, 9, "costs grow: give two or more different sizes from 1 to 9"),
            ("training_digits", 1, 3, "all tuples are listed: give different sizes from 1 to 3"),
        ):
            sizes = [whole_number(field, size, 1) for size in getattr(self, field)]
            if len(sizes) < fewest or len(set(sizes)) < len(sizes) or max(sizes) > largest:
                raise InputError(field, getattr(self, field), mend)
        for field in ("vectors", "cost_samples", "training_steps", "batch_size", "emitted"):
            whole_number(field, getattr(self, field), 1)
        if whole_number("width", self.width, 4) % 4:
            raise InputError("width", self.width, "networks have four heads: use a multiple of 4")


PRESETS = {
    "smoke": Config(
        vectors=50,
        cost_digits=(2, 3),
        cost_samples=2,
        cost_seeds=(0, 1),
        training_digits=(1, 2, 3),
        training_seeds=(0, 1),
        training_steps=20,
        batch_size=16,
        width=16,
        emitted=20,
    ),
    "default": Config(),
    "paper": Config(
        vectors=10_000,
        cost_digits=(2, 3, 4, 5, 6, 7, 8, 9),
        cost_samples=100,
        training_seeds=tuple(range(20)),
        training_steps=20_000,
        batch_size=512,
        width=256,
        emitted=10_000,
    ),
}


def parts(config: Config) -> list[str]:
    """The exact numbers, the costs, and one part per network."""
    networks = [
        f"network-{seed}-{digits}-{stream}"
        for seed in config.training_seeds
        for digits in config.training_digits
        for stream in range(len(STREAMS))
    ]
    return ["exact", "costs", *networks]


def run(config: Config, part: str, artifacts: Path) -> Iterator[dict[str, Any]]:
    """Measure one part."""
    del artifacts
    if part == "exact":
        yield from exact_rows(config.vectors)
    elif part == "costs":
        yield from cost_rows(config.cost_digits, config.cost_samples, config.cost_seeds)
    else:
        _, seed, digits, stream = part.split("-")
        training = Training(
            int(digits), STREAMS[int(stream)], config.training_steps, config.batch_size, config.width
        )
        yield from network_rows(training, config.emitted, int(seed))


STUDY = Study(
    name="type-signature",
    doc=__doc__,
    source='Post "Theoretical Limitations of Autoregressive Models": all sections, footnotes 1 to 4, appendix',
    version=1,
    presets=PRESETS,
    parts=parts,
    lane=lambda part: part if part in ("exact", "costs") else part.split("-")[1],
    run=run,
    claims=CLAIMS,
    tables=TABLES,
    figures=FIGURES,
)
