"""Errors as OpenAI's interface writes them: a status, and a body that names the field."""

from typing import Any

from trialogue.errors import InputError


class Refused(Exception):
    """A request that is not answered: `status`, what is wrong in a line, the field and a code of OpenAI's."""

    def __init__(self, status: int, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.param, self.code = status, message, param, code

    @classmethod
    def of(cls, error: InputError) -> "Refused":
        """What an `InputError` says, as a bad request."""
        return cls(400, " ".join(str(error).split()), error.field, "invalid_value")

    def body(self) -> dict[str, Any]:
        """The body of the answer."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        if self.status == 429:
            kind = "rate_limit_error"
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}
