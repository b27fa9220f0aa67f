"""What llguidance says of a Lark grammar that it does not take, in one line of the grammar's author's terms."""

import re

_PLACE = re.compile(r"(?:at )?(\d+)\((\d+)\): (.*)")
_AT_TOKEN = re.compile(r""" \(at ".*" \(.*\)\)$""")


def grammar_hint(message: str, grammar: str) -> str:
    """The error `message` of llguidance on `grammar`: line and column, from 1, and what is wrong there."""
    first, *others = message.splitlines() or ["it does not compile"]
    place = _PLACE.match(first)
    if place is None:
        return first
    number, byte, said = int(place[1]), int(place[2]), place[3]
    lines = grammar.split("\n")
    # A regular expression has an error of its own.
    cause = next((line.removeprefix("error: ") for line in others if line.startswith("error: ")), None)
    if cause is not None:
        said = f"{said.partition(' (in regex)')[0]}: {cause}"
    said = _AT_TOKEN.sub("", said).replace(r"found '\n'", "found the end of the line")
    if number > len(lines):
        return f"it ends too soon: {said}"
    line = lines[number - 1].encode()
    column = len(line[: byte - 1].decode(errors="ignore"))
    if said == "lexer error":
        rest = lines[number - 1][column:]
        said = (
            f"{rest[0]!r} cannot stand here"
            if rest
            else "the line ends within a text or a regular expression"
        )
    return f"line {number}, column {column + 1}: {said}"
