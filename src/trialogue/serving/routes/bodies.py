"""Reading of the JSON bodies of requests."""

from typing import Any

from starlette.requests import Request

from trialogue.generation.prompts import json_value
from trialogue.serving.errors import RequestError


async def read_json(request: Request, largest: int) -> Any:
    """Return the JSON body of a request.

    Args:
        request: The request.
        largest: Maximum size in bytes.

    Raises:
        RequestError: If the body is too large or invalid.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        # Browsers send other content types to any site without a preflight request.
        raise RequestError(415, "send the content type application/json", code="unsupported_media_type")
    too_large = RequestError(413, f"send at most {largest} bytes", code="body_too_large")
    stated = request.headers.get("content-length", "")
    if stated.isdecimal() and int(stated) > largest:
        raise too_large
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > largest:
            raise too_large
        parts.append(part)
    try:
        return json_value(b"".join(parts))
    except (ValueError, RecursionError) as error:
        raise RequestError(400, f"the body is not JSON: {error}", "body", "invalid_json") from None
