"""Errors that are returned to clients in the format of the OpenAI API."""

from typing import Any

from trialogue.errors import InputError


class RequestError(Exception):
    """Error that the client receives as an HTTP response.

    Args:
        status: HTTP status code.
        message: One-line error message.
        param: Name of the invalid field, or None.
        code: Error code of the OpenAI API, or None.
    """

    def __init__(self, status: int, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.param, self.code = status, message, param, code

    @classmethod
    def from_input_error(cls, error: InputError) -> "RequestError":
        """Convert an `InputError` to an error with HTTP status 400.

        Args:
            error: Error about a field of a request.
        """
        return cls(400, " ".join(str(error).split()), error.field, "invalid_value")

    def body(self) -> dict[str, Any]:
        """Return the JSON body of the response."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        if self.status == 429:
            kind = "rate_limit_error"
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}
