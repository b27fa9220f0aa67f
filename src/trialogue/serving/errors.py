"""Error responses of the OpenAI API."""

from typing import Any

from trialogue.errors import InputError


class Refused(Exception):
    """Error that is returned to the client.

    Args:
        status: HTTP status code.
        message: One-line error message.
        param: Name of the invalid field, if any.
        code: Error code of the OpenAI API, if any.
    """

    def __init__(self, status: int, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.param, self.code = status, message, param, code

    @classmethod
    def from_input_error(cls, error: InputError) -> "Refused":
        """Convert an `InputError` to an error with status 400."""
        return cls(400, " ".join(str(error).split()), error.field, "invalid_value")

    def body(self) -> dict[str, Any]:
        """Return the JSON body of the response."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        if self.status == 429:
            kind = "rate_limit_error"
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}
