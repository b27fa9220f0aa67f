"""Confidence of the fields of a JSON text as part of an output record."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from trialogue.display.numbers import finite_or_none, format_number
from trialogue.errors import InputError
from trialogue.models.hub.opening import TextModel
from trialogue.oracles import Verifier
from trialogue.samplers.confidence import Parts, confidence_parts, run_parts


def confidence_record(
    oracle: TextModel, prompt: Sequence[int], completion: Sequence[int], verifier: Verifier, seed: int = 0
) -> dict[str, Any]:
    """Return the part of a JSON record with the confidence of each field of a JSON text.

    Args:
        oracle: The model.
        prompt: Token ids of the prompt.
        completion: Token ids of the text.
        verifier: Verifier with a JSON grammar.
        seed: Seed of the redraws (default: 0).

    Returns:
        A dictionary with the key "confidence": the probability of each field by its JSON Pointer, or None if the text
        is not a JSON text of the grammar. If fields were drawn again, the key "confidence_error" contains the standard
        errors of their probabilities. If the model gives all allowed values the probability 0, the confidence is None.
    """
    with torch.inference_mode():
        return run_parts(confidence_record_parts(oracle, prompt, completion, verifier, seed))


def confidence_record_parts(
    oracle: TextModel, prompt: Sequence[int], completion: Sequence[int], verifier: Verifier, seed: int
) -> Parts[dict[str, Any]]:
    """Compute the result of `confidence_record` in parts. Call this in `torch.inference_mode()`.

    The arguments are those of `confidence_record`.

    Yields:
        None after each forward pass.

    Returns:
        The part of a JSON record.
    """
    try:
        fields = yield from confidence_parts(oracle, prompt, completion, verifier, seed=seed)
    except InputError as error:
        if error.field != "text":
            raise
        return {"confidence": None}
    errors = {
        pointer: finite_or_none(field.standard_error) for pointer, field in fields.items() if field.redraws
    }
    return {
        "confidence": {pointer: finite_or_none(field.probability) for pointer, field in fields.items()},
        **({"confidence_error": errors} if errors else {}),
    }


def format_confidence(record: Mapping[str, Any]) -> str:
    """Return the confidence of all fields as text, with the standard errors of estimates.

    Args:
        record: Record with the keys of `confidence_record`.
    """
    errors = record.get("confidence_error", {})
    return ", ".join(
        f"{pointer} {format_number(probability)}"
        + (f" ± {format_number(errors[pointer], 1)}" if pointer in errors else "")
        for pointer, probability in (record["confidence"] or {}).items()
    )
