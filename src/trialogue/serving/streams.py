"""Event queue of a request, and the HTTP stream in which the events are sent."""

import asyncio
from collections.abc import AsyncIterator, Callable

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from trialogue.serving.jobs import Event, PartialChoice


class Events:
    """Queue of events that keeps only the latest text of each choice, so that slow readers do not grow it."""

    def __init__(self) -> None:
        self._waiting: dict[object, Event] = {}
        self._available = asyncio.Event()

    def put(self, event: Event) -> None:
        """Add `event`, replacing an unread text of the same choice."""
        self._waiting[event.choice if isinstance(event, PartialChoice) else object()] = event
        self._available.set()

    async def get(self) -> Event:
        """Remove and return the oldest event."""
        while not self._waiting:
            self._available.clear()
            await self._available.wait()
        return self._waiting.pop(next(iter(self._waiting)))


class Stream(StreamingResponse):
    """HTTP stream of server-sent events.

    Args:
        pieces: Events to send.
        ended: Function called when the stream ends, also if the client disconnects.
    """

    def __init__(self, pieces: AsyncIterator[str], ended: Callable[[], None]) -> None:
        super().__init__(pieces, media_type="text/event-stream")
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()
