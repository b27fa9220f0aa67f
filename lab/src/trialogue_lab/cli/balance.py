"""The command `trialogue balance`: how a trained network closes brackets, and what can be seen of how it does so."""

import argparse
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

from trialogue.cli.commands import Commands

if TYPE_CHECKING:
    from trialogue_lab.models.dyck_transformer import DyckTransformer


def balance(arguments: argparse.Namespace) -> None:
    """Say how far a trained network of brackets is from balance, and how its attention and its accuracy go with that.

    Accuracy is the share of closing brackets of random prefixes before which the right one is the likeliest to close;
    "confident" asks for more than 0.8 of the closing probability wherever one is open. A stack attends most to the
    innermost open bracket.
    """
    from trialogue.errors import InputError, whole_number
    from trialogue.models.saved import load_model
    from trialogue_lab.models.dyck_transformer import DyckTransformer

    hint = "use a whole number of at least 2"
    near = whole_number("length", arguments.length, 2, hint=hint)
    far = whole_number("far", arguments.far, near + 1, hint=f"use a length above {near}")
    prefixes = whole_number("prefixes", arguments.prefixes, 1)
    network = load_model(arguments.checkpoint, DyckTransformer)
    if not network.config.causal:
        raise InputError("checkpoint", str(arguments.checkpoint), "it looks ahead: give one that is causal")
    found = _measured(network, near, far, prefixes, arguments.seed)
    if arguments.json:
        print(json.dumps(found, allow_nan=False))
    else:
        _print(network, found, near, far)


def _measured(
    network: "DyckTransformer", near: int, far: int, prefixes: int, seed: int
) -> dict[str, float | str | None]:
    from trialogue.data import Dyck
    from trialogue.errors import InputError
    from trialogue_lab.analysis.attention_variation import stack_likeness, with_uniform_attention
    from trialogue_lab.analysis.closing_accuracy import closing_accuracy
    from trialogue_lab.theory.balance import balance_violation

    shape = network.config
    law = (1 / shape.types,) * shape.types
    short, long = (
        Dyck(length, law, 0.5, shape.depth, complete=False).sample(prefixes, seed) for length in (near, far)
    )
    inside, outside = closing_accuracy(network, short), closing_accuracy(network, long, near)
    found: dict[str, float | str | None] = {
        "accuracy": inside.likeliest,
        "confident": inside.confident,
        "accuracy_far": outside.likeliest,
        "confident_far": outside.confident,
        "accuracy_uniform_attention": closing_accuracy(with_uniform_attention(network), short).likeliest,
    }
    for layer, weights in enumerate(network.attention_weights(short), 1):
        found[f"like_a_stack_layer_{layer}"] = stack_likeness(weights.detach(), short)
    try:
        found["balance_violation"] = balance_violation(network)
        found["balance_violation_released"] = balance_violation(network, "released")
    except InputError as error:
        found |= {"balance_violation": None, "no_balance": str(error)}
    return {
        name: None if isinstance(value, float) and math.isnan(value) else value
        for name, value in found.items()
    }


def _print(network: "DyckTransformer", found: dict[str, float | str | None], near: int, far: int) -> None:
    shape = network.config
    print(f"{shape.types} types of brackets, depth {shape.depth}, {len(network.stack)} layers of attention")
    named = {
        "accuracy": f"closes rightly, up to {near} brackets",
        "confident": "  confidently",
        "accuracy_far": f"closes rightly, {near} to {far} brackets",
        "confident_far": "  confidently",
        "accuracy_uniform_attention": "with uniform attention in place of its own",
    }
    for name, value in found.items():
        if name.startswith("like_a_stack"):
            said = f"attends as a stack, layer {name.rpartition('_')[2]}"
        else:
            said = named.get(name, "")
        if said:
            print(f"{said:<46}{'–' if value is None else f'{value:.1%}':>8}")
    if found["balance_violation"] is None:
        print(f"no balance: {found['no_balance']}")
    else:
        print(f"{'balance violation (0 is exact at any length)':<46}{found['balance_violation']:>8.3g}")
        print(f"{'  as the released program logs it':<46}{found['balance_violation_released']:>8.3g}")


def add(commands: Commands) -> None:
    """Add `trialogue balance`."""
    parser = commands.add("balance", balance)
    parser.add_argument(
        "--checkpoint",
        required=True,
        type=Path,
        metavar="MODEL",
        help="a network of brackets that save_model wrote",
    )
    parser.add_argument("--length", type=int, default=28, metavar="N", help="length it was trained at (28)")
    parser.add_argument("--far", type=int, default=500, metavar="N", help="length it is also asked at (500)")
    parser.add_argument(
        "--prefixes", type=int, default=40, metavar="N", help="random prefixes of either (40)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="which ones are drawn (0)")
    parser.add_argument("--json", action="store_true", help="print all numbers as JSON")
