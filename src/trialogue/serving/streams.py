"""Events of a request for a reader, however slow, and the stream that they are sent as."""

import asyncio
from collections.abc import AsyncIterator, Callable

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from trialogue.serving.jobs import Event, PartialChoice


class Events:
    """What waits for a reader: of the texts of a choice the latest, however slowly they are read."""

    def __init__(self) -> None:
        self._waiting: dict[object, Event] = {}
        self._there = asyncio.Event()

    def put(self, event: Event) -> None:
        """Let `event` wait, in the place of an earlier text of its choice."""
        self._waiting[event.choice if isinstance(event, PartialChoice) else object()] = event
        self._there.set()

    async def get(self) -> Event:
        """The event that has waited the longest."""
        while not self._waiting:
            self._there.clear()
            await self._there.wait()
        return self._waiting.pop(next(iter(self._waiting)))


class Stream(StreamingResponse):
    """A stream that says in `ended` when nobody reads any more, also where nobody ever has."""

    def __init__(self, pieces: AsyncIterator[str], ended: Callable[[], None]) -> None:
        super().__init__(pieces, media_type="text/event-stream")
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the pieces."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()
