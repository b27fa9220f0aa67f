"""The command `trialogue distribution`."""

import argparse
import inspect
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from trialogue.cli.parsing.commands import Commands
from trialogue.cli.parsing.samplers import parse_with_sampler, print_samplers_and_verifiers
from trialogue.cli.unmasking import distribution_of_unmasking, is_unmasking

if TYPE_CHECKING:
    from trialogue.generation.exact.report import SamplerDistribution
    from trialogue.generation.exact.settings import DistributionSettings


_ROUNDING = 1e-12
"""Numbers of at most this size are shown as 0."""


def distribution(arguments: argparse.Namespace) -> None:
    """Compute the exact output distribution and cost of a sampler on a small model.

    The command also prints the total variation distance to the target, the model's distribution restricted to accepted
    outputs.
    """
    if is_unmasking(arguments.overrides):
        distribution_of_unmasking(arguments.overrides)
        return
    try:
        settings = parse_settings(arguments.overrides)
    except SystemExit:
        print_samplers_and_verifiers()
        raise

    from trialogue.generation.exact.report import sampler_distribution

    if settings.shown.figure is not None:
        from trialogue.extras import from_extra

        from_extra("matplotlib", "plot")
    found = sampler_distribution(settings, progress=sys.stderr is not None and sys.stderr.isatty())
    if settings.shown.json:
        print(json.dumps(found.record(), ensure_ascii=False, allow_nan=False))
    else:
        _print(found, settings.shown.top)
    if settings.shown.figure is not None:
        _draw(found, settings)


def parse_settings(tokens: Sequence[str]) -> "DistributionSettings":
    """Parse the command line of `trialogue distribution`.

    Args:
        tokens: Words of the command line after the name of the command.

    Raises:
        InputError: If an option is unknown or has an invalid value.
        SystemExit: If the words contain `--help`, after the help is printed.
    """
    from trialogue.generation.exact.settings import OPTIONS, DistributionSettings

    parsed = parse_with_sampler("distribution", inspect.getdoc(distribution) or "", OPTIONS, tokens)
    return DistributionSettings(
        source=parsed["oracle"],
        sampler=parsed["sampler"],
        rule=parsed["verifiers"],
        sampling=parsed["sampler and cut"],
        shown=parsed["output"],
    )


def _print(found: "SamplerDistribution", most: int) -> None:
    from rich.table import Table

    from trialogue.display.numbers import format_number, plain_exponent
    from trialogue.display.terminal import console

    out = console()
    out.print(found.sampler, markup=False, highlight=False)
    table = Table()
    table.add_column("text", overflow="fold")
    for head in ("target", "sampler", "sampler / target"):
        table.add_column(head, justify="right")
    heaviest = sorted(found.outputs, key=lambda one: -max(one.distribution, one.restricted))[:most]
    for one in heaviest:
        ratio = (
            "never"
            if one.distribution == 0
            else plain_exponent(f"{one.distribution / one.restricted:.3g}")
            if one.restricted
            else "not allowed"
        )
        shares = (plain_exponent(f"{share:.4g}") for share in (one.restricted, one.distribution))
        table.add_row(repr(one.text)[1:-1], *shares, ratio)
    out.print(table)
    if len(heaviest) < len(found.outputs):
        out.print(f"{len(found.outputs) - len(heaviest):,} outputs are not shown: use --top N or --json")
    numbers: dict[str, float | None] = {
        "total variation distance to the target": found.total_variation,
        "KL(sampler, target), nats": found.kl,
        "KL(target, sampler), nats": found.reverse_kl,
        "total variation distance after reweighting": found.weighted_variation,
        "probability of rejected outputs": found.rejected,
        "probability of stopping without an output": found.failed,
        "probability of never halting": found.never_halts,
        "model calls per output, expected": found.expected_calls,
        "distinct prefixes per output, expected": found.different_nodes,
        "stationary probability of the leaves": found.leaf_mass,
        "probability of accepted outputs under the model": found.accepted_mass,
    }
    summary = Table(show_header=False, box=None)
    for name, number in numbers.items():
        if number is not None:
            summary.add_row(name, format_number(number, 4) if abs(number) > _ROUNDING else "0")
    out.print(summary)


def _draw(found: "SamplerDistribution", settings: "DistributionSettings") -> None:
    from trialogue.display.figures import render_figure
    from trialogue.generation.exact.picture import draw_tree
    from trialogue.storage import atomic_write

    file = settings.shown.figure
    assert file is not None
    form = file.suffix.lstrip(".")
    content = render_figure(
        lambda: draw_tree(found, settings.shown.top), "svg" if form == "svg" else "png", "distribution"
    )
    atomic_write(file, content)


def add(commands: Commands) -> None:
    """Add the command `trialogue distribution` to a parser.

    Args:
        commands: Commands of the parser.
    """
    commands.add("distribution", distribution, group="Generate", fields=True, add_help=False)
