"""Drawing the samples of a run: model, prompts and verifiers, loaded once, and batches of samples."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

from trialogue.errors import InputError, out_of_memory
from trialogue.generation.admissibility import UnreadOracle, encoded, require_viable
from trialogue.generation.recording import Recorder
from trialogue.generation.sample_file import Key
from trialogue.generation.settings import Settings
from trialogue.generation.streaming import LiveText
from trialogue.generation.verifier_specs import Built, built_of_prompts, distinct, rule_of
from trialogue.models.opening import TextModel, open_pretrained
from trialogue.models.tokenization import Tokenization
from trialogue.samplers import generate, truncated
from trialogue.samplers.prefix.batch import DEFAULT_MEMORY
from trialogue.samplers.prefix.engine import rows_at_once
from trialogue.start_up import uncollected


class Drawer:
    """Model, prompts and verifiers of `settings`, loaded.

    Raises `InputError` for whatever of the settings cannot be used; `warn` is told what makes every step slow.
    """

    def __init__(self, settings: Settings, warn: Callable[[str], None] | None) -> None:
        with uncollected():
            self._oracle, self._prompts, self._built = _loaded(settings, warn)
        # Files that change later decide nothing any more.
        self._runs = settings.runs()
        if warn is not None:
            _warn_of_each(warn, settings, self._built, self._oracle.vocab_size)
        self._settings = settings
        self._rules = {tuple(map(id, of_prompt)): rule_of(of_prompt) for of_prompt in self._built}

    @property
    def remarks(self) -> Sequence[str]:
        """What the model has to say of what it was asked."""
        return self._oracle.remarks

    def draw(
        self,
        keys: Sequence[Key],
        take: Callable[[Key, dict[str, Any]], None],
        *,
        live: LiveText | None = None,
        progress: bool = False,
    ) -> int:
        """Draw the samples `keys`, and have `take` take the record of each as it finishes; returns how many tokens.

        Raises `InputError` where memory does not suffice.
        """
        settings, oracle, prompts = self._settings, self._oracle, self._prompts
        sampling, machine, sampler = settings.sampling, settings.machine, settings.sampler
        distribution = truncated(oracle, **sampling.truncation)
        starts = [len(prompts[place]) for place, _ in keys]
        judges = [self._rules[tuple(map(id, self._built[place]))] for place, _ in keys]
        arguments: dict[str, Any] = {
            "sampler": sampler,
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
            "observer": Recorder(settings, self._runs, oracle, keys, starts, self._built, take, live),
        }
        rows = rows_at_once(distribution, sampler, len(keys), machine.batch_size)
        with _named_memory(settings, rows, max(map(len, prompts)) + sampling.longest):
            samples = generate(distribution, [prompts[place] for place, _ in keys], **arguments)
        return int((samples.lengths - samples.prompt_lengths).sum())


def _loaded(
    settings: Settings, warn: Callable[[str], None] | None
) -> tuple[TextModel, list[list[int]], list[list[Built]]]:
    """Model, prompts in tokens, and verifiers; what is wrong with the last two is told before weights are read."""
    inputs, machine, sampler = settings.inputs, settings.machine, settings.sampler
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
            verdicts=sampler.uses == "verdicts",
            # A sampler that uses nothing lets the verifier judge the result.
            ranks=sampler.uses in ("nothing", "ranks"),
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


def _warn_of_each(
    warn: Callable[[str], None], settings: Settings, built: Sequence[Sequence[Built]], vocab_size: int
) -> None:
    """Let `warn` be told when the sampler first asks for values of all continuations that are judged one by one."""
    sampler, sampling = settings.sampler, settings.sampling
    graded = [one.graded for one in distinct(built) if one.graded is not None]
    if not sampler.masks_first:
        few = sampling.top_k is not None
        hint = "--top-k K leaves K of them"
    elif sampler.uses == "weights" and any(one.most == math.inf for one in graded):
        # Whatever is likely, what is not may have a greater value.
        few = False
        hint = "annotate a function that decides to return bool, or --no-mask-first with --top-k K leaves K of them"
    else:
        few = sampling.cuts
        hint = "with --top-k K or --top-p P it is asked about the likeliest, until K or P of what is accepted are found"
    if few or sampler.few_children:
        return

    def told() -> None:
        for one in graded:
            one.each = None
        warn(
            f"the sampler {sampling.sampler} asks about up to {vocab_size} continuations of every prefix, and "
            "this verifier "
            f"judges them one by one: {hint}"
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
        if not out_of_memory(error):
            raise
        hint = f"out of memory with {rows} rows of up to {context} tokens: try "
        sampler = settings.sampler
        if rows // 2 >= sampler.rows_per_sample:
            hint += f"--batch-size {rows // 2}, or "
        elif rows > 1:
            sizes = [
                field.name
                for field in fields(sampler)
                if getattr(sampler, field.name) == sampler.rows_per_sample
            ]
            hint += f"fewer {' or '.join(sizes) or 'rows per sample'}, or "
        hint += "a smaller --max-new-tokens"
        raise InputError("batch_size", settings.machine.batch_size, hint) from error
