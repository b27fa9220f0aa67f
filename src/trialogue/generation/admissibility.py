"""Early checks that prompts fit the model and that verifiers allow at least one completion.

The checks run before the weights of the model are read.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial

from torch import Tensor

from trialogue.errors import InputError
from trialogue.generation.prompts import Prompt, with_location
from trialogue.generation.settings import GenerationSettings
from trialogue.generation.verifiers.specs import BuiltVerifier
from trialogue.models.hub.opening import Pretrained
from trialogue.models.tokenization import Tokenization
from trialogue.oracles import Autoregressive, Context, PrefixOracle, Verifier
from trialogue.samplers import values
from trialogue.samplers.prefix.values import first_tokens
from trialogue.verifiers.languages.language_verifier import LanguageVerifier


class _WeightsNeededError(Exception):
    """Raised if a check needs the weights of the model."""


class UnreadOracle(PrefixOracle):
    """Placeholder for a model whose weights have not been read yet.

    It provides the tokenization, the vocabulary size, the end-of-sequence token and the maximum length. Methods that
    compute probabilities raise an error.

    Args:
        checkpoint: Model whose weights have not been read.
    """

    prompts_go_on = True

    def __init__(self, checkpoint: Pretrained) -> None:
        self.tokenization = checkpoint.tokenization
        self.vocab_size, self.eos = checkpoint.tokenization.vocab_size, checkpoint.tokenization.eos
        self.max_length = checkpoint.max_length

    def open(self, rows: int, capacity: int, layers: Sequence[int] = ()) -> Context:
        """Open a decoding context without hidden states.

        Args:
            rows: Number of sequences.
            capacity: Maximum length of a sequence in tokens.
            layers: Layers whose hidden states are required. An error is raised unless this is empty.
        """
        if layers:
            raise _WeightsNeededError
        return super().open(rows, capacity)

    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Raise an error, because next-token probabilities require the weights of the model."""
        del tokens, lengths
        raise _WeightsNeededError


def encode_prompts(
    checkpoint: Pretrained, settings: GenerationSettings, warn: Callable[[str], None] | None
) -> list[list[int]]:
    """Convert the prompts of a run to token ids, and check that they fit into the model's context.

    An empty prompt is replaced by the BOS token of the model. If the model can predict the first token without any
    input, an empty prompt has no tokens.

    Args:
        checkpoint: Model whose weights may be unread.
        settings: Settings of the run, including the prompts.
        warn: Function called with a message if the context leaves room for fewer than `max_new_tokens` tokens after a
            prompt. None for no warning.

    Returns:
        One list of token ids per prompt.

    Raises:
        InputError: If the model does not support an empty prompt, or if a prompt or `max_new_tokens` alone exceeds the
            model's context.
    """
    tokenization, context, requested = (
        checkpoint.tokenization,
        checkpoint.max_length,
        settings.sampling.max_new_tokens,
    )
    prompts = []
    for prompt in settings.prompts:
        with _without_length_warning():
            tokens = with_location(prompt.where, partial(_encode_prompt, tokenization, prompt, settings))
        if not tokens and checkpoint.empty_prompt is not None:
            tokens = list(checkpoint.empty_prompt)
        elif not tokens:
            raise InputError(
                "prompt", prompt.text, "use a text: the prompt is empty and the model has no BOS token"
            )
        if context is not None and len(tokens) >= context:
            hint = f"shorten the prompt with id {prompt.id!r}: it has {len(tokens)} of at most {context - 1} tokens"
            raise InputError("prompt", _shorten(prompt), hint)
        prompts.append(tokens)
    if requested is None or context is None:
        return prompts
    if requested >= context:
        hint = f"use at most {context - 1}: the model's context has {context} tokens, including the prompt"
        raise InputError("max_new_tokens", requested, hint)
    longest = max(range(len(prompts)), key=lambda place: len(prompts[place]))
    if warn is not None and len(prompts[longest]) + requested > context:
        cut = sum(len(tokens) + requested > context for tokens in prompts)
        others = f" ({cut} of {len(prompts)} prompts leave fewer than requested)" if cut > 1 else ""
        warn(
            f"max_new_tokens={requested}: the model's context of {context} tokens leaves "
            f"{context - len(prompts[longest])} after the prompt with id {settings.prompts[longest].id!r}{others}"
        )
    return prompts


def _encode_prompt(tokenization: Tokenization, prompt: Prompt, settings: GenerationSettings) -> list[int]:
    """Return the token ids of a prompt, with the chat template if it applies."""
    if prompt.messages is not None:
        return tokenization.chat(prompt.messages, system=settings.inputs.system, tools=prompt.tools)
    if settings.inputs.chat:
        return tokenization.chat(prompt.text, system=settings.inputs.system)
    return tokenization.encode(prompt.text)


def require_viable(
    settings: GenerationSettings,
    prompts: Sequence[Sequence[int]],
    built: Sequence[Sequence[BuiltVerifier]],
    oracle: Autoregressive,
) -> list[list[BuiltVerifier]]:
    """Check that every prompt has at least one completion that its verifiers may accept.

    This is impossible if a verifier gives the prompt itself the value zero, or if the grammars of the prompt
    have no common first token.

    Args:
        settings: Settings of the run.
        prompts: Token ids of each prompt.
        built: Verifiers of each prompt.
        oracle: Model whose weights may be unread.

    Returns:
        For each prompt, the verifiers that could not be checked because they need the weights. The list is
        empty if the weights have been read.

    Raises:
        InputError: If a prompt has no possible completion.
    """
    sampler, unchecked = settings.sampler, []
    for prompt, tokens, of_prompt in zip(settings.prompts, prompts, built, strict=True):
        checked = list[Verifier]()
        unchecked.append(list[BuiltVerifier]())
        for verifier in of_prompt:
            if sampler.judges == "prefixes" and verifier.kind.judges_prompts:
                try:
                    with_location(
                        prompt.where, partial(_require_positive, settings, prompt, tokens, verifier, oracle)
                    )
                    checked.append(verifier.verifier)
                except _WeightsNeededError:
                    unchecked[-1].append(verifier)
            # A first token that the grammar forbids rules out acceptance, whichever prefixes the sampler checks.
            elif sampler.uses != "nothing" and isinstance(verifier.verifier, LanguageVerifier):
                checked.append(verifier.verifier)
        if len(checked) > 1:
            with suppress(_WeightsNeededError):
                with_location(
                    prompt.where, partial(_require_first_token, settings, prompt, tokens, checked, oracle)
                )
    return unchecked


def _require_first_token(
    settings: GenerationSettings,
    prompt: Prompt,
    tokens: Sequence[int],
    verifiers: Sequence[Verifier],
    oracle: Autoregressive,
) -> None:
    """Raise `InputError` if the verifiers have no common first token."""
    allowed = first_tokens(verifiers, oracle, tokens, settings.sampling.max_completion_tokens)
    if allowed is not None and not bool(allowed.any()):
        hint = f"change the verifiers: they have no common first token after the prompt {_shorten(prompt)!r}"
        raise InputError("verifier", [*settings.rule.specs, *prompt.rule], hint)


def _require_positive(
    settings: GenerationSettings,
    prompt: Prompt,
    tokens: Sequence[int],
    verifier: BuiltVerifier,
    oracle: Autoregressive,
) -> None:
    """Raise `InputError` if a verifier gives the prompt the value zero."""
    try:
        if float(values(verifier.verifier, oracle, [tokens], prompt_lengths=len(tokens))) > 0:
            return
    except InputError:
        # A function may raise for an empty text only.
        if settings.rule.on_error == "reject":
            return
        raise
    rejected = "the empty completion" if verifier.verifier.scope == "completion" else "the prompt"
    hint = f"change the verifier, which rejects {rejected} and therefore every completion"
    if verifier.kind.is_function:
        hint += "; add --verifier-whole for a function of complete texts"
    raise InputError("prompt", _shorten(prompt), hint)


@contextmanager
def _without_length_warning() -> Iterator[None]:
    """Suppress the warning of the tokenizer about long prompts, which raise an error here."""
    logger = logging.getLogger("transformers.tokenization_utils_base")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _shorten(prompt: Prompt) -> str:
    """Return at most the first 40 characters of the prompt."""
    return prompt.text if len(prompt.text) <= 40 else f"{prompt.text[:40]}…"
