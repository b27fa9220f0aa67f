"""Worker thread that generates the samples of all requests."""

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any

import torch

from trialogue.errors import InputError, describe_error
from trialogue.generation.output.outcomes import sample_outcomes
from trialogue.models.hub.opening import TextModel
from trialogue.samplers import OpenRun
from trialogue.samplers.prefix.contract.sampler import Sampler
from trialogue.samplers.prefix.prompts import make_decoder
from trialogue.serving.errors import RequestError
from trialogue.serving.evaluations import EvaluationQueue, Parts
from trialogue.serving.jobs import FailedRequest, FinishedChoice, Job, PartialChoice
from trialogue.serving.scoring import empty_choices, evaluate_choices
from trialogue.serving.tables import SharedTable, TableCache, table_key


class Worker:
    """Thread that generates the samples of all requests.

    A run is a batch of sequences that one sampler extends together. The worker advances all of its runs in turn.

    Args:
        model: Model of the server.
        rows: Maximum number of sequences per run.
        context: Maximum length of a sequence in tokens.
        most: Maximum number of running and waiting requests.
        samplers: Maximum number of runs at the same time. Requests with equal samplers share a run.
        layers: Layers whose hidden states verifiers may read.
        memory: Number of prefixes whose features each run caches.
        tables: Rejection tables that requests share (default: they share none).
    """

    def __init__(
        self,
        model: TextModel,
        *,
        rows: int,
        context: int,
        most: int,
        samplers: int,
        layers: tuple[int, ...],
        memory: int,
        tables: TableCache | None = None,
    ) -> None:
        self.model, self.rows, self.context = model, rows, context
        self._most, self._samplers, self._layers, self._memory = most, samplers, layers, memory
        self.tables = tables
        self._commands = SimpleQueue[tuple[str, Any]]()
        self._waiting = deque[Job]()
        self._runs: dict[tuple[Sampler[Any], Job | None], OpenRun] = {}
        """Runs by sampler, ordered by the time at which a job last joined."""
        self._jobs: dict[OpenRun, list[Job]] = {}
        self._evaluations = EvaluationQueue()
        self._unfinished, self._lock = 0, Lock()
        self._thread = Thread(target=self._work, args=(torch.get_num_threads(),), name="worker", daemon=True)
        self.closing = False

    def start(self) -> None:
        """Start the thread, unless it is running."""
        if not self.alive:
            self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether the thread is running."""
        return self._thread.is_alive()

    @property
    def unfinished(self) -> int:
        """Number of running or waiting requests."""
        return self._unfinished

    def reserve(self) -> None:
        """Reserve a place among the running and waiting requests.

        Raises:
            Refused: If the maximum number of requests is reached.
        """
        with self._lock:
            if self._unfinished >= self._most:
                message = f"{self._most} requests are running or waiting: try again later"
                raise RequestError(429, message, code="rate_limit_exceeded")
            self._unfinished += 1

    def release(self) -> None:
        """Release a place that was reserved with `reserve`.

        For a submitted job, the thread does this when the job ends.
        """
        with self._lock:
            self._unfinished -= 1

    def submit(self, job: Job) -> None:
        """Pass a job to the thread. A place must have been reserved for it.

        Args:
            job: Request with its verifiers.

        Raises:
            InputError: If one sample needs more sequences than a run can have.
            Refused: If the worker is stopping.
        """
        if job.request.sampler.rows_per_sample > self.rows:
            hint = f"use a sampler with at most {self.rows} rows per sample, not {job.request.sampler.rows_per_sample}"
            raise InputError("sampler", job.request.sampling.sampler, hint)
        with self._lock:
            if self.closing or not self.alive:
                raise _stopping_error()
            self._commands.put(("submit", job))

    def evaluate(self, parts: Parts) -> Future[Any]:
        """Pass an evaluation of given texts to the thread.

        Args:
            parts: Generator that yields after each forward pass and returns the result.

        Returns:
            Future of the result.

        Raises:
            Refused: If the worker is stopping.
        """
        future = Future[Any]()
        future.set_running_or_notify_cancel()
        with self._lock:
            if self.closing or not self.alive:
                raise _stopping_error()
            self._commands.put(("evaluate", (parts, future)))
        return future

    def withdraw(self, job: Job) -> None:
        """Cancel a job, so that its sequences are removed from the run. A finished job is ignored.

        Args:
            job: Submitted job.
        """
        self._commands.put(("withdraw", job))

    def close(self) -> None:
        """Stop the worker. Unfinished requests fail with status 503."""
        with self._lock:
            self.closing = True
        self._commands.put(("close", None))
        if self._thread.is_alive():
            self._thread.join()

    def _work(self, threads: int) -> None:
        torch.set_num_threads(threads)
        try:
            while True:
                try:
                    if not self._process_commands():
                        break
                    self._advance_runs()
                except Exception as error:  # An error outside a single run affects all requests.
                    self._fail(RequestError(500, describe_error(error), code="internal_error"))
        finally:
            self._fail(_stopping_error())

    def _advance_runs(self) -> None:
        self._admit()
        for key, run in list(self._runs.items()):
            if run.busy:
                try:
                    self._step(run)
                except Exception as error:  # Verifiers, samplers and models may raise anything.
                    self._recover(key, run, error)
        if self._evaluations:
            self._evaluations.advance()

    def _finish(self, job: Job, finished: Sequence[FinishedChoice]) -> None:
        for choice in finished:
            job.notify(choice)
        self._end(job)

    def _fail(self, refused: RequestError) -> None:
        """Fail all requests with `refused` and remove all runs."""
        jobs = [*self._waiting, *(job for jobs in self._jobs.values() for job in jobs)]
        self._waiting.clear()
        self._evaluations.fail(refused)
        self._runs.clear()
        self._jobs.clear()
        for job in jobs:
            self._end(job, FailedRequest(refused))

    def _process_commands(self) -> bool:
        """Process pending commands, or wait for one if the worker is idle. Return False after the last."""
        idle = not (self._waiting or self._evaluations or any(run.busy for run in self._runs.values()))
        while True:
            try:
                command, job = self._commands.get(block=idle)
            except Empty:
                return True
            idle = False
            if job is None:
                return False
            if command == "evaluate":
                parts, future = job
                self._evaluations.add(future, parts, future.set_result, future.set_exception)
            elif command == "submit":
                self._waiting.append(job)
            elif job.run is not None or job in self._waiting or job in self._evaluations.owners:
                self._end(job)

    def _admit(self) -> None:
        """Add waiting requests to the runs of their samplers.

        While a request waits for a run to end, no request joins the run that was joined the longest time ago.
        """
        ending: OpenRun | None = None
        for job in list(self._waiting):
            try:
                if not job.request.max_new_tokens:
                    self._waiting.remove(job)
                    self._evaluate_or_finish(job, empty_choices(job))
                    continue
                run = self._run_for(job)
                if run is None:
                    ending = next(iter(self._runs.values()))
                if run is None or run is ending:
                    continue
                self._waiting.remove(job)
                request, terms = job.request, job.terms
                job.submissions.clear()
                job.run = run
                self._jobs[run].append(job)
                key = self._key(job)
                self._runs[key] = self._runs.pop(key)
                for place, prompt in enumerate(request.prompts):
                    first = place * request.body.n
                    shared = None
                    if request.shares_tables and self.tables is not None:
                        shared = SharedTable(self.tables, table_key(request, prompt))
                    submission = run.submit(
                        prompt,
                        terms,
                        num_samples=request.body.n,
                        seed=request.body.seed,
                        sample_ids=range(first, first + request.body.n),
                        max_queries=request.body.max_queries,
                        max_steps=request.max_steps,
                        token_log_probs=request.body.scores_tokens,
                        shared=shared,
                    )
                    if shared is not None:
                        shared.submission = submission
                    job.submissions[submission] = first
            except InputError as error:
                self._end(job, FailedRequest(RequestError.from_input_error(error)))
            except Exception as error:
                self._end(job, FailedRequest(_as_request_error(error)))

    def _key(self, job: Job) -> tuple[Sampler[Any], Job | None]:
        return job.request.sampler, job if job.alone else None

    def _run_for(self, job: Job) -> OpenRun | None:
        """Return the run that `job` joins, or None if it must wait."""
        key = self._key(job)
        if key not in self._runs:
            if len(self._runs) >= self._samplers:
                idle = next((key for key, run in self._runs.items() if not run.busy), None)
                if idle is None:
                    return None
                del self._jobs[self._runs.pop(idle)]
            run = OpenRun(
                self.model,
                job.request.sampler,
                batch_size=self.rows,
                capacity=self.context,
                layers=self._layers,
                memory=self._memory,
                on_error="reject",
            )
            self._runs[key], self._jobs[run] = run, []
        return self._runs[key]

    def _step(self, run: OpenRun) -> None:
        run.exclude_idle_time()
        of_submission = {one: job for job in self._jobs[run] for one in job.submissions}
        for submission, samples in run.step():
            job = of_submission[submission]
            request, first = job.request, job.submissions[submission]
            outcomes = sample_outcomes(
                samples,
                [job.verifiers.built] * len(samples),
                sampler=request.sampler,
                tokenization=self.model.tokenization,
                eos=self.model.eos,
                cut=request.sampling.cuts,
                longest=request.max_new_tokens,
                context=self.context,
                stop=request.body.stop_strings,
                stop_tokens=request.stop_tokens,
            )
            for sample, verdict in zip(samples, outcomes, strict=True):
                finished = FinishedChoice(first + sample.index, sample, verdict)
                if request.is_evaluated:
                    job.unscored.append(finished)
                else:
                    job.notify(finished)
        for job in list(self._jobs[run]):
            if not any(one.left for one in job.submissions):
                self._leave_run(job)
                self._evaluate_or_finish(job, job.unscored)
        if any(job.request.is_incremental for job in self._jobs.get(run, ())):
            for submission, index, completion in run.growing():
                job = of_submission[submission]
                if job.request.is_incremental:
                    self._show(job, job.submissions[submission] + index, completion)

    def _show(self, job: Job, choice: int, completion: list[int]) -> None:
        if job.decode is None:
            job.decode = make_decoder(self.model, list(job.request.body.stop_strings) or None, final=False)
        assert job.decode is not None
        text = job.decode(completion)
        if text != job.shown.get(choice, ""):
            job.shown[choice] = text
            job.notify(PartialChoice(choice, text, len(completion)))

    def _recover(self, key: tuple[Sampler[Any], Job | None], run: OpenRun, error: Exception) -> None:
        """Restart the requests of a failed run, each in a separate run, so that only the faulty request fails."""
        jobs = self._jobs.pop(run)
        del self._runs[key]
        for job in jobs:
            if len(jobs) > 1 and not job.shown and not any(len(one) > one.left for one in job.submissions):
                job.alone, job.run = True, None
                self._waiting.append(job)
            elif len(jobs) > 1:
                # The message may contain data of another request, so it is not returned.
                self._end(
                    job,
                    FailedRequest(
                        RequestError(
                            500,
                            "the request was aborted by an internal error: retry it",
                            code="internal_error",
                        )
                    ),
                )
            else:
                status = 400 if isinstance(error, InputError) else 500
                param = error.field if isinstance(error, InputError) else None
                self._end(job, FailedRequest(RequestError(status, describe_error(error), param, "failed")))

    def _evaluate_or_finish(self, job: Job, finished: Sequence[FinishedChoice]) -> None:
        """Queue the evaluation of all samples of a request if it needs one, otherwise end the request."""
        if job.request.is_evaluated:
            self._evaluations.add(
                job,
                evaluate_choices(job, finished, self.model, self.rows),
                partial(self._finish, job),
                lambda error: self._end(job, FailedRequest(_as_request_error(error))),
            )
        else:
            self._finish(job, finished)

    def _end(self, job: Job, event: FailedRequest | None = None) -> None:
        if event is not None:
            job.notify(event)
        self._leave_run(job)
        self._evaluations.remove(job)
        if job in self._waiting:
            self._waiting.remove(job)
        self.release()

    def _leave_run(self, job: Job) -> None:
        """Free the sequences of a request."""
        run, job.run = job.run, None
        if run is not None and run in self._jobs:
            self._jobs[run].remove(job)
            for submission in job.submissions:
                run.withdraw(submission)
            if job.alone:
                self._runs.pop((job.request.sampler, job), None)
                del self._jobs[run]


def _as_request_error(error: Exception) -> RequestError:
    if isinstance(error, RequestError):
        return error
    return RequestError(500, describe_error(error), code="internal_error")


def _stopping_error() -> RequestError:
    return RequestError(503, "the server is stopping", code="unavailable")
