"""Judgement of given texts by a verifier, with the reason of a rejection."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.models.tokenization import Tokenization
from trialogue.oracles import PrefixOracle
from trialogue.samplers.prefix.output.reasons import explain_invalid_text
from trialogue.samplers.prefix.values import values
from trialogue.verifiers.functions.function import VerifierLike, as_verifier
from trialogue.verifiers.languages.language_verifier import LanguageVerifier

_QUOTED = 60


@dataclass(frozen=True)
class Judgement:
    """Whether a verifier accepts a text. True in a boolean context if the text is accepted.

    Attributes:
        accepted: Whether the value of the text is positive.
        value: Value that the verifier assigns to the text: 0 or 1 for verdicts.
        reason: Why the text is rejected, or None if it is accepted.
    """

    accepted: bool
    value: float
    reason: str | None

    def __bool__(self) -> bool:
        return self.accepted


def judge(
    text: str | Sequence[int],
    verifier: VerifierLike,
    *,
    tokenization: Tokenization,
    prompt: str | Sequence[int] = (),
) -> Judgement:
    """Return whether a verifier accepts a text, and why not.

    A JSON text is accepted if it is valid, also if the token masks of the verifier would have written it otherwise. For
    example, the masks write the properties of an object in the order of the schema, and `judge` accepts any order.

    Args:
        text: The complete text, or its token ids.
        verifier: The verifier, or a function of token ids. It must not need hidden states of a model.
        tokenization: Tokenization of the verifier, for example `load_pretrained(...).tokenization`.
        prompt: Prompt before the text, or its token ids (default: none). Most verifiers ignore it.

    Returns:
        The judgement. Its reason is that of the verifier's parser if there is one, for example the violated
        keyword of a JSON schema. Otherwise it names the first rejected token, or states that the text is
        incomplete or rejected as a whole.

    Raises:
        InputError: If the verifier needs hidden states, or a token id does not belong to the vocabulary.

    Example:
        >>> verifier = GrammarVerifier.regex("[0-9]{4}", tokenization)
        >>> judge("19a4", verifier, tokenization=tokenization).reason
        "rejected at 'a' after '19'"
    """
    judged = as_verifier(verifier)
    for part in judged.parts:
        found = judge(text, part, tokenization=tokenization, prompt=prompt)
        if not found:
            return found
    if judged.layers:
        hint = "use a verifier without hidden states; `trialogue.samplers.values` evaluates probes with their model"
        raise InputError("verifier", type(judged).__name__, hint)
    before, completion = (
        tokenization.encode_completion(part) if isinstance(part, str) else list(part)
        for part in (prompt, text)
    )
    tokens, start = [*before, *completion], len(before)
    oracle = _Vocabulary(tokenization)
    # A sequence of the maximum length is complete.
    value = float(values(judged, oracle, [tokens], prompt_lengths=start, max_length=len(tokens)))
    if value <= 0 and isinstance(judged, LanguageVerifier) and judged.validates(completion):
        value = 1.0
    if value > 0:
        return Judgement(accepted=True, value=value, reason=None)
    invalid = (
        None if judged.parser is None else explain_invalid_text(judged.parser, tokenization.text(completion))
    )
    if invalid is not None:
        return Judgement(accepted=False, value=value, reason=invalid)
    prefixes = [tokens[:length] for length in range(start, len(tokens) + 1)]
    viable = values(judged, oracle, prefixes, prompt_lengths=start, max_length=len(tokens) + 1) > 0
    if bool(viable.all()):
        # A verifier without a mask may accept every prefix, also those of texts that it rejects.
        reason = (
            "the text is incomplete: a longer text can be accepted"
            if judged.has_mask
            else "the complete text is rejected"
        )
        return Judgement(accepted=False, value=value, reason=reason)
    rejected = int((~viable).nonzero()[0, 0]) - 1
    if rejected < 0:
        return Judgement(accepted=False, value=value, reason="the empty text is rejected, so every text is")
    kept = tokenization.text(completion[:rejected], final=False)
    token = tokenization.text(completion[rejected : rejected + 1])
    quoted = kept if len(kept) <= _QUOTED else f"…{kept[-_QUOTED:]}"
    reason = (
        f"rejected at {token!r} after {quoted!r}" if rejected else f"rejected at {token!r}, the first token"
    )
    return Judgement(accepted=False, value=value, reason=reason)


class _Vocabulary(PrefixOracle):
    """Placeholder for a model, with its tokens but without probabilities."""

    def __init__(self, tokenization: Tokenization) -> None:
        self.tokenization, self.vocab_size, self.eos = tokenization, tokenization.vocab_size, tokenization.eos

    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        del tokens
        return torch.full((len(lengths), self.vocab_size), -torch.inf)
