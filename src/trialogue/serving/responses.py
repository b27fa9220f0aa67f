"""Construction of responses in the format of the OpenAI API, complete or streamed in chunks."""

import dataclasses
import json
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from trialogue.generation.output.records import COSTS, make_cost_record, make_outcome_record
from trialogue.generation.verifiers.kinds import KINDS
from trialogue.models.tokenization import Tokenization
from trialogue.serving.body import ChatBody
from trialogue.serving.jobs import FinishedChoice
from trialogue.serving.log_probs import chat_log_probs, completion_log_probs, token_scores
from trialogue.serving.requests import CompletionRequest
from trialogue.serving.verifiers import RequestVerifiers


class CompletionResponse:
    """Builds the response to a request, complete or in chunks of a stream.

    Results for which the OpenAI API has no field, for example costs, are in an object "trialogue" of the
    response and of each sample.

    Args:
        request: The request.
        verifiers: Verifiers of the request.
        model: Name of the model.
        tokenization: Tokenization of the model.
        parse: Function that returns name and arguments of each tool call in a text. It raises `ValueError` for
            a text that does not consist of tool calls. None if the request has no tools.
    """

    def __init__(
        self,
        request: CompletionRequest,
        verifiers: RequestVerifiers,
        model: str,
        tokenization: Tokenization,
        parse: Callable[[str], list[dict[str, Any]]] | None,
    ) -> None:
        self._request, self._verifiers, self._model = request, verifiers, model
        self._tokenization, self._parse = tokenization, parse
        self._chat = isinstance(request.body, ChatBody)
        self._id = ("chatcmpl-" if self._chat else "cmpl-") + secrets.token_hex(12)
        self._created = int(time.time())
        self._sent: dict[int, str] = {}
        self._num_tokens: dict[int, int] = {}
        options = request.body.stream_options
        self._reports_usage = options is not None and options.include_usage
        self._reports_usage_always = options is not None and options.continuous_usage_stats

    def complete(self, finished: Sequence[FinishedChoice]) -> dict[str, Any]:
        """Return the body of a response that is not streamed.

        Args:
            finished: All samples of the request, in any order.

        Returns:
            JSON values in the format of the OpenAI API.
        """
        ordered = sorted(finished, key=lambda one: one.choice)
        self._num_tokens = {one.choice: len(one.sample.tokens) for one in finished}
        return {
            **self._head("chat.completion" if self._chat else "text_completion"),
            "choices": [self._choice(one) for one in ordered],
            "usage": self._usage(),
            **self._details(ordered),
        }

    def growth_chunks(
        self, choice: int, text: str, num_tokens: int, log_probs: dict[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """Return the chunks of a stream that report new text of a sample.

        Args:
            choice: Index of the sample in the response.
            text: The complete text of the sample so far.
            num_tokens: Number of tokens of the sample so far.
            log_probs: Field `logprobs` of the chunk (default: None).

        Returns:
            Chunks in the format of the OpenAI API, with the text that was not sent before.
        """
        new = text[len(self._sent.get(choice, "")) :]
        is_started = choice in self._sent
        self._sent[choice], self._num_tokens[choice] = text, num_tokens
        fields = {"index": choice, "logprobs": log_probs, "finish_reason": None}
        if not self._chat:
            return [self._chunk(fields | {"text": new})]
        delta = {"content": new} if is_started else {"role": "assistant", "content": new}
        return [self._chunk(fields | {"delta": delta})]

    def final_chunks(self, finished: Sequence[FinishedChoice]) -> list[dict[str, Any]]:
        """Return the chunks of a stream that report the end of a sample.

        The chunks of the last sample of the request also contain the total costs.

        Args:
            finished: Finished samples in order of completion. The chunks report the last of them.

        Returns:
            Chunks in the format of the OpenAI API.
        """
        choice, whole = finished[-1].choice, self._choice(finished[-1])
        num_tokens = self._num_tokens[choice] = len(finished[-1].sample.tokens)
        chunks = []
        if not self._chat:
            if whole["text"] != self._sent.get(choice):
                chunks += self.growth_chunks(choice, whole["text"], num_tokens, whole["logprobs"])
            ending: dict[str, Any] = {"text": ""}
        else:
            message, ending = whole["message"], {"delta": {}}
            if "tool_calls" in message:
                calls = [{"index": place, **call} for place, call in enumerate(message["tool_calls"])]
                delta = {"role": "assistant", "content": None, "tool_calls": calls}
                fields = {
                    "index": choice,
                    "delta": delta,
                    "logprobs": whole["logprobs"],
                    "finish_reason": None,
                }
                chunks.append(self._chunk(fields))
            elif message["content"] != self._sent.get(choice):
                chunks += self.growth_chunks(choice, message["content"], num_tokens, whole["logprobs"])
        ending |= {"index": choice, "logprobs": None, "finish_reason": whole["finish_reason"]}
        chunks.append(self._chunk(ending | {"trialogue": whole["trialogue"]}))
        if len(finished) == self._request.choices:
            chunks[-1] |= self._details(finished)
            if self._reports_usage:
                # This chunk has no choices, which only clients that request the usage expect.
                chunks.append(self._chunk() | {"usage": self._usage()})
        return chunks

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self._id, "object": kind, "created": self._created, "model": self._model}

    def _chunk(self, *choices: dict[str, Any]) -> dict[str, Any]:
        kind = "chat.completion.chunk" if self._chat else "text_completion"
        usage = {"usage": self._usage()} if self._reports_usage_always else {}
        return {**self._head(kind), "choices": list(choices), **usage}

    def _usage(self) -> dict[str, int]:
        prompt, completion = sum(map(len, self._request.prompts)), sum(self._num_tokens.values())
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        }

    def _details(self, finished: Sequence[FinishedChoice]) -> dict[str, Any]:
        request = self._request
        sampler: Any = request.sampler
        options = {name: value for name, value in dataclasses.asdict(sampler).items() if value is not None}
        details: dict[str, Any] = {
            "sampler": {"name": request.sampling.sampler, **options},
            "rule": [verifier.value for verifier in request.requested_verifiers],
            # Repeating a seed would not repeat samples that start from tables of earlier requests.
            "seed": None if request.shares_tables else request.body.seed,
            **{cost: sum(getattr(one.sample, cost) for one in finished) for cost in COSTS},
        }
        if self._verifiers.notes:
            details["notes"] = self._verifiers.notes
        metadata = {} if request.body.metadata is None else {"metadata": request.body.metadata}
        return {**metadata, "trialogue": details}

    def _choice(self, finished: FinishedChoice) -> dict[str, Any]:
        choice, sample, verdict = finished.choice, finished.sample, finished.verdict
        text, calls = sample.text or "", list[dict[str, Any]]()
        if self._parse is not None:
            with suppress(ValueError):
                calls = self._parse(text)
        weighted = self._request.sampler.weighted
        details = {
            **make_outcome_record(sample, verdict, weighted=weighted),
            **finished.confidence,
            **make_cost_record(sample),
        }
        reason = "tool_calls" if calls else self._finish_reason(finished)
        fields = {"index": choice, "finish_reason": reason, "trialogue": details}
        fields["logprobs"] = self._log_probs(finished)
        if not self._chat:
            if self._request.echoes:
                text = self._request.prompt_text(choice, self._tokenization) + text
            return fields | {"text": text}
        message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
        if calls:
            message |= {"content": None, "tool_calls": [_tool_call(call) for call in calls]}
        return fields | {"message": message}

    def _finish_reason(self, finished: FinishedChoice) -> str:
        """Return the finish reason of the API. Rejected samples have "length" or "content_filter"."""
        sample, verdict = finished.sample, finished.verdict
        # An accepted text of a language is complete. A function also accepts texts that are cut at the limit.
        is_complete = any(KINDS[one.kind].has_mask for one in self._request.requested_verifiers)
        if verdict.accepted and (is_complete or verdict.ended in ("eos", "stop")):
            return "stop"
        bounded = sample.stopped in ("max_queries", "max_steps")
        # A mask allows only tokens that complete the text at the last position, so it can fail one token earlier.
        bounded |= sample.stopped == "failed" and len(sample.tokens) + 1 == self._request.max_new_tokens
        return "length" if bounded or verdict.ended in ("max_new_tokens", "context") else "content_filter"

    def _log_probs(self, finished: FinishedChoice) -> dict[str, Any] | None:
        body, tokenization = self._request.body, self._tokenization
        if not body.scores_tokens:
            return None
        scores = token_scores(finished)
        if self._chat:
            return chat_log_probs(scores, tokenization)
        return completion_log_probs(scores, tokenization, body.num_top_tokens)


def _tool_call(call: dict[str, Any]) -> dict[str, Any]:
    arguments = json.dumps(call["arguments"], ensure_ascii=False)
    return {
        "id": f"call_{secrets.token_hex(8)}",
        "type": "function",
        "function": {"name": call["name"], "arguments": arguments},
    }
