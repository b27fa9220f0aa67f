"""Speed, memory and quality of constrained generation with SmolLM2-135M-Instruct, compared with other libraries.

Each contender generates 64 tokens after a prompt of about 21 tokens. The contenders alternate, so that changes in the
speed of the machine affect all of them. The bare loop consists of the forward pass with the cache of transformers, a
softmax and a multinomial sample. The bare loop, `generate` of transformers, and `generate` with the mask of llguidance
run the model in float32. The samplers of this package run the model of `load_pretrained` in each format of `--weights`.
The tables show medians over `--rounds` of the tokens per second of CPU time and of wall time. For samplers, model calls
are counted, which are at least as many as tokens. Ratios use CPU time.

`--llama` is a Python interpreter with llama-cpp-python, and `--gguf` is the file that it runs, which should have as
many bits as "int4". `--genlm` is an interpreter with genlm-control. It generates only 8 tokens because more would take
minutes, and shorter sequences are an advantage. Both run in separate processes. The script first measures the peak
memory of each contender in a separate process. With `--text`, it finally measures the perplexity of each format and of
llama.cpp on the first tokens of a text.

    trialogue models pull smollm2
    python benchmarks/generation.py --llama PYTHON --gguf FILE --text FILE [--genlm PYTHON] [--record]
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers
from rich.console import Console
from rich.table import Table
from torch import Tensor

from contenders import NEW_TOKENS, PROMPT, REGEX, SCHEMA, Run, bare, library, ours, samplers
from peer_process import Peer
from record import Record
from trialogue.models.hub.catalogue import find_folder
from trialogue.models.hub.pretrained import PretrainedOracle, load_pretrained
from trialogue.samplers import Ancestral, Backtracking
from trialogue.verifiers import RandomVerifier, Threshold
from weights import Distributions, distributions_of, loaded, quality, windows

PEER_TOKENS = 8
GENLM = {
    "masked, regex": ("masked", "regex"),
    "weighted rejection, regex": ("AWRS", "regex"),
    "masked, JSON schema": ("AWRS", "JSON schema"),
}
"""Sampler and constraint of genlm-control for each contender of this package.

For a JSON schema, genlm-control checks every token of the vocabulary, so adaptive rejection sampling replaces the mask.
"""
STORED = "as stored"

Timed = Callable[[], tuple[int, float, float]]
"""Function that generates once and returns the number of tokens, the CPU seconds and the wall seconds."""


def endless(model: str, weights: str) -> PretrainedOracle:
    """Return an oracle without an end-of-sequence token, so that all contenders generate the same number of tokens."""
    oracle = loaded(model, weights)
    oracle.eos, oracle.model.generation_config.eos_token_id = None, None
    return oracle


def named(contender: str, weights: str) -> str:
    return contender if weights == "float32" else f"{contender}, {weights}"


def timed(run: Run) -> tuple[int, float, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    tokens = run()
    return tokens, time.process_time() - cpu, time.perf_counter() - wall


def measured(contenders: dict[str, Timed], rounds: int) -> dict[str, list[Any]]:
    """Run the contenders in alternation and return (tokens, CPU seconds, wall seconds) of each round but the first."""
    seen: dict[str, list[Any]] = {name: [] for name in contenders}
    for turn in range(rounds + 1):
        for name, run in contenders.items():
            taken = run()
            if turn:
                seen[name].append(taken)
    return seen


def print_rates(
    console: Console, title: str, seen: dict[str, list[Any]], base: Callable[[str], list[str]], record: Record
) -> dict[str, float]:
    """Print the rate of each contender and its ratios to those in `base`, and return the tokens per CPU second."""
    table = Table("", "tokens/s, CPU", "tokens/s, wall", "times", title=title)
    rate = {name: statistics.median(tokens / cpu for tokens, cpu, _ in rows) for name, rows in seen.items()}
    for name, rows in seen.items():
        wall = statistics.median(tokens / wall for tokens, _, wall in rows)
        record.add(name, rate[name], what="per CPU second", of=title)
        ratios = [f"{rate[name] / rate[other]:.2f} {other}" for other in base(name) if other in rate]
        table.add_row(name, f"{rate[name]:.1f}", f"{wall:.1f}", "; ".join(ratios))
    console.print(table)
    return rate


def compare(
    console: Console,
    oracles: dict[str, PretrainedOracle],
    batch: int,
    arguments: argparse.Namespace,
    peers: dict[str, Peer],
    record: Record,
) -> None:
    """Compare all contenders at one batch size. Those of transformers use the stored weights."""
    stored = oracles[STORED]
    runs = {
        "bare loop": bare(stored, batch),
        "generate": library(stored, batch),
        "generate with llguidance, regex": library(stored, batch, guided=True),
        "ancestral, packed=False": ours(stored, batch, Ancestral()),
    }
    for weights in arguments.weights:
        runs |= {named(name, weights): run for name, run in samplers(oracles[weights], batch).items()}
    contenders: dict[str, Timed] = {name: partial(timed, run) for name, run in runs.items()}
    prompt = stored.tokenization.encode(PROMPT)
    for name, peer in peers.items():
        if name == "genlm-control":
            if batch in (1, max(arguments.batches)):
                for pair in GENLM.values():
                    contenders[f"{name} {pair[0]}, {pair[1]}"] = partial(peer.request, *pair, batch)
        elif batch == 1 or name == "llama.cpp":
            # llama.cpp with repacked buffers crashes for several sequences.
            contenders[name] = partial(peer.request, "generate", batch, prompt, NEW_TOKENS, False)
            contenders[f"{name}, drawing"] = partial(
                peer.request, "generate", batch, prompt, NEW_TOKENS, True
            )

    def base(name: str) -> list[str]:
        weights = next((weights for weights in arguments.weights if name.endswith(f", {weights}")), "float32")
        if name in runs and (name == named("ancestral", weights) or "packed" in name):
            return ["bare loop", "llama.cpp"]
        return [named("ancestral", weights)] if name in runs and "generate" not in name else ["bare loop"]

    title = f"batch {batch}, {NEW_TOKENS} new tokens"
    rates = print_rates(console, title, measured(contenders, arguments.rounds), base, record)
    for own, pair in GENLM.items():
        theirs = rates.get(f"genlm-control {pair[0]}, {pair[1]}")
        if theirs is not None and own in rates:
            record.add(own, rates[own] / theirs, what="times genlm-control", of=title)
            console.print(f"{own}: {rates[own] / theirs:.1f} times genlm-control {pair[0]}, {pair[1]}")


def compare_backtracking(
    console: Console, model: Path, oracle: PretrainedOracle, rounds: int, record: Record
) -> None:
    """Compare Algorithm 1 with ancestral sampling, and with recomputed prefixes, on a ragged batch of 16 rows."""
    recomputing = load_pretrained(model, recompute=True)
    recomputing.eos = None

    def verifier() -> Threshold:
        return Threshold(RandomVerifier(1), 0.1)

    sampler = Backtracking(4, 4)
    runs = {
        "ancestral": ours(oracle, 16, Ancestral(), ragged=True),
        "backtracking, Q = B = 4": ours(oracle, 16, sampler, verifier, ragged=True),
        "backtracking, prefixes recomputed": ours(recomputing, 16, sampler, verifier, ragged=True),
    }
    seen = measured({name: partial(timed, run) for name, run in runs.items()}, rounds)
    rates = print_rates(console, "queries, ragged batch of 16", seen, lambda _: ["ancestral"], record)
    for name in list(runs)[1:]:
        record.add(name, rates["ancestral"] / rates[name], what="CPU seconds a query of ancestral's")


def print_memory(console: Console, arguments: argparse.Namespace, record: Record) -> None:
    """Print the peak resident memory of processes that load the model and generate once, at the largest batch."""
    batch, peaks = max(arguments.batches), {}
    for weights in ("generate", *arguments.weights):
        command = [sys.executable, __file__, *sys.argv[1:], "--peak", weights]
        answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        peaks["generate" if weights == "generate" else named("ancestral", weights)] = float(answer)
    if arguments.llama:
        peer = llama_peer(arguments, "plain")
        peer.request("generate", batch, list(range(100, 121)), NEW_TOKENS, True)
        [peaks["llama.cpp"]] = peer.request("peak")
        peer.close()
    table = Table("", "peak, MiB", "of generate", title=f"memory, batch {batch}")
    for name, peak in peaks.items():
        record.add(name, peak, what="peak MiB")
        record.add(name, peak / peaks["generate"], what="peak of generate's")
        table.add_row(name, f"{peak:.0f}", f"{peak / peaks['generate']:.2f}")
    console.print(table)


def llama_peer(arguments: argparse.Namespace, buffers: str) -> Peer:
    return Peer(arguments.llama, "llama_peer.py", arguments.gguf, arguments.threads, buffers)


def peer_distributions(peer: Peer, folder: Path) -> Distributions:
    """Return the function that requests next-token distributions from llama.cpp, which writes them to `folder`."""

    def distributions(part: Tensor) -> Tensor:
        path = folder / "logits"
        shape = peer.request("distributions", part.tolist(), str(path))
        size = shape[0] * shape[1]
        return torch.from_file(str(path), size=size).view(*shape).log_softmax(-1)

    return distributions


def print_quality(
    console: Console,
    oracles: dict[str, PretrainedOracle],
    peer: Peer | None,
    arguments: argparse.Namespace,
    record: Record,
) -> None:
    """Print the perplexity of each format and its total variation from the stored weights, on the start of a text."""
    stored = oracles[STORED]
    parts = windows(stored, arguments.text, arguments.tokens)
    with tempfile.TemporaryDirectory() as folder:
        distributions = {weights: distributions_of(oracles[weights].model) for weights in arguments.weights}
        if peer is not None:
            distributions["llama.cpp"] = peer_distributions(peer, Path(folder))
        found = quality(distributions, distributions_of(stored.model), parts)
    table = Table("weights", "perplexity", "total variation", title=f"{sum(map(len, parts))} tokens")
    for name, (perplexity, distance) in found.items():
        description = oracles[name].weights if name in oracles else str(arguments.gguf.name)
        record.add(name, perplexity, what="perplexity")
        record.add(name, distance, what="total variation")
        table.add_row(f"{name}: {description}", f"{perplexity:.2f}", f"{distance:.2g}")
    console.print(table)


def main() -> None:
    """Run the benchmark and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="smollm2", help="short name or folder")
    parser.add_argument("--weights", nargs="+", default=["float32", "int8", "int4", "auto"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--llama", metavar="PYTHON", help="Python interpreter with llama-cpp-python")
    parser.add_argument("--gguf", type=Path, metavar="FILE", help="model file for llama.cpp")
    parser.add_argument("--genlm", metavar="PYTHON", help="Python interpreter with genlm-control")
    parser.add_argument("--text", type=Path, help="plain text on which to measure quality (default: skip)")
    parser.add_argument("--tokens", type=int, default=20_000)
    parser.add_argument("--record", action="store_true", help="write the rows that README quotes")
    parser.add_argument("--peak", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.llama and not (arguments.gguf and arguments.gguf.is_file()):
        parser.error("--llama requires --gguf FILE")
    torch.set_num_threads(arguments.threads)
    transformers.logging.set_verbosity_error()
    if arguments.peak:
        batch, alone = max(arguments.batches), arguments.peak == "generate"
        oracle = endless(arguments.model, STORED if alone else arguments.peak)
        (library(oracle, batch) if alone else ours(oracle, batch, Ancestral()))()
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return
    console, record, peers = Console(width=140), Record("generation"), {}
    # Measure memory first, because a child process inherits the peak memory of this process.
    print_memory(console, arguments, record)
    folder = find_folder(arguments.model) or Path(arguments.model)
    if arguments.llama:
        peers["llama.cpp"] = llama_peer(arguments, "plain")
        peers["llama.cpp, buffers of its own"] = llama_peer(arguments, "extra")
    if arguments.genlm:
        rules = REGEX, json.dumps(SCHEMA)
        peers["genlm-control"] = Peer(
            arguments.genlm, "genlm_peer.py", folder, PROMPT, *rules, PEER_TOKENS, arguments.threads
        )
    formats = dict.fromkeys((STORED, *arguments.weights))
    oracles = {weights: endless(arguments.model, weights) for weights in formats}
    console.print(f"{arguments.threads} thread(s), medians of {arguments.rounds} rounds")
    for weights, oracle in oracles.items():
        console.print(f"{weights}: {oracle.weights}")
    for batch in arguments.batches:
        compare(console, oracles, batch, arguments, peers, record)
    if "float32" in oracles:
        compare_backtracking(console, folder, oracles["float32"], arguments.rounds, record)
    if arguments.text:
        print_quality(console, oracles, peers.get("llama.cpp"), arguments, record)
    if arguments.record:
        record.write(keep=lambda row: row.get("what") == "times genlm-control" and not arguments.genlm)


if __name__ == "__main__":
    main()
