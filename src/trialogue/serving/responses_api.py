"""Conversion between the Responses API of OpenAI and chat completions."""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from trialogue.errors import InputError
from trialogue.serving.jobs import FinishedChoice
from trialogue.serving.responses import CompletionResponse

_RENAMED = {"max_output_tokens": "max_completion_tokens"}
_WITHOUT_EFFECT = ("background", "include", "max_tool_calls", "reasoning", "store", "truncation")
_REFUSED = ("conversation", "previous_response_id", "prompt", "messages", "response_format", "n", "logprobs")
_ROLES = ("user", "assistant", "system", "developer")


def chat_body(body: object) -> dict[str, Any]:
    """Convert the body of a request to /v1/responses to that of a chat completion.

    Args:
        body: Parsed JSON value.

    Raises:
        InputError: If a field is not supported or invalid.
    """
    if not isinstance(body, Mapping):
        raise InputError("body", body, "send a JSON object")
    given = {name: value for name, value in body.items() if value is not None and name not in _WITHOUT_EFFECT}
    for name in _REFUSED:
        if name in given:
            raise InputError(name, given[name], "leave it out: /v1/responses does not support it")
    messages = _messages(given.pop("input", None))
    if "instructions" in given:
        messages.insert(0, {"role": "system", "content": given.pop("instructions")})
    chat: dict[str, Any] = {"messages": messages}
    text = given.pop("text", {})
    if not isinstance(text, Mapping):
        raise InputError(
            "text", text, 'use {"format": {"type": "json_schema", "name": NAME, "schema": SCHEMA}}'
        )
    if text.get("format") is not None:
        chat["response_format"] = _response_format(text["format"])
    if given.get("tools") is not None:
        chat["tools"] = _tools(given.pop("tools"))
    return chat | {_RENAMED.get(name, name): value for name, value in given.items()}


def _messages(content: object) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"role": "user", "content": content}]
    if not isinstance(content, list) or not content:
        raise InputError("input", content, "use a text or a list of messages")
    messages = list[dict[str, Any]]()
    for place, item in enumerate(content):
        hint = "use a message with a role and a content, a function_call or a function_call_output"
        if not isinstance(item, Mapping):
            raise InputError(f"input[{place}]", item, hint)
        kind = item.get("type", "message")
        if kind == "message" and item.get("role") in _ROLES:
            messages.append({"role": item["role"], "content": _content(item.get("content"))})
        elif kind == "function_call":
            function = {"name": item.get("name"), "arguments": item.get("arguments")}
            call = {"type": "function", "id": item.get("call_id"), "function": function}
            # Parallel calls are one message of a chat.
            if messages and messages[-1].get("tool_calls"):
                messages[-1]["tool_calls"].append(call)
            else:
                messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        elif kind == "function_call_output":
            output = {"tool_call_id": item.get("call_id"), "content": _content(item.get("output"))}
            messages.append({"role": "tool", **output})
        elif kind != "reasoning":
            raise InputError(f"input[{place}]", item, hint)
    return messages


def _content(content: object) -> object:
    """Return a text, or parts with the types of chat completions."""
    if not isinstance(content, list):
        return content
    kinds = ("input_text", "output_text", "text")
    return [
        {"type": "text", "text": part.get("text")}
        if isinstance(part, Mapping) and part.get("type") in kinds
        else part
        for part in content
    ]


def _response_format(value: object) -> object:
    if not isinstance(value, Mapping) or value.get("type") != "json_schema":
        return value
    return {"type": "json_schema", "json_schema": {key: part for key, part in value.items() if key != "type"}}


def _tools(tools: object) -> object:
    if not isinstance(tools, list):
        return tools
    for place, tool in enumerate(tools):
        if not isinstance(tool, Mapping) or tool.get("type") != "function":
            raise InputError(f"tools[{place}]", tool, "use tools of the type function")
    return [
        {
            "type": "function",
            "function": {key: value for key, value in tool.items() if key not in ("type", "strict")},
        }
        for tool in tools
    ]


class ResponsesResponse(CompletionResponse):
    """Builds the response to a request to /v1/responses, complete or as events of a stream.

    The arguments are those of `CompletionResponse`.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._response, self._message = f"resp_{secrets.token_hex(12)}", f"msg_{secrets.token_hex(12)}"
        self._number = 0

    def complete(self, finished: Sequence[FinishedChoice]) -> dict[str, Any]:
        """Return the body of a response that is not streamed.

        Args:
            finished: The sample of the request.
        """
        choice = super().complete(finished)["choices"][0]
        message, reason = choice["message"], choice["finish_reason"]
        if message["content"] is None:
            output = [
                {"type": "function_call", "id": f"fc_{secrets.token_hex(12)}", "call_id": call["id"]}
                | call["function"]
                | {"status": "completed"}
                for call in message["tool_calls"]
            ]
        else:
            output = [self._item(message["content"], "incomplete" if reason == "length" else "completed")]
        reasons = {"length": "max_output_tokens", "content_filter": "content_filter"}
        incomplete = {"reason": reasons[reason]} if reason in reasons else None
        return self._state(
            "completed" if incomplete is None else "incomplete",
            output=output,
            incomplete_details=incomplete,
            usage=self._response_usage(),
            trialogue=self._details(finished)["trialogue"] | choice["trialogue"],
        )

    def growth_chunks(
        self, choice: int, text: str, num_tokens: int, log_probs: dict[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """Return the events of a stream that report new text. The arguments are those of the base class."""
        del log_probs
        new, is_started = text[len(self._sent.get(choice, "")) :], choice in self._sent
        self._sent[choice], self._num_tokens[choice] = text, num_tokens
        events = [] if is_started else self._opening_events()
        return [*events, self._event("response.output_text.delta", **self._place(), delta=new, logprobs=[])]

    def final_chunks(self, finished: Sequence[FinishedChoice]) -> list[dict[str, Any]]:
        """Return the events of a stream that report the end of the response.

        Args:
            finished: The sample of the request.
        """
        response, events = self.complete(finished), list[dict[str, Any]]()
        if response["output"][0]["type"] == "message":
            item = response["output"][0]
            text = item["content"][0]["text"]
            if text != self._sent.get(0):
                events += self.growth_chunks(0, text, self._num_tokens[0])
            place = self._place()
            events += [
                self._event("response.output_text.done", **place, text=text, logprobs=[]),
                self._event("response.content_part.done", **place, part=item["content"][0]),
                self._event("response.output_item.done", output_index=0, item=item),
            ]
        else:
            events += self._state_events()
            for index, item in enumerate(response["output"]):
                place = {"output_index": index, "item_id": item["id"]}
                begun = item | {"arguments": "", "status": "in_progress"}
                text = item["arguments"]
                events += [
                    self._event("response.output_item.added", output_index=index, item=begun),
                    self._event("response.function_call_arguments.delta", **place, delta=text),
                    self._event(
                        "response.function_call_arguments.done", **place, arguments=text, name=item["name"]
                    ),
                    self._event("response.output_item.done", output_index=index, item=item),
                ]
        return [*events, self._event(f"response.{response['status']}", response=response)]

    def _state_events(self) -> list[dict[str, Any]]:
        state = self._state("in_progress", output=[], incomplete_details=None, usage=None)
        return [self._event(name, response=state) for name in ("response.created", "response.in_progress")]

    def _opening_events(self) -> list[dict[str, Any]]:
        item = self._item("", "in_progress")
        part = item["content"][0]
        return [
            *self._state_events(),
            self._event("response.output_item.added", output_index=0, item=item | {"content": []}),
            self._event("response.content_part.added", **self._place(), part=part),
        ]

    def _place(self) -> dict[str, Any]:
        return {"item_id": self._message, "output_index": 0, "content_index": 0}

    def _event(self, kind: str, **fields: object) -> dict[str, Any]:
        self._number += 1
        return {"type": kind, "sequence_number": self._number - 1, **fields}

    def _item(self, text: str, status: str) -> dict[str, Any]:
        part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        return {
            "type": "message",
            "id": self._message,
            "status": status,
            "role": "assistant",
            "content": [part],
        }

    def _state(self, status: str, **fields: object) -> dict[str, Any]:
        body: Any = self._request.body
        return {
            "id": self._response,
            "object": "response",
            "created_at": self._created,
            "status": status,
            "error": None,
            "instructions": None,
            "metadata": body.metadata or {},
            "model": self._model,
            "parallel_tool_calls": bool(body.parallel_tool_calls),
            "temperature": body.temperature,
            "top_p": body.top_p,
            "tool_choice": body.tool_choice or "auto",
            "tools": [{"type": "function", **one.get("function", one)} for one in body.tools or ()],
            **fields,
        }

    def _response_usage(self) -> dict[str, Any]:
        usage = self._usage()
        return {
            "input_tokens": usage["prompt_tokens"],
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": usage["completion_tokens"],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage["total_tokens"],
        }
