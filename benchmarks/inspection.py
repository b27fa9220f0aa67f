"""Run time of an inspection of SmolLM2, in total and by measure.

The script runs the command in the documentation at its default effort, with two processes and with random weights as a
control. The model is already in the cache. The seconds and tokens of each measure exclude the control.

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
    """Run the command and return its wall time in minutes with its record."""
    with TemporaryDirectory() as folder:
        options = ["inspect", MODEL, "--text", str(text), "--out", folder, "--workers", str(WORKERS)]
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "trialogue", *options], check=True)
        minutes = (time.perf_counter() - began) / 60
        return minutes, json.loads((Path(folder) / "inspection.json").read_text(encoding="utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--text", type=Path, required=True, help="UTF-8 text file for the measures that require a text"
    )
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
