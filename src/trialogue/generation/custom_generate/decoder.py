"""The callable that `model.generate(custom_generate=...)` is given."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast, get_args

import torch
from torch import Tensor
from transformers import GenerationConfig

from trialogue.errors import InputError, one_of, reason
from trialogue.generation.custom_generate.call import read_call
from trialogue.generation.custom_generate.following import Follower, RecordedSampler
from trialogue.generation.custom_generate.oracles import evaluating, oracle_of
from trialogue.generation.custom_generate.outputs import SamplerOutput, own_logits, padded
from trialogue.generation.custom_generate.rejected import Policy, report
from trialogue.generation.custom_generate.withheld import withheld
from trialogue.models.tokenization import Tokenization
from trialogue.models.wrappers.processed import Processed
from trialogue.oracles import Verifier
from trialogue.samplers.prefix.ancestral import Ancestral
from trialogue.samplers.prefix.batch import DEFAULT_MEMORY
from trialogue.samplers.prefix.contract.sampler import Sampler, require_verifier
from trialogue.samplers.prefix.engine import generate
from trialogue.samplers.prefix.prompts import StopLike, stop_parts
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
    """A callable for `model.generate(custom_generate=...)` that draws by `sampler` (ancestral sampling by default).

    `verifier` may be a function that makes one for the tokenizer, such as
    `lambda tokenization: GrammarVerifier.regex("yes|no", tokenization)`. A grammar or a function of text judges what
    comes before a `stop` string, or one of the call's `stop_strings`. Without a `seed` one is drawn from torch's global
    generator, so that `transformers.set_seed` makes calls reproducible. The other arguments are those of
    `trialogue.samplers.generate` and `load_pretrained`.

    Where samples are not accepted, by the verifier or because there is no way on, `rejected` says what happens: "raise"
    raises `RejectedSamplesError`, which holds them all; "warn" and "keep" return them, the one with a warning that says
    how many and why. Without a verifier every completion is accepted, one that `max_new_tokens` cuts included.

    The call is honoured as `generate` does, in its order: logits processors that are functions of the prefix
    (repetition penalty, n-grams, bad words, biases, suppressed and forced tokens, least lengths, those of the user's
    own) see each prefix without padding; then comes the mask of a sampler that masks first; then temperature, top-k,
    top-p and min-p cut what it leaves. Other samplers cut first: a rule that wants unlikely tokens then needs
    `top_k=0`. `do_sample=False` takes the likeliest token that the mask allows. `samples.log_prob` is the model's own,
    and `samples.log_weight` concerns its distribution after processors and temperature. Stopping criteria of the user's
    own are asked row by row, with prompt and completion and without scores. A `streamer` gets each token when it is
    drawn, by a sampler that never goes back, else the completion when it is final. With `return_dict_in_generate=True`
    the output has `samples`, of which `num_return_sequences` belong to each prompt, `scores` (of a sampler that never
    goes back) and `logits` if they are asked for (see `SamplerOutput`).

    Raises `InputError`, when called, for whatever of the call cannot be honoured: beams, assistants, guidance,
    watermarks and other processors that keep state or need an encoder or the whole batch, cuts of other kinds
    (typical, epsilon, eta, top-h), embeddings as inputs, right padding, positions of one's own, attentions and hidden
    states, arguments of the model's own, and greedy decoding by a sampler that needs more than the likeliest token.
    """
    one_of("rejected", rejected, get_args(Policy))
    if verifier is not None and not (is_verifier(verifier) or callable(verifier)):
        hint = "give a Verifier, or a function that makes one for a Tokenization"
        raise InputError("verifier", type(verifier).__name__, hint)
    chosen: Sampler[Any] = Ancestral() if sampler is None else sampler

    # `generate` passes those of its keyword arguments that this signature names and its own methods do not have.
    def custom_generate(
        model: Any,
        input_ids: Tensor,
        logits_processor: Sequence[Any],
        stopping_criteria: Sequence[Any],
        generation_config: GenerationConfig,
        stop_strings: str | list[str] | None = None,
        **model_kwargs: Any,
    ) -> Any:
        model_kwargs |= withheld(inspect.currentframe())
        streamer = model_kwargs.pop("streamer", None)
        with _ended(streamer), evaluating(model):
            require_verifier(chosen, verifier)
            call = read_call(
                model, input_ids, logits_processor, stopping_criteria, generation_config, model_kwargs, chosen
            )
            oracle = oracle_of(model, tokenizer, recompute=recompute, ends=call.stopped.ends)
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
                verifier=_made(verifier, oracle.tokenization),
                max_new_tokens=call.max_new_tokens,
                seed=int(torch.randint(1 << 62, ())) if seed is None else seed,
                stop=[*stop_parts(stop), *strings, *call.stopped.stop] or None,
                observer=Follower(len(call.prompts[0]), streamer if live else None, recorded),
                max_queries=max_queries,
                max_steps=max_steps,
                batch_size=batch_size,
                memory=memory,
            )
            pad = call.pad_token if call.pad_token is not None else oracle.eos or 0
            sequences = padded(input_ids, samples, pad)
            if streamer is not None and not live:
                for tokens in sequences[:, call.width :].T.cpu():
                    streamer.put(tokens)
            report(rejected, samples, sequences, sampler=chosen, call=call, oracle=oracle)
            if not call.dictionary:
                return sequences
            output = SamplerOutput(sequences=sequences, samples=samples)
            if recorded is not None:
                steps = sequences.shape[1] - call.width
                output.scores = recorded.scores(steps, oracle.vocab_size, pad, sequences.device)
            if call.logits:
                starts = [call.width - length for length in samples.prompt_lengths.tolist()]
                output.logits = own_logits(model, sequences, starts, call.width)
            return output

    return custom_generate


@contextmanager
def _ended(streamer: Any) -> Iterator[None]:
    """Tell `streamer` when it is over, even by an error: its reader would wait without end."""
    try:
        yield
    finally:
        if streamer is not None:
            streamer.end()


def _made(
    verifier: Verifier | Callable[[Tokenization], Verifier] | None, tokenization: Tokenization
) -> Verifier | None:
    """The verifier for a tokenization."""
    if verifier is None:
        return None
    if is_verifier(verifier):
        return as_verifier(verifier)
    make = cast(Callable[[Tokenization], Verifier], verifier)
    hint = "it is called with a Tokenization, to make a verifier: put a function of a text into TextVerifier there"
    try:
        made = make(tokenization)
    except InputError:
        raise
    except Exception as error:
        name = getattr(verifier, "__name__", type(verifier).__name__)
        raise InputError("verifier", name, f"{hint} ({reason(error)})") from error
    if not is_verifier(made):
        raise InputError("verifier", type(made).__name__, f"the function must return a Verifier: {hint}")
    return as_verifier(made)
