"""Run the command line as `python -m trialogue.cli`."""

import sys

from trialogue.cli import main

sys.exit(main())
