"""What an inspection of SmolLM2 takes: wall minutes of the command from nothing, and by measure seconds and tokens.

The command of the documentation at its default effort, by two processes, with random weights beside; the model is in
the cache. Seconds and tokens of a measure are those of the model itself.

    python benchmarks/inspection.py --text articles.txt
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.table import Table

from record import Record

MODEL, WORKERS = "smollm2", 2


def inspected(text: Path) -> tuple[float, dict[str, Any]]:
    """Wall minutes of the command, and what it filed."""
    with TemporaryDirectory() as folder:
        asked = ["inspect", MODEL, "--text", str(text), "--out", folder, "--workers", str(WORKERS)]
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "trialogue", *asked], check=True)
        minutes = (time.perf_counter() - began) / 60
        return minutes, json.loads((Path(folder) / "inspection.json").read_text(encoding="utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, required=True, help="a UTF-8 file that measures of text read")
    record, table = Record("inspection"), Table("measure", "tokens", "seconds")
    minutes, found = inspected(parser.parse_args().text)
    record.add("all", round(minutes, 1), what="minutes")
    for name, measure in found["measures"].items():
        (of_model,) = measure["checkpoints"]
        for what in ("tokens", "seconds"):
            record.add(name, of_model[what], what=what)
        table.add_row(name, f"{of_model['tokens']:,}", f"{of_model['seconds']:.0f}")
    table.add_row("all, with random weights", "", f"{60 * minutes:.0f}")
    Console().print(table)
    record.write()


if __name__ == "__main__":
    main()
