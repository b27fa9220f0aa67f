"""Empty prompts: the empty prefix if the model supports it, otherwise the BOS token, otherwise an error."""

import json
from pathlib import Path

import pytest
import torch

from models.tiny_pretrained import tiny_model, tiny_oracle, tiny_tokenizer
from refusals import expect_error
from trialogue import exact_distribution, generate, stream, truncated
from trialogue.cli import main
from trialogue.data import Table
from trialogue.models import Transformer, TransformerConfig
from trialogue.models.hub.pretrained import PretrainedOracle
from trialogue.models.networks.text_network import save_text_network
from trialogue.models.wrappers.processed import Processed
from trialogue.oracles import Autoregressive
from trialogue.samplers import Ancestral, OpenRun
from trialogue.samplers.exact import prefix_tree

BOS = 1


def processed(oracle: Autoregressive) -> Autoregressive:
    return Processed(oracle, lambda tokens, scores: scores)


def without_bos() -> PretrainedOracle:
    tokenizer = tiny_tokenizer()
    bare = type(tokenizer)(tokenizer_object=tokenizer.backend_tokenizer, eos_token="</s>")
    return PretrainedOracle(tiny_model(), bare, name="bare")


@pytest.mark.parametrize(
    "altered", [lambda oracle: oracle, lambda oracle: truncated(oracle, top_k=5), processed]
)
def test_empty_prompt_is_bos_of_pretrained_model(altered):
    oracle = altered(tiny_oracle())
    expected = generate(oracle, [[BOS]], max_new_tokens=4, num_samples=3)
    for prompts in ([""], [[]], None, torch.zeros(1, 0).long(), (torch.tensor([[7, 7]]), torch.tensor([0]))):
        found = generate(oracle, prompts, max_new_tokens=4, num_samples=3)
        assert torch.equal(found.tokens, expected.tokens)
        assert found.prompt_lengths.tolist() == [1, 1, 1]
        assert torch.equal(found.log_prob, expected.log_prob)
    streamed = {
        sample.index: sample.tokens for sample in stream(oracle, [[]], max_new_tokens=4, num_samples=3)
    }
    assert [list(streamed[place]) for place in range(3)] == [list(one) for one in expected.completions()]


def test_other_prompts_are_unchanged():
    oracle, given = tiny_oracle(), torch.tensor([[7, 7], [9, 7]])
    run = generate(oracle, (given, torch.tensor([0, 2])), max_new_tokens=2)
    assert run.tokens[0, 0] == BOS
    assert run.tokens[1, :2].tolist() == [9, 7]
    assert run.prompt_lengths.tolist() == [1, 2]
    assert given.tolist() == [[7, 7], [9, 7]]


def test_open_runs_and_exact_listings_use_bos():
    oracle = tiny_oracle()
    open_run = OpenRun(oracle, capacity=8)
    request = open_run.submit([], num_samples=1)
    assert request is not None
    assert prefix_tree(truncated(oracle, temperature=0), max_new_tokens=2).prefixes[0] == (BOS,)
    greedy = truncated(oracle, temperature=0)
    outputs = exact_distribution(Ancestral(), greedy, max_new_tokens=2).probabilities
    assert list(outputs) == list(
        exact_distribution(Ancestral(), greedy, prompt=(BOS,), max_new_tokens=2).probabilities
    )


def test_empty_prompt_without_bos_is_rejected():
    oracle = without_bos()
    for run in (
        lambda: generate(oracle, [[]], max_new_tokens=2),
        lambda: generate(oracle, [""], max_new_tokens=2),
        lambda: generate(oracle, max_new_tokens=2),
        lambda: prefix_tree(oracle, max_new_tokens=2),
    ):
        expect_error(r"^prompts=\[\]: the model cannot continue an empty prompt and has no BOS", run)


def test_empty_prompt_is_empty_prefix_if_supported():
    table = Table([[0.25, 0.25], [0.5, 0.0]])
    for prompts in (None, [[]]):
        assert generate(table, prompts, num_samples=2).prompt_lengths.tolist() == [0, 0]


def lines(
    folder: Path, capsys: pytest.CaptureFixture[str], *options: str
) -> tuple[int, list[dict[str, object]], str]:
    code = main(["generate", "--model", str(folder), "--max-new-tokens", "3", "--n", "2", *options])
    captured = capsys.readouterr()
    return code, [json.loads(line) for line in captured.out.splitlines()], captured.err


def test_command_continues_empty_text_with_network_bos(tmp_path, capsys):
    tokenizer = tiny_tokenizer().backend_tokenizer
    size = len(tiny_tokenizer())
    network = Transformer(
        TransformerConfig(vocab_size=size - 1, layers=1, heads=1, width=8, mlp_width=8, max_length=16)
    )
    folder = save_text_network(network, tokenizer, tmp_path / "own", "</s>")
    code, records, error = lines(folder, capsys, "--prompt", "")
    assert code == 0, error
    assert len(records) == 2
    assert all(len(record["tokens"]) <= 3 for record in records)  # type: ignore[arg-type]
