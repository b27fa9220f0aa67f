"""Log-probabilities of tokens in the two formats of the OpenAI API."""

import codecs
import math
from collections.abc import Sequence
from typing import Any

from trialogue.models.tokenization import Tokenization
from trialogue.serving.jobs import FinishedChoice, TokenScores

_LOG_ZERO = -9999.0
"""Log-probability of an impossible token in the OpenAI API, since JSON has no infinity."""


def token_scores(finished: FinishedChoice) -> TokenScores:
    """Return the scores of a sample, or those that were computed while it was generated.

    Args:
        finished: A sample.
    """
    if finished.scores is not None:
        return finished.scores
    tokens, scores = finished.sample.tokens, finished.sample.token_log_probs or ()
    return TokenScores(tokens, list(scores), [()] * len(tokens))


def chat_log_probs(scores: TokenScores, tokenization: Tokenization) -> dict[str, Any]:
    """Return the field `logprobs` of a chat completion.

    Args:
        scores: Log-probabilities of the tokens.
        tokenization: Tokenization of the model.
    """

    def entry(token: int, log_prob: float | None) -> dict[str, Any]:
        text = _token_text(token, tokenization)
        content = tokenization.bytes([token]) or text.encode()
        return {"token": text, "logprob": _finite(log_prob), "bytes": list(content)}

    return {
        "content": [
            entry(token, log_prob) | {"top_logprobs": [entry(*other) for other in top]}
            for token, log_prob, top in zip(*scores, strict=True)
        ],
        "refusal": None,
    }


def completion_log_probs(scores: TokenScores, tokenization: Tokenization, num_top: int) -> dict[str, Any]:
    """Return the field `logprobs` of a text completion.

    The entries of `text_offset` are indices of characters in the text. Special tokens have no text. As in vLLM, the
    most probable tokens of a position also contain the token of the text.

    Args:
        scores: Log-probabilities of the tokens.
        tokenization: Tokenization of the model.
        num_top: Number of most probable tokens. If 0, the field `top_logprobs` is None.
    """
    texts = [_token_text(token, tokenization) for token in scores.tokens]
    tops = list[dict[str, float] | None]()
    for text, log_prob, top in zip(texts, scores.log_probs, scores.top, strict=True):
        best = {} if log_prob is None else {text: _finite(log_prob)}
        for token, other in top:
            # Several tokens may have the same text.
            spelling = _token_text(token, tokenization)
            best[spelling] = max(best.get(spelling, -math.inf), _finite(other))
        tops.append(best or None)
    return {
        "tokens": texts,
        "token_logprobs": [None if score is None else _finite(score) for score in scores.log_probs],
        "top_logprobs": tops if num_top else None,
        "text_offset": _offsets(scores.tokens, tokenization),
    }


def _offsets(tokens: Sequence[int], tokenization: Tokenization) -> list[int]:
    """Return the number of characters before each token."""
    decoder, offsets, offset = codecs.getincrementaldecoder("utf-8")("replace"), [], 0
    for token in tokens:
        offsets.append(offset)
        offset += len(decoder.decode(tokenization.bytes([token])))
    return offsets


def _token_text(token: int, tokenization: Tokenization) -> str:
    if token in tokenization.special:
        return str(tokenization.tokenizer.convert_ids_to_tokens(token))
    return tokenization.bytes([token]).decode(errors="replace")


def _finite(log_prob: float | None) -> float:
    return log_prob if log_prob is not None and math.isfinite(log_prob) else _LOG_ZERO
