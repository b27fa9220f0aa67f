"""Verified generation on a real language model, beside what a user would run instead.

SmolLM2-135M-Instruct in float32, 64 new tokens after a prompt of about 21; the contenders take turns, so that a change
of the machine's speed meets all of them. The limit is a bare loop: the model's pass with the library's own cache, a
softmax and a draw; it and the library's `generate` run the model as the library loads it, ours the one that
`load_pretrained` packs. Figures are medians over `--rounds`, in tokens per second of CPU time and of wall time, and the
ratios are of CPU time. `--genlm` names a Python that has genlm-control, which then takes its turns in a process of its
own; it draws 8 tokens, as more take minutes, and shorter sequences are in its favour. First comes the peak memory of a
process each.

    trialogue models pull smollm2
    python benchmarks/generation.py --threads 1 [--genlm /path/to/python]
"""

import argparse
import json
import resource
import statistics
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
from transformers import DynamicCache

from record import Record
from trialogue.inference import (
    Ancestral,
    Backtracking,
    GrammarVerifier,
    RandomVerifier,
    SequentialMonteCarlo,
    Threshold,
    TokenwiseRejection,
    WeightedRejection,
    generate,
)
from trialogue.models.catalogue import folder_of
from trialogue.models.pretrained import PretrainedOracle, load_pretrained
from trialogue.oracles import Verifier

NEW_TOKENS = 64
PEER_TOKENS = 8
PROMPT = "The capital of France is a city that has been known for its art, its food and its history since"
REGEX = "[^eE]+"
SCHEMA = {
    "type": "object",
    "properties": {"facts": {"type": "array", "items": {"type": "string"}, "minItems": 40}},
    "required": ["facts"],
    "additionalProperties": False,
}
PEERS = {
    "masked, regex": ("masked", "regex"),
    "weighted rejection, regex": ("AWRS", "regex"),
    "masked, JSON schema": ("AWRS", "JSON schema"),
}
"""What of genlm-control stands beside which of ours; it asks a JSON schema about every token of its own."""
PEER = Path(__file__).with_name("genlm_peer.py")

Run = Callable[[], int]
"""Generates once and returns the number of tokens drawn."""


def bare(oracle: PretrainedOracle, batch: int) -> Run:
    model, ids = oracle.model, oracle.tokenization.encode(PROMPT)

    def run() -> int:
        with torch.inference_mode():
            cache = DynamicCache()
            answer = model(torch.tensor([ids] * batch), past_key_values=cache, logits_to_keep=1)
            for _ in range(NEW_TOKENS - 1):
                token = torch.multinomial(answer.logits[:, -1].softmax(-1), 1)
                answer = model(token, past_key_values=cache)
            torch.multinomial(answer.logits[:, -1].softmax(-1), 1)
        return batch * NEW_TOKENS

    return run


def library(oracle: PretrainedOracle, batch: int) -> Run:
    ids = torch.tensor([oracle.tokenization.encode(PROMPT)] * batch)
    settings = {"do_sample": True, "top_k": 0, "max_new_tokens": NEW_TOKENS, "min_new_tokens": NEW_TOKENS}

    def run() -> int:
        with torch.inference_mode():
            oracle.model.generate(ids, attention_mask=torch.ones_like(ids), **settings)
        return batch * NEW_TOKENS

    return run


def ours(
    oracle: PretrainedOracle,
    batch: int,
    walk: Any,
    verifier: Callable[[], Verifier] | None = None,
    ragged: bool = False,
) -> Run:
    """A contender of ours; `batch` counts rows, `ragged` cuts a token more off the prompt of every next row."""
    ids = oracle.tokenization.encode(PROMPT)
    samples = max(1, batch // walk.rows_per_sample)
    prompts = [ids[: len(ids) - row] for row in range(samples)] if ragged else [ids] * samples

    def run() -> int:
        judge = None if verifier is None else verifier()
        taken = generate(
            oracle, prompts, walk=walk, verifier=judge, max_new_tokens=NEW_TOKENS, batch_size=batch
        )
        return taken.total.queries

    return run


class Peer:
    """genlm-control in a process of its own, which runs when told to and says what it took."""

    def __init__(self, python: str, model: Path, threads: int) -> None:
        command = [python, str(PEER), str(model), PROMPT, REGEX, json.dumps(SCHEMA)]
        command += [str(PEER_TOKENS), str(threads)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def measure(self, sampler: str, rule: str, particles: int) -> tuple[int, float, float]:
        """Tokens drawn, CPU seconds, wall seconds."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([sampler, rule, particles]), file=self._process.stdin, flush=True)
        while not (line := self._process.stdout.readline()).startswith("["):
            if not line:
                raise SystemExit("genlm-control stopped: see what it printed above")
        tokens, cpu, wall = json.loads(line)
        return int(tokens), float(cpu), float(wall)


def timed(run: Run) -> tuple[int, float, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    tokens = run()
    return tokens, time.process_time() - cpu, time.perf_counter() - wall


def measured(
    contenders: dict[str, Callable[[], tuple[int, float, float]]], rounds: int
) -> dict[str, list[Any]]:
    """Of every contender, taking turns: (tokens, CPU seconds, wall seconds) of each round after the first."""
    seen: dict[str, list[Any]] = {name: [] for name in contenders}
    for turn in range(rounds + 1):
        for name, run in contenders.items():
            taken = run()
            if turn:
                seen[name].append(taken)
    return seen


def print_rates(
    console: Console,
    title: str,
    seen: dict[str, list[Any]],
    base: str,
    targets: dict[str, str],
    record: Record,
) -> dict[str, float]:
    """Print a line per contender; return their tokens per CPU second."""
    table = Table("", "tokens/s, CPU", "tokens/s, wall", f"of {base}, CPU", "asked", title=title)
    rate = {name: statistics.median(tokens / cpu for tokens, cpu, _ in rows) for name, rows in seen.items()}
    for name, rows in seen.items():
        wall = statistics.median(tokens / wall for tokens, _, wall in rows)
        ratio = rate[name] / rate[base]
        record.add(name, rate[name], what="per CPU second", of=title)
        table.add_row(name, f"{rate[name]:.1f}", f"{wall:.1f}", f"{ratio:.2f}", targets.get(name, ""))
    console.print(table)
    return rate


def grammars(oracle: PretrainedOracle) -> dict[str, Callable[[], Verifier]]:
    """The two rules; a fresh verifier each time, so that no mask is remembered from another run."""
    text = oracle.tokenization
    return {
        "regex": lambda: GrammarVerifier.regex(REGEX, text),
        "JSON schema": lambda: GrammarVerifier.json_schema(SCHEMA, text),
    }


def compare(
    console: Console,
    oracle: PretrainedOracle,
    stored: PretrainedOracle,
    batch: int,
    rounds: int,
    peer: Peer | None,
    record: Record,
) -> None:
    """Every contender with `oracle`, whose weights are packed, beside what runs on the weights as `stored`."""
    rules = grammars(oracle)
    runs = {
        "bare loop": bare(stored, batch),
        "generate": library(stored, batch),
        "ancestral, packed=False": ours(stored, batch, Ancestral()),
        "ancestral": ours(oracle, batch, Ancestral()),
    }
    for name, rule in rules.items():
        runs[f"masked, {name}"] = ours(oracle, batch, TokenwiseRejection("mask"), rule)
    runs["weighted rejection, regex"] = ours(oracle, batch, WeightedRejection(), rules["regex"])
    smc = SequentialMonteCarlo(particles=batch, proposal="rejection")
    runs["SMC by rejection, regex"] = ours(oracle, batch, smc, rules["regex"])
    targets = {"ancestral": ">= 0.95", "masked, regex": ">= 0.9", "masked, JSON schema": ">= 0.9"}
    contenders: dict[str, Callable[[], tuple[int, float, float]]] = {
        name: (lambda run=run: timed(run)) for name, run in runs.items()
    }
    if peer is not None:
        for pair in PEERS.values():
            contenders[f"genlm-control {pair[0]}, {pair[1]}"] = lambda p=pair: peer.measure(*p, batch)
    seen = measured(contenders, rounds)
    rates = print_rates(
        console, f"batch {batch}, {NEW_TOKENS} new tokens", seen, "bare loop", targets, record
    )
    for own, pair in PEERS.items() if peer is not None else ():
        times = rates[own] / rates[f"genlm-control {pair[0]}, {pair[1]}"]
        asked = 10 if batch > 1 else 4
        console.print(f"{own}: {times:.1f} times genlm-control {pair[0]}, {pair[1]} (asked: {asked})")


def compare_backtracking(
    console: Console, model: Path, oracle: PretrainedOracle, rounds: int, record: Record
) -> None:
    """Algorithm 1 at a ragged batch of 16, against ancestral sampling per query and against recomputing prefixes."""
    recomputing = load_pretrained(model, recompute=True)
    recomputing.eos = None

    def verifier() -> Verifier:
        return Threshold(RandomVerifier(1), 0.1)

    walk = Backtracking(4, 4)
    runs = {
        "ancestral": ours(oracle, 16, Ancestral(), ragged=True),
        "backtracking, Q = B = 4": ours(oracle, 16, walk, verifier, ragged=True),
        "backtracking, prefixes recomputed": ours(recomputing, 16, walk, verifier, ragged=True),
    }
    seen = measured({name: (lambda run=run: timed(run)) for name, run in runs.items()}, rounds)
    asked = {"backtracking, Q = B = 4": ">= 0.91", "backtracking, prefixes recomputed": "<= 0.33"}
    print_rates(console, "queries, ragged batch of 16", seen, "ancestral", asked, record)


def print_memory(console: Console, model: str, batch: int, threads: int, record: Record) -> None:
    """Peak resident memory of a process that does nothing but load the model and generate."""
    table = Table("", "peak, MiB", "of generate", "asked", title=f"memory, batch {batch}")
    peaks = {}
    for name in ("generate", "ancestral"):
        command = [
            sys.executable,
            __file__,
            "--model",
            model,
            "--peak",
            name,
            "--batches",
            str(batch),
            "--threads",
            str(threads),
        ]
        peaks[name] = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        record.add(name, peaks[name], what="peak MiB")
        asked = "<= 1.2" if name == "ancestral" else ""
        table.add_row(name, f"{peaks[name]:.0f}", f"{peaks[name] / peaks['generate']:.2f}", asked)
    console.print(table)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="smollm2", help="short name or folder")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--genlm", metavar="PYTHON", help="a Python that has genlm-control")
    parser.add_argument("--record", action="store_true", help="write the rows that README quotes")
    parser.add_argument("--peak", choices=["generate", "ancestral"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    transformers.logging.set_verbosity_error()

    def loaded(packed: bool) -> PretrainedOracle:
        oracle = load_pretrained(arguments.model, packed=packed)
        # All contenders draw as many tokens.
        oracle.eos, oracle.model.generation_config.eos_token_id = None, None
        return oracle

    if arguments.peak:
        batch = arguments.batches[0]
        alone = arguments.peak == "generate"
        (library(loaded(False), batch) if alone else ours(loaded(True), batch, Ancestral()))()
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return
    console, record = Console(), Record("generation")
    # While this process is small: a process that it starts begins with its peak.
    print_memory(console, arguments.model, max(arguments.batches), arguments.threads, record)
    oracle, stored = loaded(True), loaded(False)
    folder = folder_of(arguments.model) or Path(arguments.model)
    peer = Peer(arguments.genlm, folder, arguments.threads) if arguments.genlm else None
    console.print(f"{arguments.threads} thread(s), medians of {arguments.rounds} rounds")
    for batch in arguments.batches:
        compare(console, oracle, stored, batch, arguments.rounds, peer, record)
    compare_backtracking(console, folder, oracle, arguments.rounds, record)
    if arguments.record:
        record.write()


if __name__ == "__main__":
    main()
