"""Validity and speed of constrained decoding through `model.generate`, compared with a logits processor.

SmolLM2-135M-Instruct, loaded by transformers, completes four tasks of eight prompts each with up to 96 new tokens. The
prompts of a task form one batch with left padding. The contenders are `decoding` with `MaskedDecoding`, the same with
the mask applied after top-k and top-p, sequential Monte Carlo with masked particles, and a short llguidance logits
processor in the generation loop of transformers. Outputs are validated by `jsonschema` and `re`, which no contender
uses. The contenders alternate within each task. The cost per token is the total CPU time of a contender divided by its
total number of tokens.

    trialogue models pull smollm2
    python benchmarks/constrained.py --threads 1
"""

import argparse
import json
import re
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jsonschema
import numpy as np
import torch
import transformers
from llguidance import LLMatcher, regex_to_lark
from llguidance.hf import from_tokenizer
from rich.console import Console
from rich.table import Table
from torch import Tensor

from record import Record
from trialogue.generation.custom_generate import decoding
from trialogue.models.hub.pretrained import load_pretrained
from trialogue.samplers import MaskedDecoding, SequentialMonteCarlo
from trialogue.verifiers import GrammarVerifier

NEW_TOKENS, SEED = 96, 0
# Without this option, llguidance allows a single tokenization of forced text, and the masks of the contenders differ.
EVERY_TOKENIZATION = '%llguidance {"no_forcing": true}'
COMPACT = {"whitespace_flexible": False}
PERSON = {
    "x-guidance": COMPACT,
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 24},
        "age": {"type": "integer"},
        "city": {"type": "string"},
    },
    "required": ["name", "age", "city"],
    "additionalProperties": False,
}
ORDER = {
    "x-guidance": COMPACT,
    "type": "object",
    "properties": {
        "size": {"enum": ["small", "medium", "large"]},
        "quantity": {"type": "integer", "minimum": 1, "maximum": 99},
        "toppings": {
            "type": "array",
            "items": {"type": "string", "maxLength": 16},
            "minItems": 1,
            "maxItems": 4,
        },
    },
    "required": ["size", "quantity", "toppings"],
    "additionalProperties": False,
}
DATE = r"(19|20)[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
SQL = r"SELECT (name|age|city)(, (name|age|city))* FROM users WHERE (age (<|>|=) [0-9]{1,3}|city = '[A-Z][a-z]{2,12}');"
PEOPLE = (
    "Anna Berg is 34 and lives in Oslo.",
    "In Lisbon I met Rui, who turned 58.",
    "The baker of Graz, Josef Huber, is 61.",
    "Mary Ann Lee, 27, moved to Boston.",
    "Nobody in Cairo bakes like Omar, aged 45.",
    "Chen Wei of Taipei will be 19 in May.",
    "At 72, Ingrid still swims in Bergen.",
    "Pablo Ruiz (30) drives a bus in Lima.",
)
ORDERS = (
    "A large pizza with ham and olives, please.",
    "Two small ones with mushrooms.",
    "I want three medium pizzas with onions, peppers and corn.",
    "One medium with extra cheese.",
    "Twelve large pizzas with salami for the office.",
    "Just a small pizza with basil.",
    "Could we have five medium with tuna and capers?",
    "Four large, artichokes on all of them.",
)
EVENTS = (
    "The bridge was opened on May 27, 1937.",
    "He was born on the 3rd of March 1985.",
    "We met on Christmas Eve 2001.",
    "The treaty was signed on 11 November 1918.",
    "School starts on September 1, 2024.",
    "On July 20, 1969 they landed.",
    "The last train ran on 31 January 1971.",
    "Her exam is on 8 June 2030.",
)
QUESTIONS = (
    "the names of all users older than 30",
    "name and city of users who are 18",
    "everybody from Paris",
    "ages of users in Rome",
    "names of users younger than 65",
    "the cities of people aged 40",
    "users in Berlin, name and age",
    "the names of those over 100",
)


@dataclass(frozen=True)
class Task:
    """Prompts with a constraint.

    Args:
        prompts: Eight prompts.
        grammar: The constraint as a grammar of llguidance.
        verifier: Function that returns the constraint as a verifier, given a tokenization.
        valid: Independent check of an output.
    """

    prompts: list[str]
    grammar: str
    verifier: Callable[[Any], GrammarVerifier]
    valid: Callable[[str], bool]


def of_schema(instruction: str, texts: tuple[str, ...], schema: dict[str, Any]) -> Task:
    def valid(text: str) -> bool:
        try:
            jsonschema.validate(json.loads(text), schema)
        except (ValueError, jsonschema.ValidationError):
            return False
        return True

    return Task(
        [f"{instruction}\n{text}" for text in texts],
        f"start: %json {json.dumps(schema)}\n{EVERY_TOKENIZATION}",
        lambda tokenization: GrammarVerifier.json_schema(schema, tokenization),
        valid,
    )


def of_regex(instruction: str, texts: tuple[str, ...], pattern: str) -> Task:
    return Task(
        [f"{instruction}\n{text}" for text in texts],
        f"start: /{regex_to_lark(pattern, '')}/\n{EVERY_TOKENIZATION}",
        lambda tokenization: GrammarVerifier.regex(pattern, tokenization),
        lambda text: re.fullmatch(pattern, text) is not None,
    )


TASKS = {
    "person": of_schema("Write name, age and city as JSON.", PEOPLE, PERSON),
    "order": of_schema("Write size, quantity and toppings of this order as JSON.", ORDERS, ORDER),
    "date": of_regex("Write the date of this event as YYYY-MM-DD.", EVENTS, DATE),
    "SQL": of_regex(
        "The table users has the columns name, age and city. Write one line of SQL for:", QUESTIONS, SQL
    ),
}
CONFIGS: dict[str, dict[str, Any]] = {
    "default (top-k 50)": {"do_sample": True},
    "T 0.6, top-p 0.9": {"do_sample": True, "temperature": 0.6, "top_p": 0.9},
    "T 0.7, top-p 0.8, top-k 20, penalty 1.05": {
        "do_sample": True,
        "temperature": 0.7,
        "top_p": 0.8,
        "top_k": 20,
        "repetition_penalty": 1.05,
    },
    "greedy": {"do_sample": False},
}


class Guidance(transformers.LogitsProcessor):  # type: ignore[misc] # transformers has no types
    """Minimal logits processor with one llguidance matcher per row."""

    def __init__(self, start: LLMatcher, rows: int, width: int) -> None:
        self._matchers, self._width = [start.deep_copy() for _ in range(rows)], width

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        for row, matcher in enumerate(self._matchers):
            if input_ids.shape[1] > self._width and not matcher.is_stopped():
                matcher.consume_token(int(input_ids[row, -1]))
            mask = np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8)
            allowed = np.unpackbits(mask, count=scores.shape[1], bitorder="little")
            scores[row, torch.from_numpy(allowed == 0)] = -torch.inf
        return scores


class Contenders:
    """Functions that generate the outputs of a task with the same model."""

    def __init__(self) -> None:
        oracle = load_pretrained("smollm2", packed=False)
        self.model, self.tokenizer = oracle.model, oracle.tokenization.tokenizer
        self._matcher_tokenizer = from_tokenizer(self.tokenizer)

    def encoded(self, task: Task) -> dict[str, Tensor]:
        chats = [[{"role": "user", "content": prompt}] for prompt in task.prompts]
        texts = self.tokenizer.apply_chat_template(chats, add_generation_prompt=True, tokenize=False)
        found = self.tokenizer(texts, return_tensors="pt", padding=True, padding_side="left")
        return {name: found[name] for name in ("input_ids", "attention_mask")}

    def of(self, task: Task, config: dict[str, Any]) -> dict[str, Callable[[], Tensor]]:
        """By name what draws all outputs of `task`: sequences (8, length)."""
        inputs, width = self.encoded(task), self.encoded(task)["input_ids"].shape[1]
        settings = {**inputs, **config, "max_new_tokens": NEW_TOKENS}

        def walking(sampler: Any) -> Callable[[], Tensor]:
            custom = decoding(sampler, task.verifier, tokenizer=self.tokenizer, seed=SEED, rejected="keep")
            return lambda: self.model.generate(**settings, custom_generate=custom)

        def plain() -> Tensor:
            transformers.set_seed(SEED)
            guidance = Guidance(LLMatcher(self._matcher_tokenizer, task.grammar), len(task.prompts), width)
            sequences: Tensor = self.model.generate(
                **settings, logits_processor=transformers.LogitsProcessorList([guidance])
            )
            return sequences

        contenders = {
            "trialogue, mask": walking(MaskedDecoding()),
            "llguidance processor": plain,
        }
        if config["do_sample"]:
            contenders["trialogue, mask behind the cut"] = walking(MaskedDecoding(mask_first=False))
            contenders["trialogue, SMC of 4"] = walking(SequentialMonteCarlo(4, proposal="mask"))
        return contenders

    def completions(self, sequences: Tensor, width: int) -> tuple[list[str], int]:
        """Return the texts of sequences, and their number of tokens including end-of-sequence tokens."""
        rows = sequences[:, width:]
        ended = (rows == self.tokenizer.eos_token_id).int()
        # Count tokens up to the first end-of-sequence token, after which there is only padding.
        tokens = int(((ended.cumsum(1) - ended) == 0).sum())
        return self.tokenizer.batch_decode(rows, skip_special_tokens=True), tokens


def main() -> None:
    """Run the benchmark and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--show", action="store_true", help="print every output")
    parser.add_argument("--record", action="store_true", help="write the rows that README quotes")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    transformers.logging.set_verbosity_error()
    console, record, runs = Console(width=160), Record("constrained"), Contenders()
    taken: dict[str, list[tuple[int, float]]] = defaultdict(list)
    valid: dict[tuple[str, str, str], int] = {}
    for run in runs.of(TASKS[arguments.tasks[0]], CONFIGS["greedy"]).values():
        run()  # warm-up
    for config, settings in CONFIGS.items():
        for name in arguments.tasks:
            task = TASKS[name]
            width = runs.encoded(task)["input_ids"].shape[1]
            for contender, run in runs.of(task, settings).items():
                began = time.process_time()
                sequences = run()
                seconds = time.process_time() - began
                texts, tokens = runs.completions(sequences, width)
                good = [task.valid(text) for text in texts]
                valid[contender, config, name] = sum(good)
                taken[contender].append((tokens, seconds))
                record.add(contender, sum(good), what="valid of 8", config=config, task=name)
                if arguments.show:
                    for text, is_valid in zip(texts, good, strict=True):
                        print(f"{contender} | {config} | {name} | {is_valid} | {text!r}")
    contenders = list(taken)
    for contender in contenders:
        for config in CONFIGS:
            counts = [
                valid[contender, config, name]
                for name in arguments.tasks
                if (contender, config, name) in valid
            ]
            if counts:
                record.add(contender, sum(counts), what="valid", config=config, outputs=8 * len(counts))
    table = Table("valid of 8", *contenders)
    for config in CONFIGS:
        for name in arguments.tasks:
            cells = [str(valid.get((contender, config, name), "")) for contender in contenders]
            table.add_row(f"{name}, {config}", *cells)
    console.print(table)
    rates = Table("", "outputs", "tokens", "CPU s", "tokens per CPU second", "CPU ms per token")
    for contender, rows in taken.items():
        tokens, seconds = (sum(column) for column in zip(*rows, strict=True))
        record.add(contender, tokens / seconds, what="tokens per CPU second")
        record.add(contender, 1000 * seconds / tokens, what="CPU ms per token")
        rates.add_row(
            contender,
            str(8 * len(rows)),
            str(tokens),
            f"{seconds:.1f}",
            f"{tokens / seconds:.1f}",
            f"{1000 * seconds / tokens:.1f}",
        )
    console.print(rates)
    if arguments.record:
        record.write()


if __name__ == "__main__":
    main()
