"""Explanations of why a sample was not accepted."""

from typing import Any

from trialogue.errors import NotValidError
from trialogue.samplers.prefix.contract.sampler import Sampler
from trialogue.samplers.prefix.output.sample import Parser


def explain_failure(
    sampler: Sampler[Any],
    *,
    cut: bool,
    length: int,
    drawn: int,
    max_new_tokens: int,
    context: int | None,
    refusal: str | None,
    remark: str | None = None,
    field: str | None = None,
) -> str:
    """Explain in words why a sample failed before its sequence was complete.

    Args:
        sampler: The sampler.
        cut: Whether temperature 0, top-k, top-p or min-p remove tokens.
        length: Length of prompt plus completion in tokens.
        drawn: Length of the completion in tokens.
        max_new_tokens: Maximum length of the completion.
        context: Maximum length of a sequence.
        refusal: Why the text is invalid, if it is complete.
        remark: Remark of the sampler on this sample, which replaces its `failure_reason` (default: none).
        field: JSON Pointer of the unfinished field of a JSON text (default: none).

    Returns:
        A phrase such as "no token allowed; max_new_tokens=8 is probably too small to complete the text".
    """
    if refusal is not None:
        return f"the text is complete but invalid: {refusal}"
    if sampler.rows_per_sample > 1:
        return f"all {sampler.rows_per_sample} rows were rejected"
    reason = sampler.failure_reason if remark is None else remark
    if cut and reason == sampler.failure_reason and not sampler.masks_first:
        reason += " among those that temperature, top_k, top_p and min_p keep"
    # The last token must complete the text. With more room, other tokens might have been allowed.
    if drawn + 1 == max_new_tokens:
        reason += f"; max_new_tokens={max_new_tokens} is probably too small to complete the text"
    elif context is not None and length + 1 == context:
        reason += "; the model's context is probably too small to complete the text"
    else:
        return reason
    return reason if field is None else f"{reason}, which ends in the field {field}"


def explain_rejection(ended: str, max_new_tokens: int, *details: str) -> str:
    """Explain in words why the verifier rejected a complete sample.

    Args:
        ended: How the sample ended: "eos", "stop", "max_new_tokens" or "context".
        max_new_tokens: Maximum length of the completion.
        *details: Details, such as the threshold that its value missed. Only the first is used.

    Returns:
        A phrase such as "cut at max_new_tokens=8: rejected by the verifier".
    """
    rejected = ": ".join(("rejected by the verifier", *details[:1]))
    if ended == "max_new_tokens":
        return f"cut at max_new_tokens={max_new_tokens}: {rejected}"
    if ended == "context":
        return f"truncated at the end of the model's context: {rejected}"
    if ended == "stop":
        return f"ended by a stop string or criterion: {rejected}"
    return rejected


def explain_invalid_text(parser: Parser, text: str) -> str | None:
    """Return why a parser rejects a complete text, or None if it accepts the text or the text is incomplete.

    Args:
        parser: Parser of a verifier (`Verifier.parser`).
        text: The text.
    """
    try:
        parser(text)
    except NotValidError as error:
        return str(error)
    except ValueError:
        pass
    return None
