"""The command `trialogue score`."""

import argparse
import inspect
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trialogue.cli.parsing.commands import Commands
from trialogue.cli.parsing.fields import Group, parse
from trialogue.cli.parsing.samplers import print_verifiers, repeat_option

if TYPE_CHECKING:
    from trialogue.generation.given_texts import GivenText, ScoreInputs
    from trialogue.generation.settings import ModelSettings
    from trialogue.generation.verifiers.specs import ConstraintSettings

_LONGEST = 40
"""Maximum number of characters of the name of a verifier in a reason."""


def score(arguments: argparse.Namespace) -> None:
    """Compute the log-probability of given texts under a language model, and judge them by verifiers.

    Prints one JSON record per text, with the log-probability of the text after its prompt (in nats) and of each token.
    If there are constraints, the record also states whether the text is accepted, and why not. With --confidence, it
    also has the probability of each field of a JSON text. On a terminal, prints a table instead.
    """
    from trialogue.generation.given_texts import ScoreInputs, read_texts
    from trialogue.generation.settings import ModelSettings
    from trialogue.generation.verifiers.specs import ConstraintSettings

    groups = {"model and texts": ScoreInputs, "verifiers": ConstraintSettings, "machine": ModelSettings}
    try:
        parsed = parse(
            {title: Group(kind, inspect.getdoc(kind) or "") for title, kind in groups.items()},
            repeat_option("--choice", arguments.overrides),
            prog="trialogue score",
            description=inspect.getdoc(score) or "",
            unknown="the command has no such option",
        )
    except SystemExit:
        print_verifiers()
        raise
    inputs, rule, machine = parsed["model and texts"], parsed["verifiers"], parsed["machine"]
    rule.require_used()
    if inputs.confidence:
        rule.find_json()
    texts = read_texts(inputs.texts)

    from trialogue.storage import atomic_write, require_folder

    if inputs.out is not None:
        require_folder(inputs.out)
    records = _score(texts, inputs, rule, machine)
    if inputs.out is None and sys.stdout.isatty():
        _print(records)
        return
    lines = "".join(f"{json.dumps(record, ensure_ascii=False, allow_nan=False)}\n" for record in records)
    if inputs.out is None:
        sys.stdout.write(lines)
    else:
        atomic_write(inputs.out, lines)


def _score(
    texts: "Sequence[GivenText]", inputs: "ScoreInputs", rule: "ConstraintSettings", machine: "ModelSettings"
) -> list[dict[str, Any]]:
    """Return the records of all texts."""
    import torch
    from tqdm import tqdm

    from trialogue.generation.scoring import score_texts
    from trialogue.models.hub.opening import open_pretrained

    torch.set_num_threads(machine.threads)
    checkpoint = open_pretrained(
        str(inputs.model), device=machine.device, dtype=machine.dtype, remote_code=machine.trust_remote_code
    )
    verifiers = rule.load(checkpoint.tokenization, verdicts=True)
    oracle = checkpoint.load(recompute=machine.recompute, weights=machine.weights)
    with tqdm(unit=" tokens", disable=not sys.stderr.isatty(), leave=False) as bar:
        return score_texts(
            oracle,
            texts,
            {_shorten(spec): one.verifier for spec, one in zip(rule.specs, verifiers, strict=True)},
            chat=inputs.chat,
            confidence_of=_shorten(rule.specs[rule.find_json()]) if inputs.confidence else None,
            on_error=rule.on_error,
            batch_size=machine.batch_size,
            progress=bar.update,
        )


def _shorten(spec: str) -> str:
    """Return at most the first 40 characters of a spec KIND:CONTENT."""
    return spec if len(spec) <= _LONGEST else f"{spec[: _LONGEST - 1]}…"


def _print(records: Sequence[dict[str, Any]]) -> None:
    from trialogue.display.numbers import format_number
    from trialogue.display.terminal import console, grid
    from trialogue.generation.field_confidence import format_confidence

    heads = ["text", "tokens", "log-prob (nats)", "per token"]
    judged, has_confidence = "accepted" in records[0], "confidence" in records[0]
    lines = []
    for record in records:
        total, count = record["log_prob"], len(record["tokens"])
        numbers = (
            str(count),
            format_number(total),
            format_number(total / count if total and count else total),
        )
        verdict = ["yes" if record["accepted"] else record["reason"]] if judged else []
        fields = [format_confidence(record)] if has_confidence else []
        lines.append((repr(record["text"])[1:-1], *numbers, *verdict, *fields))
    heads += ["accepted"] * judged + ["confidence"] * has_confidence
    console().print(grid("", heads, lines))


def add(commands: Commands) -> None:
    """Add the command `trialogue score` to a parser.

    Args:
        commands: Commands of the parser.
    """
    commands.add("score", score, group="Generate", fields=True, add_help=False)
