"""Compare JSON schema verifiers with the JSON-Schema-Test-Suite (draft 2020-12), and store the differences.

The tests are at https://github.com/json-schema-org/JSON-Schema-Test-Suite. The grammar and the validation of complete
texts are tested together, for texts without white space.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from record import Record
from trialogue.errors import InputError
from trialogue.verifiers.languages.vocabularies import END_OF_BYTES, byte_tokenizer, make_matcher
from trialogue.verifiers.schemas.languages import json_language

PARTS = {"core": "*.json", "optional": "optional/*.json", "formats": "optional/format/*.json"}
OUTCOMES = ("right", "accepted wrongly", "rejected wrongly", "schemas refused")


class Group(NamedTuple):
    """Group of tests with one schema. A refused schema counts once and has no other outcomes."""

    part: str
    """"core", "optional" or "formats"."""
    file: str
    """Name of the file without suffix."""
    description: str
    """Description of the group in its file."""
    outcomes: Counter[str]
    """Number of tests with each outcome."""


def run_suite(folder: Path) -> Iterator[Group]:
    """Yield the results of every group of the tests.

    Args:
        folder: Folder `tests/draft2020-12` of the test suite.
    """
    for part, pattern in PARTS.items():
        for path in sorted(folder.glob(pattern)):
            # Patterns are reported with the formats, because they are those of Python instead of ECMAScript.
            shown = "formats" if path.stem == "ecmascript-regex" else part
            for group in json.loads(path.read_text(encoding="utf-8")):
                outcomes = _judge(group["schema"], group["tests"])
                yield Group(shown, path.stem, group["description"], outcomes)


def _judge(schema: Any, tests: list[dict[str, Any]]) -> Counter[str]:
    try:
        language = json_language(schema, "compact")
    except InputError:
        return Counter({"schemas refused": 1})
    matcher, accepts = make_matcher(byte_tokenizer(), language.grammar), language.acceptance()
    outcomes = Counter[str]()
    for test in tests:
        try:
            text = json.dumps(test["data"], separators=(",", ":"), ensure_ascii=False).encode()
        except UnicodeEncodeError:  # half of a surrogate pair
            text = json.dumps(test["data"], separators=(",", ":")).encode()
        is_in_grammar = matcher.deep_copy().validate_tokens([*text, END_OF_BYTES]) == len(text) + 1
        is_accepted = is_in_grammar and accepts(text)
        if is_accepted == test["valid"]:
            outcomes["right"] += 1
        else:
            outcomes["accepted wrongly" if is_accepted else "rejected wrongly"] += 1
    return outcomes


def differences(groups: Iterable[Group]) -> dict[tuple[str, str, str, str], int]:
    """Return the number of tests with each outcome except "right", by part, file, group and outcome."""
    return {
        (group.part, group.file, group.description, outcome): group.outcomes[outcome]
        for group in groups
        for outcome in OUTCOMES[1:]
        if group.outcomes[outcome]
    }


def main() -> None:
    """Print and store the totals, and store each group with a difference."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="folder tests/draft2020-12 of the test suite")
    groups = list(run_suite(parser.parse_args().folder))
    record = Record("schema_suite")
    for part in PARTS:
        totals = sum((group.outcomes for group in groups if group.part == part), Counter[str]())
        print(part, *(f"{totals[outcome]} {outcome}" for outcome in OUTCOMES), sep=", ")
        for outcome in OUTCOMES:
            record.add("all", totals[outcome], part=part, outcome=outcome)
    for (part, file, description, outcome), count in differences(groups).items():
        record.add(description, count, part=part, file=file, outcome=outcome)
    record.write()


if __name__ == "__main__":
    main()
