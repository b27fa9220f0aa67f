"""`python -m trialogue`: the command line."""

import sys

from trialogue.cli import main

if __name__ == "__main__":
    sys.exit(main())
