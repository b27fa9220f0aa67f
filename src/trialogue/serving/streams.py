"""Events of a request, and the HTTP response that streams them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from trialogue.serving.jobs import Event, PartialChoice


class Events:
    """Queue of the events of one request.

    An unread text of a sample is replaced by its newer text. The queue therefore does not grow if the client
    reads slowly.
    """

    def __init__(self) -> None:
        self._waiting: dict[object, Event] = {}
        self._available = asyncio.Event()

    def put(self, event: Event) -> None:
        """Add an event to the queue.

        If the event contains the text of a sample, it replaces an older text of this sample that has not been read.

        Args:
            event: Event of the request.
        """
        self._waiting[event.choice if isinstance(event, PartialChoice) else object()] = event
        self._available.set()

    async def get(self) -> Event:
        """Remove and return the oldest event. Wait for one if the queue is empty."""
        while not self._waiting:
            self._available.clear()
            await self._available.wait()
        return self._waiting.pop(next(iter(self._waiting)))


class Stream(StreamingResponse):
    """HTTP response that sends server-sent events as they become available.

    Args:
        pieces: Events to send, as text.
        ended: Function called when the response ends or the client disconnects.
        headers: HTTP headers of the response.
    """

    def __init__(
        self, pieces: AsyncIterator[str], ended: Callable[[], None], headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(pieces, media_type="text/event-stream", headers=headers)
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()
