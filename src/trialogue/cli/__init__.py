"""The command line. Each module adds its commands to the one parser, with one function per command.

Bad input is one line on standard error and exit code 2; Ctrl-C is one line and exit code 130. Modules import what
a command needs when it is called: `list` and `--help` must not wait for torch or pandas.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from trialogue import __version__
from trialogue.cli import generate, models, probe, studies
from trialogue.cli.commands import Commands, Parser
from trialogue.errors import InputError


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    whole = Parser(prog="trialogue", description="When do conditionals add up to a good joint distribution?")
    whole.add_argument("--version", action="version", version=f"trialogue {__version__}")
    commands = Commands(whole)
    for module in (studies, generate, probe, models):
        module.add(commands)
    return whole


def main(tokens: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code: 0, 2 for bad input, 130 for Ctrl-C."""
    try:
        arguments, rest = parser().parse_known_args(tokens)
        if rest and not arguments.fields:
            arguments.parser.error(f"unrecognized arguments: {' '.join(rest)}")
        arguments.overrides = rest
        arguments.function(arguments)
        sys.stdout.flush()
    except InputError as error:
        print(f"trialogue: error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as error:
        print(f"\ntrialogue: {error or 'interrupted'}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader has gone; what is still in the buffer must not raise again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0
