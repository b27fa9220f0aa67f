"""The command `trialogue interaction-order`."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from trialogue.cli.parsing.commands import Commands, add_model_options
from trialogue.validation import Count, check

if TYPE_CHECKING:
    from trialogue.data.clones import Clones
    from trialogue.inspection.interaction_order.clone_scorers import CloneLoss
    from trialogue.inspection.interaction_order.reading import LossSummary

_FIGURE = "interaction-order.svg"
_STEP_HEADS = ("clone", "keeps", "first loss", "last loss", "minimum since", "excess over text", "since")
_HEADS = ("clone", "keeps", "loss", "accuracy", "excess over text")

Form = Literal["svg", "png"]


def interaction_order(arguments: argparse.Namespace) -> None:
    """Measure which order of token interactions a model has learned, by its losses on clones of a text."""
    import torch

    from trialogue.data.clones import Clones
    from trialogue.display.figures import render_figure
    from trialogue.errors import InputError
    from trialogue.extras import from_extra
    from trialogue.inspection.interaction_order.measure import clone_losses
    from trialogue.inspection.interaction_order.picture import draw_losses
    from trialogue.inspection.interaction_order.reading import summarize_losses
    from trialogue.storage import atomic_write, require_folder

    from_extra("matplotlib", "plot")  # Check for the package before the computation.
    torch.set_num_threads(check("threads", arguments.threads, Count))
    clones = Clones(arguments.clones)
    figure: Path = arguments.figure or clones.folder / _FIGURE
    form = figure.suffix.removeprefix(".")
    if form not in get_args(Form):
        raise InputError("figure", str(figure), "use a file name that ends in .svg or .png")
    require_folder(figure)
    losses = list(
        clone_losses(
            arguments.model,
            clones,
            rows=arguments.rows,
            share=arguments.share,
            seed=arguments.seed,
            device=arguments.device,
            dtype=arguments.dtype,
            report=lambda line: print(f"measuring {line}", file=sys.stderr, flush=True),
        )
    )
    found = summarize_losses(losses)
    if arguments.json:
        record = {"losses": map(_loss_record, losses), "readings": map(_reading_record, found)}
        print(json.dumps({key: list(rows) for key, rows in record.items()}, allow_nan=False))
    else:
        _print(losses, found)
        _warn(clones)
    atomic_write(figure, render_figure(lambda: draw_losses(losses), cast(Form, form), "interaction-order"))
    if not arguments.json:
        print(f"figure: {figure}")


def _print(losses: "list[CloneLoss]", found: "list[LossSummary]") -> None:
    from trialogue.display.terminal import console, grid

    out = console()
    for model in dict.fromkeys(one.model for one in losses):
        of_model = [one for one in losses if one.model == model]
        of_clones = [one for one in found if one.model == model]
        has_steps = of_clones[0].saturated is not None
        kind = "next token" if of_model[0].causal else "single masked tokens"
        unit = "token" if of_model[0].tokens_per_byte is None else "byte of text"
        heads = _STEP_HEADS if has_steps else _HEADS
        rows = [_cells(one, has_steps) for one in of_clones]
        out.print(grid(f"{model}: {kind}, nats per {unit}", heads, rows))
        out.print(_conclusion(of_model))
    if any(one.tokens_per_byte is not None for one in losses):
        out.print(
            "A model with another tokenization is evaluated on the text of the clones, in nats per byte."
        )


def _warn(clones: "Clones") -> None:
    """Print which clones have not converged."""
    from trialogue.display.terminal import console
    from trialogue.samplers.chains.convergence import R_HAT

    unmixed = [
        f"{clone.name} ({'no R-hat' if clone.r_hat is None else f'{clone.r_hat:.2f}'})"
        for clone in clones
        if (clone.sampler is not None and clone.r_hat is None) or (clone.r_hat or 0) > R_HAT
    ]
    if unmixed:
        warning = f"By R-hat (above {R_HAT}, or none) these have not mixed and may differ from the text in other ways"
        console().print(f"{warning}: {', '.join(unmixed)}.")


def _cells(one: "LossSummary", has_steps: bool) -> list[str]:
    """Return the row of a clone in the table of its model."""
    from trialogue.data.clones import TEXT

    unlimited = "all" if one.clone == TEXT else "all orders"
    keeps = unlimited if one.max_order is None else f"order {one.max_order}"
    more = "" if one.gap is None else f"{one.gap.difference:+.3f} ± {one.gap.error:.3f}"
    if not has_steps:
        return [one.clone, keeps, f"{one.losses[-1]:.4f}", f"{one.accuracy:.1%}", more]
    since = "" if one.gap is None else "never" if one.told_since is None else f"step {one.told_since}"
    ends = [f"{loss:.4f}" for loss in (one.losses[0], one.losses[-1])]
    return [one.clone, keeps, *ends, f"step {one.saturated}", more, since]


def _conclusion(losses: "list[CloneLoss]") -> str:
    """Return a sentence on the interaction order that the model has learned."""
    from trialogue.data.clones import TEXT
    from trialogue.inspection.interaction_order.reading import learned_beyond

    if TEXT not in {one.clone for one in losses}:
        return "The learned order cannot be determined without the text itself among the clones."
    steps = list(dict.fromkeys(one.step for one in losses))
    orders = [learned_beyond([one for one in losses if one.step == step]) for step in steps]
    if orders[-1] is None:
        return "No clone differs significantly from the text, so the model may have learned only the lowest order."
    last = f"The model has learned interactions beyond order {orders[-1]}, since clones up to it have a larger loss"
    changes = [
        f"beyond order {order} at step {step}"
        for (step, order), before in zip(zip(steps, orders, strict=True), [None, *orders], strict=False)
        if order is not None and order != before
    ]
    return f"{last}." if len(steps) == 1 else f"{last} ({', '.join(changes)})."


def _loss_record(one: "CloneLoss") -> dict[str, Any]:
    from trialogue.display.numbers import finite_or_none

    return {
        "model": one.model,
        "step": one.step,
        "clone": one.clone,
        "max_order": one.max_order,
        "causal": one.causal,
        "per": "token" if one.tokens_per_byte is None else "byte",
        "loss": one.loss,
        "error": finite_or_none(one.error),
        "accuracy": one.score.accuracy,
        "targets": one.score.targets,
    }


def _reading_record(one: "LossSummary") -> dict[str, Any]:
    from trialogue.display.numbers import finite_or_none

    gap = None if one.gap is None else {name: finite_or_none(value) for name, value in vars(one.gap).items()}
    return {**vars(one), "gap": gap}


def add(commands: Commands) -> None:
    """Add the command `trialogue interaction-order` to a parser.

    Args:
        commands: Commands of the parser.
    """
    parser = commands.add("interaction-order", interaction_order, group="Inspect")
    parser.add_argument(
        "--model",
        metavar="CHECKPOINT",
        nargs="+",
        action="extend",
        required=True,
        help="Masked or causal model: a Hugging Face id, folder, short name, weight file, or folder of checkpoints.",
    )
    parser.add_argument(
        "--clones", metavar="DIR", type=Path, required=True, help="Folder written by `trialogue clone`."
    )
    parser.add_argument(
        "--rows",
        type=int,
        default=256,
        metavar="N",
        help="Evaluate this many sequences per clone (default: 256).",
    )
    parser.add_argument(
        "--share",
        type=float,
        default=1.0,
        metavar="P",
        help="Mask this fraction of the tokens of masked models (default: 1).",
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="Seed of the masked positions (default: 0)."
    )
    parser.add_argument(
        "--figure",
        metavar="FILE",
        type=Path,
        help=f"Write the figure to this SVG or PNG file (default: {_FIGURE} in the folder of clones).",
    )
    parser.add_argument("--json", action="store_true", help="Print all numbers as JSON instead of tables.")
    add_model_options(parser)
