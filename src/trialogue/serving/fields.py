"""The fields of a request's body: what is read, what is taken as it is by default only, and what is refused."""

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Any

from trialogue.errors import InputError

_NOTHING: tuple[object, ...] = (None,)
_WITHOUT_EFFECT: dict[str, Collection[object]] = {
    "presence_penalty": (None, 0),
    "frequency_penalty": (None, 0),
    "echo": (None, False),
    "store": (None, False),
    "suffix": _NOTHING,
    "service_tier": (None, "auto", "default"),
}
_FREE = ("user", "safety_identifier", "prompt_cache_key", "parallel_tool_calls")
"""What says nothing that a sample depends on, or allows what need not be done."""


class Fields:
    """The fields of a `body`, each asked for once; `finish` refuses those that nobody asked for."""

    def __init__(self, body: object) -> None:
        if not isinstance(body, Mapping):
            raise InputError("body", body, "send a JSON object")
        self._left = {str(name): value for name, value in body.items()}
        self._known: list[str] = []

    def take(self, name: str, default: Any = None) -> Any:
        """The value of the field `name`, `default` where it is missing or null."""
        self._known.append(name)
        value = self._left.pop(name, None)
        return default if value is None else value

    def given(self, *names: str) -> dict[str, Any]:
        """Return the values of those fields that are neither missing nor null."""
        values = {name: self.take(name) for name in names}
        return {name: value for name, value in values.items() if value is not None}

    def finish(self) -> None:
        """Raise `InputError` for a field that would have an effect, and has none here."""
        for name, harmless in _WITHOUT_EFFECT.items():
            value = self.take(name)
            if not any(value is one or (value == one and not isinstance(value, bool)) for one in harmless):
                raise InputError(name, value, "it cannot be honoured here: leave it out")
        bias = self.take("logit_bias")
        if bias:
            raise InputError("logit_bias", bias, "it cannot be honoured here: leave it out, or give a rule")
        for name in _FREE:
            self.take(name)
        for name, value in self._left.items():
            close = get_close_matches(name, self._known, n=1)
            hint = f": did you mean {close[0]}?" if close else ": leave it out"
            raise InputError(name, value, f"it cannot be honoured here{hint}")
