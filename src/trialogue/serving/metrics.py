"""Metrics in the format of Prometheus."""

from collections.abc import Sequence
from typing import Any

from trialogue.serving.jobs import FinishedChoice, Job
from trialogue.serving.worker import Worker

_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class Metrics:
    """Metrics of a server.

    Args:
        worker: Worker of the server.

    Raises:
        ModuleNotFoundError: If prometheus_client is not installed.
    """

    def __init__(self, worker: Worker) -> None:
        import prometheus_client as prometheus

        self._prometheus = prometheus
        self._registry: Any = prometheus.CollectorRegistry()

        def counter(name: str, text: str, *labels: str) -> Any:
            return prometheus.Counter(f"trialogue_{name}", text, labels, registry=self._registry)

        def histogram(name: str, text: str) -> Any:
            name = f"trialogue_{name}_seconds"
            return prometheus.Histogram(name, text, registry=self._registry, buckets=_SECONDS)

        def gauge(name: str, text: str) -> Any:
            return prometheus.Gauge(f"trialogue_{name}", text, registry=self._registry)

        self._responses = counter("responses", "HTTP responses", "path", "status")
        self._prompt_tokens = counter("prompt_tokens", "Tokens of prompts of finished requests")
        self._new_tokens = counter("generation_tokens", "Generated tokens of finished samples")
        self._samples = counter("samples", "Finished samples", "sampler", "accepted")
        self._queries = counter("model_calls", "Model calls, one per evaluated prefix", "sampler")
        self._request = histogram("request", "Time until a request for text is finished")
        self._first = histogram("time_to_first_token", "Time until the first text of a stream")
        gauge("requests", "Running and waiting requests").set_function(lambda: worker.unfinished)

    def count_response(self, path: str, status: int) -> None:
        """Count an HTTP response.

        Args:
            path: Path of the route.
            status: HTTP status code.
        """
        self._responses.labels(path, status).inc()

    def observe_first_token(self, seconds: float) -> None:
        """Record the time until the first event of a stream.

        Args:
            seconds: Time since the arrival of the request.
        """
        self._first.observe(seconds)

    def observe_request(self, job: Job, finished: Sequence[FinishedChoice], seconds: float) -> None:
        """Record a finished request for text.

        Args:
            job: The request.
            finished: Its samples.
            seconds: Time since the arrival of the request.
        """
        sampler = job.request.sampling.sampler
        self._request.observe(seconds)
        self._prompt_tokens.inc(sum(map(len, job.request.prompts)))
        for choice in finished:
            self._new_tokens.inc(len(choice.sample.tokens))
            self._samples.labels(sampler, str(choice.verdict.accepted).lower()).inc()
            self._queries.labels(sampler).inc(choice.sample.queries)

    def text(self) -> tuple[bytes, str]:
        """Return the metrics and their content type."""
        return self._prometheus.generate_latest(self._registry), self._prometheus.CONTENT_TYPE_LATEST
