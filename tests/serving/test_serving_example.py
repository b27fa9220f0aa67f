"""The example of a client, and what README shows of it."""

import importlib.util
import re
import shlex
from pathlib import Path

from models.tiny_pretrained import tiny_oracle
from serving.loopback import serving
from trialogue import cli
from trialogue.cli.fields import Group, parse
from trialogue.generation.settings import Machine
from trialogue.serving.settings import Address, Serving

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_client_of_the_example_is_answered() -> None:
    spec = importlib.util.spec_from_file_location("review", ROOT / "examples" / "serving" / "review.py")
    assert spec is not None
    assert spec.loader is not None
    review = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(review)
    with serving(tiny_oracle(), context=200, max_new_tokens=60) as server, server.client() as client:
        answers = review.reviews(client, "tiny")
        [code] = re.findall(r"```py\n(.*?)```", README, re.DOTALL)
        shown: dict[str, object] = vars(review) | {"OpenAI": lambda **_: client}
        exec(code.replace('"smollm2"', '"tiny"'), shown)
    assert answers
    for answer, log_weight in answers:
        assert answer["stars"] in range(1, 6)
        assert answer["tone"] in review.SCHEMA["properties"]["tone"]["enum"]
        assert log_weight < 0
    assert "answers" in shown


def test_the_command_of_the_readme_has_its_options() -> None:
    [command] = re.findall(r"^trialogue serve ([^#\n]*)", README, re.MULTILINE)
    groups = {kind.__name__: Group(kind) for kind in (Serving, Address, Machine)}
    parsed = parse(groups, shlex.split(command), prog="trialogue serve", description="", unknown="")
    assert parsed["Serving"].called == "smollm2"
    assert parsed["Address"].host == "127.0.0.1"
    assert "serve" in cli.parser().format_help()
