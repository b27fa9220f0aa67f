"""The command `trialogue gallery`, which writes an interactive HTML page."""

import argparse
from pathlib import Path

from trialogue.cli.parsing.commands import Commands
from trialogue_lab.cli.studies import add_results


def gallery(arguments: argparse.Namespace) -> None:
    """Write an interactive HTML page of five scenes, made from samplers and from the rows of a study."""
    from trialogue.storage import atomic_write, require_folder
    from trialogue_lab.gallery.document import render_gallery

    require_folder(arguments.out)
    print(atomic_write(arguments.out, render_gallery(arguments.results)))


def add(commands: Commands) -> None:
    """Add `trialogue gallery`."""
    parser = commands.add("gallery", gallery, group="Laboratory")
    parser.add_argument(
        "--out",
        metavar="FILE",
        type=Path,
        default=Path("gallery.html"),
        help="write the page to this file (default: ./gallery.html)",
    )
    add_results(parser)
