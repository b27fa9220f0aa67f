"""Animated pictures for the README: samples of decoding methods, compared with the exact target distribution.

`python -m trialogue_lab.gallery.decoding_film FOLDER` draws `hero.svg` and `decoding-rules.svg` from `samples.json` in
the same folder. With `--sample` it first samples the language model again and replaces `samples.json`. The target is
the model's own distribution given the constraint.
"""

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment
from pandas import DataFrame

from trialogue.display.html import make_environment
from trialogue.storage import atomic_write
from trialogue_lab.ledger.runs.results import COMMITTED, load_rows

SEED = 2
"""Seed of the question in the study `constrained-law`."""
SAMPLES = 64
"""Number of samples of each method."""
SECONDS = 11.0
"""Duration of the animation."""
FIRST, LAST = 0.06, 0.76
"""Shares of the duration at which the first and the last sample appear."""
STUDY = "constrained-law"
COLORS = ("#56b4e9", "#e69f00", "#009e73", "#f0e442", "#cc79a7")
"""Colours of the answers, which differ for colour-blind readers (Okabe and Ito). Black text is readable on them."""


def sample() -> dict[str, Any]:
    """Sample answers of the language model to the question, by masked decoding and by adaptive rejection.

    Returns:
        The question, and the answers and model calls of each method.
    """
    from trialogue import samplers
    from trialogue.randomness import derive_seed
    from trialogue_lab.studies.constrained_law.cases import load_question
    from trialogue_lab.studies.constrained_law.config import PRESETS
    from trialogue_lab.studies.constrained_law.tasks import TASKS

    config = PRESETS["default"]
    case = load_question(config, "regex", SEED)
    runs = {}
    for name, sampler in (
        ("masked", samplers.MaskedDecoding()),
        ("exact", samplers.AdaptiveRejection(share=1)),
    ):
        samples = samplers.generate(
            case.oracle,
            [case.prompt],
            sampler=sampler,
            verifier=case.verifier,
            max_new_tokens=case.max_new_tokens,
            num_samples=SAMPLES,
            seed=derive_seed(SEED, "film", name),
        )
        answers = [case.text(completion) for completion in samples.completions()]
        runs[name] = {"sampler": repr(sampler), "answers": answers, "calls": samples.queries.tolist()}
    return {"model": config.model, "seed": SEED, "question": TASKS["regex"](SEED).question, **runs}


def draw_hero(record: dict[str, Any], rows: DataFrame) -> str:
    """Draw an animated SVG in which the samples of two decoding methods arrive one by one.

    Args:
        record: Samples as returned by `sample`.
        rows: Rows of the study `constrained-law`.
    """
    target = compute_target(rows)
    panels = []
    for key, title, color in (
        ("masked", "Masked decoding", "masked"),
        ("exact", "AdaptiveRejection", "exact"),
    ):
        run = record[key]
        found = compute_shares(run["answers"])
        panels.append(
            {
                "key": key,
                "title": title,
                "color": color,
                "distance": compute_distance(found, target),
                "calls": sum(run["calls"]) / len(run["calls"]),
                "bars": [
                    {
                        "name": name,
                        "target": mass,
                        "share": found.get(name, 0.0),
                        "frames": compute_keyframes(run["answers"], name),
                    }
                    for name, mass in target.items()
                ],
            }
        )
    return (
        _make_environment()
        .get_template("page/hero.svg.jinja")
        .render(
            question=_split_question(record["question"]),
            panels=panels,
            samples=SAMPLES,
            seconds=SECONDS,
            appears=100 * LAST,
            counts=_list_counter_values(),
        )
    )


def draw_decoding_rules(record: dict[str, Any], rows: DataFrame) -> str:
    """Draw an SVG that compares the answers of six decoding methods with the model given the constraint.

    Args:
        record: Samples as returned by `sample`.
        rows: Rows of the study `constrained-law`.
    """
    target = compute_target(rows)
    colors = dict(zip(target, COLORS, strict=True))
    cells = rows[(rows.seed == SEED) & (rows.kind == "regex")]

    answers = cells[cells.measure == "answer"]

    def found_by(column: str) -> dict[str, float]:
        return dict(zip(answers.text, answers[column].astype(float), strict=True))

    def calls(measure: str, rule: str, size: int | None = None) -> float:
        chosen = cells[(cells.measure == measure) & (cells.rule == rule)]
        return float((chosen if size is None else chosen[chosen["size"] == size]).queries.item())

    adaptive = record["exact"]
    lines: list[tuple[str, dict[str, float], float | None]] = [
        ("Target: the model, restricted to the cities", target, None),
        ("Masked decoding", found_by("masked"), calls("exact", "masked, weighted", 1)),
        ("Backtracking", found_by("backtracking, as run"), calls("run", "backtracking")),
        ("Sequential Monte Carlo, 16", found_by("smc, 16"), calls("simulated", "smc", 16)),
        (
            "One of 64 masked, by weight",
            found_by("masked, weighted, 64"),
            calls("exact", "masked, weighted", 64),
        ),
        ("Value-guided, first leaf", found_by("value-guided"), calls("exact", "value-guided")),
        (
            "AdaptiveRejection, 64 samples",
            compute_shares(adaptive["answers"]),
            sum(adaptive["calls"]) / SAMPLES,
        ),
    ]
    shown = []
    for title, found, cost in lines:
        segments, start = [], 0.0
        for name in target:
            mass = found.get(name, 0.0)
            segments.append({"name": name, "start": start, "mass": mass, "color": colors[name]})
            start += mass
        invalid = max(0.0, 1.0 - start)
        # Up to 2 % of the probability has not been enumerated.
        if invalid > 0.03:
            segments.append({"name": "not one of the cities", "start": start, "mass": invalid, "color": ""})
        shown.append(
            {"title": title, "segments": segments, "calls": cost, "distance": compute_distance(found, target)}
        )
    return (
        _make_environment()
        .get_template("page/decoding_rules.svg.jinja")
        .render(question=_split_question(record["question"]), lines=shown, colors=colors)
    )


def compute_target(rows: DataFrame) -> dict[str, float]:
    """Return the model's distribution of answers given the constraint, most probable first.

    Args:
        rows: Rows of the study `constrained-law`.
    """
    chosen = rows[(rows.seed == SEED) & (rows.kind == "regex") & (rows.measure == "answer")]
    ordered = chosen.sort_values("restricted", ascending=False)
    return dict(zip(ordered.text, ordered.restricted.astype(float), strict=True))


def compute_shares(answers: Sequence[str]) -> dict[str, float]:
    """Return the share of every answer."""
    return {name: count / len(answers) for name, count in Counter(answers).items()}


def compute_distance(found: dict[str, float], target: dict[str, float]) -> float:
    """Return the total variation distance. Probability that is missing in `found` counts as invalid answers."""
    missing = max(0.0, sum(target.values()) - sum(found.values()))
    differences = (abs(found.get(name, 0.0) - target.get(name, 0.0)) for name in {*found, *target})
    return 0.5 * (sum(differences) + missing)


def compute_keyframes(answers: Sequence[str], name: str) -> list[tuple[float, float]]:
    """Compute the keyframes of a bar: the time in percent of the animation, and the share of its final length.

    Args:
        answers: The answers in the order of their arrival.
        name: The answer that the bar counts.
    """
    total, count, frames = answers.count(name), 0, [(0.0, 0.0)]
    for index, answer in enumerate(answers):
        if answer == name:
            count += 1
            frames.append((_compute_arrival_time(index, len(answers)), count / total))
    return [*frames, (100.0, frames[-1][1])]


def _compute_arrival_time(index: int, number: int) -> float:
    """Return the percentage of the animation at which a sample arrives."""
    return 100 * (FIRST + (LAST - FIRST) * index / (number - 1))


def _list_counter_values() -> list[dict[str, float]]:
    """Return the numbers that the counter shows, with the times (in percent) at which each appears and disappears."""
    shown = [0, 1, 2, 4, 8, 16, 32, 48, SAMPLES]
    starts = [0.0, *(_compute_arrival_time(count - 1, SAMPLES) for count in shown[1:])]
    return [
        {"count": count, "start": start, "end": end}
        for count, start, end in zip(shown, starts, [*starts[1:], 100.0], strict=True)
    ]


def _split_question(text: str) -> list[str]:
    """Split a question into its first part, which names the country, and the list of cities."""
    question, cities = text.split(": ", 1)
    return [question + "?", cities.split("?")[0] + "."]


def _make_environment() -> Environment:
    pages = make_environment("trialogue_lab.gallery")
    pages.filters["percent"] = lambda share: (
        f"{100 * share:.0f} %" if share == 0 or share >= 0.005 else "< 1 %"
    )
    pages.filters["short"] = lambda number: f"{number:,.0f}" if number >= 10 else f"{number:.1f}"
    return pages


def write(folder: Path, *, resample: bool = False) -> list[Path]:
    """Draw both pictures.

    Args:
        folder: Folder of the pictures and of `samples.json`.
        resample: Whether to sample the language model again (default: False).

    Returns:
        The files written.
    """
    stored = folder / "samples.json"
    if resample:
        atomic_write(stored, json.dumps(sample(), indent=1) + "\n")
    record, rows = json.loads(stored.read_text(encoding="utf-8")), load_rows(STUDY, COMMITTED)
    return [
        atomic_write(folder / "hero.svg", draw_hero(record, rows)),
        atomic_write(folder / "decoding-rules.svg", draw_decoding_rules(record, rows)),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Draw the pictures of the README.")
    parser.add_argument("folder", type=Path, help="folder of the pictures and of samples.json")
    parser.add_argument(
        "--sample", action="store_true", help="sample the language model again (default: off)"
    )
    arguments = parser.parse_args()
    for path in write(arguments.folder, resample=arguments.sample):
        print(path)
