"""The command `trialogue balance`, which tests how a trained network matches brackets."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from trialogue.cli.parsing.commands import Commands
from trialogue.validation import Count, check, integer_range

if TYPE_CHECKING:
    from trialogue_lab.models.dyck_transformer import DyckTransformer


def balance(arguments: argparse.Namespace) -> None:
    """Measure the accuracy, the stack-like attention and the balance violation of a trained bracket network.

    The accuracy is the share of closing brackets of random prefixes for which the network ranks the correct type first.
    A prediction is confident if the correct type has more than 0.8 of the probability of all closing brackets.
    Attention is stack-like if a closing bracket attends most to the innermost open bracket. The balance violation is 0
    for a network that is exact at any length.
    """
    from trialogue.errors import InputError
    from trialogue.models.networks.saved import load_model
    from trialogue_lab.models.dyck_transformer import DyckTransformer

    near = check("length", arguments.length, integer_range(2))
    far = check("far", arguments.far, integer_range(near + 1))
    prefixes = check("prefixes", arguments.prefixes, Count)
    network = load_model(arguments.checkpoint, DyckTransformer)
    if not network.config.causal:
        raise InputError(
            "checkpoint", str(arguments.checkpoint), "the network is not causal: use a causal one"
        )
    measured = _measure(network, near, far, prefixes, arguments.seed)
    if arguments.json:
        print(json.dumps(measured, allow_nan=False))
    else:
        _print(network, measured, near, far)


def _measure(
    network: "DyckTransformer", near: int, far: int, prefixes: int, seed: int
) -> dict[str, float | str | None]:
    from trialogue.data import Dyck
    from trialogue.display.numbers import finite_or_none
    from trialogue.errors import InputError
    from trialogue_lab.analysis.attention_variation import stack_likeness, with_uniform_attention
    from trialogue_lab.analysis.closing_accuracy import closing_accuracy
    from trialogue_lab.theory.balance import balance_violation

    config = network.config
    probabilities = (1 / config.types,) * config.types
    short, long = (
        Dyck(length, probabilities, 0.5, config.depth, complete=False).sample(prefixes, seed)
        for length in (near, far)
    )
    inside, outside = closing_accuracy(network, short), closing_accuracy(network, long, near)
    shares = {
        "accuracy": inside.likeliest,
        "confident": inside.confident,
        "accuracy_far": outside.likeliest,
        "confident_far": outside.confident,
        "accuracy_uniform_attention": closing_accuracy(with_uniform_attention(network), short).likeliest,
    }
    for layer, weights in enumerate(network.attention_weights(short), 1):
        shares[f"like_a_stack_layer_{layer}"] = stack_likeness(weights.detach(), short)
    measured: dict[str, float | str | None] = {name: finite_or_none(share) for name, share in shares.items()}
    try:
        measured["balance_violation"] = balance_violation(network)
        measured["balance_violation_released"] = balance_violation(network, "released")
    except InputError as error:
        measured |= {"balance_violation": None, "no_balance": str(error)}
    return measured


def _print(network: "DyckTransformer", measured: dict[str, float | str | None], near: int, far: int) -> None:
    config, layers = network.config, len(network.stack)
    print(f"{config.types} types of brackets, depth {config.depth}, {layers} attention layers")
    labels = {
        "accuracy": f"accuracy up to {near} brackets",
        "confident": "  confident predictions",
        "accuracy_far": f"accuracy from {near} to {far} brackets",
        "confident_far": "  confident predictions",
        "accuracy_uniform_attention": "accuracy with uniform attention",
        **{
            f"like_a_stack_layer_{layer}": f"stack-like attention, layer {layer}"
            for layer in range(1, layers + 1)
        },
    }
    for name, label in labels.items():
        share = "–" if measured[name] is None else f"{measured[name]:.1%}"
        print(f"{label:<46}{share:>8}")
    if measured["balance_violation"] is None:
        print(f"balance violation: not defined ({measured['no_balance']})")
    else:
        print(f"{'balance violation (0: exact at any length)':<46}{measured['balance_violation']:>8.3g}")
        print(f"{'  as the published program computes it':<46}{measured['balance_violation_released']:>8.3g}")


def add(commands: Commands) -> None:
    """Add `trialogue balance`."""
    parser = commands.add("balance", balance, group="Laboratory")
    parser.add_argument(
        "--checkpoint",
        required=True,
        type=Path,
        metavar="MODEL",
        help="read the bracket network from this file or folder, written by `save_model` (required)",
    )
    for option, default, text in (
        ("--length", 28, "measure prefixes of this many brackets, as in training"),
        ("--far", 500, "also measure prefixes of this many brackets"),
        ("--prefixes", 40, "sample this many random prefixes of each length"),
        ("--seed", 0, "sample the prefixes with this random seed"),
    ):
        parser.add_argument(
            option, type=int, default=default, metavar="N", help=f"{text} (default: {default})"
        )
    parser.add_argument("--json", action="store_true", help="print one JSON record (default: a table)")
