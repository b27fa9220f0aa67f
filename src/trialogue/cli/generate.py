"""The command `trialogue generate`."""

import argparse
import dataclasses
import inspect
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from trialogue.cli.parsing.commands import Commands
from trialogue.cli.parsing.samplers import (
    HELP_ALL,
    parse_with_sampler,
    print_more_help,
    print_samplers_and_verifiers,
    sampler_class,
    unescape,
)
from trialogue.cli.unmasking import generate_by_unmasking, is_unmasking
from trialogue.start_up import pause_collector

if TYPE_CHECKING:
    from trialogue.generation.settings import GenerationSettings

TOO_FEW_ACCEPTED = 3
"""Exit code if fewer samples were accepted than --require-accepted demands."""

COMMON = (
    "model", "prompt", "prompts", "chat", "json_schema", "regex", "choice", "grammar", "pydantic", "sampler",
    "temperature", "n", "max_new_tokens", "within_limit", "seed", "confidence", "resample", "out",
)  # fmt: skip
"""Options that `--help` shows. `--help-all` shows all."""


def generate(arguments: argparse.Namespace) -> int:
    """Draw samples from a language model that satisfy constraints.

    Samples are written as JSON Lines. On a terminal, their texts are printed.

    Examples:
        trialogue generate --model smollm2 --prompt "The sky is" --n 4
        trialogue generate --model smollm2 --prompt "The sky is" --choice " blue" " grey" --sampler exact
        trialogue generate --model google-bert/bert-base-uncased --prompt "A [MASK] sky." --sampler unmasking:confidence
    """
    if is_unmasking(arguments.overrides):
        generate_by_unmasking(["--help" if word == HELP_ALL else word for word in arguments.overrides])
        return 0
    with pause_collector():
        try:
            settings = parse_settings(arguments.overrides)
        except SystemExit:
            if HELP_ALL in arguments.overrides:
                print_samplers_and_verifiers()
            else:
                print_more_help("generate")
            raise

        import torch

        from trialogue.generation.output.live_text import Feedback, LiveText
        from trialogue.generation.outputs import generate_to

    live = None
    if settings.destination.stream:
        live = LiveText(sys.stdout if sys.stdout.isatty() else sys.stderr)
    torch.set_num_threads(settings.machine.threads)

    def log(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    feedback = Feedback(
        live=live,
        progress=live is None and sys.stderr.isatty(),
        report=log if sys.stderr.isatty() else lambda _: None,
        warn=lambda line: log(f"trialogue: {line}"),
    )
    # On a terminal, standard output shows the live text instead of records.
    outcome = generate_to(settings, feedback, lines=live is None or not sys.stdout.isatty())
    for remark in outcome.remarks:
        log(f"trialogue: {remark}")
    log(outcome.summary)
    return TOO_FEW_ACCEPTED if settings.destination.require_accepted and not outcome.complete else 0


def parse_settings(tokens: Sequence[str]) -> "GenerationSettings":
    """Parse the command line of `trialogue generate`.

    Args:
        tokens: Words of the command line after the name of the command.

    Raises:
        InputError: If an option is unknown or has an invalid value.
        SystemExit: If the words contain `--help` or `--help-all`, after the help is printed.
    """
    from trialogue.generation.settings import OPTIONS, GenerationSettings
    from trialogue.generation.verifiers.specs import has_mask

    parsed = parse_with_sampler("generate", inspect.getdoc(generate) or "", OPTIONS, tokens, COMMON)
    inputs, sampling, sampler = parsed["model and prompts"], parsed["sampling"], parsed["sampler"]
    prompts = inputs.read()
    prompt_masks = [any(map(has_mask, prompt.rule)) for prompt in prompts if prompt.rule]
    if prompt_masks and all(prompt_masks) and not parsed["sampler named"]:
        sampling = dataclasses.replace(sampling, sampler="masked-decoding")
        sampler = sampler_class(sampling.sampler)()
    return GenerationSettings(
        inputs=inputs,
        prompts=prompts,
        sampler=sampler,
        rule=parsed["verifiers"],
        sampling=dataclasses.replace(sampling, stop=tuple(map(unescape, sampling.stop))),
        destination=parsed["output"],
        machine=parsed["machine"],
        execution=parsed["workers"],
    )


def add(commands: Commands) -> None:
    """Add the command `trialogue generate` to a parser.

    Args:
        commands: Commands of the parser.
    """
    parser = commands.add("generate", generate, group="Generate", fields=True, add_help=False)
    parser.set_defaults(help_option=HELP_ALL)
