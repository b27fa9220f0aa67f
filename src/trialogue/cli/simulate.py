r"""The command `trialogue simulate`, which samples a structured distribution by a Markov chain or exactly.

Example:
    $ trialogue simulate --distribution 'ising:{"sites": 16}' --chain metropolis --steps 200 --chains 4 --json
    {"distribution": "ising:{\"sites\": 16}", "chain": "metropolis", "steps": 200, ...}
"""

import argparse
import inspect
import io
import json
import math
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from tyro.conf import arg

from trialogue.cli.parsing.commands import Commands
from trialogue.cli.parsing.fields import Group, parse
from trialogue.errors import InputError
from trialogue.validation import Count, Natural, validated

if TYPE_CHECKING:
    from torch import Tensor

EXACT = "exact"
"""Value of `--chain` that draws independent exact samples instead of running a chain."""


@validated
@dataclass(frozen=True)
class SimulationSettings:
    """Distribution, chain and length of the simulation."""

    distribution: Annotated[str | None, arg(metavar="NAME[:JSON]")] = None
    """Simulate this distribution, with its arguments as JSON: ising:{"sites": 16, "coupling": 0.5},
    ising-grid:{"rows": 8, "columns": 8, "coupling": 0.4}, potts:{"length": 12, "temperature": 0.5,
    "patterns": [[0, 1], [1, 1]]}, many-body:{"sites": 8, "vocab_size": 4}, dyck:{"length": 10} (with --chain exact)."""
    chain: Annotated[str, arg(metavar="NAME[:JSON]")] = "gibbs"
    """Run this chain, with its arguments as JSON: gibbs, metropolis, block-gibbs:{"block_size": 2}. "exact" draws
    independent exact samples instead."""
    steps: Annotated[Count, arg(metavar="N")] = 1000
    """Run each chain for this many steps after the burn-in."""
    burn_in: Annotated[Natural, arg(metavar="N")] = 0
    """Discard this many steps at the beginning of each chain."""
    thin: Annotated[Count, arg(metavar="N")] = 1
    """Keep one sample every N steps."""
    chains: Annotated[Count, arg(metavar="N")] = 4
    """Run this many chains, each started from uniformly random tokens."""
    seed: Annotated[Natural, arg(metavar="N")] = 0
    """Seed of the random numbers."""
    out: Annotated[Path | None, arg(metavar="FILE")] = None
    """Write the samples to FILE, as NumPy arrays (.npz) or as ArviZ InferenceData in netCDF (.nc)."""
    json: bool = False
    """Print the diagnostics as a JSON object."""

    def __post_init__(self) -> None:
        from trialogue.storage import require_folder

        if self.distribution is None:
            raise InputError("distribution", None, 'use a distribution, for example ising:{"sites": 16}')
        if self.out is not None:
            require_folder(self.out)
            if self.out.suffix not in (".npz", ".nc"):
                raise InputError("out", str(self.out), "use a file name that ends in .npz or .nc")


class Draws(NamedTuple):
    """Samples of a simulation and their energies or log-probabilities.

    A site is a position of the sampled sequence.

    Attributes:
        tokens: Samples, int64 of shape (draws, chains, sites).
        quantity: Meaning of `values`, "energy" or "log_probability".
        values: Energy or log-probability of each sample, float64 of shape (draws, chains). None if the
            distribution defines neither.
        acceptance: Acceptance rate of each chain, float64 of shape (chains,), see `ChainRun.acceptance`. None
            if there is no rate.
    """

    tokens: "Tensor"
    quantity: str
    values: "Tensor | None"
    acceptance: "Tensor | None"


def simulate(arguments: argparse.Namespace) -> None:
    """Sample a structured distribution by a Markov chain or exactly, and print diagnostics."""
    settings: SimulationSettings = parse(
        {"simulation": Group(SimulationSettings, inspect.getdoc(SimulationSettings) or "")},
        arguments.overrides,
        prog="trialogue simulate",
        description=inspect.getdoc(simulate) or "",
        unknown="unknown option",
    )["simulation"]
    draws = run_simulation(settings)
    found = {**asdict(settings), "out": None if settings.out is None else str(settings.out)}
    del found["json"]
    found |= diagnostics(draws)
    if settings.out is not None:
        _write(settings.out, draws)
    if settings.json:
        print(json.dumps(found, ensure_ascii=False, allow_nan=False))
        return
    from rich.table import Table

    from trialogue.display.numbers import format_number
    from trialogue.display.terminal import console

    table = Table(show_header=False, box=None)
    for name, value in found.items():
        if value is not None and not isinstance(value, list):
            table.add_row(name, format_number(value, 4) if isinstance(value, float) else str(value))
    console().print(table)


def run_simulation(settings: SimulationSettings) -> Draws:
    """Sample a distribution by a Markov chain or exactly.

    Args:
        settings: Distribution, chain and number of steps.

    Raises:
        InputError: If the distribution or the chain is unknown, or the chain does not apply to the
            distribution.
    """
    import torch

    from trialogue.data.registered import DISTRIBUTIONS
    from trialogue.oracles import as_model
    from trialogue.randomness import generator
    from trialogue.samplers import CHAINS, run_chain

    model = DISTRIBUTIONS.build(str(settings.distribution))
    model = model[0] if isinstance(model, tuple) else model
    acceptance = None
    if settings.chain == EXACT:
        if not hasattr(model, "sample"):
            hint = f"use one of the chains {', '.join(CHAINS)}: {type(model).__name__} has no exact sampler"
            raise InputError("chain", EXACT, hint)
        count = max(1, settings.steps // settings.thin)
        tokens = model.sample(count * settings.chains, settings.seed).view(count, settings.chains, -1)
    else:
        oracle = as_model(model)
        if oracle.sites is None:
            hint = "use a distribution with a fixed number of sites"
            raise InputError("distribution", settings.distribution, hint)
        shape = (settings.chains, oracle.sites)
        start = torch.randint(oracle.vocab_size, shape, generator=generator(settings.seed, "starts"))
        run = run_chain(
            CHAINS.build(settings.chain),
            model,
            start=start,
            steps=settings.steps,
            burn_in=settings.burn_in,
            thin=settings.thin,
            seed=settings.seed,
            progress=sys.stderr.isatty(),
        )
        tokens, acceptance = run.samples, run.acceptance
    score = getattr(model, "energy", None) or getattr(model, "log_prob", None)
    values = None if score is None else score(tokens.flatten(0, 1)).double().view(tokens.shape[:2])
    return Draws(tokens, "energy" if hasattr(model, "energy") else "log_probability", values, acceptance)


def diagnostics(draws: Draws) -> dict[str, Any]:
    """Compute means and convergence diagnostics of a simulation.

    Args:
        draws: Samples and their energies or log-probabilities.

    Returns:
        JSON values by name. A value that cannot be computed is None.
    """
    from trialogue.samplers.chains.convergence import size_and_r_hat

    size = r_hat = mean = error = None
    if draws.values is not None:
        mean = float(draws.values.mean())
        if len(draws.values) >= 4:
            try:
                size, r_hat = size_and_r_hat(draws.values.T.numpy())
                error = float(draws.values.std()) / math.sqrt(size)
            except InputError as missing:
                print(f"trialogue: no R-hat and effective sample size: {missing}", file=sys.stderr)
    numbers = {
        f"mean_{draws.quantity}": mean,
        "standard_error": error,
        "effective_sample_size": size,
        "r_hat": r_hat,
        "acceptance": None if draws.acceptance is None else float(draws.acceptance.mean()),
    }
    # The R-hat of constant values is NaN, which JSON does not support.
    found: dict[str, Any] = {
        name: value if value is not None and math.isfinite(value) else None for name, value in numbers.items()
    }
    by_chain = None if draws.acceptance is None else draws.acceptance.tolist()
    return {"draws": len(draws.tokens), **found, "acceptance_by_chain": by_chain}


def _write(file: Path, draws: Draws) -> None:
    import numpy as np

    from trialogue.extras import from_extra
    from trialogue.samplers.inference_data import inference_data
    from trialogue.storage import atomic_write

    tokens = draws.tokens.transpose(0, 1)
    stats = {} if draws.values is None else {draws.quantity: draws.values.T}
    rates = {} if draws.acceptance is None else {"acceptance": draws.acceptance.tolist()}
    if file.suffix == ".npz":
        arrays: dict[str, Any] = {"tokens": tokens.numpy(), **stats, **rates}
        content = io.BytesIO()
        np.savez_compressed(content, **arrays)
        atomic_write(file, content.getvalue())
        return
    from_extra("h5netcdf", "chains")
    tree = inference_data({"tokens": tokens}, stats, {"tokens": ["site"]}, rates)
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "samples.nc"
        tree.to_netcdf(whole, engine="h5netcdf")
        atomic_write(file, whole.read_bytes())


def add(commands: Commands) -> None:
    """Add the command `trialogue simulate` to a parser.

    Args:
        commands: Commands of the parser.
    """
    commands.add("simulate", simulate, group="Generate", fields=True, add_help=False)
