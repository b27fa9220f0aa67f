"""Limits on requests, and their values in the documentation."""

import re
from pathlib import Path
from typing import Any

from trialogue.serving import body, server, verifiers
from trialogue.serving.settings import Address, Serving
from trialogue.verifiers.schemas import validation

PAGE = Path(__file__).parents[2] / "docs" / "server.md"
LIMITS = {
    "requests": Serving.requests,
    "body": Serving.body,
    "context": Serving.context,
    "max-new-tokens": Serving.max_new_tokens,
    "samples": Serving.samples,
    "max-steps": Serving.max_steps,
    "samplers": Serving.samplers,
    "table-prefixes": Serving.table_prefixes,
    "verifier-timeout": Serving.verifier_timeout,
    "grace": Address.grace,
}
CONSTANTS: dict[str, tuple[float, ...]] = {
    "a rule that a request describes": (verifiers.MAX_SPEC_LENGTH,),
    "rules that are kept": (verifiers.CACHE_SIZE,),
    "`stop`": (body.MOST_STOPS, body.LONGEST_STOP),
    "`logprobs`, `top_logprobs`": (body.MOST_TOP_TOKENS,),
    "the validation of a JSON text": (validation.SECONDS, validation.PATTERN_SECONDS),
}


def numbers(text: str) -> list[float]:
    return [float(found) for found in re.findall(r"\d+(?:\.\d+)?", text)]


def test_the_documented_limits_are_the_current_ones():
    rows: dict[str, Any] = dict(
        re.findall(r"^\| (.+?) \| (.+?) \| .+ \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    )

    def row(name: str) -> str:
        [found] = [value for limit, value in rows.items() if limit.startswith(name)]
        return str(found)

    for name, default in LIMITS.items():
        assert numbers(row(f"`--{name}`")) == ([] if default is None else [default]), name
    assert numbers(row("`--batch-size`")) == [server.ROWS]
    for name, values in CONSTANTS.items():
        assert numbers(row(name)) == list(values), name
