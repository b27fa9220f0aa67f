"""Answers as OpenAI's interface writes them: whole ones, and the pieces of a stream."""

import dataclasses
import json
import math
import secrets
import time
from collections.abc import Callable, Sequence
from typing import Any

from trialogue.generation.output.records import COSTS, cost_of, outcome_of
from trialogue.models.tokenization import Tokenization
from trialogue.serving.body import ChatBody
from trialogue.serving.jobs import FinishedChoice
from trialogue.serving.requests import CompletionRequest
from trialogue.serving.verifiers import RequestVerifiers

_IMPOSSIBLE = -9999.0
"""The log-probability that OpenAI's interface has for what JSON cannot write"""


class CompletionResponse:
    """The answer to a request: what samples are as its choices.

    What the interface has no field for stands in an object "trialogue" of the answer and of each choice. `parse` gives
    the name and the arguments of a call, and raises `ValueError` for another text.
    """

    def __init__(
        self,
        request: CompletionRequest,
        verifiers: RequestVerifiers,
        model: str,
        tokenization: Tokenization,
        parse: Callable[[str], Any] | None,
    ) -> None:
        self._request, self._verifiers, self._model = request, verifiers, model
        self._tokenization, self._parse = tokenization, parse
        self._chat = isinstance(request.body, ChatBody)
        self._id = ("chatcmpl-" if self._chat else "cmpl-") + secrets.token_hex(12)
        self._created = int(time.time())
        self._sent: dict[int, str] = {}

    def whole(self, finished: Sequence[FinishedChoice]) -> dict[str, Any]:
        """The answer that holds all samples."""
        ordered = sorted(finished, key=lambda one: one.choice)
        return {
            **self._head("chat.completion" if self._chat else "text_completion"),
            "choices": [self._choice(one) for one in ordered],
            "usage": self._usage(ordered),
            **self._said(ordered),
        }

    def part(self, choice: int, text: str) -> list[dict[str, Any]]:
        """What a stream sends when the text of a choice has grown to `text`."""
        new = text[len(self._sent.get(choice, "")) :]
        begun = choice in self._sent
        self._sent[choice] = text
        if not self._chat:
            return [self._piece({"index": choice, "text": new, "logprobs": None, "finish_reason": None})]
        delta = {"content": new} if begun else {"role": "assistant", "content": new}
        return [self._piece({"index": choice, "delta": delta, "logprobs": None, "finish_reason": None})]

    def last(self, finished: Sequence[FinishedChoice]) -> list[dict[str, Any]]:
        """What a stream sends when the last of `finished` is; after all of them, what the answer as a whole cost."""
        choice, whole = finished[-1].choice, self._choice(finished[-1])
        pieces = []
        if not self._chat:
            if whole["text"] != self._sent.get(choice):
                pieces += self.part(choice, whole["text"])
            ending: dict[str, Any] = {"text": ""}
        else:
            message, ending = whole["message"], {"delta": {}}
            if "tool_calls" in message:
                calls = [{"index": place, **call} for place, call in enumerate(message["tool_calls"])]
                delta = {"role": "assistant", "content": None, "tool_calls": calls}
                pieces.append(
                    self._piece({"index": choice, "delta": delta, "logprobs": None, "finish_reason": None})
                )
            elif message["content"] != self._sent.get(choice):
                pieces += self.part(choice, message["content"])
        ending |= {"index": choice, "logprobs": None, "finish_reason": whole["finish_reason"]}
        pieces.append(self._piece(ending | {"trialogue": whole["trialogue"]}))
        if len(finished) == self._request.choices:
            pieces[-1] |= self._said(finished)
            if self._request.body.stream_options and self._request.body.stream_options.include_usage:
                # Clients index the choices of a piece: only those that ask for the usage expect one without any.
                pieces.append(self._piece() | {"usage": self._usage(finished)})
        return pieces

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self._id, "object": kind, "created": self._created, "model": self._model}

    def _piece(self, *choices: dict[str, Any]) -> dict[str, Any]:
        kind = "chat.completion.chunk" if self._chat else "text_completion"
        return {**self._head(kind), "choices": list(choices)}

    def _usage(self, finished: Sequence[FinishedChoice]) -> dict[str, int]:
        prompt = sum(map(len, self._request.prompts))
        completion = sum(len(one.sample.tokens) for one in finished)
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        }

    def _said(self, finished: Sequence[FinishedChoice]) -> dict[str, Any]:
        request = self._request
        sampler: Any = request.sampler
        options = dataclasses.asdict(sampler)
        said: dict[str, Any] = {
            "sampler": {"name": request.sampling.sampler, **options},
            "rule": [wish.said for wish in request.wishes],
            "seed": request.body.seed,
            **{cost: sum(getattr(one.sample, cost) for one in finished) for cost in COSTS},
        }
        if self._verifiers.notes:
            said["notes"] = self._verifiers.notes
        metadata = {} if request.body.metadata is None else {"metadata": request.body.metadata}
        return {**metadata, "trialogue": said}

    def _choice(self, finished: FinishedChoice) -> dict[str, Any]:
        choice, sample, verdict = finished
        text, call = sample.text or "", None
        if self._parse is not None:
            try:
                call = self._parse(text)
            except ValueError:
                call = None
        weighted = self._request.sampler.weighted
        said = {**outcome_of(sample, verdict, weighted=weighted), **cost_of(sample)}
        reason = "tool_calls" if call is not None else self._finish_reason(finished)
        answer = {"index": choice, "finish_reason": reason, "trialogue": said}
        if not self._chat:
            return answer | {"text": text, "logprobs": self._completion_log_probs(finished)}
        message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
        if call is not None:
            function = {"name": call["name"], "arguments": json.dumps(call["arguments"], ensure_ascii=False)}
            message |= {
                "content": None,
                "tool_calls": [
                    {"id": f"call_{secrets.token_hex(8)}", "type": "function", "function": function}
                ],
            }
        return answer | {"message": message, "logprobs": self._chat_log_probs(finished)}

    def _finish_reason(self, finished: FinishedChoice) -> str:
        """In the interface's words: what is not accepted was cut off or is filtered, which clients refuse to parse."""
        _, sample, verdict = finished
        if verdict.accepted and (self._request.wishes or verdict.ended in ("eos", "stop")):
            return "stop"
        bounded = sample.stopped in ("max_queries", "max_steps")
        return "length" if bounded or verdict.ended in ("max_new_tokens", "context") else "content_filter"

    def _tokens(self, finished: FinishedChoice) -> list[tuple[bytes, float]]:
        """The bytes of each token, and its log-probability."""
        sample = finished.sample
        scores = sample.token_log_probs or ()
        return [
            (self._tokenization.bytes([token]), score if math.isfinite(score) else _IMPOSSIBLE)
            for token, score in zip(sample.tokens, scores, strict=True)
        ]

    def _chat_log_probs(self, finished: FinishedChoice) -> dict[str, Any] | None:
        if not self._request.log_probs:
            return None
        return {
            "content": [
                {
                    "token": own.decode(errors="replace"),
                    "logprob": score,
                    "bytes": list(own),
                    "top_logprobs": [],
                }
                for own, score in self._tokens(finished)
            ],
            "refusal": None,
        }

    def _completion_log_probs(self, finished: FinishedChoice) -> dict[str, Any] | None:
        if not self._request.log_probs:
            return None
        told, offset = self._tokens(finished), 0
        texts, offsets = [own.decode(errors="replace") for own, _ in told], []
        for text in texts:
            offsets.append(offset)
            offset += len(text)
        return {
            "tokens": texts,
            "token_logprobs": [score for _, score in told],
            "top_logprobs": None,
            "text_offset": offsets,
        }
