"""The command `trialogue memorize`, which stores a text in the weights of an attention-only transformer.

Its options are the fields of `trialogue_lab.theory.memorization.text.TextMemorySettings`.
"""

import argparse
import inspect
import json
import sys
from typing import TYPE_CHECKING

from trialogue.cli.parsing.commands import Commands
from trialogue.cli.parsing.fields import Group, parse

if TYPE_CHECKING:
    from trialogue_lab.theory.memorization.text import MemorizedText, MemoryPlan, TextMemorySettings


def memorize(arguments: argparse.Namespace) -> None:
    """Build an attention-only transformer that stores what follows the most frequent contexts of a text."""
    from trialogue_lab.theory.memorization.text import TextMemory, TextMemorySettings

    settings: TextMemorySettings = parse(
        {"memory": Group(TextMemorySettings, inspect.getdoc(TextMemorySettings) or "")},
        arguments.overrides,
        prog="trialogue memorize",
        description=inspect.getdoc(memorize) or "",
        unknown="the command has no such option",
    )["memory"]
    memory = TextMemory(settings, report=lambda line: print(line, file=sys.stderr))
    plan = memory.plan
    if not settings.json:
        _print_plan(plan, settings)
    built = memory.build() if settings.out is not None else None
    if settings.json:
        record = plan._asdict() | (built._asdict() if built else {})
        record.pop("model", None)
        print(json.dumps(record))
    elif built is not None:
        _print_built(built, settings)


def _print_plan(plan: "MemoryPlan", settings: "TextMemorySettings") -> None:
    print(
        f"{plan.tokens:,} tokens with a vocabulary of {settings.vocab_size}; {plan.different:,} distinct contexts of "
        f"{settings.context} tokens"
    )
    print(
        f"{plan.features:,} features and {plan.parameters:,} parameters store {plan.stored:,} contexts, "
        f"{plan.share:.1%} of all positions of the text"
    )
    if plan.different > plan.stored:
        missing = plan.different - plan.stored
        print(f"{missing:,} contexts are not stored; {plan.heads_for_all:,} heads would store all")
    if settings.width < settings.vocab_size - 1:
        print(
            f"width {settings.width} is below {settings.vocab_size - 1}: the stored distributions are the closest ones "
            f"whose logits have rank {settings.width}"
        )
    if settings.out is None:
        print("no model is built: use --out DIR to build one")


def _print_built(built: "MemorizedText", settings: "TextMemorySettings") -> None:
    print(
        f"KL divergence from the distributions of the text: {built.kl:.4g} nats per token, "
        f"{built.encoder_kl:.4g} of which are due to the width"
    )
    if built.largest_error is not None:
        print(
            f"largest error of a log-probability: {built.largest_error:.1e} in float64, "
            f"{built.largest_error_float32:.1e} in float32 (condition number {built.condition:.1e})"
        )
    loss = "" if built.test_loss is None else f", with a loss of {built.test_loss:.3f} nats per token"
    table = "" if built.test_loss_table is None else f" ({built.test_loss_table:.3f} for an n-gram table)"
    print(f"{built.test_share:.1%} of the contexts of the test text are stored{loss}{table}")
    print(f"saved in {settings.out}: use `trialogue generate --model {settings.out} --prompt TEXT`")


def add(commands: Commands) -> None:
    """Add `trialogue memorize`."""
    commands.add("memorize", memorize, group="Laboratory", fields=True, add_help=False)
