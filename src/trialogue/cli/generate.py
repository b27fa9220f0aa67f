"""The command `trialogue generate`: samples of a pretrained model under a verifier, as JSON lines.

Its options are the fields of `trialogue.generation.settings`, and those of the walk that is named.
"""

import argparse
import dataclasses
import inspect
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trialogue.cli.commands import Commands
from trialogue.cli.fields import Group, attach, parse
from trialogue.cli.words import option_of, value_of
from trialogue.errors import InputError
from trialogue.start_up import uncollected

if TYPE_CHECKING:
    from trialogue.generation.settings import Settings

TOO_FEW_ACCEPTED = 3
"""The exit code where --require-accepted asks for more than was accepted."""
_ESCAPES = {r"\n": "\n", r"\t": "\t", r"\r": "\r", r"\\": "\\"}


def generate(arguments: argparse.Namespace) -> int:
    """Draw samples of a language model, such that a verifier accepts them, and write them as JSON lines.

    On a terminal their texts are shown, with log-weights and reasons.
    """
    with uncollected():
        try:
            settings = settings_of(arguments.overrides)
        except SystemExit:
            _print_listed()
            raise

        import torch

        from trialogue.generation.outputs import generate_to

    live = _live(settings)
    torch.set_num_threads(settings.machine.threads)

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    outcome = generate_to(
        settings,
        # On a terminal the text itself is what standard output shows.
        lines=live is None or not sys.stdout.isatty(),
        live=live,
        progress=live is None and sys.stderr.isatty(),
        report=say if sys.stderr.isatty() else None,
        warn=lambda line: say(f"trialogue: {line}"),
    )
    for remark in outcome.remarks:
        say(f"trialogue: {remark}")
    say(outcome.summary)
    return TOO_FEW_ACCEPTED if settings.destination.require_accepted and not outcome.complete else 0


def settings_of(tokens: Sequence[str]) -> "Settings":
    """The run that the command line's `tokens` ask for; where they ask for help, that is printed, and `SystemExit`."""
    from trialogue.generation.settings import OPTIONS, Sampling, Settings

    groups = {title: Group(options, inspect.getdoc(options) or "") for title, options in OPTIONS.items()}
    words = attach(groups, tokens)
    named = value_of("--walk", words)
    name = Sampling.walk if named is None else named
    prog = "trialogue generate"
    if named is not None:
        prog += f" --walk {name}"
    if named is not None or not {"-h", "--help"} & set(words):
        walk = _walk(name)
        groups["walk"] = Group(walk(), _description(walk), terse=False)
    said = inspect.getdoc(generate) or ""
    unknown = f"neither the command nor the walk {name} has it"
    parsed = parse(groups, words, prog=prog, description=said, unknown=unknown, elsewhere=_options_of_walks)
    inputs, sampling = parsed["model and prompts"], parsed["sampling"]
    return Settings(
        inputs=inputs,
        prompts=inputs.read(),
        walk=_with_escapes(parsed["walk"]),
        rule=parsed["rule"],
        sampling=dataclasses.replace(sampling, stop=tuple(map(_unescaped, sampling.stop))),
        destination=parsed["output"],
        machine=parsed["machine"],
    )


def _walk(name: str) -> Any:
    from trialogue.inference import WALKS

    if name not in WALKS:
        raise InputError("walk", name, f"the walks are {', '.join(WALKS)}")
    return WALKS[name]


def _options_of_walks() -> dict[str, str]:
    """The options that some walk has, with the walks that have it."""
    from trialogue.inference import WALKS

    owners: dict[str, list[str]] = {}
    walks: Iterable[tuple[str, Any]] = WALKS.loadable()
    for name, walk in walks:
        for field in dataclasses.fields(walk):
            owners.setdefault(option_of(field.name), []).append(name)
            if isinstance(field.default, bool):
                owners.setdefault(option_of(f"no_{field.name}"), []).append(name)
    return {
        option: f"the walk{'s' * (len(names) > 1)} {' and '.join(names)}" for option, names in owners.items()
    }


def _description(walk: Any) -> str:
    """What the docstring of a walk says to one who types: its walks by their names, and nothing of other objects."""
    from trialogue.inference import WALKS

    said = inspect.getdoc(walk) or ""
    for name, registered in WALKS.loadable():
        said = said.replace(f"`{registered.__name__}`", name)
    # Sentences on other objects of Python, and on fields that are refused here.
    others = re.compile(r"`([A-Z]\w*|erase_prompt)`")
    paragraphs = [re.split(r"(?<=[.:])\s+(?=[A-Z`])", paragraph) for paragraph in said.split("\n\n")]
    return "\n\n".join(
        " ".join(sentence for sentence in sentences if not others.search(sentence))
        for sentences in paragraphs
    )


def _with_escapes(walk: Any) -> Any:
    """The walk with its texts as they are meant."""
    values = {field.name: getattr(walk, field.name) for field in dataclasses.fields(walk)}
    texts = {name: _unescaped(value) for name, value in values.items() if isinstance(value, str)}
    return dataclasses.replace(walk, **texts)


def _unescaped(text: str) -> str:
    return re.sub(r"\\[ntr\\]", lambda match: _ESCAPES[match[0]], text)


def _print_listed() -> None:
    """Print every walk and every kind of verifier that there is."""
    from trialogue.generation.verifier_specs import KINDS
    from trialogue.inference import WALKS

    walks = {name: (walk.__doc__ or "").partition("\n")[0] for name, walk in WALKS.loadable()}
    verifiers = {f"{name}:{kind.form}": kind.said for name, kind in KINDS.loadable()}
    for title, listed in (("walks", walks), ("verifiers", verifiers)):
        _print_box(title, listed)


def _print_box(title: str, listed: Mapping[str, str]) -> None:
    """Print names with what they mean, as the help shows options."""
    from rich.console import Console
    from rich.panel import Panel
    from rich.table import Table

    rows = Table.grid(padding=(0, 2))
    for name, meaning in listed.items():
        rows.add_row(name, meaning)
    Console(highlight=False, markup=False).print(Panel(rows, title=title, title_align="left"))


def _live(settings: "Settings") -> Any:
    """Where the text is shown while it grows, if it is."""
    if not settings.destination.stream:
        return None
    from trialogue.generation.streaming import LiveText

    return LiveText(sys.stdout if sys.stdout.isatty() else sys.stderr)


def add(commands: Commands) -> None:
    """Add the command."""
    commands.add("generate", generate, fields=True, add_help=False)
