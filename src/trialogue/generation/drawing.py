"""Drawing the samples of a run: model, prompts and verifiers, loaded once, and batches of samples."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields

from torch import Tensor

from trialogue.errors import InputError, out_of_memory
from trialogue.generation.admissibility import UnreadOracle, encoded, require_viable
from trialogue.generation.output.live_text import Feedback
from trialogue.generation.output.records import records_of
from trialogue.generation.output.sink import Key, Record
from trialogue.generation.settings import GenerationSettings
from trialogue.generation.verifiers.specs import Built, build_for_prompts, combine_verifiers, distinct
from trialogue.models.hub.opening import TextModel, open_pretrained
from trialogue.models.tokenization import Tokenization
from trialogue.samplers import Samples, generate, truncated
from trialogue.samplers.prefix.batch import DEFAULT_MEMORY
from trialogue.samplers.prefix.engine import rows_at_once
from trialogue.start_up import uncollected


class Drawer:
    """Model, prompts and verifiers of `settings`, loaded.

    Raises `InputError` for settings that cannot be used. `feedback` warns of settings that make every step slow.
    """

    def __init__(self, settings: GenerationSettings, feedback: Feedback) -> None:
        with uncollected():
            self.oracle, self.prompts, self.built = _loaded(settings, feedback.warn)
        # Files that change later decide nothing any more.
        self.runs = settings.runs()
        _warn_of_each(feedback.warn, settings, self.built, self.oracle.vocab_size)
        self.settings, self.feedback = settings, feedback
        self._verifiers = {
            tuple(map(id, of_prompt)): combine_verifiers(of_prompt) for of_prompt in self.built
        }

    @property
    def remarks(self) -> Sequence[str]:
        """Remarks of the model on how it was used."""
        return self.oracle.remarks

    def draw(self, keys: Sequence[Key], take: Callable[[Key, Record], None]) -> int:
        """Draw the samples `keys`, call `take` with the record of each as it finishes, and return how many tokens.

        Raises `InputError` if memory does not suffice.
        """
        settings, prompts = self.settings, self.prompts
        sampling, machine, sampler = settings.sampling, settings.machine, settings.sampler
        distribution = truncated(self.oracle, **sampling.truncation)
        verifiers = [self._verifiers[tuple(map(id, self.built[place]))] for place, _ in keys]
        rows = rows_at_once(distribution, sampler, len(keys), machine.batch_size)
        with _named_memory(settings, rows, max(map(len, prompts)) + sampling.longest):
            samples = generate(
                distribution,
                [prompts[place] for place, _ in keys],
                sampler=sampler,
                verifier=verifiers if settings.has_rules else None,
                max_new_tokens=sampling.longest,
                seed=sampling.seed,
                sample_ids=[settings.prompts[place].stream(sample) for place, sample in keys],
                batch_size=machine.batch_size,
                max_queries=sampling.max_queries,
                max_steps=sampling.max_steps,
                memory=DEFAULT_MEMORY if machine.memory is None else machine.memory,
                stop=list(sampling.stop) or None,
                on_error=settings.rule.on_error,
                token_log_probs=sampling.log_probs,
                progress=self.feedback.progress,
                observer=RecordObserver(self, keys, take),
            )
        return int((samples.lengths - samples.prompt_lengths).sum())


class RecordObserver:
    """An observer of `generate` that records the samples `keys` as they finish, and shows the first while it grows."""

    def __init__(self, drawer: Drawer, keys: Sequence[Key], take: Callable[[Key, Record], None]) -> None:
        self._drawer, self.keys, self._take = drawer, keys, take

    def moved(self, samples: Tensor, tokens: Tensor, lengths: Tensor) -> None:
        """Show the text so far."""
        drawer = self._drawer
        if drawer.feedback.live is not None and len(samples):
            start = len(drawer.prompts[self.keys[int(samples[0])][0]])
            completion = tokens[0, start : int(lengths[0])].tolist()
            drawer.feedback.live.show(drawer.oracle.tokenization.text(completion, final=False))

    def filed(self, places: Tensor, samples: Samples) -> None:
        """Record the samples that have finished."""
        drawer, keys = self._drawer, [self.keys[place] for place in places.tolist()]
        records = records_of(
            samples, keys, drawer.oracle, drawer.built, settings=drawer.settings, runs=drawer.runs
        )
        for key, record in zip(keys, records, strict=True):
            if drawer.feedback.live is not None:
                drawer.feedback.live.end(record["text"])
            self._take(key, record)


def _loaded(
    settings: GenerationSettings, warn: Callable[[str], None]
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
        return build_for_prompts(
            settings.rule,
            settings.prompts,
            tokenization,
            verdicts=sampler.uses == "verdicts",
            # A sampler that uses nothing lets the verifier judge the result.
            ranks=sampler.uses in ("nothing", "ranks"),
            stop=settings.sampling.stop,
        )

    built = build(checkpoint.tokenization)
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
    warn: Callable[[str], None],
    settings: GenerationSettings,
    built: Sequence[Sequence[Built]],
    vocab_size: int,
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
def _named_memory(settings: GenerationSettings, rows: int, context: int) -> Iterator[None]:
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
