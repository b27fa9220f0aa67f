"""Loading of the model, prompts and verifiers of a run, and generation of its samples."""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields

from torch import Tensor

from trialogue.errors import InputError, is_out_of_memory
from trialogue.generation.admissibility import UnreadOracle, encode_prompts, require_viable
from trialogue.generation.field_confidence import format_confidence
from trialogue.generation.output.live_text import Feedback
from trialogue.generation.output.records import make_records
from trialogue.generation.output.round_files import RoundFiles
from trialogue.generation.output.sink import Key, Record
from trialogue.generation.settings import GenerationSettings
from trialogue.generation.verifiers.specs import (
    BuiltVerifier,
    build_for_prompts,
    combine_verifiers,
    distinct_verifiers,
)
from trialogue.models.hub.opening import TextModel, open_pretrained
from trialogue.models.tokenization import Tokenization
from trialogue.samplers import AdaptiveRejection, Samples, generate, truncated
from trialogue.samplers.prefix.batch import DEFAULT_MEMORY
from trialogue.samplers.prefix.engine import choose_batch_size
from trialogue.start_up import pause_collector


class SampleGenerator:
    """Model, prompts and verifiers of a run, loaded once and used to generate samples in batches.

    Args:
        settings: Settings of the run.
        feedback: Progress output. Its function `warn` is called for settings that make every step slow.
        rounds: Storage of sampler states for each prompt, for samplers that learn from earlier samples. None
            if all samples are independent (default).

    Raises:
        InputError: If the model, the prompts or the verifiers cannot be loaded or do not fit together.
    """

    def __init__(
        self, settings: GenerationSettings, feedback: Feedback, rounds: RoundFiles | None = None
    ) -> None:
        with pause_collector():
            self.oracle, self.prompts, self.built = _load(settings, feedback.warn)
        # The digests are computed now, because files may change during the run.
        self.digests = settings.prompt_digests()
        _warn_of_slow_verifiers(feedback.warn, settings, self.built, self.oracle.vocab_size)
        self.settings, self.feedback, self.rounds = settings, feedback, rounds
        self._verifiers = {
            tuple(map(id, of_prompt)): combine_verifiers(of_prompt) for of_prompt in self.built
        }

    @property
    def remarks(self) -> Sequence[str]:
        """Messages of the model for the user."""
        return self.oracle.remarks

    def draw(self, keys: Sequence[Key], take: Callable[[Key, Record], None]) -> int:
        """Generate samples and pass the output record of each finished sample to a function.

        Args:
            keys: For each sample, the index of its prompt and its index among the samples of this prompt.
            take: Function called with the key (the two indices) and the output record of each finished sample.

        Returns:
            Total number of generated tokens.

        Raises:
            InputError: If the memory does not suffice.
        """
        settings, prompts = self.settings, self.prompts
        repeated = set[Key]() if self.rounds is None else set(self.rounds.find_samples_to_repeat(keys))
        keys = sorted((*keys, *repeated)) if repeated else keys
        sampling, machine, sampler = settings.sampling, settings.machine, settings.sampler
        distribution = truncated(self.oracle, **sampling.truncation)
        verifiers = [self._verifiers[tuple(map(id, self.built[place]))] for place, _ in keys]
        rows = choose_batch_size(distribution, sampler, len(keys), machine.batch_size)
        with _reporting_memory_errors(
            settings, rows, max(map(len, prompts)) + sampling.max_completion_tokens
        ):
            samples = generate(
                distribution,
                [prompts[place] for place, _ in keys],
                sampler=sampler,
                verifier=verifiers if settings.has_verifiers else None,
                max_new_tokens=sampling.max_completion_tokens,
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
                observer=RecordObserver(self, keys, take, repeated),
                shared=None if self.rounds is None else [self.rounds.rounds(place) for place, _ in keys],
            )
        return int((samples.lengths - samples.prompt_lengths).sum())


class RecordObserver:
    """Observer of a run that converts finished samples to output records, and displays the first sample.

    Args:
        generator: Loaded model, prompts and verifiers.
        keys: For each sample, the index of its prompt and its index among the samples of this prompt.
        take: Function called with the key and the output record of each finished sample.
        repeated: Samples that are in the output already, for which `take` is not called (default: none).
    """

    def __init__(
        self,
        generator: SampleGenerator,
        keys: Sequence[Key],
        take: Callable[[Key, Record], None],
        repeated: Collection[Key] = (),
    ) -> None:
        self._generator, self.keys, self._take, self._repeated = generator, keys, take, repeated

    def on_step(self, samples: Tensor, tokens: Tensor, lengths: Tensor) -> None:
        """Display the current text of the first running sample. The engine calls this method after every step.

        Args:
            samples: Indices of the running samples, shape (n,).
            tokens: Token ids of the running samples, shape (n, capacity).
            lengths: Number of tokens of each running sample, shape (n,).
        """
        generator = self._generator
        if generator.feedback.live is not None and len(samples):
            start = len(generator.prompts[self.keys[int(samples[0])][0]])
            completion = tokens[0, start : int(lengths[0])].tolist()
            generator.feedback.live.show(generator.oracle.tokenization.text(completion, final=False))

    def on_finished(self, places: Tensor, samples: Samples) -> None:
        """Create the output records of finished samples. The engine calls this method when samples are finished.

        Args:
            places: Indices of the finished samples, shape (n,).
            samples: The finished samples.
        """
        generator, keys = self._generator, [self.keys[place] for place in places.tolist()]
        records = make_records(
            samples,
            keys,
            generator.oracle,
            generator.built,
            settings=generator.settings,
            digests=generator.digests,
        )
        for key, record in zip(keys, records, strict=True):
            if key in self._repeated:
                continue
            if generator.feedback.live is not None:
                shown = f"\nconfidence  {format_confidence(record)}" if record.get("confidence") else ""
                generator.feedback.live.end(record["text"] + shown)
            self._take(key, record)
        if generator.rounds is not None:
            generator.rounds.save(place for place, _ in keys)


def _load(
    settings: GenerationSettings, warn: Callable[[str], None]
) -> tuple[TextModel, list[list[int]], list[list[BuiltVerifier]]]:
    """Load model, prompts and verifiers. Errors in prompts and verifiers are raised before the weights are read."""
    inputs, machine, sampler = settings.inputs, settings.machine, settings.sampler
    checkpoint = open_pretrained(
        str(inputs.model),
        device=machine.device,
        dtype=machine.dtype,
        remote_code=machine.trust_remote_code,
    )
    prompts = encode_prompts(checkpoint, settings, warn)

    def build(tokenization: Tokenization) -> list[list[BuiltVerifier]]:
        return build_for_prompts(
            settings.rule,
            settings.prompts,
            tokenization,
            verdicts=sampler.uses == "verdicts",
            # A sampler that uses no verifier leaves the threshold to the evaluation of finished samples.
            ranks=sampler.uses in ("nothing", "ranks"),
            stop=settings.sampling.stop,
            within_limit=settings.sampling.within_limit,
        )

    built = build(checkpoint.tokenization)
    for note in dict.fromkeys(note for one in distinct_verifiers(built) for note in one.verifier.notes):
        warn(note)
    limited = [one for one in distinct_verifiers(built) if hasattr(one.verifier, "min_tokens")]
    if settings.sampling.within_limit and not limited:
        hint = (
            "use it with a constraint that has a mask, such as --json-schema FILE, --regex REGEX or --choice"
        )
        raise InputError("within_limit", True, hint)
    for one in limited if settings.sampling.within_limit else ():
        limit = settings.sampling.max_completion_tokens
        shortest = one.verifier.min_tokens  # type: ignore[attr-defined]
        if shortest is not None and shortest > limit:
            warn(
                f"within_limit: the shortest known text of a verifier has {shortest} tokens, more than the limit of "
                f"{limit}, so that texts will be incomplete: use a larger --max-new-tokens"
            )
    unjudged = require_viable(settings, prompts, built, UnreadOracle(checkpoint))
    oracle = checkpoint.load(recompute=machine.recompute, weights=machine.weights)
    if oracle.tokenization is not checkpoint.tokenization:
        built = build(oracle.tokenization)
    for one in distinct_verifiers(built):
        one.require_fit(oracle)
    require_viable(settings, prompts, unjudged, oracle)
    return oracle, prompts, built


def _warn_of_slow_verifiers(
    warn: Callable[[str], None],
    settings: GenerationSettings,
    built: Sequence[Sequence[BuiltVerifier]],
    vocab_size: int,
) -> None:
    """Arrange for a warning when the sampler first evaluates all continuations of a prefix one at a time."""
    sampler, sampling = settings.sampler, settings.sampling
    graded = [one.graded for one in distinct_verifiers(built) if one.graded is not None]
    source = f"the sampler {sampling.sampler}"
    if not sampler.masks_first:
        is_restricted = sampling.top_k is not None
        hint = "use --top-k K to evaluate only K of them, which changes the target"
        if isinstance(sampler, AdaptiveRejection):
            source += " with --then mask"
            hint = f"leave out --then mask, or {hint}"
    elif sampler.uses == "weights" and any(one.most == math.inf for one in graded):
        # An unlikely continuation may have a greater value than a likely one.
        is_restricted = False
        hint = "annotate the function to return bool, or use --no-mask-first with --top-k K to evaluate only K of them"
    else:
        is_restricted = sampling.cuts
        hint = "use --top-k K or --top-p P to evaluate only the most likely ones"
    if is_restricted or sampler.few_children:
        return

    def warn_once() -> None:
        for verifier in graded:
            verifier.on_slow_evaluation = None
        warn(
            f"{source} requires the values of up to {vocab_size} continuations of every "
            f"prefix, and this verifier computes them one at a time: {hint}"
        )

    # All verifiers share the function, which disables itself, so that only one warning is issued.
    for verifier in graded:
        verifier.on_slow_evaluation = warn_once


@contextmanager
def _reporting_memory_errors(settings: GenerationSettings, rows: int, context: int) -> Iterator[None]:
    """Convert an out-of-memory error to an `InputError` that suggests which options to reduce."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
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
