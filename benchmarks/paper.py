"""Estimate the run time of the presets `paper` and `weekend` from the recorded run times of smaller presets.

The cost of a task is that of the tasks of the same kind in the largest smaller result, times the growth of the work
with the settings. `WORK` has the relevant settings and their exponents. Tasks are of the same kind if their names
differ only in numbers. The script also records several measurements: the run times of the paper presets that were run
completely, the speed of single-precision matrix products on one core, the cost of a training step in the studies of
translation at both presets, and the cost of the cheapest task of the other paper presets, if it takes seconds on one
core.

    python benchmarks/paper.py
"""

import math
import re
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from record import Record
from trialogue.data.parallel.vocabulary import SPECIAL
from trialogue.models.encoder_decoder.network import append_eos
from trialogue_lab import studies
from trialogue_lab.ledger import Study
from trialogue_lab.ledger.entries import counting_result
from trialogue_lab.ledger.runs.results import Result
from trialogue_lab.studies.translation.config import REFINER
from trialogue_lab.studies.translation_dependency.config import TWO_STAGES
from trialogue_lab.studies.translation_dependency.networks import make_recipe as dependency_recipe

ROOT = Path(__file__).parents[1]
SMALLER = ("default", "night")
WORKERS = 64
GPU, BUSY = 156e12, 0.3
"""Floating-point operations per second of an A100 according to its data sheet (TF32 tensor cores), and the share that
large networks reach."""
SMOLLM2 = 135e6
"""Number of parameters of the model that replaces the published ones."""

STEP, PAIRS, LONGEST = "step", 16, 6
"""Key of the training step in `WORK`, its number of pairs, and the divisor of the maximum length that gives theirs."""

SHOWN = (
    "parts",
    "lanes",
    "seconds a part",
    "work",
    "core hours",
    "core hours, taken",
    "GPU hours",
    "cluster hours",
)

Work = dict[str, float]
"""Exponents by setting. A setting with several values counts as their number, or as their sum if written "sum name". A
number instead of a setting is a constant factor, and `STEP` is the measured cost of a training step."""
WORK: dict[str, Work] = {
    "clones": {"network_steps": 1, "network_batch": 1, "length": 1, "vocab_size": 1, "rank": 1},
    "clones-gpt": {"network_steps": 1, "network_batch": 1, "length": 1, "vocab_size": 1, "rank": 1},
    "constrained-law": {"samples": 1, f"{1.7e9 / SMOLLM2}": 1},
    "dyck-attention": {},
    "dyck-backtracking": {"width": 2, "layers": 1},
    "dyck-copying": {"steps": 1},
    "dyck-pruning": {},
    "interaction-order": {},
    "ising-masking": {"sum sizes": 1},
    "ising-sampling": {"seeds": 1},
    "joint-from-conditionals": {"data_sets": 1, "thetas": 1},
    "memorization-construct": {"vocab_size": 2, "provisions": 1},
    "memorization-text": {"steps": 1, "batch_size": 1, "trained_shares": 1},
    "memorization-train": {"steps": 1, "large_vocab_size": 1},
    "mixing-and-learning": {"models": 1},
    "one-step-corollary": {"runs": 1},
    "parallel-gap": {"training_steps": 1, "batch_size": 1},
    "potts-coherence": {"models": 1},
    "potts-patterns": {"models": 1, "texts": 1, "side": 2, "sweeps": 1},
    "solution-first": {"puzzles": 1},
    "test-cases": {f"{6.7e9 / SMOLLM2}": 1},
    "topic-pretrained": {"sample": 1, "passes": 1},
    "translation": {"small_steps": 1, "batch_size": 1, STEP: 1},
    "translation-dependency": {"training_steps": 1, "batch_size": 1, STEP: 1},
    "type-signature": {"training_steps": 1, "batch_size": 1, "width": 2},
    "window-coherence": {"training_steps": 1, "batch_tokens": 1},
}
OF_A_KIND: dict[str, dict[str, Work]] = {
    "dyck-attention": {"table": {"grid_seeds": 1, "grid_steps": 1}},
    "interaction-order": {"large": {"large_rank": 1, "large_steps": 1}},
    "translation": {
        "twin": {"twin_steps": 1, "batch_size": 1, STEP: 1},
        "refiner": {"refiner_steps": 1, "batch_size": 1, STEP: 1},
        "adjacent-attention": {"test": 1, STEP: 1},
        "latency": {"rounds": 1, STEP: 1},
    },
    "translation-dependency": {"sentence": {}, "chains": {}},
}
"""Additional work of tasks whose names contain the given word."""
NETWORKS = {
    *("clones", "clones-gpt", "constrained-law", "dyck-backtracking", "memorization-text", "test-cases"),
    *("topic-pretrained", "translation", "translation-dependency", "type-signature", "window-coherence"),
}
"""Studies whose networks are large enough in the paper preset to use a GPU efficiently."""
CHECKED = 120.0
"""Maximum estimated seconds of the cheapest independent task of a study for which the task is also measured."""


def size(value: Any) -> float:
    return float(len(value)) if isinstance(value, tuple) else float(value)


def grown(work: Work, small: Any, large: Any, step: float) -> float:
    """Return the ratio of the work with `large` and `small` settings, where `step` is the ratio of training steps."""

    def ratio(name: str) -> float:
        if name == STEP:
            return step
        if re.fullmatch(r"[\d.]+", name):
            return float(name)
        if name.startswith("sum "):
            name = name.removeprefix("sum ")
            return sum(getattr(large, name)) / sum(getattr(small, name))
        return size(getattr(large, name)) / size(getattr(small, name))

    return math.prod(ratio(name) ** power for name, power in work.items())


def kind(name: str) -> str:
    return re.sub(r"\d+", "#", name)


def stepped(study: Study[Any], config: Any) -> float:
    """Return the CPU seconds of a training step with `PAIRS` pairs for the refiner of a translation study."""
    if study.name == "translation":
        tokens = torch.arange(PAIRS)[:, None] + torch.arange(config.max_length // LONGEST) + len(SPECIAL)
        pairs = append_eos((tokens % config.vocab_size).tolist())
        training = replace(config, batch_size=PAIRS).of(REFINER, 0)
        recipe = training.refiner(config.vocab_size, pairs, pairs)
    else:
        recipe = dependency_recipe(replace(config, batch_size=PAIRS, pairs=PAIRS), TWO_STAGES, 0)
    model = recipe.network(recipe.config)
    spent = []
    for step in range(4):
        began = time.process_time()
        recipe.loss(model, *recipe.data(step)).backward()
        spent.append(time.process_time() - began)
    return min(spent)


def planned(
    study: Study[Any], result: Result, step: float = 1.0, preset: str = "paper"
) -> tuple[dict[str, float], dict[str, float]]:
    """Return summary numbers of a preset, and the estimated seconds of each task."""
    small, large = study.preset(str(result.preset)), study.preset(preset)
    # Constant factors stand for the published models, which only the paper preset uses.
    factors = {name for name in WORK[study.name] if re.fullmatch(r"[\d.]+", name) and preset != "paper"}
    measured: dict[str, list[float]] = defaultdict(list)
    for name, part in result.provenance["parts"].items():
        measured[kind(name)].append(part["seconds"])
    every = [seconds for of_kind in measured.values() for seconds in of_kind]
    lanes: dict[str, float] = defaultdict(float)
    parts = study.parts(large)
    costs: dict[str, float] = {}
    for part in parts:
        seconds = measured.get(kind(part.name), every)
        own = [work for word, work in OF_A_KIND.get(study.name, {}).items() if word in part.name]
        (work,) = own or [WORK[study.name]]
        work = {name: power for name, power in work.items() if name not in factors}
        costs[part.name] = sum(seconds) / len(seconds) * grown(work, small, large, step)
        lanes[part.lane or part.name] += costs[part.name]
    plan = {
        "seconds a part": sum(every) / len(every),
        "work": sum(lanes.values()) / (len(parts) * sum(every) / len(every)),
        "parts": len(parts),
        "lanes": len(lanes),
        "core hours": sum(lanes.values()) / 3600,
        "longest lane": max(lanes.values()) / 3600,
        "cluster hours": max(max(lanes.values()), sum(lanes.values()) / WORKERS) / 3600,
    }
    return plan, costs


def products() -> float:
    """Return the floating-point operations per second of single-precision matrix products on one core."""
    matrix = torch.ones(1024, 1024)
    times = []
    for _ in range(8):
        began = time.process_time()
        matrix @ matrix
        times.append(time.process_time() - began)
    return 2 * 1024**3 / min(times)


def checked(study: Study[Any], name: str) -> float:
    """Return the measured CPU seconds of a task of the paper preset."""
    (part,) = (part for part in study.parts(study.preset("paper")) if part.name == name)
    with TemporaryDirectory() as folder:
        began = time.process_time()
        part.rows(Path(folder))
        return time.process_time() - began


def main() -> None:
    torch.set_num_threads(1)
    record, out, table = Record("paper"), Console(width=120), Table()
    cheapest: dict[str, tuple[str, float]] = {}
    shares: list[float] = []
    core = products()
    record.add("one core", float(f"{core:.2g}"), what="operations a second")
    faster = GPU * BUSY / core
    record.add("one GPU", float(f"{faster:.1g}"), what="cores")
    for head in ("study", *SHOWN):
        table.add_column(head)
    names = [name for name, module in studies.modules().items() if module.startswith("trialogue_lab.")]
    for study in map(studies.find, names):
        result = counting_result(study, ROOT / "lab" / "results", SMALLER)
        if result is None or "paper" not in study.presets:
            continue
        if "weekend" in study.presets:
            weekend, _ = planned(study, result, preset="weekend")
            record.add(study.name, weekend["parts"], what="weekend parts")
            record.add(study.name, float(f"{weekend['core hours']:.3g}"), what="weekend core hours")
            hours = max(weekend["longest lane"], weekend["core hours"] / 2)
            record.add(study.name, float(f"{hours:.3g}"), what="weekend hours, two cores")
        step = 1.0
        if STEP in WORK[study.name]:
            paper, small = (stepped(study, study.preset(one)) for one in ("paper", str(result.preset)))
            step = paper / small
            record.add(study.name, float(f"{step:.3g}"), what="step")
        plan, costs = planned(study, result, step)
        if study.name in NETWORKS:
            plan["GPU hours"] = plan["core hours"] / faster
        whole = counting_result(study, ROOT / "lab" / "results", ("paper",))
        if whole is not None:
            taken = sum(part["seconds"] for part in whole.provenance["parts"].values())
            plan["core hours, taken"] = taken / 3600
            shares.append(plan["core hours, taken"] / plan["core hours"])
        for what, value in plan.items():
            record.add(study.name, float(f"{value:.3g}"), what=what)
        table.add_row(study.name, *(f"{plan.get(what, math.nan):.3g}" for what in SHOWN))
        alone = [part.name for part in study.parts(study.preset("paper")) if not part.lane]
        part = min(alone, key=costs.__getitem__, default=None)
        if whole is None and part is not None and costs[part] < CHECKED:
            cheapest[study.name] = part, costs[part]
    out.print(table)
    for name, (part, estimate) in cheapest.items():
        seconds = checked(studies.find(name), part)
        record.add(name, float(f"{seconds:.3g}"), what="seconds of a part", part=part)
        record.add(name, float(f"{estimate:.3g}"), what="seconds of it, estimated", part=part)
        shares.append(seconds / estimate)
        out.print(f"{name} {part}: {seconds:.1f} s of CPU, {estimate:.1f} s estimated")
    record.add("all", float(f"{max(shares):.3g}"), what="largest share of an estimate")
    record.write()


if __name__ == "__main__":
    main()
