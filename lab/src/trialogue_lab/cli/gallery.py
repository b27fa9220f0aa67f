"""The command `trialogue gallery`: a page to look at, in one file."""

import argparse
from pathlib import Path

from trialogue.cli.commands import Commands
from trialogue_lab.cli.studies import add_results


def gallery(arguments: argparse.Namespace) -> None:
    """Write a page of four scenes to look at, made from runs of the samplers and rows of a study, as one HTML file."""
    from trialogue.storage import atomic_write, require_folder
    from trialogue_lab.gallery.document import render_gallery

    require_folder(arguments.out)
    print(atomic_write(arguments.out, render_gallery(arguments.results)))


def add(commands: Commands) -> None:
    """Add `trialogue gallery`."""
    parser = commands.add("gallery", gallery)
    parser.add_argument(
        "--out", metavar="FILE", type=Path, default=Path("gallery.html"), help="the page (./gallery.html)"
    )
    add_results(parser)
