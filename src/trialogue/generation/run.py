"""A run of `trialogue generate`: from settings to output lines, written as samples finish."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, NamedTuple

import torch

from trialogue.errors import InputError
from trialogue.generation.prompts import Prompt
from trialogue.generation.recording import Output, Recorder
from trialogue.generation.records import log_weights
from trialogue.generation.settings import Settings
from trialogue.generation.streaming import LiveText
from trialogue.generation.verifier_specs import Built
from trialogue.inference import Product, generate, truncated, values
from trialogue.inference.importance import effective_sample_size
from trialogue.inference.walks.batch import DEFAULT_MEMORY
from trialogue.inference.walks.engine import rows_at_once
from trialogue.models.pretrained import PretrainedOracle, load_pretrained
from trialogue.oracles import Autoregressive


class Finished(NamedTuple):
    """The records of a run in the order of prompts and samples, and what this run, without an earlier one's, took."""

    records: list[dict[str, Any]]
    kept: int
    tokens: int
    seconds: float

    def summary(self, weighted: bool) -> str:
        """The run in one line."""
        accepted = sum(record["accepted"] for record in self.records)
        parts = [f"{len(self.records)} samples, {accepted} accepted"]
        if len(self.records) == 1:
            reason = self.records[0]["reason"]
            parts = [f"1 sample, {'accepted' if reason is None else f'not accepted ({reason})'}"]
        if self.kept:
            parts[0] += f" ({self.kept} of the samples were there already)"
        if weighted and accepted:
            prompts: dict[Any, list[dict[str, Any]]] = {}
            for record in self.records:
                prompts.setdefault(record["id"], []).append(record)
            size = sum(
                effective_sample_size(torch.tensor(log_weights(records), dtype=torch.float64))
                for records in prompts.values()
                if any(record["accepted"] for record in records)
            )
            parts.append(f"effective sample size {size:.1f}")
        parts.append(f"{sum(record['queries'] for record in self.records)} queries")
        if self.tokens:
            parts.append(f"{self.tokens / self.seconds:.1f} tokens/s")
        return ", ".join([*parts, f"{self.seconds:.1f} s"])


def run(
    settings: Settings,
    output: Output,
    *,
    live: LiveText | None = None,
    progress: bool = False,
    report: Callable[[str], None] | None = None,
    warn: Callable[[str], None] | None = None,
) -> Finished:
    """Draw the samples that `output` does not hold yet, and write each as it finishes.

    Raises `InputError` for whatever of the settings cannot be used, out of memory among it. `report` is told what takes
    long before the first sample, `warn` what makes every step of it slow.
    """
    inputs, sampling, machine, walk = settings.inputs, settings.sampling, settings.machine, settings.walk
    kept = {key: record for key, record in output.kept.items() if key[1] < sampling.n}
    wanted = [(place, sample) for place in range(len(settings.prompts)) for sample in range(sampling.n)]
    pending = [key for key in wanted if key not in kept]
    if not pending:
        return Finished([kept[key] for key in wanted], len(kept), 0, 0.0)
    if report is not None:
        report(f"loading {inputs.model}")
    oracle = load_pretrained(
        str(inputs.model),
        device=machine.device,
        dtype=machine.dtype,
        remote_code=machine.trust_remote_code,
        recompute=machine.recompute,
    )
    began = time.perf_counter()
    prompts = [_encoded(oracle, prompt, inputs.chat) for prompt in settings.prompts]
    built = settings.rule.build(
        oracle,
        verdicts=walk.uses == "verdicts",
        # A walk that uses nothing lets the verifier judge the result.
        ranks=walk.uses in ("nothing", "ranks"),
        stop=sampling.stop,
    )
    if walk.judges == "prefixes":
        judging = [one for one in built if one.kind.judges_prompts]
        _require_viable(settings.prompts, prompts, oracle, judging)
    verifiers = [one.verifier for one in built]
    if warn is not None and sampling.top_k is None:
        _warn_of_each(warn, sampling.walk, built, oracle.vocab_size)
    cut = sampling.temperature != 1 or sampling.top_p != 1 or sampling.top_k is not None
    law = truncated(oracle, sampling.temperature, sampling.top_p, sampling.top_k) if cut else oracle
    starts = [len(prompts[place]) for place, _ in pending]
    recorder = Recorder(settings, oracle, pending, starts, built, output, live)
    arguments: dict[str, Any] = {
        "walk": walk,
        "verifier": Product(*verifiers) if len(verifiers) > 1 else next(iter(verifiers), None),
        "max_new_tokens": sampling.max_new_tokens,
        "seed": sampling.seed,
        "sample_ids": [settings.prompts[place].stream(sample) for place, sample in pending],
        "batch_size": machine.batch_size,
        "max_queries": sampling.max_queries,
        "max_steps": sampling.max_steps,
        "memory": DEFAULT_MEMORY if machine.memory is None else machine.memory,
        "stop": list(sampling.stop) or None,
        "progress": progress,
        "observer": recorder,
    }
    rows = rows_at_once(law, walk, len(pending), machine.batch_size)
    with _named_memory(settings, rows, max(map(len, prompts)) + sampling.max_new_tokens):
        samples = generate(law, [prompts[place] for place, _ in pending], **arguments)
    tokens = int((samples.lengths - samples.prompt_lengths).sum())
    return Finished([output.kept[key] for key in wanted], len(kept), tokens, time.perf_counter() - began)


def _encoded(oracle: PretrainedOracle, prompt: Prompt, chat: bool) -> list[int]:
    with _unsaid():
        tokens = oracle.tokenization.chat(prompt.text) if chat else oracle.tokenization.encode(prompt.text)
    if not tokens:
        raise InputError(
            "prompt", prompt.text, "it has no tokens, and the model has none to begin with: give a text"
        )
    if oracle.max_length is not None and len(tokens) >= oracle.max_length:
        mend = f"has {len(tokens)} tokens, and the model's context {oracle.max_length}: shorten it"
        raise InputError("prompt", _shortened(prompt), f"with id {prompt.id!r} {mend}")
    return tokens


@contextmanager
def _unsaid() -> Iterator[None]:
    """Keep the tokenizer from warning of a prompt that is too long, which is an error of one line here."""
    logger = logging.getLogger("transformers.tokenization_utils_base")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _warn_of_each(warn: Callable[[str], None], walk: str, built: Sequence[Built], vocab_size: int) -> None:
    """Let `warn` be told when the walk first asks for values of all continuations that are judged one by one."""

    def told() -> None:
        warn(
            f"the walk {walk} asks about up to {vocab_size} continuations of every prefix, and this verifier judges "
            "them one by one: --top-k K leaves K of them"
        )

    # Several are asked about the same continuations: it is said of the first.
    for one in [one.graded for one in built if one.graded is not None][:1]:
        one.each = told


def _shortened(prompt: Prompt) -> str:
    return prompt.text if len(prompt.text) <= 40 else f"{prompt.text[:40]}…"


def _require_viable(
    prompts: Sequence[Prompt],
    tokens: Sequence[Sequence[int]],
    oracle: Autoregressive,
    built: Sequence[Built],
) -> None:
    """Raise `InputError` where a prompt as it stands has the value zero: then no completion of it has another."""
    for kind, verifier, *_ in built:
        for prompt, encoded in zip(prompts, tokens, strict=True):
            if float(values(verifier, oracle, [encoded], prompt_lengths=len(encoded))) > 0:
                continue
            what = "the empty completion" if verifier.scope == "completion" else "it as it stands"
            mend = f"the verifier rejects {what}, so that no completion can be accepted"
            if kind.is_function:
                mend += "; one of whole texts only needs --verifier-whole"
            raise InputError("prompt", _shortened(prompt), mend)


@contextmanager
def _named_memory(settings: Settings, rows: int, context: int) -> Iterator[None]:
    """Turn running out of memory with `rows` rows at once into an `InputError` that names what to make smaller."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        text = str(error)
        exhausted = isinstance(error, torch.OutOfMemoryError | MemoryError) or any(
            words in text
            for words in ("not enough memory", "can't allocate memory", "out of memory", "bad_alloc")
        )
        if not exhausted:
            raise
        mend = f"out of memory with {rows} rows of up to {context} tokens: try "
        walk = settings.walk
        if rows // 2 >= walk.rows_per_sample:
            mend += f"--batch-size {rows // 2}, or "
        elif rows > 1:
            sizes = [
                field.name for field in fields(walk) if getattr(walk, field.name) == walk.rows_per_sample
            ]
            mend += f"fewer {' or '.join(sizes) or 'rows per sample'}, or "
        mend += "a smaller --max-new-tokens"
        raise InputError("batch_size", settings.machine.batch_size, mend) from error
