"""What prompts and rules leave to be drawn, told before the weights of a model are read."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial

from torch import Tensor

from trialogue.errors import InputError
from trialogue.generation.prompts import Prompt, located
from trialogue.generation.settings import GenerationSettings
from trialogue.generation.verifiers.specs import Built
from trialogue.models.hub.opening import Pretrained
from trialogue.models.tokenization import Tokenization
from trialogue.oracles import Autoregressive, Context, PrefixOracle, Verifier
from trialogue.samplers import values
from trialogue.samplers.prefix.values import first_tokens
from trialogue.verifiers.languages.language_verifier import LanguageVerifier


class _WeightsNeededError(Exception):
    """Something asks the model itself."""


class UnreadOracle(PrefixOracle):
    """The model of `checkpoint` as far as it is known before its weights are read: no question has an answer."""

    prompts_go_on = True

    def __init__(self, checkpoint: Pretrained) -> None:
        self.tokenization = checkpoint.tokenization
        self.vocab_size, self.eos = checkpoint.tokenization.vocab_size, checkpoint.tokenization.eos
        self.max_length = checkpoint.max_length

    def open(self, rows: int, capacity: int, layers: Sequence[int] = ()) -> Context:
        """Make no room: raises where hidden states are asked for."""
        if layers:
            raise _WeightsNeededError
        return super().open(rows, capacity)

    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Raise: it takes weights to answer."""
        del tokens, lengths
        raise _WeightsNeededError


def encoded(
    checkpoint: Pretrained, settings: GenerationSettings, warn: Callable[[str], None] | None
) -> list[list[int]]:
    """The token ids of each prompt.

    An empty prompt stands for the model's BOS, or for no token if the model evaluates the empty prefix. `warn` is
    called if the context leaves less room than `max_new_tokens`.

    Raises `InputError` for an empty prompt where the model does neither, for a prompt that is longer than the model's
    context, and for a longest completion that this can never hold.
    """
    tokenization, context, asked = (
        checkpoint.tokenization,
        checkpoint.max_length,
        settings.sampling.max_new_tokens,
    )
    prompts = []
    for prompt in settings.prompts:
        with _unsaid():
            tokens = located(prompt.where, partial(_tokens, tokenization, prompt, settings))
        if not tokens and checkpoint.empty_prompt is not None:
            tokens = list(checkpoint.empty_prompt)
        elif not tokens:
            raise InputError(
                "prompt", prompt.text, "it has no tokens, and the model has none to begin with: give a text"
            )
        if context is not None and len(tokens) >= context:
            hint = f"has {len(tokens)} tokens, and the model's context {context}: shorten it"
            raise InputError("prompt", _shortened(prompt), f"with id {prompt.id!r} {hint}")
        prompts.append(tokens)
    if asked is None or context is None:
        return prompts
    if asked >= context:
        hint = f"the model's context holds {context} tokens, the prompt among them: use at most {context - 1}"
        raise InputError("max_new_tokens", asked, hint)
    longest = max(range(len(prompts)), key=lambda place: len(prompts[place]))
    if warn is not None and len(prompts[longest]) + asked > context:
        cut = sum(len(tokens) + asked > context for tokens in prompts)
        others = f" ({cut} of {len(prompts)} prompts leave less than was asked for)" if cut > 1 else ""
        warn(
            f"max_new_tokens={asked}: the model's context of {context} tokens leaves "
            f"{context - len(prompts[longest])} behind the prompt with id {settings.prompts[longest].id!r}{others}"
        )
    return prompts


def _tokens(tokenization: Tokenization, prompt: Prompt, settings: GenerationSettings) -> list[int]:
    if prompt.messages is not None:
        return tokenization.chat(prompt.messages, system=settings.inputs.system, tools=prompt.tools)
    if settings.inputs.chat:
        return tokenization.chat(prompt.text, system=settings.inputs.system)
    return tokenization.encode(prompt.text)


def require_viable(
    settings: GenerationSettings,
    prompts: Sequence[Sequence[int]],
    built: Sequence[Sequence[Built]],
    oracle: Autoregressive,
) -> list[list[Built]]:
    """Raise `InputError` where no completion of a prompt can be accepted; returns verifiers that ask the model first.

    That is where a verifier, `built` for each prompt, gives the prompt as it stands the value zero, and where those
    that know all continuations at once agree on no first token. Samplers that judge outputs alone may still accept what
    begins so.
    """
    sampler, unjudged = settings.sampler, []
    for prompt, tokens, of_prompt in zip(settings.prompts, prompts, built, strict=True):
        judged = list[Verifier]()
        unjudged.append(list[Built]())
        for one in of_prompt:
            if sampler.judges == "prefixes" and one.kind.judges_prompts:
                try:
                    located(prompt.where, partial(_require_positive, settings, prompt, tokens, one, oracle))
                    judged.append(one.verifier)
                except _WeightsNeededError:
                    unjudged[-1].append(one)
            # What begins with a token that a grammar forbids is in no language of it, whatever the sampler asks about.
            elif sampler.uses != "nothing" and isinstance(one.verifier, LanguageVerifier):
                judged.append(one.verifier)
        if len(judged) > 1:
            with suppress(_WeightsNeededError):
                located(prompt.where, partial(_require_first_token, settings, prompt, tokens, judged, oracle))
    return unjudged


def _require_first_token(
    settings: GenerationSettings,
    prompt: Prompt,
    tokens: Sequence[int],
    verifiers: Sequence[Verifier],
    oracle: Autoregressive,
) -> None:
    allowed = first_tokens(verifiers, oracle, tokens, settings.sampling.longest)
    if allowed is not None and not bool(allowed.any()):
        hint = "they contradict each other: by all of them together no token may begin a completion of "
        hint += repr(_shortened(prompt))
        raise InputError("verifier", [*settings.rule.specs, *prompt.rule], hint)


def _require_positive(
    settings: GenerationSettings, prompt: Prompt, tokens: Sequence[int], one: Built, oracle: Autoregressive
) -> None:
    try:
        if float(values(one.verifier, oracle, [tokens], prompt_lengths=len(tokens))) > 0:
            return
    except InputError:
        # A function of texts that are not empty raises here alone.
        if settings.rule.on_error == "reject":
            return
        raise
    what = "the empty completion" if one.verifier.scope == "completion" else "it as it stands"
    hint = f"the verifier rejects {what}, so that no completion can be accepted"
    if one.kind.is_function:
        hint += "; one of whole texts only needs --verifier-whole"
    raise InputError("prompt", _shortened(prompt), hint)


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


def _shortened(prompt: Prompt) -> str:
    return prompt.text if len(prompt.text) <= 40 else f"{prompt.text[:40]}…"
