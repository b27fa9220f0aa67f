"""Entry point of the command line, for `trialogue` and `python -m trialogue`."""

import atexit
import os
import sys

from trialogue.cli import main
from trialogue.start_up import freeze_collector


def command() -> int:
    """Run the command in `sys.argv` and return the exit code."""
    codes: list[int] = []
    # Exit handlers run in reverse order, so all handlers that the command registers run before this one.
    atexit.register(_end_process, codes)
    with freeze_collector():
        codes.append(main())
    return codes[0]


def _end_process(codes: list[int]) -> None:
    """End the process without freeing its objects one by one, which takes a fifth of a second with a model.

    Args:
        codes: Exit code of the command, or nothing if it raised an error.
    """
    if codes:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        # The interpreter reports streams that cannot be written.
        except (OSError, ValueError, AttributeError):
            return
        os._exit(codes[0])


if __name__ == "__main__":
    sys.exit(command())
