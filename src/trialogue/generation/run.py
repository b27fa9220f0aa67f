"""A run of `trialogue generate`: from settings to output lines, written as samples finish."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, NamedTuple

import torch

from trialogue.errors import InputError
from trialogue.generation.admissibility import UnreadOracle, encoded, require_viable
from trialogue.generation.order import InOrder
from trialogue.generation.recording import AsFinished, Output, Recorder
from trialogue.generation.records import log_weights
from trialogue.generation.sample_file import Key
from trialogue.generation.settings import Settings
from trialogue.generation.streaming import LiveText
from trialogue.generation.tries import Tries
from trialogue.generation.verifier_specs import Built, built_of_prompts, distinct, rule_of
from trialogue.inference import generate, truncated
from trialogue.inference.importance import effective_sample_size
from trialogue.inference.walks.batch import DEFAULT_MEMORY
from trialogue.inference.walks.engine import rows_at_once
from trialogue.models.opening import TextModel, open_pretrained
from trialogue.models.tokenization import Tokenization
from trialogue.start_up import uncollected


class Finished(NamedTuple):
    """The records of a run in the order of prompts and samples, and what this run, without an earlier one's, took.

    `kept` of the records were there before, `left_out` samples were drawn in advance and are none of them.
    """

    records: list[dict[str, Any]]
    kept: int
    left_out: int
    tokens: int
    seconds: float

    def accepted(self) -> dict[int | str, tuple[int, int]]:
        """By the id of each prompt, how many of its samples were accepted, and how many there are."""
        shares: dict[int | str, tuple[int, int]] = {}
        for record in self.records:
            accepted, samples = shares.get(record["id"], (0, 0))
            shares[record["id"]] = accepted + record["accepted"], samples + 1
        return shares

    def summary(self, weighted: bool) -> str:
        """The run in one line."""
        accepted = sum(record["accepted"] for record in self.records)
        parts = [f"{len(self.records)} samples, {accepted} accepted"]
        if len(self.records) == 1:
            reason = self.records[0]["reason"]
            parts = [f"1 sample, {'accepted' if reason is None else f'not accepted ({reason})'}"]
        if self.kept:
            parts[0] += f" ({self.kept} of the samples were there already)"
        if self.left_out:
            parts.append(f"{self.left_out} more drawn in advance and left out")
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
        calls = sum(record["verifier_calls"] for record in self.records)
        if calls:
            drawn = sum(len(record["tokens"]) for record in self.records)
            each = f" ({calls / drawn:.3g} a token)" if drawn else ""
            parts.append(f"{calls} verifier calls{each}")
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
    sampling = settings.sampling
    tries = Tries(sampling, len(settings.prompts), output.kept)
    kept = {**output.kept, **output.held}
    writer = InOrder(output, tries) if settings.destination.ordered else AsFinished(output)
    for key, record in list(output.held.items()):
        for own, ready in tries.finish(key, record):
            writer.write(own, ready)
    pending = tries.pending()
    tokens, began = 0, time.perf_counter()
    if pending:
        if report is not None:
            report(f"loading {settings.inputs.model}")
        with uncollected():
            oracle, prompts, built = _loaded(settings, warn)
        if warn is not None:
            _warn_of_each(warn, settings, built, oracle.vocab_size)
        began = time.perf_counter()
    while pending:
        starts = [len(prompts[place]) for place, _ in pending]
        recorder = Recorder(settings, oracle, pending, starts, built, tries, writer, output, live)
        tokens += _draw(settings, oracle, prompts, built, pending, recorder, progress)
        pending = tries.pending()
        if not pending and warn is not None:
            for note in oracle.remarks:
                warn(note)
    if sampling.until is not None or not output.held:
        output.settle()
    keys = tries.keys()
    return Finished(
        [output.kept[key] for key in keys],
        kept=sum(key in kept for key in keys),
        left_out=tries.left_out,
        tokens=tokens,
        seconds=time.perf_counter() - began,
    )


def _loaded(
    settings: Settings, warn: Callable[[str], None] | None
) -> tuple[TextModel, list[list[int]], list[list[Built]]]:
    """Model, prompts in tokens, and verifiers; what is wrong with the last two is told before weights are read."""
    inputs, machine, walk = settings.inputs, settings.machine, settings.walk
    checkpoint = open_pretrained(
        str(inputs.model),
        device=machine.device,
        dtype=machine.dtype,
        remote_code=machine.trust_remote_code,
    )
    prompts = encoded(checkpoint, settings, warn)

    def build(tokenization: Tokenization) -> list[list[Built]]:
        return built_of_prompts(
            settings.rule,
            settings.prompts,
            tokenization,
            verdicts=walk.uses == "verdicts",
            # A walk that uses nothing lets the verifier judge the result.
            ranks=walk.uses in ("nothing", "ranks"),
            stop=settings.sampling.stop,
        )

    built = build(checkpoint.tokenization)
    if warn is not None:
        for note in dict.fromkeys(note for one in distinct(built) for note in one.verifier.notes):
            warn(note)
    unjudged = require_viable(settings, prompts, built, UnreadOracle(checkpoint))
    oracle = checkpoint.load(recompute=machine.recompute, weights=machine.weights)
    if oracle.tokenization is not checkpoint.tokenization:
        built = build(oracle.tokenization)
    for one in distinct(built):
        one.require_fit(oracle)
    require_viable(settings, prompts, unjudged, oracle)
    return oracle, prompts, built


def _draw(
    settings: Settings,
    oracle: TextModel,
    prompts: Sequence[Sequence[int]],
    built: Sequence[Sequence[Built]],
    keys: Sequence[Key],
    recorder: Recorder,
    progress: bool,
) -> int:
    """Draw the samples `keys`; returns how many tokens they have."""
    sampling, machine, walk = settings.sampling, settings.machine, settings.walk
    law = truncated(oracle, **sampling.truncation)
    rules = {tuple(map(id, of_prompt)): rule_of(of_prompt) for of_prompt in built}
    judges = [rules[tuple(map(id, built[place]))] for place, _ in keys]
    arguments: dict[str, Any] = {
        "walk": walk,
        "verifier": judges if settings.has_rules else None,
        "max_new_tokens": sampling.longest,
        "seed": sampling.seed,
        "sample_ids": [settings.prompts[place].stream(sample) for place, sample in keys],
        "batch_size": machine.batch_size,
        "max_queries": sampling.max_queries,
        "max_steps": sampling.max_steps,
        "memory": DEFAULT_MEMORY if machine.memory is None else machine.memory,
        "stop": list(sampling.stop) or None,
        "on_error": settings.rule.on_error,
        "token_log_probs": sampling.log_probs,
        "progress": progress,
        "observer": recorder,
    }
    rows = rows_at_once(law, walk, len(keys), machine.batch_size)
    with _named_memory(settings, rows, max(map(len, prompts)) + sampling.longest):
        samples = generate(law, [prompts[place] for place, _ in keys], **arguments)
    return int((samples.lengths - samples.prompt_lengths).sum())


def _warn_of_each(
    warn: Callable[[str], None], settings: Settings, built: Sequence[Sequence[Built]], vocab_size: int
) -> None:
    """Let `warn` be told when the walk first asks for values of all continuations that are judged one by one."""
    walk, sampling = settings.walk, settings.sampling
    graded = [one.graded for one in distinct(built) if one.graded is not None]
    if not walk.masks_first:
        few = sampling.top_k is not None
        mend = "--top-k K leaves K of them"
    elif walk.uses == "weights" and any(one.most == math.inf for one in graded):
        # Whatever is likely, what is not may have a greater value.
        few = False
        mend = "annotate a function that decides to return bool, or --no-mask-first with --top-k K leaves K of them"
    else:
        few = sampling.cuts
        mend = "with --top-k K or --top-p P it is asked about the likeliest, until K or P of what is accepted are found"
    if few or walk.few_children:
        return

    def told() -> None:
        for one in graded:
            one.each = None
        warn(
            f"the walk {sampling.walk} asks about up to {vocab_size} continuations of every prefix, and this verifier "
            f"judges them one by one: {mend}"
        )

    # Several may be asked about the same continuations: it is said once.
    for one in graded:
        one.each = told


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
