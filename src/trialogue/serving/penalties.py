"""Fields of a request that change the distribution of the model or end a completion at a token."""

from trialogue.errors import MOST_COUNTED, InputError
from trialogue.models.hub.opening import TextModel
from trialogue.samplers.penalties import Penalties
from trialogue.serving.body import ChatBody, CompletionBody


def read_stop_tokens(
    body: CompletionBody | ChatBody, model: TextModel, has_constraint: bool
) -> tuple[int, ...]:
    """Return the field `stop_token_ids` without the end-of-sequence token of the model.

    Args:
        body: Fields of the request.
        model: Model of the server.
        has_constraint: Whether the request has a constraint on the text.

    Raises:
        InputError: If an id is not a token, or the request also has a constraint.
    """
    _require_tokens("stop_token_ids", body.stop_token_ids, model)
    tokens = tuple(sorted(set(body.stop_token_ids) - {model.eos}))
    if tokens and has_constraint:
        hint = "leave it out: a text with a constraint ends when it obeys the constraint"
        raise InputError("stop_token_ids", body.stop_token_ids, hint)
    return tokens


def read_penalties(
    body: CompletionBody | ChatBody, model: TextModel, stop_tokens: tuple[int, ...], has_constraint: bool
) -> Penalties | None:
    """Combine the fields that change the next-token distribution of the model.

    Args:
        body: Fields of the request.
        model: Model of the server.
        stop_tokens: Tokens that end a completion, in addition to the end-of-sequence token.
        has_constraint: Whether the request has a constraint on the text.

    Returns:
        The changes, or None if the fields have their default values.

    Raises:
        InputError: If an id of `logit_bias` is not a token, or `ignore_eos` is used with a constraint.
    """
    ids = [int(token) if token.isdecimal() else -1 for token in body.logit_bias]
    _require_tokens("logit_bias", ids, model)
    if body.ignore_eos and has_constraint:
        hint = "leave it out: a text with a constraint ends when it obeys the constraint"
        raise InputError("ignore_eos", True, hint)
    least = dict.fromkeys(stop_tokens, body.min_tokens)
    if model.eos is not None:
        least[model.eos] = MOST_COUNTED if body.ignore_eos else body.min_tokens
    penalties = Penalties(
        tuple(sorted(zip(ids, body.logit_bias.values(), strict=True))),
        body.repetition_penalty,
        body.frequency_penalty,
        body.presence_penalty,
        tuple(pair for pair in sorted(least.items()) if pair[1]),
    )
    return None if penalties == Penalties() else penalties


def _require_tokens(field: str, ids: list[int], model: TextModel) -> None:
    for token in ids:
        if not 0 <= token < model.vocab_size:
            raise InputError(field, token, f"use token ids from 0 to {model.vocab_size - 1}")
