"""A server on the loopback address in this process."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from openai import OpenAI

from trialogue.generation.settings import MachineSettings
from trialogue.models.hub.opening import TextModel
from trialogue.serving.server import create_application, create_server, open_socket
from trialogue.serving.settings import Address, Serving
from trialogue.serving.worker import Worker

KEY = "a key"


class Loopback:
    """The URL of a server, and its worker."""

    def __init__(self, url: str, worker: Worker) -> None:
        self.url, self.worker = url, worker

    def client(self, key: str = KEY) -> OpenAI:
        return OpenAI(base_url=f"{self.url}/v1", api_key=key, max_retries=0, timeout=60)

    def wait_until_idle(self) -> bool:
        """Return whether all requests end within 30 seconds."""
        for _ in range(600):
            if not self.worker.unfinished:
                return True
            time.sleep(0.05)
        return False


@contextmanager
def serving(model: TextModel, rows: int = 8, **limits: object) -> Iterator[Loopback]:
    settings = Serving(model="tiny", **limits)
    served = create_application(model, settings, MachineSettings(batch_size=rows), [KEY])
    with open_socket(Address(port=0)) as socket:
        server = create_server(served.app, 1)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]})
        thread.start()
        try:
            yield Loopback(f"http://127.0.0.1:{socket.getsockname()[1]}", served.worker)
        finally:
            server.should_exit = True
            thread.join()
