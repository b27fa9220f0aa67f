"""Streams with slow or disconnected readers."""

import asyncio
from collections.abc import AsyncIterator

from starlette.types import Message

from trialogue.serving.errors import RequestError
from trialogue.serving.jobs import FailedRequest, PartialChoice
from trialogue.serving.streams import Events, Stream


def test_only_the_latest_text_of_a_choice_waits():
    async def read() -> list[object]:
        events, failed = Events(), FailedRequest(RequestError(500, "it broke"))
        for event in (PartialChoice(0, "a", 1), PartialChoice(1, "b", 1), PartialChoice(0, "ac", 2), failed):
            events.put(event)
        first = [await events.get() for _ in range(3)]
        assert first == [PartialChoice(0, "ac", 2), PartialChoice(1, "b", 1), failed]
        waiting = asyncio.ensure_future(events.get())
        await asyncio.sleep(0)
        assert not waiting.done()
        events.put(PartialChoice(0, "acd", 3))
        return [await waiting]

    assert asyncio.run(read()) == [PartialChoice(0, "acd", 3)]


def test_a_stream_without_a_reader_is_cancelled():
    started, ended = list[str](), list[bool]()

    async def pieces() -> AsyncIterator[str]:
        started.append("a piece")
        yield "a piece"

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        raise OSError("the client is gone")

    async def read_stream() -> None:
        stream = Stream(pieces(), lambda: ended.append(True))
        try:
            await stream({"type": "http", "asgi": {"spec_version": "2.4"}}, receive, send)
        except Exception:
            assert ended

    asyncio.run(read_stream())
    assert not started
    assert ended == [True]
