"""Speed, quality and memory of a pretrained model by the format of its weights.

Each format is measured in a separate process. The speed is the number of tokens per CPU second of a decoding step with
its log-probabilities, without sampling, after a prompt of about 20 tokens, for several batch sizes. The quality is
measured on windows of the first tokens of a text. It consists of the perplexity and of the mean total variation between
the next-token distributions of the format and of the stored weights. The script also measures the time to load the
model and the peak memory. It reports the minimum time over `--rounds`, because other processes can only increase it.

    trialogue models pull smollm2
    python benchmarks/weights.py --text wikitext2-test.tokens.txt [--formats int4 auto] [--record]
"""

import argparse
import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from rich.console import Console
from rich.table import Table
from torch import Tensor

from record import Record
from trialogue.models.hub.pretrained import PretrainedOracle, load_pretrained

PROMPT = "The capital of France is a city that has been known for its art, its food and its history since"
FORMATS = ("as stored", "float32", "bfloat16", "int8", "int4", "auto")
BATCHES = (1, 4, 16)
STEPS = 48
WINDOW = 512

Distributions = Callable[[Tensor], Tensor]
"""Function from n tokens to the log-probabilities (n, vocab) of the next token after each of them."""


def loaded(model: str, weights: str) -> PretrainedOracle:
    if weights == "as stored":
        return load_pretrained(model, device="cpu", packed=False)
    return load_pretrained(model, device="cpu", weights=weights)


def milliseconds(oracle: PretrainedOracle, rows: int) -> float:
    """Return the CPU milliseconds of one step, averaged over `STEPS` steps."""
    ids = torch.tensor(oracle.tokenization.encode(PROMPT))
    tokens = torch.cat([ids, ids.new_full((STEPS,), int(ids[-1]))]).expand(rows, -1)
    slots, lengths = torch.arange(rows), torch.full((rows,), len(ids))
    with torch.inference_mode():
        context = oracle.open(rows, tokens.shape[1])
        context.features(tokens, torch.zeros_like(lengths), lengths, slots)
        began = time.process_time()
        for step in range(1, STEPS + 1):
            context.log_probs(context.features(tokens, lengths + step, lengths + step, slots))
        return (time.process_time() - began) / STEPS * 1e3


def windows(oracle: PretrainedOracle, text: Path, count: int) -> list[Tensor]:
    """Return the first `count` tokens of a text in windows of `WINDOW` tokens."""
    head = text.read_text(encoding="utf-8")[: 12 * count]
    return [
        part for part in torch.tensor(oracle.tokenization.encode(head)[:count]).split(WINDOW) if len(part) > 1
    ]


def distributions_of(model: Any) -> Distributions:
    """Return the function that computes the next-token distributions of a transformers model."""
    return lambda part: model(input_ids=part[None]).logits[0].float().log_softmax(-1)


def quality(
    distributions: dict[str, Distributions], stored: Distributions, parts: list[Tensor]
) -> dict[str, tuple[float, float]]:
    """Return the perplexity and the mean total variation from `stored` over all windows, by the name of the format."""
    bits, distances = dict.fromkeys(distributions, 0.0), dict.fromkeys(distributions, 0.0)
    with torch.inference_mode():
        for part in parts:
            expected = stored(part).exp()
            for name, distribution in distributions.items():
                answers = distribution(part)
                bits[name] -= float(answers[:-1].gather(1, part[1:, None]).double().sum())
                distances[name] += float((answers.exp() - expected).abs().sum(1).double().sum() / 2)
    count = sum(map(len, parts))
    return {
        name: (math.exp(bits[name] / (count - len(parts))), distances[name] / count) for name in distributions
    }


def measured(arguments: argparse.Namespace, weights: str) -> dict[str, Any]:
    """Measure one format in this process."""
    began = time.process_time()
    oracle = loaded(arguments.model, weights)
    found: dict[str, Any] = {"weights": oracle.weights, "seconds to load": time.process_time() - began}
    for rows in arguments.batches:
        fastest = min(milliseconds(oracle, rows) for _ in range(arguments.rounds))
        found[f"batch {rows}"] = rows / fastest * 1e3
    found["peak MiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if arguments.text is not None:
        stored = distributions_of(loaded(arguments.model, "as stored").model)
        parts = windows(oracle, arguments.text, arguments.tokens)
        [numbers] = quality({weights: distributions_of(oracle.model)}, stored, parts).values()
        found["perplexity"], found["total variation"] = numbers
    return found


def main() -> None:
    """Run the benchmark and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="smollm2", help="short name, folder or GGUF file")
    parser.add_argument("--text", type=Path, help="plain text on which to measure quality (default: skip)")
    parser.add_argument("--tokens", type=int, default=20_000)
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=FORMATS)
    parser.add_argument("--batches", type=int, nargs="+", default=BATCHES)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--record", action="store_true", help="write the rows that the documentation quotes")
    parser.add_argument("--one", choices=FORMATS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    transformers.logging.set_verbosity_error()
    if arguments.one:
        print(json.dumps(measured(arguments, arguments.one)))
        return
    record = Record("weights")
    table = Table("weights", *(f"tokens/CPU s, batch {rows}" for rows in arguments.batches))
    for name in ("perplexity", "total variation", "peak MiB", "seconds to load"):
        table.add_column(name)
    for weights in arguments.formats:
        command = [sys.executable, __file__, *sys.argv[1:], "--one", weights]
        answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        found = json.loads(answer.splitlines()[-1])
        description = found.pop("weights")
        for what, value in found.items():
            record.add(weights, value, what=what)
        numbers = {name: f"{value:.3g}" for name, value in found.items()}
        table.add_row(
            f"{weights}: {description}",
            *(numbers[f"batch {rows}"] for rows in arguments.batches),
            numbers.get("perplexity", ""),
            numbers.get("total variation", ""),
            f"{found['peak MiB']:.0f}",
            numbers["seconds to load"],
        )
    Console().print(table)
    if arguments.record:
        record.write()


if __name__ == "__main__":
    main()
