"""Clients of the OpenAI API: instructor, LiteLLM, LangChain, Outlines and GuideLLM."""

import json
import subprocess
import sys
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict

from models.tiny_pretrained import save_tiny, tiny_oracle
from serving.loopback import KEY, Loopback, serving

pytestmark = pytest.mark.filterwarnings("ignore")
USER = [{"role": "user", "content": "the cat"}]


class Answer(BaseModel):
    """An answer with two fields."""

    model_config = ConfigDict(extra="forbid")
    tone: Literal["good", "bad"]
    stars: Literal[1, 2, 3]


@pytest.fixture(scope="module")
def server():
    with serving(tiny_oracle(), name="tiny") as loopback:
        yield loopback


@pytest.mark.parametrize("mode", ["TOOLS", "JSON_SCHEMA"])
def test_instructor(server: Loopback, mode: str):
    instructor = pytest.importorskip("instructor")
    client = instructor.from_openai(server.client(), mode=instructor.Mode[mode])
    answer = client.chat.completions.create(
        model="tiny", messages=USER, response_model=Answer, max_retries=0, seed=1, max_tokens=80
    )
    assert isinstance(answer, Answer)


def test_litellm(server: Loopback, monkeypatch):
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    litellm = pytest.importorskip("litellm")
    settings: dict[str, Any] = {"model": "openai/tiny", "api_base": f"{server.url}/v1", "api_key": KEY}
    response = litellm.completion(
        messages=USER, max_tokens=6, frequency_penalty=0.5, drop_params=True, seed=1, **settings
    )
    assert response.usage.completion_tokens <= 6
    streamed = litellm.completion(
        messages=USER, max_tokens=6, frequency_penalty=0.5, seed=1, stream=True, **settings
    )
    text = "".join(piece.choices[0].delta.content or "" for piece in streamed)
    assert text == response.choices[0].message.content
    assert len(litellm.embedding(input=["the cat", "a"], **settings).data) == 2


def test_langchain(server: Loopback):
    langchain = pytest.importorskip("langchain_openai")
    chat = langchain.ChatOpenAI(
        model="tiny", base_url=f"{server.url}/v1", api_key=KEY, seed=1, max_tokens=80, max_retries=0
    )
    for method in ("json_schema", "function_calling"):
        assert isinstance(chat.with_structured_output(Answer, method=method).invoke("the cat"), Answer)
    assert "".join(piece.content for piece in chat.stream("the cat")) == chat.invoke("the cat").content
    responses = langchain.ChatOpenAI(
        model="tiny", base_url=f"{server.url}/v1", api_key=KEY, max_tokens=20, use_responses_api=True
    )
    assert responses.invoke("the cat").content


@pytest.mark.parametrize("kind", ["from_openai", "from_vllm"])
def test_outlines(server: Loopback, kind: str):
    outlines = pytest.importorskip("outlines")
    model = getattr(outlines, kind)(server.client(), "tiny")
    answer = model("the cat", Answer, max_tokens=60, seed=1)
    assert Answer.model_validate_json(answer)
    if kind == "from_vllm":
        assert model("the cat", outlines.types.Regex("[ab]{3}"), max_tokens=6) in {
            a + b + c for a in "ab" for b in "ab" for c in "ab"
        }
        assert model("the cat", Literal["yes", "no"], max_tokens=6) in {"yes", "no"}


def test_guidellm(server: Loopback, tmp_path):
    pytest.importorskip("guidellm")
    save_tiny(tmp_path / "model")
    settings = {
        "backend": f"kind=openai_http,target={server.url},model=tiny,api_key={KEY}",
        "tokenizer": f"kind=hf_auto,model={tmp_path}/model",
        "data": "kind=synthetic_text,prompt_tokens=8,output_tokens=6",
        "profile": "kind=concurrent,streams=4",
        "constraint": "kind=max_requests,count=12",
        "output": f"kind=json,path={tmp_path}/report.json",
    }
    options = [word for name, value in settings.items() for word in (f"--{name}", value)]
    command = [sys.executable, "-m", "guidellm", "run", "--disable-progress", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-2000:]
    [benchmark] = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["benchmarks"]
    totals = benchmark["metrics"]["request_totals"]
    assert (totals["successful"], totals["errored"]) == (12, 0)
