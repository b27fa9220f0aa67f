"""The command `trialogue law`: the exact law of what a walk samples on a small oracle, and what it costs.

Its options are the fields of `trialogue.generation.exact.settings`, and those of the walk that is named.
"""

import argparse
import inspect
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from trialogue.cli.commands import Commands
from trialogue.cli.samplers import parsed_with_walk, print_listed

if TYPE_CHECKING:
    from trialogue.generation.exact.report import WalkLaw
    from trialogue.generation.exact.settings import LawSettings


def law(arguments: argparse.Namespace) -> None:
    """Compute exactly what a walk samples on a small oracle, how far it is from the restricted law, and its queries."""
    try:
        settings = settings_of(arguments.overrides)
    except SystemExit:
        print_listed()
        raise

    from trialogue.generation.exact.report import law_of

    found = law_of(settings)
    if settings.shown.json:
        print(json.dumps(found.record(), ensure_ascii=False, allow_nan=False))
    else:
        _print(found, settings.shown.top)
    if settings.shown.figure is not None:
        _draw(found, settings)


def settings_of(tokens: Sequence[str]) -> "LawSettings":
    """What the command line's `tokens` ask for; where they ask for help, that is printed, and `SystemExit`."""
    from trialogue.generation.exact.settings import OPTIONS, LawSettings, Walking

    parsed = parsed_with_walk("law", inspect.getdoc(law) or "", OPTIONS, Walking.walk, tokens)
    return LawSettings(
        source=parsed["oracle"],
        walk=parsed["walk"],
        rule=parsed["rule"],
        walking=parsed["walk and cut"],
        shown=parsed["output"],
    )


def _print(found: "WalkLaw", most: int) -> None:
    from rich.table import Table

    from trialogue.display.numbers import format_number
    from trialogue.display.terminal import console

    out = console()
    numbers: dict[str, float | None] = {
        "total variation to the restricted law": found.total_variation,
        "KL(law, restricted), nats": found.kl,
        "KL(restricted, law), nats": found.reverse_kl,
        "total variation once drawn by weight": found.weighted_variation,
        "outputs that the rule does not allow": found.rejected,
        "stopped before an output": found.failed,
        "never halts": found.never_halts,
        "expected queries": found.expected_queries,
        "different prefixes asked about": found.different_nodes,
        "stationary mass of the leaves": found.leaf_mass,
        "the oracle's probability of the rule": found.accepted_mass,
    }
    facts = Table(title=found.walk, title_justify="left", show_header=False, box=None)
    for name, number in numbers.items():
        if number is not None:
            facts.add_row(name, format_number(number, 4))
    out.print(facts)
    table = Table(title="outputs", title_justify="left")
    table.add_column("text", overflow="fold")
    for head in ("restricted", "the walk", "times"):
        table.add_column(head, justify="right")
    heaviest = sorted(found.outputs, key=lambda one: -max(one.law, one.restricted))[:most]
    for one in heaviest:
        ratio = (
            "never"
            if one.law == 0
            else f"{one.law / one.restricted:.3g}"
            if one.restricted
            else "not allowed"
        )
        table.add_row(repr(one.text)[1:-1], f"{one.restricted:.4g}", f"{one.law:.4g}", ratio)
    out.print(table)
    if len(heaviest) < len(found.outputs):
        out.print(
            f"{len(found.outputs) - len(heaviest):,} outputs are not shown: --top N shows more, --json all"
        )


def _draw(found: "WalkLaw", settings: "LawSettings") -> None:
    from trialogue.display.figures import rendered
    from trialogue.generation.exact.picture import draw_tree
    from trialogue.storage import atomic_write

    file = settings.shown.figure
    assert file is not None
    form = file.suffix.lstrip(".")
    content = rendered(lambda: draw_tree(found, settings.shown.top), "svg" if form == "svg" else "png", "law")
    atomic_write(file, content)


def add(commands: Commands) -> None:
    """Add the command."""
    commands.add("law", law, fields=True, add_help=False)
