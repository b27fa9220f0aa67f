"""Unmasking samplers in `trialogue generate` and `trialogue distribution`."""

import json
import shlex
from collections import Counter

import numpy as np
import pytest
import torch
import transformers
from scipy.stats import chisquare
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

from models.test_pretrained_masked import save
from models.tiny_pretrained import random_model
from refusals import commands_without_expected_error
from trialogue import exact_distribution
from trialogue.data import Ising
from trialogue.models.hub.pretrained_masked import load_pretrained_masked
from trialogue.models.tokenization import Tokenization
from trialogue.samplers.registered import UNMASKING
from trialogue.samplers.unmasking import (
    Checked,
    Confidence,
    Constrained,
    DrawThenSelect,
    Entropy,
    Factor,
    Fixed,
    LeftToRight,
    Margin,
    Ordered,
    Random,
    RandomSizes,
    ReMDM,
    Schedule,
    Threshold,
)
from trialogue.verifiers import GrammarVerifier

CLIQUE = """--distribution 'ising-clique:{"n": 4, "clique": 3, "coupling": 0.4, "field": 0.1}'"""
NAMED = {
    "random": Ordered(),
    'left-to-right:{"positions": 3, "temperature": 0.5}': Ordered(LeftToRight(), Fixed(3), temperature=0.5),
    'confidence:{"threshold": 0.8, "ties": "random"}': Ordered(Confidence("random"), Threshold(0.8)),
    'confidence:{"factor": 2}': Ordered(Confidence(), Factor(2)),
    'entropy:{"linear": 4, "blocks": 8}': Ordered(Entropy(), Schedule("linear", 4), blocks=8),
    'margin:{"cosine": 4, "top_p": 0.9}': Ordered(Margin(), Schedule("cosine", 4), top_p=0.9),
    'random:{"random": 4}': Ordered(Random(), RandomSizes(4)),
    'draw-then-select:{"positions": 2, "ties": "random"}': DrawThenSelect(Fixed(2), ties="random"),
    'remdm:{"passes": 4, "eta": 0.1}': ReMDM(4, 0.1),
}


@pytest.mark.parametrize("spec", NAMED)
def test_names_and_json_settings_create_samplers(spec):
    assert UNMASKING.build(spec) == NAMED[spec]


def test_distribution_equals_the_python_function(run_command):
    words = ["--sampler", 'unmasking:confidence:{"positions": 2}', "--json"]
    code, out, err = run_command("distribution", *shlex.split(CLIQUE), *words)
    assert code == 0, err
    found = json.loads(out)
    exact = exact_distribution(Ordered(Confidence(), Fixed(2)), Ising.clique(4, 3, 0.4, 0.1))
    assert found["expected_passes"] == exact.expected_passes
    listed = {tuple(one["tokens"]): one["distribution"] for one in found["outputs"]}
    assert listed == pytest.approx(exact.probabilities)
    code, out, err = run_command("distribution", *shlex.split(CLIQUE), *words[:2], "--top", "3")
    assert code == 0, err
    assert "expected passes" in out
    assert out.count("1 1 1 1") == 1


def test_generate_fills_masks_and_continues(tmp_path, run_command):
    folder = str(save(tmp_path / "bert"))
    words = ["--sampler", 'unmasking:confidence:{"positions": 2}', "--model", folder, "--n", "3"]
    prompts = ["--prompt", "the [MASK] [MASK]", "--prompt", "the cat"]
    code, out, err = run_command("generate", *words, *prompts, "--max-new-tokens", "3")
    assert code == 0, err
    records = [json.loads(line) for line in out.splitlines()]
    assert [(one["id"], one["sample"]) for one in records] == [(i, j) for i in (1, 2) for j in range(3)]
    assert {one["passes"] for one in records[:3]} == {3}  # five masks
    assert {one["passes"] for one in records[3:]} == {2}  # three masks
    assert all(one["text"].startswith("the ") and "[MASK]" not in one["text"] for one in records)
    assert all(len(one["text"].split()) == 5 for one in records[3:])
    file = tmp_path / "samples.jsonl"
    again = run_command("generate", *words, *prompts, "--max-new-tokens", "3", "--out", str(file))
    assert again == (0, "", "")
    assert file.read_text() == out


def save_letters(folder):
    """Save a random masked model whose tokens are the letters a, b and c."""
    own = Tokenizer(models.BPE({"a": 0, "b": 1, "c": 2}, []))
    own.pre_tokenizer, own.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    own.add_special_tokens([AddedToken(text, special=True) for text in ("[MASK]", "[PAD]", "[SEP]")])
    own.post_processor = processors.TemplateProcessing(single="$A [SEP]", special_tokens=[("[SEP]", 5)])
    roles = {"mask_token": "[MASK]", "pad_token": "[PAD]", "sep_token": "[SEP]"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=own, **roles).save_pretrained(folder)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.BertConfig(vocab_size=6, max_position_embeddings=12, pad_token_id=4, **sizes)
    network = random_model(lambda: transformers.BertForMaskedLM(config), 3, 6)
    with torch.no_grad():
        network.cls.predictions.bias.copy_(torch.tensor([1.0, 0.3, -0.5, 0, 0, 0]))
    network.save_pretrained(folder)
    return folder


FUNCTION = "def short(text: str) -> bool:\n    return text.count('a') == 2\n"
RULES = {
    "--quota 2 --regex '(ab|ba)[ab]'": lambda text: text[1:4] in ("aba", "abb", "baa", "bab"),
    "--quota 4 --choice bbb abc": lambda text: text[1:4] in ("bbb", "abc"),
    "--quota 1 --remask 2 --verifier python:{folder}/f.py:short": lambda text: text[1:4].count("a") == 2,
    "--quota 1 --verifier python:{folder}/f.py:short --verifier-scope sequence": lambda text: (
        text.count("a") == 2
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_samples_with_verifiers_follow_the_exact_distribution(rule, tmp_path, run_command):
    """The exact distribution uses a function of token ids instead of the verifier of the command line."""
    folder = save_letters(tmp_path / "letters")
    (folder / "f.py").write_text(FUNCTION)
    words = ["--model", str(folder), "--sampler", 'unmasking:confidence:{"positions": 2}', "--n", "1000"]
    prompt = "c[MASK][MASK][MASK]a"
    options = shlex.split(rule.format(folder=folder))
    code, out, err = run_command("generate", *words, "--prompt", prompt, *options)
    assert code == 0, err
    records = [json.loads(line) for line in out.splitlines()]
    found = Counter(one["text"] if one["accepted"] else None for one in records)

    def accepts(tokens):
        return RULES[rule]("".join("abc"[token] for token in tokens[:5]))

    quota, remask = int(options[options.index("--quota") + 1]), 2 if "--remask" in options else None
    sampler = Checked(accepts, Ordered(Confidence(), Fixed(2)), quota=quota, remask=remask)
    model = load_pretrained_masked(folder)
    exact = exact_distribution(sampler, model, prompt=model.masked_prompt(prompt))
    expected = {model.decode(torch.tensor([x]))[0]: p for x, p in exact.probabilities.items()}
    expected[None] = exact.rejected
    assert exact.rejected < 0.97
    assert set(found) <= set(expected)
    cells = [name for name, p in expected.items() if p > 0]
    observed = np.array([found[name] for name in cells])
    assert chisquare(observed, len(records) * np.array([expected[name] for name in cells])).pvalue > 1e-4
    assert f"{sum(observed) - found[None]} of 1000 samples accepted" in err


def test_masks_of_a_regular_expression_follow_the_exact_distribution(tmp_path, run_command):
    folder = save_letters(tmp_path / "letters")
    prompt, pattern = "c[MASK][MASK][MASK]a", "(ab|ba)[ab]"
    words = ["--model", str(folder), "--sampler", 'unmasking:confidence:{"positions": 2}', "--n", "1000"]
    code, out, err = run_command("generate", *words, "--prompt", prompt, "--regex", pattern)
    assert code == 0, err
    found = Counter(json.loads(line)["text"][1:4] for line in out.splitlines())
    model = load_pretrained_masked(folder)
    verifier = GrammarVerifier.regex(pattern, Tokenization(model.tokenizer, model.vocab_size))
    sampler = Constrained(verifier, Ordered(Confidence(), Fixed(2)), judged_length=4)
    exact = exact_distribution(sampler, model, prompt=model.masked_prompt(prompt))
    expected = {model.decode(torch.tensor([x]))[0][1:4]: p for x, p in exact.probabilities.items()}
    assert set(found) == set(expected) == {"aba", "abb", "baa", "bab"}
    observed = np.array([found[text] for text in expected])
    assert chisquare(observed, 1000 * np.array(list(expected.values()))).pvalue > 1e-4


def test_bad_input_has_one_clear_message(tmp_path, run_command):
    folder = save(tmp_path / "bert")
    model = f"--sampler unmasking:random --model {folder}"
    letters = f"--sampler unmasking:random --model {save_letters(tmp_path / 'letters')}"
    (folder / "as.lark").write_text("start: /a/ start?")
    cases = [
        (f"generate {model}", "prompt=None: use --prompt TEXT"),
        (f"generate {model} --prompt 'the cat'", "use --max-new-tokens N, or write the mask token"),
        (f"generate {model} --prompt the --max-new-tokens 30", "has 12 positions"),
        (f"generate {model} --prompt the --quota 3", "quota=3: leave it out, or add a verifier"),
        (f"generate {model} --prompt 'the [MASK]' --regex a+", "does not define the bytes of a token"),
        (f"generate {letters} --prompt 'a[MASK]b[MASK]' --regex a+", "there are tokens between the masks"),
        (f"generate {letters} --prompt 'a[MASK]' --regex '('", "regex='('"),
        (f"generate {letters} --prompt 'a[MASK]' --regex 'abab'", "no text that the verifier accepts"),
        (f"generate {letters} --prompt 'a[MASK]' --grammar {folder / 'as.lark'}", "--quota"),
        (f"distribution {CLIQUE} --sampler unmasking:random --regex a+", "no such option with an unmasking"),
        (f"generate {model} --prompt the --top-k 3", "no such option with an unmasking sampler"),
        ("generate --sampler unmasking:random --prompt the", "model=None: use a masked model"),
        (f"generate --sampler unmasking:rndom --model {folder} --prompt the", "did you mean random"),
        ("distribution --sampler unmasking:random", "distribution=None: use a masked distribution"),
        (
            f"distribution {model}",
            "accepts --distribution only. For your own network, call trialogue.exact_distr",
        ),
        (
            """distribution --sampler unmasking:random --distribution 'dyck:{"length": 4}'""",
            "use a distribution of whole sequences",
        ),
        (
            f"""distribution {CLIQUE} --sampler 'unmasking:random:{{"positions": 2, "cosine": 2}}'""",
            "cosine=2: leave it out, because positions defines the size",
        ),
        (
            f"""distribution {CLIQUE} --sampler 'unmasking:random:{{"threshold": 0.9}}'""",
            "use the order Confidence",
        ),
        (f"distribution {CLIQUE} --sampler unmasking:random --max-states 3", "max_states=3"),
    ]
    assert commands_without_expected_error(cases, run_command) == []
