"""Many clients at once against `trialogue serve`: is every answer there, whose is it, and how long does it take?

`--clients` clients on the loopback address ask `--requests` questions of five kinds, each under a rule, a walk and a
seed of its own: free text, a city (regular expression), a review (JSON schema), a date by sequential Monte Carlo, and
text up to a stop string. Every answer is held against its own rule, and so is whether it is the one that was asked
for: the first `--alone` requests are asked again, one by one, and have to be answered alike. (Logits of a network move
by about 1e-6 with the batch, which may turn a draw: those answers are counted.) All is bounded by `--seconds`.

`--peer URL` asks another server, such as that of llama-cpp-python on the same GGUF file, the questions that need
nothing but OpenAI's interface: free text and reviews.

    python benchmarks/serve.py [--record] [--peer http://127.0.0.1:8080/v1]
"""

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

import openai
from rich.console import Console
from rich.table import Table

from record import Record

CITY = "(Paris|Rome|Madrid|Oslo|Berlin)\\."
DATE = "20[0-9]{2}-(0[1-9]|1[0-2])-[0-3][0-9]"
SCHEMA = {
    "type": "object",
    "properties": {"stars": {"enum": [1, 2, 3, 4, 5]}, "tone": {"enum": ["angry", "calm", "happy"]}},
    "required": ["stars", "tone"],
    "additionalProperties": False,
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "review", "schema": SCHEMA}}
PLAIN = ("free text", "review")
"""The kinds that need nothing but OpenAI's interface."""


class Question(NamedTuple):
    """What is asked: a message, and fields of the interface and of our own."""

    kind: str
    text: str
    fields: dict[str, Any]
    own: dict[str, Any]


class Told(NamedTuple):
    """An answer: its text, whether it was accepted, its tokens, and the seconds that it took."""

    question: Question
    text: str
    accepted: bool
    tokens: int
    seconds: float


def question(number: int, tokens: int) -> Question:
    """The question of a number, of one of the kinds, to be answered in so many tokens."""
    fields: dict[str, Any] = {"seed": number, "max_tokens": tokens, "temperature": 0.7 + 0.1 * (number % 4)}
    kind, place = list(KINDS)[number % len(KINDS)], number // len(KINDS)
    return KINDS[kind](place, fields)


def _free(place: int, fields: dict[str, Any]) -> Question:
    return Question("free text", f"Write one sentence about the number {place}.", fields, {})


def _city(place: int, fields: dict[str, Any]) -> Question:
    return Question("city", f"Name a city in Europe. ({place})", fields, {"rule": {"regex": CITY}})


def _review(place: int, fields: dict[str, Any]) -> Question:
    text = f'Rate this review as JSON with stars and tone: "The soup was {place % 40} degrees."'
    return Question("review", text, fields | {"response_format": FORMAT}, {})


def _date(place: int, fields: dict[str, Any]) -> Question:
    walk = {"name": "smc", "particles": 4, "proposal": "mask"}
    return Question("date", f"Give a date. ({place})", fields, {"rule": {"regex": DATE}, "walk": walk})


def _stopped(place: int, fields: dict[str, Any]) -> Question:
    return Question("stop", f"Count from {place % 50}.", fields | {"stop": [",", "."]}, {"top_k": 40})


KINDS = {"free text": _free, "city": _city, "review": _review, "date": _date, "stop": _stopped}


def obeys(told: Told) -> bool:
    """Whether an answer is what its own question allows."""
    kind, text = told.question.kind, told.text
    if kind == "city":
        return re.fullmatch(CITY, text) is not None
    if kind == "date":
        return re.fullmatch(DATE, text) is not None
    if kind == "review":
        value = json.loads(text)
        return bool(value["stars"] in range(1, 6) and value["tone"] in ("angry", "calm", "happy"))
    return kind != "stop" or not ("," in text or "." in text)


def ask(client: openai.OpenAI, model: str, asked: Question) -> Told:
    began = time.perf_counter()
    messages: Any = [{"role": "user", "content": asked.text}]
    answer = client.chat.completions.create(
        model=model, messages=messages, extra_body=asked.own, **asked.fields
    )
    choice, seconds = answer.choices[0], time.perf_counter() - began
    said = getattr(choice, "trialogue", {"accepted": choice.finish_reason == "stop"})
    tokens = answer.usage.completion_tokens if answer.usage else 0
    return Told(asked, choice.message.content or "", said["accepted"], tokens, seconds)


@contextmanager
def served(arguments: argparse.Namespace) -> Iterator[str]:
    """The address of a server in a process of its own."""
    command = [sys.executable, "-m", "trialogue", "serve", "--model", arguments.model, "--port", "0"]
    command += ["--batch-size", str(arguments.rows), "--threads", str(arguments.threads), "--context", "256"]
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
                raise SystemExit("the server has not begun")
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def measured(
    url: str, questions: list[Question], clients: int, seconds: float
) -> tuple[list[Told | None], float]:
    """The answers to `questions` of so many clients at once, None where there is none; and the seconds in all."""
    until = time.monotonic() + seconds
    with openai.OpenAI(base_url=url, api_key="none", max_retries=0, timeout=seconds) as client:
        [model, *_] = client.models.list().data

        def told(one: Question) -> Told | None:
            if time.monotonic() > until:
                return None
            try:
                return ask(client, model.id, one)
            except openai.APIError as error:
                print(f"{one.kind}: {error}", file=sys.stderr)
                return None

        began = time.perf_counter()
        with ThreadPoolExecutor(clients) as pool:
            answers = list(pool.map(told, questions))
        return answers, time.perf_counter() - began


def show(
    console: Console, record: Record, name: str, answers: list[Told | None], seconds: float
) -> list[Told]:
    """Print and keep what is to be said of `answers`; returns those that are there."""
    there = [one for one in answers if one is not None]
    times = sorted(one.seconds for one in there)
    accepted = [one for one in there if one.accepted]
    wrong = Counter(one.question.kind for one in accepted if not obeys(one))
    numbers = {
        "answers lost": float(len(answers) - len(there)),
        "accepted": len(accepted) / max(1, len(there)),
        "accepted, against their rule": float(wrong.total()),
        "requests/s": len(there) / seconds,
        "tokens/s": sum(one.tokens for one in there) / seconds,
        "p50, s": statistics.median(times),
        "p99, s": times[min(len(times) - 1, int(0.99 * len(times)))],
    }
    table = Table("", name, title=f"{len(answers)} requests, {seconds:.0f} s")
    for what, number in numbers.items():
        record.add(name, number, what=what)
        table.add_row(what, f"{number:.3g}")
    console.print(table)
    return there


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="smollm2", help="short name or folder")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--requests", type=int, default=128)
    parser.add_argument("--alone", type=int, default=20, help="requests that are asked again, one by one")
    parser.add_argument("--tokens", type=int, default=24, help="the longest answer")
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=900.0)
    parser.add_argument("--peer", metavar="URL", help="another server of the interface")
    parser.add_argument("--record", action="store_true", help="write the rows")
    arguments = parser.parse_args()
    console, record = Console(width=100), Record("serve")
    questions = [question(number, arguments.tokens) for number in range(arguments.requests)]
    with served(arguments) as url:
        answers, seconds = measured(url, questions, arguments.clients, arguments.seconds)
        there = show(console, record, "trialogue serve", answers, seconds)
        again, _ = measured(url, questions[: arguments.alone], 1, arguments.seconds)
    pairs = [(one, other) for one, other in zip(answers, again, strict=False) if one and other]
    alike = sum(one.text == other.text for one, other in pairs)
    record.add("trialogue serve", len(pairs), what="asked again alone")
    record.add("trialogue serve", alike, what="answered alike alone")
    console.print(f"{alike} of {len(pairs)} requests are answered alike alone")
    if arguments.peer:
        plain = [one for one in questions if one.kind in PLAIN]
        show(console, record, "peer", *measured(arguments.peer, plain, arguments.clients, arguments.seconds))
    if arguments.record:
        record.write()
    if len(there) < len(answers) or any(one.accepted and not obeys(one) for one in there):
        raise SystemExit("answers are lost, or do not obey their rule")


if __name__ == "__main__":
    main()
