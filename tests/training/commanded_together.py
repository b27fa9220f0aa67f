"""Run a command in several processes, each of which records the files that it writes.

python -m torch.distributed.run --nproc-per-node 2 tests/training/commanded_together.py FOLDER RECORDS COMMAND ...
"""

import json
import os
import sys
from pathlib import Path

from training.trained_together import record_written_files
from trialogue import cli

if __name__ == "__main__":
    written = record_written_files(Path(sys.argv[1]))
    code = cli.main(sys.argv[3:])
    Path(sys.argv[2], f"{os.environ['RANK']}.json").write_text(json.dumps(written), encoding="utf-8")
    sys.exit(code)
