"""The command `trialogue clone`."""

import argparse
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import arg

from trialogue.cli.parsing.commands import Commands
from trialogue.cli.parsing.fields import Group, parse
from trialogue.errors import InputError
from trialogue.validation import Count, validated

if TYPE_CHECKING:
    from trialogue.data.clones import Clones
    from trialogue.generation.cloning.maker import MadeClone

_ABOUT = """A clone is a set of sequences drawn from a network that was trained on the text. The attention of these
networks does not depend on the input, so the depth bounds how many tokens interact. A model that has learned
higher-order interactions has a lower loss on the text than on the clone; `trialogue interaction-order` measures this.
Repeat the command to resume an interrupted run."""


@validated
@dataclass(frozen=True, kw_only=True)
class Machine:
    """Options of `trialogue clone` on the output folder and the hardware."""

    out: Annotated[Path | None, arg(metavar="FOLDER")] = None
    """Write the clones to this folder."""
    device: Annotated[str | None, arg(metavar="DEVICE")] = None
    """Compute on this device: cpu, cuda or cuda:1 (default: the GPU if there is one)."""
    threads: Annotated[Count, arg(metavar="N")] = 1
    """Use this many PyTorch threads per process."""

    def __post_init__(self) -> None:
        if self.out is None:
            raise InputError("out", None, "use a folder: trialogue clone --text FILE --out FOLDER")


def clone(arguments: argparse.Namespace) -> None:
    """Make copies of a text whose token interactions are limited to chosen orders."""
    from trialogue.executors.settings import Execution
    from trialogue.generation.cloning.settings import (
        CloneSettings,
        DrawingSettings,
        NetworkSettings,
        TextSettings,
    )

    groups = {
        "text": Group(TextSettings, "Text and tokens."),
        "networks": Group(NetworkSettings, "Networks and their training.", terse=False),
        "clones": Group(DrawingSettings, "Sampling of the clones."),
        "folder and machine": Group(Machine, "Output folder and hardware."),
        "workers": Group(Execution, "Worker processes, which create clones in parallel."),
    }
    parsed = parse(
        groups,
        arguments.overrides,
        prog="trialogue clone",
        description=f"{clone.__doc__}\n\n{_ABOUT}",
        unknown="unknown option",
    )
    machine: Machine = parsed["folder and machine"]
    out = Path(str(machine.out))
    settings = CloneSettings(
        text=parsed["text"], network=parsed["networks"], drawing=parsed["clones"], out=out
    )

    import torch

    from trialogue.data.clones import Clones
    from trialogue.generation.cloning.making import make_clones

    torch.set_num_threads(machine.threads)
    made: list[MadeClone] = []
    try:
        executor = parsed["workers"].opened(machine.threads)
        for one in make_clones(
            settings,
            device=machine.device,
            executor=executor,
            threads=machine.threads,
            progress=True,
            report=_report,
        ):
            made.append(one)
    except KeyboardInterrupt as error:
        total = 1 + len(settings.network.layers)
        saved = f"interrupted: {len(made)} of {total} clones and unfinished work are saved in {out}"
        raise KeyboardInterrupt(f"{saved}; run the same command to continue") from error
    _print(sorted(made, key=lambda one: one.clone.layers or 0), Clones(out))


def _report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _print(made: "list[MadeClone]", clones: "Clones") -> None:
    from rich.markup import escape

    from trialogue.display.terminal import console, grid
    from trialogue.generation.cloning.drawing import describe_convergence

    out = console()
    rows, length = made[0].clone.tokens.shape
    title = f"{rows} sequences of {length} tokens, {clones.vocab_size} kinds"
    heads = ("clone", "keeps", "held-out loss", "acceptance", "ESS", "R-hat", "energy", "drift", "chains")
    out.print(grid(title, heads, [_cells(one, describe_convergence(one.convergence)) for one in made]))
    out.print(
        "keeps: maximum number of interacting tokens. held-out loss: loss of the network in nats per token. "
        "acceptance: fraction of updates that changed a token. ESS, R-hat, drift: computed from the energies of the "
        "second half of the sweeps; drift is the difference of its two halves ± standard error. energy: mean before "
        "and after all sweeps."
    )
    for one in made:
        shown = clones.decode(one.clone.tokens[:2])
        out.print(
            f"[bold]{one.clone.name}[/bold]  "
            + escape("  |  ".join(" ".join(text.split()) for text in shown))
        )
    out.print(f"clones: {clones.folder}")


def _cells(one: "MadeClone", chains: str) -> list[str]:
    """Return the texts of the row of a clone."""
    from trialogue.data.clones import TEXT

    made, found = one.clone, one.convergence
    if made.name == TEXT or one.energies is None:
        return [made.name, "everything", *[""] * 7]
    drift = (
        ""
        if found is None or math.isnan(found.drift_error)
        else f"{found.drift:+.2f} ± {found.drift_error:.2f}"
    )
    return [
        made.name,
        "all orders" if made.max_order is None else f"order {made.max_order}",
        f"{made.network_loss:.3f}",
        f"{made.acceptance:.1%}",
        "" if made.effective_sample_size is None else f"{made.effective_sample_size:,.0f}",
        "" if made.r_hat is None else f"{made.r_hat:.3f}",
        f"{one.energies[0]:.1f} to {one.energies[-1]:.1f}",
        drift,
        chains,
    ]


def add(commands: Commands) -> None:
    """Add the command `trialogue clone` to a parser.

    Args:
        commands: Commands of the parser.
    """
    commands.add("clone", clone, group="Inspect", fields=True, add_help=False)
