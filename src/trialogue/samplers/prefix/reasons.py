"""Why a sample is not accepted, in words."""

from typing import Any

from trialogue.samplers.prefix.sampler import Sampler


def failure(
    sampler: Sampler[Any],
    *,
    cut: bool,
    length: int,
    drawn: int,
    max_new_tokens: int,
    context: int | None,
    refusal: str | None,
) -> str:
    """Why a sample of `length` tokens, `drawn` of them its own, had no way on.

    `cut` says whether temperature 0, top-k or the like leave tokens out, `context` is the longest sequence, `refusal`
    what is wrong with its text if that is whole.
    """
    if refusal is not None:
        return f"the text is whole and not valid: {refusal}"
    if sampler.rows_per_sample > 1:
        return f"all {sampler.rows_per_sample} rows were rejected"
    reason = sampler.failure_reason
    if cut and not sampler.masks_first:
        reason += " of those that temperature, top_k, top_p and min_p leave"
    # The token that comes last must complete the text: with more room there might have been another.
    if drawn + 1 == max_new_tokens:
        reason += f", with max_new_tokens={max_new_tokens} leaving room for one more only"
    elif context is not None and length + 1 == context:
        reason += ", with the model's context leaving room for one more only"
    return reason


def rejection(ended: str, max_new_tokens: int, *said: str) -> str:
    """Why a complete sample was rejected that `ended` by "eos", "stop", "max_new_tokens" or "context".

    `said` is what is known of it: which threshold its value is below, what is wrong with its text.
    """
    rejected = ": ".join(("rejected by the verifier", *said[:1]))
    if ended == "max_new_tokens":
        return f"cut at max_new_tokens={max_new_tokens}: {rejected}"
    if ended == "context":
        return f"cut at the end of the model's context: {rejected}"
    if ended == "stop":
        return f"stopped by a stop string or a criterion: {rejected}"
    return rejected
