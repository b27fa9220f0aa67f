"""Cost of exact JSON against the length of its text, and how often `AdaptiveRejection` falls back to masks.

A model is prompted for a JSON object with one text, once with and once without an example in the prompt. The schema
bounds the text to a number of characters. `AdaptiveRejection(max_attempts=32, share=4, then="mask")` draws exact
samples, until a sample has used up its attempts. Masked decoding answers the same prompts.

    trialogue models pull smollm2
    python benchmarks/exact_requests.py --threads 1 [--model MODEL] [--record]
"""

import argparse
import json
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from record import Record
from trialogue.errors import InputError
from trialogue.models.hub.pretrained import load_pretrained
from trialogue.samplers import AdaptiveRejection, MaskedDecoding, generate
from trialogue.verifiers import GrammarVerifier

FILMS = ("Alien", "Casablanca", "Jaws", "Vertigo")
KINDS: dict[str, tuple[dict[str, Any], str]] = {
    "one of four words": ({"enum": ["western", "comedy", "thriller", "romance"]}, "western"),
    "at most 8 characters": ({"type": "string", "maxLength": 8}, "western"),
    "at most 32 characters": ({"type": "string", "maxLength": 32}, "a western with two riders"),
    "at most 128 characters": (
        {"type": "string", "maxLength": 128},
        "a western in which two riders cross a desert to find a lost mine",
    ),
    "unbounded": (
        {"type": "string"},
        "a western in which two riders cross a desert to find a lost mine",
    ),
}
ATTEMPTS = 32


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="smollm2", help="name or folder of the model (default: smollm2)")
    parser.add_argument("--name", help="name of the model in the rows (default: --model)")
    parser.add_argument("--samples", type=int, default=8, help="samples of each prompt (default: 8)")
    parser.add_argument("--tokens", type=int, default=64, help="largest number of new tokens (default: 64)")
    parser.add_argument("--threads", type=int, help="threads of torch (default: all cores)")
    parser.add_argument("--record", action="store_true", help="store the results in benchmarks/rows")
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    oracle = load_pretrained(arguments.model)
    record, name = Record("exact_requests"), arguments.name or arguments.model
    table = Table("text", "example", "fell back", "calls exact", "calls masked", "tokens", title=name)
    samplers = {
        "exact": AdaptiveRejection(max_attempts=ATTEMPTS, share=4, then="mask"),
        "masked": MaskedDecoding(),
    }
    for kind, (schema, example) in KINDS.items():
        text = {
            "type": "object",
            "properties": {"genre": schema},
            "required": ["genre"],
            "additionalProperties": False,
            "x-guidance": {"whitespace_flexible": False},
        }
        verifier = GrammarVerifier.json_schema(text, oracle.tokenization)
        for has_example in (True, False):
            added = f" Another example: {json.dumps({'genre': example}, separators=(',', ':'))}"
            questions = [
                f'Describe the film {film} as JSON with the key "genre".' + (added if has_example else "")
                for film in FILMS
            ]
            try:
                prompts = [oracle.tokenization.chat(question) for question in questions]
            except InputError:  # a base model has no chat template
                prompts = [f"{question}\nJSON:" for question in questions]
            values: dict[str, float] = {}
            for contender, sampler in samplers.items():
                samples = generate(
                    oracle,
                    prompts,
                    sampler=sampler,
                    verifier=verifier,
                    num_samples=arguments.samples,
                    max_new_tokens=arguments.tokens,
                    batch_size=16,
                )
                values[f"calls {contender}"] = float(samples.calls.double().mean())
                if contender == "exact":
                    fallen = [remark is not None for remark in samples.remarks]
                    values["fell back"] = sum(fallen) / len(samples)
                else:
                    values["tokens"] = float((samples.lengths - samples.prompt_lengths).double().mean())
            for what, value in values.items():
                record.add(name, value, what=what, text=kind, example=has_example)
            table.add_row(
                kind,
                "yes" if has_example else "no",
                f"{values['fell back']:.0%}",
                *(f"{values[what]:.0f}" for what in ("calls exact", "calls masked", "tokens")),
            )
            Console().print(kind, has_example, values)
    Console().print(table)
    if arguments.record:
        record.write(lambda row: row["contender"] != name)


if __name__ == "__main__":
    main()
