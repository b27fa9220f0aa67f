"""The command line as a process of its own: `trialogue`, and `python -m trialogue`."""

import sys

from trialogue.cli import main
from trialogue.start_up import for_good


def command() -> int:
    """Run the command of `sys.argv`; returns the exit code."""
    with for_good():
        return main()


if __name__ == "__main__":
    sys.exit(command())
