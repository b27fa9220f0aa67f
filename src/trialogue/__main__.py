"""Entry point of the command line, for `trialogue` and `python -m trialogue`."""

import sys

from trialogue.cli import main
from trialogue.start_up import freeze_collector


def command() -> int:
    """Run the command in `sys.argv` and return the exit code."""
    with freeze_collector():
        return main()


if __name__ == "__main__":
    sys.exit(command())
