"""Loglikelihood tasks of lm-evaluation-harness give the numbers of its `hf` model."""

import json
from pathlib import Path
from typing import Any

import pytest

from models.tiny_pretrained import save_tiny
from serving.loopback import KEY, serving
from trialogue import load_pretrained

lm_eval = pytest.importorskip("lm_eval")
pytest.importorskip("aiohttp")
# Clients of earlier tests leave event loops and sockets open, whose warnings can appear in any later test.
pytestmark = pytest.mark.filterwarnings("ignore")
TASK = """
task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {folder}/documents.jsonl}}, cache_dir: {folder}}}
test_split: test
output_type: {kind}
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
{more}
"""
CHOICES = 'doc_to_choice: "{{choices}}"\nmetric_list: [{metric: acc}]'
DOCUMENTS = [
    {"question": "the cat sat on", "choices": [" the mat", " the dog", " a list: [1, 2]"], "answer": 0},
    {"question": "a number:", "choices": [" 42", " true", " café"], "answer": 1},
    {"question": "yes or", "choices": [" no", " naïve", " 東京 and the cat"], "answer": 2},
]
TASKS = {
    "choices": ("multiple_choice", CHOICES),
    "rolling": ("loglikelihood_rolling", "metric_list: [{metric: word_perplexity}]"),
}


def responses(folder: Path, model: str, arguments: dict[str, Any]) -> list[Any]:
    """Return log-likelihoods, and whether they are those of greedy decoding, in the order of the requests."""
    results = lm_eval.simple_evaluate(
        model=model,
        model_args=arguments,
        tasks=list(TASKS),
        task_manager=lm_eval.tasks.TaskManager(include_path=str(folder), include_defaults=False),
        log_samples=True,
        bootstrap_iters=0,
    )
    return [
        tuple(part) if isinstance(part, list | tuple) else (float(part), None)
        for task in TASKS
        for sample in sorted(results["samples"][task], key=lambda one: one["doc_id"])
        for [part] in sample["resps"]
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lm-eval")
    lines = "".join(json.dumps(document) + "\n" for document in DOCUMENTS)
    (folder / "documents.jsonl").write_text(lines, encoding="utf-8")
    for name, (kind, more) in TASKS.items():
        text = TASK.format(name=name, folder=folder, kind=kind, more=more)
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    save_tiny(folder / "model")
    return folder


@pytest.fixture(scope="module")
def expected(folder):
    arguments = {"pretrained": str(folder / "model"), "dtype": "float32", "device": "cpu"}
    return responses(folder, "hf", arguments)


@pytest.mark.parametrize(
    ("backend", "tokenized"), [("huggingface", True), ("huggingface", False), ("remote", True)]
)
def test_log_likelihoods_are_those_of_transformers(folder, expected, backend, tokenized):
    with serving(load_pretrained(str(folder / "model")), name="tiny") as server:
        arguments = {
            "model": "tiny",
            "base_url": f"{server.url}/v1/completions",
            "tokenizer_backend": backend,
            "auth_token": KEY,
            **({"tokenizer": str(folder / "model")} if backend == "huggingface" else {}),
            "tokenized_requests": tokenized,
            "max_length": 255,
            "batch_size": 2,
            "header": {"Authorization": f"Bearer {KEY}"},
        }
        found = responses(folder, "local-completions", arguments)
    assert [one[0] for one in found] == pytest.approx([one[0] for one in expected], abs=1e-3)
    assert [one[1] for one in found] == [one[1] for one in expected]
