"""The example client and its documentation."""

import importlib.util
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from openai import OpenAI

from models.tiny_pretrained import save_tiny, tiny_oracle
from serving.loopback import serving
from trialogue import cli
from trialogue.cli.parsing.fields import Group, parse
from trialogue.generation.settings import MachineSettings
from trialogue.serving.settings import Address, Serving

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "serve.md").read_text(encoding="utf-8")


def test_the_example_client_receives_responses():
    spec = importlib.util.spec_from_file_location("review", ROOT / "examples" / "serving" / "review.py")
    assert spec is not None
    assert spec.loader is not None
    review = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(review)
    with serving(tiny_oracle(), context=200, max_new_tokens=60) as server, server.client() as client:
        answers = review.reviews(client, "tiny")
        [code] = re.findall(r"```py\n(.*?)```", PAGE, re.DOTALL)
        shown: dict[str, Any] = vars(review) | {"OpenAI": lambda **_: client}
        exec(code.replace('"smollm2"', '"tiny"').replace("from openai import OpenAI\n", ""), shown)
    assert answers
    for answer, log_weight in answers:
        assert answer["stars"] in range(1, 6)
        assert answer["tone"] in review.SCHEMA["properties"]["tone"]["enum"]
        assert log_weight < 0
    assert len(shown["response"].choices) == 4


def test_a_stopped_server_finishes_its_requests(tmp_path):
    command = [sys.executable, "-m", "trialogue", "serve", "--model", str(save_tiny(tmp_path)), "--port", "0"]
    with subprocess.Popen([*command, "--name", "tiny"], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        url = next(found[0] for line in process.stderr if (found := re.search(r"http://\S+", line)))
        assert "127.0.0.1" in url
        with OpenAI(base_url=url, api_key="none", max_retries=0) as client:
            stream = client.completions.create(model="tiny", prompt="the", max_tokens=60, seed=1, stream=True)
            texts = [next(stream).choices[0].text]
            process.send_signal(signal.SIGTERM)
            texts += [choice.text for piece in stream for choice in piece.choices]
        assert process.wait(60) in (0, -signal.SIGTERM)
        assert "Traceback" not in process.stderr.read()
    assert texts[-1] == ""
    assert "".join(texts)


def test_the_documented_commands_have_valid_options():
    commands = re.findall(r"^trialogue serve ([^#\n]*)", PAGE, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        groups = {kind.__name__: Group(kind) for kind in (Serving, Address, MachineSettings)}
        parsed = parse(groups, shlex.split(command), prog="trialogue serve", description="", unknown="")
        assert parsed["Serving"].model_name == "smollm2"
        assert parsed["Address"].host == "127.0.0.1"
    assert "serve" in cli.parser().format_help()
