"""Cost of exact constrained sampling with SmolLM2-135M-Instruct, compared with masked decoding.

The model answers sixteen prompts under a JSON schema with an enumeration, once with one row at a time and once with a
batch of sixteen prompts. `AdaptiveRejection` draws exact samples, with a private table for each sample or with a table
that the samples of a prompt share. `MaskedDecoding` draws from another distribution. The contenders alternate. An
evaluated token is a position that the model computes; prefixes recalled from the cache are not counted.

    trialogue models pull smollm2
    python benchmarks/exact_sampling.py --threads 1 [--record]
"""

import argparse
import statistics
import time

import torch
from rich.console import Console
from rich.table import Table

from record import Record
from trialogue.models.hub.pretrained import load_pretrained
from trialogue.samplers import AdaptiveRejection, MaskedDecoding, generate
from trialogue.verifiers import GrammarVerifier

SCHEMA = {
    "x-guidance": {"whitespace_flexible": False},
    "type": "object",
    "properties": {
        "tone": {"enum": ["positive", "negative", "neutral"]},
    },
    "required": ["tone"],
    "additionalProperties": False,
}
SUBJECTS = ("soup", "waiter", "view", "music", "bread", "wine", "room", "price")
JUDGEMENTS = ("wonderful", "too much")
QUESTION = 'Rate this review as JSON with "tone": The {} was {}.'
CONTENDERS = {
    "masked decoding": MaskedDecoding(),
    "exact, private tables": AdaptiveRejection(),
    "exact, shared tables": AdaptiveRejection(share=1),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--samples", type=int, default=4, help="samples of each prompt (default: 4)")
    parser.add_argument(
        "--rounds", type=int, default=3, help="repetitions, after one to warm up (default: 3)"
    )
    parser.add_argument("--threads", type=int, help="threads of torch (default: all cores)")
    parser.add_argument("--record", action="store_true", help="store the results in benchmarks/rows")
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    oracle = load_pretrained(arguments.model)
    verifier = GrammarVerifier.json_schema(SCHEMA, oracle.tokenization)
    prompts = [oracle.tokenization.chat(QUESTION.format(s, j)) for s in SUBJECTS for j in JUDGEMENTS]
    console, record = Console(), Record("exact_sampling")
    for batch in (1, 16):
        rates: dict[str, list[float]] = {name: [] for name in CONTENDERS}
        calls: dict[str, float] = {}
        seconds: dict[str, list[float]] = {name: [] for name in CONTENDERS}
        for turn in range(arguments.rounds + 1):
            for name, sampler in CONTENDERS.items():
                begun = time.process_time()
                samples = generate(
                    oracle,
                    prompts if batch > 1 else prompts[:2],
                    sampler=sampler,
                    verifier=verifier,
                    num_samples=arguments.samples,
                    max_new_tokens=32,
                    seed=turn,
                    batch_size=batch,
                )
                taken = time.process_time() - begun
                assert bool(samples.accepted.all())
                if turn:
                    rates[name].append(float(samples.positions.sum()) / taken)
                    seconds[name].append(taken / len(samples))
                    calls[name] = float(samples.calls.double().mean())
        table = Table(
            "", "evaluated tokens/CPU s", "of masked", "calls/output", "CPU s/output", title=f"batch {batch}"
        )
        base = statistics.median(rates["masked decoding"])
        for name in CONTENDERS:
            rate, cost = statistics.median(rates[name]), statistics.median(seconds[name])
            record.add(name, rate, what="evaluated tokens per CPU second", batch=batch)
            record.add(name, rate / base, what="of masked decoding", batch=batch)
            record.add(name, calls[name], what="calls per output", batch=batch)
            record.add(name, cost, what="CPU seconds per output", batch=batch)
            table.add_row(name, f"{rate:.1f}", f"{rate / base:.2f}", f"{calls[name]:.1f}", f"{cost:.3f}")
        console.print(table)
    if arguments.record:
        record.write()


if __name__ == "__main__":
    main()
