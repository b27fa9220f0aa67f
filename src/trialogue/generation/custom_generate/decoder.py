"""Custom generation function for `model.generate`."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast, get_args

import torch
from torch import Tensor
from transformers import GenerationConfig

from trialogue.errors import InputError, describe_error, require_choice
from trialogue.generation.custom_generate.call import read_call
from trialogue.generation.custom_generate.following import RecordedSampler, TokenStreamer
from trialogue.generation.custom_generate.oracles import evaluation_mode, get_oracle
from trialogue.generation.custom_generate.outputs import SamplerOutput, append_completions, compute_logits
from trialogue.generation.custom_generate.rejected import Policy, report_rejected_samples
from trialogue.generation.custom_generate.withheld import unforwarded_arguments
from trialogue.models.tokenization import Tokenization
from trialogue.models.wrappers.processed import Processed
from trialogue.oracles import Verifier
from trialogue.samplers.prefix.ancestral import Ancestral
from trialogue.samplers.prefix.batch import DEFAULT_MEMORY
from trialogue.samplers.prefix.contract.sampler import Sampler, require_verifier
from trialogue.samplers.prefix.engine import generate
from trialogue.samplers.prefix.prompts import StopLike, list_stop_conditions
from trialogue.samplers.truncation import truncated
from trialogue.verifiers.functions.function import as_verifier, is_verifier


def decoding(
    sampler: Sampler[Any] | None = None,
    verifier: Verifier | Callable[[Tokenization], Verifier] | None = None,
    *,
    tokenizer: Any,
    rejected: Policy = "raise",
    seed: int | None = None,
    stop: StopLike | None = None,
    max_queries: int | None = None,
    max_steps: int | None = None,
    batch_size: int | None = None,
    memory: int = DEFAULT_MEMORY,
    recompute: bool = False,
) -> Callable[..., Any]:
    """Return a function for `model.generate(custom_generate=...)` that generates with a sampler of this library.

    The other arguments of `generate` keep their meaning. Logits processors (such as a repetition penalty) are
    applied first, then the verifier's mask, then temperature, top-k, top-p and min-p. Samplers without a mask
    truncate before the verifier is applied, so that a constraint that requires unlikely tokens needs
    `top_k=0`. A `streamer` receives each token as soon as it is final. With `return_dict_in_generate=True`
    the output is a `SamplerOutput`.

    Args:
        sampler: Sampler that generates the completions. Ancestral sampling by default.
        verifier: Verifier, or a function that creates one from a `Tokenization`, for example `lambda
            tokenization: GrammarVerifier.regex("yes|no", tokenization)`. A grammar or a text function checks
            the text before a stop string.
        tokenizer: Tokenizer of the model.
        rejected: Handling of samples that the verifier rejects or that cannot be completed. "raise" raises
            `RejectedSamplesError`, "warn" returns them with a warning, and "keep" returns them. Without a
            verifier every completion is accepted, including those cut by `max_new_tokens`.
        seed: Random seed. By default it is taken from torch's global generator, so that
            `transformers.set_seed` makes calls reproducible.
        stop: Strings that end a completion, functions of its token ids, or several of both.
        max_queries: Stop a sample after the step in which it reaches this number of model calls.
        max_steps: Stop a sample after this many sampler steps (default: 1000 per token of the longest
            completion).
        batch_size: Number of sequences sampled at the same time.
        memory: Number of prefixes whose model results are cached (see `trialogue.samplers.generate`).
        recompute: Whether to evaluate every prefix without a cache, for models whose state cannot be rewound.

    Returns:
        The custom generation function.

    Raises:
        InputError: If an argument is invalid. The returned function raises it for arguments of `generate`
            that a sampler cannot support, for example beam search, assistants, watermarks, or attentions as
            outputs.
    """
    require_choice("rejected", rejected, get_args(Policy))
    if verifier is not None and not (is_verifier(verifier) or callable(verifier)):
        hint = "use a Verifier, or a function that creates one from a Tokenization"
        raise InputError("verifier", type(verifier).__name__, hint)
    chosen: Sampler[Any] = Ancestral() if sampler is None else sampler

    # `generate` passes only keyword arguments that are named in this signature.
    def custom_generate(
        model: Any,
        input_ids: Tensor,
        logits_processor: Sequence[Any],
        stopping_criteria: Sequence[Any],
        generation_config: GenerationConfig,
        stop_strings: str | list[str] | None = None,
        **model_kwargs: Any,
    ) -> Any:
        model_kwargs |= unforwarded_arguments(inspect.currentframe())
        streamer = model_kwargs.pop("streamer", None)
        with _ending(streamer), evaluation_mode(model):
            require_verifier(chosen, verifier)
            call = read_call(
                model, input_ids, logits_processor, stopping_criteria, generation_config, model_kwargs, chosen
            )
            oracle = get_oracle(model, tokenizer, recompute=recompute, ends=call.stopped.ends)
            rows = len(call.prompts) * call.num_samples
            recorded = RecordedSampler(chosen, rows, greedy=call.greedy) if call.scores else None
            live = streamer is not None and rows == 1 and not chosen.goes_back
            processed = oracle if call.process is None else Processed(oracle, call.process)
            strings = [stop_strings] if isinstance(stop_strings, str) else stop_strings or []
            samples = generate(
                truncated(processed, **call.truncation),
                call.prompts,
                num_samples=call.num_samples,
                sampler=chosen if recorded is None else recorded,
                verifier=_build_verifier(verifier, oracle.tokenization),
                max_new_tokens=call.max_new_tokens,
                seed=int(torch.randint(1 << 62, ())) if seed is None else seed,
                stop=[*list_stop_conditions(stop), *strings, *call.stopped.stop] or None,
                observer=TokenStreamer(len(call.prompts[0]), streamer if live else None, recorded),
                max_queries=max_queries,
                max_steps=max_steps,
                batch_size=batch_size,
                memory=memory,
            )
            pad = call.pad_token if call.pad_token is not None else oracle.eos or 0
            sequences = append_completions(input_ids, samples, pad)
            if streamer is not None and not live:
                for tokens in sequences[:, call.width :].T.cpu():
                    streamer.put(tokens)
            report_rejected_samples(rejected, samples, sequences, sampler=chosen, call=call, oracle=oracle)
            if not call.dictionary:
                return sequences
            output = SamplerOutput(sequences=sequences, samples=samples)
            if recorded is not None:
                steps = sequences.shape[1] - call.width
                output.scores = recorded.scores(steps, oracle.vocab_size, pad, sequences.device)
            if call.logits:
                starts = [call.width - length for length in samples.prompt_lengths.tolist()]
                output.logits = compute_logits(model, sequences, starts, call.width)
            return output

    return custom_generate


@contextmanager
def _ending(streamer: Any) -> Iterator[None]:
    """Call `streamer.end()` on exit, also after an error, so that its reader stops waiting."""
    try:
        yield
    finally:
        if streamer is not None:
            streamer.end()


def _build_verifier(
    verifier: Verifier | Callable[[Tokenization], Verifier] | None, tokenization: Tokenization
) -> Verifier | None:
    """Return `verifier`, or the verifier that it builds if it is a function of the tokenization."""
    if verifier is None:
        return None
    if is_verifier(verifier):
        return as_verifier(verifier)
    build = cast(Callable[[Tokenization], Verifier], verifier)
    hint = "the function is called with a Tokenization; to check text, return a TextVerifier from it"
    try:
        built = build(tokenization)
    except InputError:
        raise
    except Exception as error:
        name = getattr(verifier, "__name__", type(verifier).__name__)
        raise InputError("verifier", name, f"{hint} ({describe_error(error)})") from error
    if not is_verifier(built):
        raise InputError("verifier", type(built).__name__, f"the function must return a Verifier ({hint})")
    return as_verifier(built)
