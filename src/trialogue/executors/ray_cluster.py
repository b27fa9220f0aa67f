"""A Ray cluster: one actor per worker, and what a worker that died has not brought back is done by another.

joblib's own Ray backend brings results back by the lane and fails as a whole where a node dies. Here every item comes
back by itself, to the process that hired, which alone files it: an item is lost with its worker or known, never both.
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
from trialogue.executors.executor import Crew, Executor, Item, Start
from trialogue.source_code import source_code

_SECONDS = 30
"""How long a cluster may take to answer."""
_DEATHS = 4
"""Workers that may die over the same item before it is taken for the reason.

So many times those that are wanted may die before they can begin: Ray sends them to a node that is dead, all at once,
until it knows."""


class RayCluster(Executor):
    """Workers on a Ray cluster, each with as many processors as it has `threads`.

    `address` is that of a running one: ray://HOST:PORT through its client server, or as Ray itself writes it (auto,
    HOST:PORT). Without one, a cluster of the processors of `workers` is started on this machine and ended with the
    work; a program that is connected to a cluster already works on that one. On a running cluster there are as many
    workers as its nodes have processors for, or GPUs where the work is accelerated, unless `workers` says otherwise.
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
    def crew(self, start: Start, lanes: int, *, accelerated: bool = False) -> Iterator[Crew]:
        """Hire actors; raises `InputError` where no cluster answers, or its workers run other code than this one.

        That is the code of trialogue, changes that are not committed included. What else they import, a study of a
        user's own package say, is not compared: it has to be the same on all nodes.
        """
        with self._connected(lanes):
            there = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
            gpus = sum(one.get("GPU", 0.0) for one in there) if accelerated else 0.0
            # What has no GPU takes no accelerated work where others have one.
            fit = [int(one.get("CPU", 0.0) // self.threads) for one in there if not gpus or one.get("GPU")]
            if not any(fit):
                what = f"{self.threads} processors{' beside a GPU' if gpus else ''}: use fewer threads, or give it one"
                raise InputError("executor", self._name, f"no node of this cluster has {what}")
            room = int(gpus) or sum(fit)
            wanted = min(self.workers or room, lanes)
            # A part of one GPU: Ray gives no actor parts of two.
            share = 1 / max(1, math.ceil(wanted / gpus)) if gpus else 0.0
            crew = _Actors(self._ray, self._name, start, wanted, share, self.threads)
            try:
                yield crew
            finally:
                crew.end()

    @property
    def _name(self) -> str:
        address = self.address or ""
        return address if "://" in address else f"ray:{address}".rstrip(":")

    @contextmanager
    def _connected(self, lanes: int) -> Iterator[None]:
        ray = self._ray
        if ray.is_initialized():
            yield
            return
        # Nothing of a run is anybody else's to know, and a worker without a GPU of its own may see what there is.
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
            except Exception as error:  # Ray raises what its layers raise
                raise self._silent(f"{type(error).__name__}: {error}") from error
        try:
            yield
        finally:
            ray.shutdown()

    def _require_answer(self) -> None:
        """Raise `InputError` where no cluster answers in time: Ray itself would wait for minutes."""
        address = str(self.address)
        place = urlsplit(address if "://" in address else f"//{address}")
        try:
            host, port = place.hostname, place.port
            if host and port:
                socket.create_connection((host, port), timeout=_SECONDS).close()
        except (OSError, ValueError) as error:
            raise self._silent(getattr(error, "strerror", None) or str(error)) from None
        if "://" in address:
            if not (host and port):
                raise InputError("executor", address, "write ray://HOST:PORT, by default port 10001")
            return
        asking = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", address]
        try:
            subprocess.run(asking, check=True, capture_output=True, timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            raise self._silent(f"nothing for {_SECONDS} s") from None
        except subprocess.CalledProcessError:
            raise self._silent("Ray finds none there") from None

    def _silent(self, why: str) -> InputError:
        told = " ".join(why.split())[:120]
        hint = f"no cluster answers ({told}): start one with `ray start --head`, or hint the address"
        return InputError("executor", self._name, hint)


class _Actors(Crew):
    """Actors of a crew: those that have not begun yet, and those with nothing to do."""

    def __init__(self, ray: Any, name: str, start: Start, wanted: int, gpus: float, threads: int) -> None:
        self._ray, self._name, self._wanted, self._threads = ray, name, wanted, threads
        self._own = {"version": trialogue.__version__, **source_code()}
        self._actor = _actor(ray).options(num_cpus=threads, num_gpus=gpus)
        self._start = ray.put(ray.cloudpickle.dumps(start))
        self._joining: dict[Any, Any] = {}  # actors by the reference that says which code they run
        self._beginning: dict[Any, Any] = {}  # by the reference that says that they have begun
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
            there, _ = self._ray.wait(awaited, num_returns=1, timeout=_SECONDS)
            if not there and not doing:
                self._warn()
            for known in there:
                if known not in doing:
                    self._joined(known)
                    continue
                actor, lane = doing.pop(known)
                try:
                    came, result = self._result(known, lane[0])
                except Exception:
                    # The work raised, the actor lives.
                    self._idle.append(actor)
                    raise
                if not came:
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
        """End all, and those that have nothing to do in such a way that they clear up behind themselves."""
        with suppress(Exception):
            ended = [actor.end.remote() for actor in self._idle]
            self._ray.wait(ended, num_returns=len(ended), timeout=_SECONDS)
        for actor in list(self._hired):
            self._dismiss(actor)

    def _warn(self) -> None:
        if not self._warned:
            told = f"no worker has begun for {_SECONDS} s: the cluster's processors are taken, or gone"
            warnings.warn(told, RuntimeWarning, stacklevel=2)
        self._warned = True

    def _hire(self, waiting: int, doing: int) -> None:
        """Hire as many as there are lanes for that nobody does or is about to do."""
        coming = len(self._joining) + len(self._beginning)
        for _ in range(min(waiting, self._wanted - doing) - coming):
            actor = self._actor.remote()
            self._hired.append(actor)
            self._joining[actor.code.remote()] = actor

    def _dismiss(self, actor: Any) -> None:
        self._hired.remove(actor)
        self._ray.kill(actor)

    def _joined(self, known: Any) -> None:
        """Go on with an actor that has said which code it runs, or that it has begun."""
        if known in self._beginning:
            actor = self._beginning.pop(known)
            if self._result(known, None)[0]:
                self._deaths[None] = 0
                self._idle.append(actor)
            else:
                self._dismiss(actor)
            return
        actor = self._joining.pop(known)
        came, code = self._result(known, None)
        if came:
            self._require_own(code)
            self._beginning[actor.begin.remote(self._start, sys.path, str(Path.cwd()), self._threads)] = actor
        else:
            self._dismiss(actor)

    def _result(self, known: Any, item: Item | None) -> tuple[bool, Any]:
        """Whether something came back, and what; raises what the work itself raised."""
        errors = self._ray.exceptions
        try:
            return True, self._ray.get(known)
        except errors.RayTaskError as error:
            if not isinstance(error.cause, BaseException):
                raise
            error.cause.add_note(str(error))
            raise error.cause from None
        except errors.RayError as error:  # a worker, its node or its memory is gone
            self._deaths[item] += 1
            most = _DEATHS * (self._wanted if item is None else 1)
            if self._deaths[item] >= most:
                over = "before they could begin" if item is None else f"over {repr(item)[:100]}"
                hint = (
                    f"{most} workers died {over}: they may lack memory ({' '.join(str(error).split())[:200]})"
                )
                raise InputError("executor", self._name, hint) from None
            return False, None

    def _require_own(self, code: dict[str, str] | None) -> None:
        """Raise `InputError` where a worker runs other code than this process: its rows would be of that."""
        if code is None:
            hint = f"a worker does not have trialogue: install version {trialogue.__version__} on every node"
            raise InputError("executor", self._name, hint)
        if code != self._own:
            hint = f"a worker has trialogue {_told(code)}, this process {_told(self._own)}: install one on all nodes"
            raise InputError("executor", self._name, hint)


def _told(code: dict[str, str]) -> str:
    commit = f" at commit {code['commit']}" if "commit" in code else ""
    changes = f" with changes {code['changes_sha256'][:12]}" if "changes_sha256" in code else ""
    return code["version"] + commit + changes


def _actor(ray: Any) -> Any:
    """The class of the actors; a class in a function travels by value, so that it asks any version which one it is."""

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

            # Where the process that hires finds its modules; what is installed here comes first.
            sys.path.extend(place for place in path if place not in sys.path)
            with suppress(OSError):  # there is none of that name on this machine
                os.chdir(folder)
            torch.set_num_threads(threads)
            self._do = cloudpickle.loads(start)()

        def do(self, item: Item) -> Any:
            return self._do(item)

        def end(self) -> None:
            del self._do

    # An actor that Ray itself begins anew would have forgotten what it kept.
    return ray.remote(max_restarts=0, max_task_retries=0)(Worker)
