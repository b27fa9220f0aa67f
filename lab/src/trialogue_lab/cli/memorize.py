"""The command `trialogue memorize`: a text as weights of an attention-only transformer.

Its options are the fields of `trialogue_lab.theory.memorization.text.TextMemorySettings`.
"""

import argparse
import inspect
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from trialogue.cli.commands import Commands
from trialogue.cli.fields import Group, parse

if TYPE_CHECKING:
    from trialogue_lab.theory.memorization.text import Built, Plan, TextMemorySettings


def memorize(arguments: argparse.Namespace) -> None:
    """Build an attention-only transformer that holds what follows the most frequent contexts of a text."""
    settings = settings_of(arguments.overrides)

    from trialogue_lab.theory.memorization.text import TextMemory

    memory = TextMemory(settings, report=lambda line: print(line, file=sys.stderr))
    plan = memory.plan
    if not settings.json:
        _print_plan(plan, settings)
    built = memory.build() if settings.out is not None else None
    if settings.json:
        record = plan._asdict()
        if built is not None:
            record |= {name: value for name, value in built._asdict().items() if name != "model"}
        print(json.dumps(record))
    elif built is not None:
        _print_built(built, settings)


def settings_of(tokens: Sequence[str]) -> "TextMemorySettings":
    """What the command line's `tokens` ask for; where they ask for help, that is printed, and `SystemExit`."""
    from trialogue_lab.theory.memorization.text import TextMemorySettings

    parsed = parse(
        {"memory": Group(TextMemorySettings, inspect.getdoc(TextMemorySettings) or "")},
        tokens,
        prog="trialogue memorize",
        description=inspect.getdoc(memorize) or "",
        unknown="the command has no such option",
    )
    settings: TextMemorySettings = parsed["memory"]
    return settings


def _print_plan(plan: "Plan", settings: "TextMemorySettings") -> None:
    left = plan.different - plan.stored
    print(
        f"{plan.tokens:,} tokens of {settings.vocab_size}; {plan.different:,} different contexts of "
        f"{settings.context}"
    )
    print(
        f"{plan.features:,} features, {plan.parameters:,} parameters: {plan.stored:,} contexts would be stored, "
        f"{plan.share:.1%} of the text's places"
    )
    if left:
        print(f"{left:,} contexts are missing; {plan.heads_for_all:,} heads would hold all")
    if settings.width < settings.vocab_size - 1:
        print(
            f"width {settings.width} is below {settings.vocab_size - 1}: what is stored are the nearest laws whose "
            f"logits have rank {settings.width}"
        )
    if settings.out is None:
        print("nothing is built without --out DIR")


def _print_built(built: "Built", settings: "TextMemorySettings") -> None:
    print(
        f"KL to the text's laws: {built.kl:.4g} nats a token, of which the width costs {built.encoder_kl:.4g}"
    )
    if built.largest_error is not None:
        print(
            f"largest error of a log-probability: {built.largest_error:.1e} in float64, "
            f"{built.largest_error_float32:.1e} in float32 (condition {built.condition:.1e})"
        )
    there = "" if built.test_loss is None else f"; there {built.test_loss:.3f} nats a token"
    table = "" if built.test_loss_table is None else f", the table itself {built.test_loss_table:.3f}"
    print(f"on text for tests {built.test_share:.1%} of the contexts are stored{there}{table}")
    print(f"saved in {settings.out}: trialogue generate --model {settings.out} --prompt TEXT")


def add(commands: Commands) -> None:
    """Add the command."""
    commands.add("memorize", memorize, fields=True, add_help=False)
