"""Walks for users of transformers: `model.generate(**inputs, custom_generate=decoding(walk=..., verifier=...))`.

Everything else of a call to `generate` stays as it is: lengths, temperature, top-k, top-p, ends of sequence, left
padding, `num_return_sequences`, `return_dict_in_generate`, `streamer`. What a walk cannot honour is refused.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from transformers import (
    EosTokenCriteria,
    GenerationConfig,
    LogitNormalization,
    MaxLengthCriteria,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)
from transformers.generation import GenerateDecoderOnlyOutput, GenerationMode

from trialogue.errors import InputError
from trialogue.inference.truncation import truncated
from trialogue.inference.verifiers.function import as_verifier, is_verifier
from trialogue.inference.walks.ancestral import Ancestral
from trialogue.inference.walks.batch import DEFAULT_MEMORY
from trialogue.inference.walks.engine import generate
from trialogue.inference.walks.samples import Samples
from trialogue.inference.walks.walk import Walk
from trialogue.models.pretrained import PretrainedOracle
from trialogue.models.tokenization import Tokenization
from trialogue.oracles import Verifier

# What transformers adds by itself, or what makes no difference to a walk.
_WITHOUT_EFFECT = ("use_cache", "logits_to_keep", "tokenizer", "cache_position")
_WARPERS = (TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper)


@dataclass
class WalkOutput(GenerateDecoderOnlyOutput):  # type: ignore[misc] # transformers has no types
    """What `generate` returns where it is asked for a dictionary: `sequences`, and the `samples` behind them."""

    samples: Samples | None = None


def decoding(
    walk: Walk[Any] | None = None,
    verifier: Verifier | Callable[[Tokenization], Verifier] | None = None,
    *,
    tokenizer: Any,
    seed: int | None = None,
    stop: str | Sequence[str] | None = None,
    max_queries: int | None = None,
    max_steps: int | None = None,
    batch_size: int | None = None,
    memory: int = DEFAULT_MEMORY,
    recompute: bool = False,
) -> Callable[..., Any]:
    """A callable for `model.generate(custom_generate=...)` that draws by `walk` (ancestral sampling by default).

    `verifier` may be a function that makes one for the tokenizer, such as
    `lambda tokenization: GrammarVerifier.regex("yes|no", tokenization)`. The tokenizer is needed here: transformers
    does not hand the one given to `generate` on. A grammar or a function of text judges what comes before a `stop`
    string. Without a `seed` one is drawn from torch's global generator, so that `transformers.set_seed` makes calls
    reproducible. The other arguments are those of `trialogue.inference.generate` and `load_pretrained`.

    What the call truncates, transformers' default of `top_k=50` included, the walk cannot draw: a rule that wants
    unlikely tokens needs `top_k=0`. The returned sequences may include ones that were not accepted; with
    `return_dict_in_generate=True` the output's `samples` tell, of which `num_return_sequences` belong to each prompt. A
    `streamer` gets the completions when they are final, as a walk may take tokens back until then.

    Raises `InputError`, when called, for whatever of the call cannot be honoured: beams, assistants, logits processors
    and stopping criteria besides those above, embeddings as inputs, right padding, positions of one's own, scores,
    arguments of the model's own, and greedy decoding (`do_sample=False`) by a walk that rejects.
    """
    oracles: list[PretrainedOracle] = []

    def decode(
        model: Any,
        input_ids: Tensor,
        logits_processor: Sequence[Any],
        stopping_criteria: Sequence[Any],
        generation_config: GenerationConfig,
        **model_kwargs: Any,
    ) -> Any:
        model_kwargs |= _withheld(inspect.currentframe())
        streamer = model_kwargs.pop("streamer", None)
        with _ended(streamer):
            samples = draw(
                model, input_ids, logits_processor, stopping_criteria, generation_config, model_kwargs
            )
            sequences = _padded(input_ids, samples, generation_config, oracles[0].vocab_size)
            if streamer is not None:
                for tokens in sequences[:, input_ids.shape[1] :].T.cpu():
                    streamer.put(tokens)
        return (
            WalkOutput(sequences=sequences, samples=samples)
            if generation_config.return_dict_in_generate
            else sequences
        )

    def draw(
        model: Any,
        input_ids: Tensor,
        logits_processor: Sequence[Any],
        stopping_criteria: Sequence[Any],
        generation_config: GenerationConfig,
        model_kwargs: dict[str, Any],
    ) -> Samples:
        sampler = Ancestral() if walk is None else walk
        _require_honourable(generation_config, stopping_criteria, input_ids, model_kwargs)
        num_samples = generation_config.num_return_sequences or 1
        training = model.training
        try:
            if not oracles or oracles[0].model is not model:
                oracles[:] = [PretrainedOracle(model, tokenizer, recompute=recompute)]
            oracle = _ending(oracles[0], generation_config)
            law = truncated(oracle, **_truncation(generation_config, logits_processor, sampler))
            return generate(
                law,
                _prompts(input_ids, model_kwargs.get("attention_mask"))[::num_samples],
                num_samples=num_samples,
                walk=sampler,
                verifier=_made(verifier, oracle.tokenization),
                max_new_tokens=generation_config.max_length - input_ids.shape[1],
                seed=int(torch.randint(1 << 62, ())) if seed is None else seed,
                batch_size=batch_size,
                max_queries=max_queries,
                max_steps=max_steps,
                stop=stop,
                memory=memory,
            )
        finally:
            model.train(training)

    return decode


def _withheld(frame: FrameType | None) -> dict[str, Any]:
    """Arguments of the call of `generate` that `frame`, of what it called, should have been given."""
    # transformers calls `put` of a streamer with the prompt, but hands neither it nor an assistant to a callable:
    # the one would leave its reader waiting for the end, the other would be ignored without a word.
    caller = None if frame is None else frame.f_back
    if caller is None or caller.f_code.co_name != "generate":
        return {}
    names = ("streamer", "assistant_model")
    return {name: caller.f_locals[name] for name in names if caller.f_locals.get(name) is not None}


@contextmanager
def _ended(streamer: Any) -> Iterator[None]:
    """Tell `streamer` when it is over, even by an error: its reader would wait without end."""
    try:
        yield
    finally:
        if streamer is not None:
            streamer.end()


def _made(
    verifier: Verifier | Callable[[Tokenization], Verifier] | None,
    tokenization: Tokenization,
) -> Verifier | None:
    """The verifier for a tokenization."""
    if verifier is None or is_verifier(verifier):
        return None if verifier is None else as_verifier(verifier)
    if not callable(verifier):
        mend = "give a Verifier, or a function that makes one for a Tokenization"
        raise InputError("verifier", type(verifier).__name__, mend)
    made = verifier(tokenization)
    if not is_verifier(made):
        raise InputError("verifier", type(made).__name__, "the function must return a Verifier")
    return as_verifier(made)


def _require_honourable(
    config: GenerationConfig,
    stopping_criteria: Sequence[Any],
    input_ids: Tensor,
    model_kwargs: dict[str, Any],
) -> None:
    """Raise `InputError` for what a walk cannot do."""
    mode = config.get_generation_mode()
    if mode not in (GenerationMode.SAMPLE, GenerationMode.GREEDY_SEARCH):
        raise InputError(
            "generation mode", mode.value, "a walk samples: leave out beams, penalties and assistants"
        )
    for criterion in stopping_criteria:
        if not isinstance(criterion, MaxLengthCriteria | EosTokenCriteria):
            mend = "a walk ends at the end of sequence, at max_new_tokens, or at `stop` of `decoding`"
            raise InputError("stopping_criteria", type(criterion).__name__, mend)
    for name in ("output_scores", "output_logits", "output_attentions", "output_hidden_states"):
        if getattr(config, name, False):
            raise InputError(name, True, "a walk goes back and forth and has none to give: leave it out")
    if model_kwargs.get("inputs_embeds") is not None:
        raise InputError("inputs_embeds", "a tensor", "give input_ids: a walk is on tokens")
    past = model_kwargs.get("past_key_values")
    if past is not None and past.get_seq_length() > 0:
        raise InputError(
            "past_key_values", type(past).__name__, "leave it out: a walk keeps a cache of its own"
        )
    mask, positions = model_kwargs.get("attention_mask"), model_kwargs.get("position_ids")
    if positions is not None:
        real = torch.ones_like(input_ids) if mask is None else mask
        counted = (real.cumsum(-1) - 1).to(positions.device)
        same = positions.shape[-1] == counted.shape[-1] and bool((positions == counted)[real > 0].all())
        if not same:
            raise InputError(
                "position_ids", tuple(positions.shape), "leave it out: a walk counts tokens from 0"
            )
    judged = ("attention_mask", "inputs_embeds", "past_key_values", "position_ids")
    for name, value in model_kwargs.items():
        if name in (*judged, *_WITHOUT_EFFECT) or value is None or value is False:
            continue
        raise InputError(name, type(value).__name__, "leave it out: a walk gives the model tokens alone")


def _truncation(config: GenerationConfig, processors: Sequence[Any], walk: Walk[Any]) -> dict[str, Any]:
    """Temperature, top-k and top-p as the logits processors of the call have them."""
    order = []
    truncation: dict[str, Any] = {}
    for processor in processors:
        if isinstance(processor, LogitNormalization):
            continue
        if type(processor) not in _WARPERS:
            raise InputError(
                "logits_processor", type(processor).__name__, "put the rule into a verifier instead"
            )
        order.append(_WARPERS.index(type(processor)))
        name = ("temperature", "top_k", "top_p")[order[-1]]
        truncation[name] = getattr(processor, name)
    if order != sorted(set(order)):
        raise InputError(
            "logits_processor", truncation, "give temperature, top_k and top_p as arguments of generate"
        )
    if config.do_sample:
        return truncation
    if walk.uses != "nothing":
        raise InputError(
            "do_sample", False, f"{type(walk).__name__} needs more than the likeliest token: use True"
        )
    return {"temperature": 0.0}


def _ending(oracle: PretrainedOracle, config: GenerationConfig) -> PretrainedOracle:
    """The oracle with the ends of sequence that the call asks for."""
    stated, ends = oracle.tokenization.eos, _ends(config, oracle.vocab_size)
    oracle.eos = stated if stated in ends else next(iter(ends), None)
    oracle.other_ends = tuple(sorted({end for end in ends if end != oracle.eos}))
    return oracle


def _ends(config: GenerationConfig, vocab_size: int) -> list[int]:
    """The tokens that end a sequence: what is stated beyond the vocabulary, such as -1, is a way to say never."""
    stated = config.eos_token_id
    ends = [] if stated is None else [stated] if isinstance(stated, int) else stated
    return [end for end in ends if 0 <= end < vocab_size]


def _prompts(input_ids: Tensor, attention_mask: Tensor | None) -> list[list[int]]:
    """The token ids of each row without its padding, which must be on the left."""
    rows = input_ids.tolist()
    if attention_mask is None:
        return rows
    mask = attention_mask.cpu()
    if mask.shape != input_ids.shape or bool((mask[:, 1:] < mask[:, :-1]).any()):
        raise InputError(
            "attention_mask", tuple(mask.shape), 'pad on the left: tokenizer.padding_side = "left"'
        )
    return [row[-kept:] if kept else [] for row, kept in zip(rows, mask.sum(1).tolist(), strict=True)]


def _padded(input_ids: Tensor, samples: Samples, config: GenerationConfig, vocab_size: int) -> Tensor:
    """The inputs as they were and the completions behind them, padded on the right."""
    completions = samples.completions()
    pad = config.pad_token_id
    if pad is None:
        pad = next(iter(_ends(config, vocab_size)), 0)
    longest = max(map(len, completions))
    tails = [[*completion, *[pad] * (longest - len(completion))] for completion in completions]
    return torch.cat((input_ids, torch.tensor(tails, dtype=input_ids.dtype, device=input_ids.device)), 1)
