"""`python -m trialogue.cli`: the command line of the interpreter at hand."""

import sys

from trialogue.cli import main

sys.exit(main())
