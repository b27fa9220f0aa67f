"""Function `generate`, which draws samples from a model with any sampler."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.models.hub.memory import require_memory_for_items
from trialogue.oracles import Autoregressive, as_oracle
from trialogue.samplers.prefix.ancestral import Ancestral
from trialogue.samplers.prefix.batch import DEFAULT_MEMORY, Batch
from trialogue.samplers.prefix.contract.sampler import Sampler, prepare_sampler
from trialogue.samplers.prefix.engine.generate_run import GenerateRun
from trialogue.samplers.prefix.engine.groups import Groups
from trialogue.samplers.prefix.engine.prompt_verifiers import OnError, PromptVerifiers
from trialogue.samplers.prefix.engine.recorder import TraceRecorder
from trialogue.samplers.prefix.engine.rounds import Rounds, SharedState
from trialogue.samplers.prefix.engine.running import BatchRun, RunObserver
from trialogue.samplers.prefix.engine.sample_request import SampleRequest
from trialogue.samplers.prefix.masked_decoding import MaskedDecoding
from trialogue.samplers.prefix.output.samples import Samples
from trialogue.samplers.prefix.prompts import (
    Prompts,
    StopLike,
    encode_prompts,
    make_decoder,
    make_stop_condition,
    maximum_lengths,
    prompt_tensors,
    replace_empty_prompts,
    require_known_tokens,
    stop_strings,
    validate_sample_ids,
)
from trialogue.validation import Count, Natural, check, validated
from trialogue.verifiers.functions.function import VerifierLike

STEPS_PER_TOKEN = 1000
_BYTES = 8
_COLUMNS = 16
"""Numbers stored for each sample in addition to its tokens."""


def generate(
    oracle: Autoregressive,
    prompts: Prompts | Sequence[str] | None = None,
    *,
    sampler: Sampler[Any] | None = None,
    verifier: VerifierLike | Sequence[VerifierLike | None] | None = None,
    max_new_tokens: int | None = None,
    num_samples: int = 1,
    seed: int = 0,
    sample_ids: Sequence[int] | Tensor | None = None,
    batch_size: int | None = None,
    max_queries: int | None = None,
    max_steps: int | None = None,
    stop: StopLike | None = None,
    memory: int = DEFAULT_MEMORY,
    on_error: OnError = "raise",
    token_log_probs: bool = False,
    trace: bool = False,
    progress: bool = False,
    observer: RunObserver | None = None,
    shared: Sequence[SharedState] | None = None,
) -> Samples:
    """Draw completions of each prompt with a sampler.

    A completion ends at the oracle's end of sequence, at its `max_length`, after `max_new_tokens`, or where
    `stop` matches. A sample is determined by `seed` and its sample id. Other rows of the batch change it only
    through the rounding of a network, in about one draw in a thousand for a vocabulary of 50,000.

    Args:
        oracle: The model to sample from.
        prompts: Token ids as lists, as a tensor (n, width), or as right-padded tokens with their lengths; or
            texts, if the oracle has a tokenization. An empty prompt is replaced by the BOS of a pretrained
            model (default: one empty prompt).
        sampler: Algorithm that chooses tokens (default: masked decoding if every verifier has a token mask,
            like a grammar, otherwise ancestral sampling).
        verifier: A verifier, or a function of the prefix (prompt and completion as a tuple of ints). A list
            has one entry per prompt, and None accepts everything.
        max_new_tokens: Maximum length of a completion (default: up to the oracle's `max_length`).
        num_samples: Number of completions of each prompt.
        seed: Seed of the random streams.
        sample_ids: Keys of the random streams, one for each sample (default: index of the sample).
        batch_size: Number of rows that move at once, at least the rows of one sample (default: chosen by the
            oracle).
        max_queries: Stop a sample after the step in which it reaches this number of model calls. With
            samplers that reject sequences, this stops long sequences more often than short ones, which biases
            the accepted samples.
        max_steps: Stop a sample after this many moves (default: 1000 per token of the longest completion).
        stop: Strings that end a completion, functions of its token ids, or several of both. A verifier of
            text judges the text before such a string.
        memory: Number of prefixes whose model results are cached, in at most 352 MiB. In addition, each
            visited prefix takes about 110 bytes, for at most 16 times `memory` (or 65,536) prefixes.
        on_error: What to do if a verifier or a `Target` raises: "raise" ends the run, "reject" rejects the
            prefix and stores the error in `Samples.errors`. A function raises if it exceeds its timeout or
            returns an invalid value, such as a reward that is not finite.
        token_log_probs: Return the log-probability of each token.
        trace: Return the moves of the rows.
        progress: Show a progress bar.
        observer: Object whose methods are called after every step and for finished samples.
        shared: For each prompt, the object that passes states between its samples, such as `PromptRounds`
            (default: new rounds of `round_size` samples for each prompt).

    Returns:
        The samples, in the order of the prompts, with their weights and costs.

    Raises:
        InputError: If an argument is out of range, or a prompt is too long or outside the vocabulary. During
            the run, if a verifier does not return one finite non-negative number per row, or the oracle gives
            every token probability zero.

    Example:
        >>> from trialogue import generate
        >>> from trialogue.data import Table
        >>> table = Table([[0.5, 0.25], [0.0, 0.25]])  # Probabilities of the sequences of two tokens
        >>> samples = generate(table, num_samples=3)
        >>> samples.completions()
        [(0, 1), (0, 1), (0, 0)]
    """
    settings = RunSettings(
        sampler=sampler,
        verifier=verifier,
        max_new_tokens=max_new_tokens,
        num_samples=num_samples,
        seed=seed,
        sample_ids=sample_ids,
        batch_size=batch_size,
        max_queries=max_queries,
        max_steps=max_steps,
        stop=stop,
        memory=memory,
        on_error=on_error,
        token_log_probs=token_log_probs,
        trace=trace,
        observer=observer,
        shared=shared,
    )
    return start_run(oracle, prompts, settings).finish(progress)


def _default_sampler(verifier: VerifierLike | Sequence[VerifierLike | None] | None) -> Sampler[Any]:
    """Return masked decoding if there are verifiers and each has a token mask, else ancestral sampling."""
    several = [one for one in (verifier if isinstance(verifier, Sequence) else [verifier]) if one is not None]
    masked = several and all(getattr(one, "has_mask", False) for one in several)
    return MaskedDecoding() if masked else Ancestral()


@validated
@dataclass(frozen=True, eq=False)
class RunSettings:
    """The keyword arguments of `generate`, except `progress`."""

    sampler: Sampler[Any] | None = None
    verifier: VerifierLike | Sequence[VerifierLike | None] | None = None
    max_new_tokens: Count | None = None
    num_samples: Count = 1
    seed: Natural = 0
    sample_ids: Sequence[int] | Tensor | None = None
    batch_size: Count | None = None
    max_queries: Count | None = None
    max_steps: Count | None = None
    stop: StopLike | None = None
    memory: Count = DEFAULT_MEMORY
    on_error: OnError = "raise"
    token_log_probs: bool = False
    trace: bool = False
    observer: RunObserver | None = None
    shared: Sequence[SharedState] | None = None


def start_run(
    oracle: Autoregressive, prompts: Prompts | Sequence[str] | None, run: RunSettings
) -> GenerateRun:
    """Validate the arguments of `generate`, and prepare a run without taking a step.

    Args:
        oracle: The model to sample from.
        prompts: The prompts, as for `generate`.
        run: Other settings of `generate`.

    Returns:
        The run.

    Raises:
        InputError: If `generate` would raise it.
    """
    oracle = as_oracle(oracle)
    tokens, lengths = replace_empty_prompts(oracle, *prompt_tensors(encode_prompts(oracle, prompts)))
    if not len(lengths):
        raise InputError("prompts", [], "give at least one prompt, which may be empty")
    chosen = _default_sampler(run.verifier) if run.sampler is None else run.sampler
    sampler = prepare_sampler(chosen, oracle, run.verifier)
    require_known_tokens(tokens, lengths, oracle.vocab_size)
    if run.shared is not None and len(run.shared) != len(lengths):
        raise InputError("shared", len(run.shared), f"give one object for each of the {len(lengths)} prompts")
    limit = maximum_lengths(oracle, lengths, run.max_new_tokens)
    rows = choose_batch_size(oracle, sampler, len(lengths) * run.num_samples, run.batch_size)
    capacity = _capacity(lengths, limit, run.max_steps)
    longest = capacity - int(lengths.min())
    _require_memory(run.max_new_tokens, longest, capacity, rows, run.num_samples, len(lengths))
    verifiers = None
    if run.verifier is not None:
        verifiers = PromptVerifiers.from_arguments(
            run.verifier, len(lengths), stop_strings(run.stop), run.on_error
        )
    batch = Batch(
        oracle,
        rows,
        capacity,
        layers=() if verifiers is None else verifiers.layers,
        memory=run.memory,
        stop=make_stop_condition(oracle, run.stop),
        scored=True,
        # Targets compute the log-probability of a completion from the distributions of its prefixes.
        stores_distributions=sampler.goes_back or (verifiers is not None and verifiers.has_targets),
    )
    request = SampleRequest(
        tokens,
        lengths,
        limit,
        validate_sample_ids(run.sample_ids, len(lengths) * run.num_samples),
        seed=run.seed,
        max_queries=run.max_queries,
        max_steps=run.max_steps or STEPS_PER_TOKEN * int((limit - lengths).max().clamp_min(1)),
        rounds=partial(Rounds, sampler, shared=run.shared),
        settings_id=None if verifiers is None else verifiers.of_prompt,
        capacity=capacity,
        decode=make_decoder(oracle, run.stop),
        parsers=() if verifiers is None else verifiers.parsers,
        raised=() if verifiers is None else verifiers.raised,
        scored=run.token_log_probs,
    )
    running = BatchRun[SampleRequest](
        Groups(sampler, batch),
        None if verifiers is None else verifiers.for_batch(batch),
        room=rows // sampler.rows_per_sample,
        recorder=TraceRecorder() if run.trace else None,
        observer=run.observer,
    )
    return GenerateRun(running, request)


def _capacity(lengths: Tensor, limit: Tensor, max_steps: int | None) -> int:
    """Return the maximum length of a sample, given that a step appends at most one token."""
    longest = int(limit.max())
    if max_steps is None or max_steps >= longest:
        return longest
    return int(torch.minimum(limit, lengths + max_steps).max())


def _require_memory(
    max_new_tokens: int | None, longest: int, capacity: int, rows: int, num_samples: int, prompts: int
) -> None:
    """Raise `InputError` if samples of `capacity` tokens, `longest` of them new, do not fit into memory."""
    # A row stores tokens, nodes, evaluated nodes and scores. A finished sample stores tokens only.
    require_memory_for_items("max_new_tokens", max_new_tokens, longest, 4 * _BYTES * rows)
    require_memory_for_items(
        "num_samples", num_samples, num_samples, _BYTES * (capacity + _COLUMNS) * prompts
    )


def choose_batch_size(
    oracle: Autoregressive, sampler: Sampler[Any], samples: int, batch_size: int | None = None
) -> int:
    """Return how many sequences (rows) `generate` processes at once.

    Args:
        oracle: The model to sample from.
        sampler: The sampler, which may need several rows for each sample.
        samples: Number of samples of the run.
        batch_size: Largest number of rows (default: chosen by the oracle).

    Returns:
        A multiple of the rows per sample, at least the rows of one sample.
    """
    most_rows = oracle.batch_size if batch_size is None else check("batch_size", batch_size, Count)
    return max(1, min(samples, most_rows // sampler.rows_per_sample)) * sampler.rows_per_sample
