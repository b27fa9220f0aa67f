"""Contenders of `generation.py`: generation with transformers, with llguidance, and with samplers of this package."""

from collections.abc import Callable
from typing import Any

import torch
import transformers
from llguidance import LLMatcher, regex_to_lark
from llguidance.hf import from_tokenizer
from transformers import DynamicCache

from constrained import EVERY_TOKENIZATION, Guidance
from trialogue.models.hub.opening import TextModel
from trialogue.models.hub.pretrained import PretrainedOracle
from trialogue.oracles import Verifier
from trialogue.samplers import (
    Ancestral,
    MaskedDecoding,
    SequentialMonteCarlo,
    WeightedRejection,
    generate,
)
from trialogue.verifiers import GrammarVerifier

NEW_TOKENS = 64
PROMPT = "The capital of France is a city that has been known for its art, its food and its history since"
REGEX = "[^eE]+"
SCHEMA = {
    "type": "object",
    "properties": {"facts": {"type": "array", "items": {"type": "string"}, "minItems": 40}},
    "required": ["facts"],
    "additionalProperties": False,
}

Run = Callable[[], int]
"""Function that generates once and returns the number of sampled tokens."""


def sampling(new_tokens: int) -> dict[str, Any]:
    """Return the settings of `generate` that sample a number of tokens at temperature 1."""
    return {"do_sample": True, "top_k": 0, "max_new_tokens": new_tokens, "min_new_tokens": new_tokens}


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


def library(oracle: PretrainedOracle, batch: int, guided: bool = False, new_tokens: int = NEW_TOKENS) -> Run:
    """Return a run of `generate` of transformers, optionally with llguidance's mask for `REGEX`."""
    ids = torch.tensor([oracle.tokenization.encode(PROMPT)] * batch)
    settings = sampling(new_tokens)
    tokenizer = from_tokenizer(oracle.tokenization.tokenizer) if guided else None
    grammar = f"start: /{regex_to_lark(REGEX, '')}/\n{EVERY_TOKENIZATION}"

    def run() -> int:
        processors = transformers.LogitsProcessorList()
        if tokenizer is not None:
            processors.append(Guidance(LLMatcher(tokenizer, grammar), batch, ids.shape[1]))
        with torch.inference_mode():
            sequences = oracle.model.generate(
                ids, attention_mask=torch.ones_like(ids), logits_processor=processors, **settings
            )
        return int(sequences[:, ids.shape[1] :].numel())

    return run


def ours(
    oracle: TextModel,
    batch: int,
    sampler: Any,
    verifier: Callable[[], Verifier] | None = None,
    ragged: bool = False,
    new_tokens: int = NEW_TOKENS,
) -> Run:
    """Return a run of a sampler, which counts model calls.

    Args:
        oracle: Model.
        batch: Number of rows.
        sampler: Sampler.
        verifier: Function that creates a verifier for each run.
        ragged: Whether to shorten each prompt by one token more than the previous one.
        new_tokens: Number of new tokens.
    """
    ids = oracle.tokenization.encode(PROMPT)
    samples = max(1, batch // sampler.rows_per_sample)
    prompts = [ids[: len(ids) - row] for row in range(samples)] if ragged else [ids] * samples

    def run() -> int:
        judge = None if verifier is None else verifier()
        taken = generate(
            oracle, prompts, sampler=sampler, verifier=judge, max_new_tokens=new_tokens, batch_size=batch
        )
        return taken.total.queries

    return run


def grammars(oracle: PretrainedOracle) -> dict[str, Callable[[], Verifier]]:
    """Return functions that create a verifier for each constraint, so that runs do not share cached masks."""
    text = oracle.tokenization
    return {
        "regex": lambda: GrammarVerifier.regex(REGEX, text),
        "JSON schema": lambda: GrammarVerifier.json_schema(SCHEMA, text),
    }


def samplers(oracle: PretrainedOracle, batch: int) -> dict[str, Run]:
    """Return runs of ancestral sampling and of the constrained samplers by name."""
    rules = grammars(oracle)
    runs = {"ancestral": ours(oracle, batch, Ancestral())}
    for name, rule in rules.items():
        runs[f"masked, {name}"] = ours(oracle, batch, MaskedDecoding(), rule)
    runs["weighted rejection, regex"] = ours(oracle, batch, WeightedRejection(), rules["regex"])
    smc = SequentialMonteCarlo(particles=batch, proposal="rejection")
    runs["SMC by rejection, regex"] = ours(oracle, batch, smc, rules["regex"])
    return runs
