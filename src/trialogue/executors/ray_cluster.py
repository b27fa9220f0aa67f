"""Executor that uses a Ray cluster, with one actor per worker.

If a worker dies, another worker processes its items. The Ray backend of joblib returns results per lane (a sequence of
items) and fails as a whole if a node dies. Here every item is returned separately to the calling process, so that a
finished item is never lost.
"""

import importlib
import math
import os
import socket
import subprocess
import sys
import warnings
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import trialogue
from trialogue.errors import InputError
from trialogue.executors.executor import Executor, Item, Start, Workers
from trialogue.source_code import source_code

_SECONDS = 30
"""Maximum response time of a cluster in seconds."""
_DEATHS = 4
"""Maximum number of workers that may die while processing the same item.

This times the number of workers is the limit for workers that die before they start, because Ray may assign all of them
to a dead node before it detects the failure."""


class RayCluster(Executor):
    """Executor that uses the nodes of a Ray cluster.

    Each worker is a Ray actor with as many CPUs as it has PyTorch threads.

    Args:
        address: Address of a running cluster, as ray://HOST:PORT (Ray client), as HOST:PORT, or "auto". By
            default, the cluster to which the program is already connected is used. If there is none, a
            cluster is started on this machine and stopped after the work.
        workers: Number of workers. By default the number that fits on the CPUs of the nodes, or on their GPUs for
            accelerated work.

    Raises:
        InputError: If Ray is not installed.
    """

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        super().__init__(address, workers)
        try:
            self._ray: Any = importlib.import_module("ray")
        except ModuleNotFoundError:
            raise InputError(
                "executor", self._name, "it is not installed: pip install 'trialogue[ray]'"
            ) from None

    @contextmanager
    def start_workers(self, start: Start, lanes: int, *, accelerated: bool = False) -> Iterator[Workers]:
        """Start actors on the cluster, as a context manager that stops them on exit.

        Workers must have the same source code of trialogue as this process, including uncommitted changes.
        Other imported packages are not compared.

        Args:
            start: Function called once in each worker. It returns the function that processes an item.
            lanes: Maximum number of lanes (sequences of items) that are processed at the same time.
            accelerated: Whether workers use GPUs, if the cluster has any.

        Yields:
            The running actors.

        Raises:
            InputError: If no cluster is available or its workers have other source code.
        """
        with self._connect(lanes):
            ready = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
            gpus = sum(one.get("GPU", 0.0) for one in ready) if accelerated else 0.0
            # If any node has a GPU, nodes without one get no accelerated work.
            workers_per_node = [
                int(one.get("CPU", 0.0) // self.threads) for one in ready if not gpus or one.get("GPU")
            ]
            if not any(workers_per_node):
                missing = f"{self.threads} CPUs{' and a GPU' if gpus else ''}"
                raise InputError("executor", self._name, f"use fewer threads: no node has {missing}")
            capacity = int(gpus) or sum(workers_per_node)
            wanted = min(self.workers or capacity, lanes)
            # Ray cannot assign parts of two GPUs to one actor.
            share = 1 / max(1, math.ceil(wanted / gpus)) if gpus else 0.0
            workers = _Actors(self._ray, self._name, start, wanted, share, self.threads)
            try:
                yield workers
            finally:
                workers.end()

    @property
    def _name(self) -> str:
        address = self.address or ""
        return address if "://" in address else f"ray:{address}".rstrip(":")

    @contextmanager
    def _connect(self, lanes: int) -> Iterator[None]:
        ray = self._ray
        if ray.is_initialized():
            yield
            return
        # Disable usage statistics, and leave GPUs visible to workers without an assigned GPU.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if self.address is None:
            wanted = min(self.workers or max(1, (os.cpu_count() or 1) // self.threads), lanes)
            ray.init(address="local", num_cpus=wanted * self.threads, include_dashboard=False, **quiet)
        else:
            self._require_answer()
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    ray.init(address=self.address, **quiet)
            except Exception as error:  # Ray has no common base class of errors.
                raise self._unreachable(f"{type(error).__name__}: {error}") from error
        try:
            yield
        finally:
            ray.shutdown()

    def _require_answer(self) -> None:
        """Raise `InputError` if the cluster does not respond in time. Ray itself would wait for minutes."""
        address = str(self.address)
        place = urlsplit(address if "://" in address else f"//{address}")
        try:
            host, port = place.hostname, place.port
            if host and port:
                socket.create_connection((host, port), timeout=_SECONDS).close()
        except (OSError, ValueError) as error:
            raise self._unreachable(getattr(error, "strerror", None) or str(error)) from None
        if "://" in address:
            if not (host and port):
                raise InputError("executor", address, "use ray://HOST:PORT (default port of Ray: 10001)")
            return
        command = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", address]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            raise self._unreachable(f"timeout after {_SECONDS} s") from None
        except subprocess.CalledProcessError:
            raise self._unreachable("the health check failed") from None

    def _unreachable(self, cause: str) -> InputError:
        reason = " ".join(cause.split())[:120]
        hint = (
            f"start a cluster with `ray start --head`, or correct the address: no cluster responds ({reason})"
        )
        return InputError("executor", self._name, hint)


class _Actors(Workers):
    """The actors of a cluster, by state: joining, starting, idle or working."""

    def __init__(self, ray: Any, name: str, start: Start, wanted: int, gpus: float, threads: int) -> None:
        self._ray, self._name, self._wanted, self._threads = ray, name, wanted, threads
        self._code = {"version": trialogue.__version__, **source_code()}
        self._actor = _actor(ray).options(num_cpus=threads, num_gpus=gpus)
        self._start = ray.put(ray.cloudpickle.dumps(start))
        self._joining: dict[Any, Any] = {}  # Actors by the reference to their code version.
        self._beginning: dict[Any, Any] = {}  # Actors by the reference to the end of their start.
        self._idle: list[Any] = []
        self._hired: list[Any] = []
        self._deaths: Counter[Any] = Counter()
        self._warned = False

    def done(self, lanes: Sequence[Sequence[Item]]) -> Iterator[tuple[Item, Any]]:
        waiting = deque(deque(lane) for lane in lanes if lane)
        doing: dict[Any, tuple[Any, deque[Item]]] = {}
        while waiting or doing:
            while waiting and self._idle:
                actor, lane = self._idle.pop(), waiting.popleft()
                doing[actor.do.remote(lane[0])] = actor, lane
            self._hire(len(waiting), len(doing))
            awaited = [*doing, *self._joining, *self._beginning]
            ready, _ = self._ray.wait(awaited, num_returns=1, timeout=_SECONDS)
            if not ready and not doing:
                self._warn()
            for known in ready:
                if known not in doing:
                    self._handle_ready(known)
                    continue
                actor, lane = doing.pop(known)
                try:
                    is_available, result = self._result(known, lane[0])
                except Exception:
                    # The exception comes from the work; the actor is still alive.
                    self._idle.append(actor)
                    raise
                if not is_available:
                    self._dismiss(actor)
                    waiting.appendleft(lane)
                    continue
                item = lane.popleft()
                if lane:
                    doing[actor.do.remote(lane[0])] = actor, lane
                else:
                    self._idle.append(actor)
                yield item, result

    def end(self) -> None:
        """Stop all actors. Idle ones release their resources first."""
        with suppress(Exception):
            ended = [actor.end.remote() for actor in self._idle]
            self._ray.wait(ended, num_returns=len(ended), timeout=_SECONDS)
        for actor in list(self._hired):
            self._dismiss(actor)

    def _warn(self) -> None:
        if not self._warned:
            message = (
                f"no worker has started for {_SECONDS} s: the CPUs of the cluster are busy or unavailable"
            )
            warnings.warn(message, RuntimeWarning, stacklevel=2)
        self._warned = True

    def _hire(self, waiting: int, doing: int) -> None:
        """Start actors for work that no existing actor will do."""
        coming = len(self._joining) + len(self._beginning)
        for _ in range(min(waiting, self._wanted - doing) - coming):
            actor = self._actor.remote()
            self._hired.append(actor)
            self._joining[actor.code.remote()] = actor

    def _dismiss(self, actor: Any) -> None:
        self._hired.remove(actor)
        self._ray.kill(actor)

    def _handle_ready(self, known: Any) -> None:
        """Handle an actor that has reported its code version or has started."""
        if known in self._beginning:
            actor = self._beginning.pop(known)
            if self._result(known, None)[0]:
                self._deaths[None] = 0
                self._idle.append(actor)
            else:
                self._dismiss(actor)
            return
        actor = self._joining.pop(known)
        is_available, code = self._result(known, None)
        if is_available:
            self._require_same_code(code)
            self._beginning[actor.begin.remote(self._start, sys.path, str(Path.cwd()), self._threads)] = actor
        else:
            self._dismiss(actor)

    def _result(self, known: Any, item: Item | None) -> tuple[bool, Any]:
        """Return whether a result is available, and the result. Exceptions of the work itself are raised."""
        errors = self._ray.exceptions
        try:
            return True, self._ray.get(known)
        except errors.RayTaskError as error:
            if not isinstance(error.cause, BaseException):
                raise
            error.cause.add_note(str(error))
            raise error.cause from None
        except errors.RayError as error:  # The worker, its node or its object was lost.
            self._deaths[item] += 1
            most = _DEATHS * (self._wanted if item is None else 1)
            if self._deaths[item] >= most:
                when = "before they started" if item is None else f"while processing {repr(item)[:100]}"
                cause = " ".join(str(error).split())[:200]
                hint = f"check the memory of the nodes: {most} workers died {when} ({cause})"
                raise InputError("executor", self._name, hint) from None
            return False, None

    def _require_same_code(self, code: dict[str, str] | None) -> None:
        """Raise `InputError` if a worker runs other code than this process."""
        if code is None:
            hint = f"install trialogue {trialogue.__version__} on every node: a worker does not have it"
            raise InputError("executor", self._name, hint)
        if code != self._code:
            versions = f"{_describe(code)} on a worker, {_describe(self._code)} in this process"
            hint = f"install the same trialogue on all nodes: found {versions}"
            raise InputError("executor", self._name, hint)


def _describe(code: dict[str, str]) -> str:
    commit = f" at commit {code['commit']}" if "commit" in code else ""
    changes = f" with changes {code['changes_sha256'][:12]}" if "changes_sha256" in code else ""
    return code["version"] + commit + changes


def _actor(ray: Any) -> Any:
    """Return the actor class. It is local so that Ray transfers it by value to any version of trialogue."""

    class Worker:
        def code(self) -> dict[str, str] | None:
            try:
                import trialogue
            except ImportError:
                return None
            try:
                from trialogue.source_code import source_code
            except ImportError:
                return {"version": trialogue.__version__}
            return {"version": trialogue.__version__, **source_code()}

        def begin(self, start: bytes, path: list[str], folder: str, threads: int) -> None:
            import torch
            from ray import cloudpickle

            # Append the module path of the calling process, after the packages installed here.
            sys.path.extend(place for place in path if place not in sys.path)
            with suppress(OSError):  # The folder may not exist on this machine.
                os.chdir(folder)
            torch.set_num_threads(threads)
            self._do = cloudpickle.loads(start)()

        def do(self, item: Item) -> Any:
            return self._do(item)

        def end(self) -> None:
            del self._do

    # Ray must not restart actors, which would lose their state.
    return ray.remote(max_restarts=0, max_task_retries=0)(Worker)
