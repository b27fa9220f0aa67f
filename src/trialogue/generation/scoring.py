"""Log-probabilities and judgements of given texts, as JSON records."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from trialogue.display.numbers import finite_or_none
from trialogue.errors import InputError
from trialogue.generation.field_confidence import confidence_record
from trialogue.generation.given_texts import GivenText
from trialogue.generation.prompts import with_location
from trialogue.models.hub.opening import TextModel
from trialogue.models.tokenization import Tokenization
from trialogue.oracles import Verifier
from trialogue.samplers.judging import judge
from trialogue.samplers.scoring import score

_ROWS = 16


def score_texts(
    oracle: TextModel,
    texts: Sequence[GivenText],
    verifiers: Mapping[str, Verifier] | None = None,
    *,
    chat: bool = False,
    confidence_of: str | None = None,
    on_error: Literal["raise", "reject"] = "raise",
    batch_size: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> list[dict[str, Any]]:
    """Compute the log-probability of texts under a model, and judge them by verifiers.

    Args:
        oracle: The model.
        texts: The texts.
        verifiers: Verifiers by name. A text is accepted if all of these accept it (default: none, so that no text is
            judged). The name is part of the reason if there are several.
        chat: Whether to apply the chat template to prompts.
        confidence_of: Name of the verifier with a JSON grammar for which the confidence of each field is computed
            (default: none).
        on_error: Whether an error of a verifier is raised (default) or rejects the text.
        batch_size: Maximum number of sequences per forward pass (default: 16).
        progress: Function called with the number of completed positions after each forward pass (default: none).

    Returns:
        One record per text. It contains the "text", its "log_prob" in nats, its "tokens" and their "log_probs". It also
        contains the "id" and the "sample" of the text if it has them, and with `verifiers` "accepted" and "reason". A
        log-probability of minus infinity is None. With `confidence_of`, it contains the result of `confidence_record`.

    Raises:
        InputError: If a text or its tokens do not fit the model, or a verifier cannot judge a text without the model.
    """
    prompts, completions = list[list[int]](), list[list[int]]()
    for given in texts:
        prompt, completion = with_location(given.prompt.where, partial(_encode, oracle, given, chat))
        prompts.append(prompt)
        completions.append(completion)
    scores = score(oracle, prompts, completions, batch_size=batch_size or _ROWS, progress=progress)
    records = []
    for given, prompt, completion, log_probs in zip(
        texts, prompts, completions, scores.token_log_probs, strict=True
    ):
        record = {
            **given.copied,
            "text": given.text,
            "log_prob": finite_or_none(float(log_probs.sum())),
            "tokens": completion,
            "log_probs": [finite_or_none(number) for number in log_probs.tolist()],
        }
        if verifiers:
            reason = _rejection(completion, prompt, oracle.tokenization, verifiers, on_error)
            record |= {"accepted": reason is None, "reason": reason}
            if confidence_of is not None:
                record |= confidence_record(oracle, prompt, completion, verifiers[confidence_of])
        records.append(record)
    return records


def _rejection(
    completion: list[int],
    prompt: list[int],
    tokenization: Tokenization,
    verifiers: Mapping[str, Verifier],
    on_error: Literal["raise", "reject"],
) -> str | None:
    """Return why the first verifier that rejects a completion does so, or None if all accept it."""
    for name, verifier in verifiers.items():
        try:
            reason = judge(completion, verifier, tokenization=tokenization, prompt=prompt).reason
        except InputError as error:
            if on_error == "raise":
                raise
            reason = str(error)
        if reason is not None:
            return reason if len(verifiers) == 1 else f"{name}: {reason}"
    return None


def _encode(oracle: TextModel, given: GivenText, chat: bool) -> tuple[list[int], list[int]]:
    """Return the token ids of the prompt and of the text."""
    tokenization, prompt = oracle.tokenization, given.prompt
    if prompt.messages is not None:
        before = tokenization.chat(prompt.messages, tools=prompt.tools)
    else:
        before = tokenization.chat(prompt.text) if chat else tokenization.encode(prompt.text)
    if not before:
        before = list(oracle.empty_prompt or ())
    if given.tokens is None:
        joined = "" if chat or prompt.messages is not None else prompt.text
        return before, tokenization.encode_completion(given.text, joined)
    if any(token >= oracle.vocab_size for token in given.tokens):
        hint = f'"tokens" has an id of {oracle.vocab_size} or more, the number of tokens of the model'
        raise InputError("tokens", max(given.tokens), hint)
    return before, given.tokens
