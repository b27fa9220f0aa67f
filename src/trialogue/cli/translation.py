"""The commands `trialogue train-translation` and `trialogue translate`.

Their options are the fields of the classes in `trialogue.generation.translation.settings` and of
`TranslationTraining`.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from trialogue.cli.parsing.commands import Commands
from trialogue.cli.parsing.fields import Group, parse

if TYPE_CHECKING:
    from trialogue.generation.translation.settings import LineSettings


def translate(arguments: argparse.Namespace) -> int:
    """Translate text line by line."""
    from trialogue.generation.translation.settings import LineSettings, TranslationSettings

    groups = {"translation": Group(TranslationSettings), "lines and machine": Group(LineSettings)}
    parsed = _parse_settings("translate", translate.__doc__, groups, arguments.overrides)
    translating, lines = parsed["translation"], parsed["lines and machine"]

    import torch

    from trialogue.generation.translation.lines import LineTranslator
    from trialogue.generation.translation.model import TranslationModel, require_outside

    torch.set_num_threads(lines.threads)
    assert translating.model is not None  # Checked by `TranslationSettings`.
    if lines.out is not None:
        require_outside(lines.out, translating.model)
    model = TranslationModel.open(translating.model, device=lines.device)
    translator = LineTranslator(model, translating, truncate=lines.truncate)
    counts = {"lines": 0, "empty": 0, "refused": 0}
    start = time.perf_counter()
    with _read_lines(lines) as source, _open_output(lines.out) as out:
        for result in translator.translate(source, 1 if lines.stream else lines.batch):
            counts["lines"] += 1
            counts["empty"] += not result.source.strip()
            if result.refused:
                counts["refused"] += 1
                print(f"trialogue: line {result.number}: {result.refused}", file=sys.stderr)
            out.write((json.dumps(result.record()) if lines.json else result.text) + "\n")
            if lines.stream:
                out.flush()
    summary = ", ".join(f"{count:,} {name}" for name, count in counts.items())
    print(f"{summary}; {time.perf_counter() - start:.1f} s", file=sys.stderr)
    return 2 if counts["refused"] else 0


def train(arguments: argparse.Namespace) -> None:
    """Train translation models on sentence pairs."""
    from trialogue.generation.translation.settings import PairSettings
    from trialogue.training.translation.recipes import TranslationTraining

    groups = {
        "pairs": Group(PairSettings),
        "training": Group(TranslationTraining, "Training of the networks.", terse=False),
    }
    parsed = _parse_settings("train-translation", train.__doc__, groups, arguments.overrides)
    pairs, training = parsed["pairs"], parsed["training"]

    import torch

    from trialogue.generation.translation.training import train_translation
    from trialogue.training.running.processes import get_processes

    torch.set_num_threads(pairs.threads)
    trained_model = train_translation(pairs, training, report=lambda line: print(line, file=sys.stderr))
    if not get_processes().is_main_process:
        return
    for network, scores in trained_model.scores.items():
        print(
            f"{network}: BLEU {scores['bleu']:.1f}, chrF {scores['chrf']:.1f}, repeated words "
            f"{scores['repeated_words']:.2%} on {len(trained_model.split.test)} held-out pairs"
        )
    print(f"signatures: BLEU {scores['bleu_signature']}, chrF {scores['chrf_signature']}")
    print(f"saved in {pairs.out}: trialogue translate --model {pairs.out} < LINES")


def _parse_settings(
    command: str, described: str | None, groups: dict[str, Group], tokens: Sequence[str]
) -> dict[str, Any]:
    return parse(
        groups,
        tokens,
        prog=f"trialogue {command}",
        description=described or "",
        unknown="unknown option",
    )


@contextmanager
def _read_lines(lines: "LineSettings") -> Iterator[Iterator[str]]:
    """Yield the lines to translate as they arrive. Bytes that are not UTF-8 become lone surrogates."""
    from trialogue.errors import InputError

    def decoded(stream: "Iterator[bytes]") -> Iterator[str]:
        return (line.decode(errors="surrogateescape").removesuffix("\n") for line in stream)

    if lines.input is None:
        yield decoded(iter(sys.stdin.buffer.readline, b""))
        return
    try:
        with lines.input.open("rb") as file:
            yield decoded(iter(file))
    except OSError as error:
        hint = f"it cannot be read: {error.strerror or error}"
        raise InputError("input", str(lines.input), hint) from error


@contextmanager
def _open_output(out: Path | None) -> Iterator[TextIO]:
    if out is None:
        yield sys.stdout
        return
    from trialogue.storage import convert_write_errors, require_folder

    require_folder(out)
    with convert_write_errors(out), out.open("w", encoding="utf-8") as file:
        yield file


def add(commands: Commands) -> None:
    """Add the commands `trialogue translate` and `trialogue train-translation` to a parser.

    Args:
        commands: Commands of the parser.
    """
    commands.add("train-translation", train, group="Train", fields=True, add_help=False)
    commands.add("translate", translate, group="Generate", fields=True, add_help=False)
