"""Masks of regular languages in any order, against brute force over all completions."""

import numpy as np
import pytest
import torch

from refusals import calls_without_expected_error
from samplers.small_languages import tokenization
from samplers.unmasking.languages import PIECES, language, random_constraint, random_pattern
from samplers.unmasking.naive_passes import RandomConditionals, completable, is_text
from trialogue import exact_distribution, total_variation, unmask
from trialogue.data import Ising, JointTable, Table
from trialogue.models.tokenization import Tokenization
from trialogue.models.wrappers.spelled import SpelledTokenization
from trialogue.randomness import numpy_generator
from trialogue.samplers import MaskedDecoding
from trialogue.samplers.unmasking import (
    Checked,
    Confidence,
    Constrained,
    Corrected,
    DrawThenSelect,
    Fixed,
    LeftToRight,
    Ordered,
    Random,
    ReMDM,
    Schedule,
    Threshold,
)
from trialogue.samplers.unmasking.constrained import _Canvases
from trialogue.verifiers import GrammarVerifier
from trialogue.verifiers.languages.automaton import ByteAutomaton
from trialogue.verifiers.languages.vocabularies import allowed_bytes, byte_tokenizer, make_matcher

PATTERNS = [
    r"",
    r"a|ab",
    r"a*?b",
    r"(a|ab)(c|bcd)*",
    r"\d{2,3}-\w",
    r"[^a-y\n]{0,2}é?",
    r"[]a]+[^]b]",
    r"[[:alpha:]&&[^b-z]]\.\/\\",
    r"(?i)k(?-i:k)(?:s|T)",
    r"(?s:.)x|.{3}",
    r"(?P<name>\p{Greek}|\x{1F600}|\x41\u00e9)$?".removesuffix("$?"),
    r"a{3}(?:b{2,}|c{0,2}){2}",
    r"(?:a?){3}[\d/]+ ,?",
    r"((a|b)*a(a|b){3}|){1,2}",
    '\\{"name":"[^"\\\\]*","age":[1-9][0-9]*\\}',
]


ALL_BYTES = tokenization([bytes([byte]) for byte in range(128)])


def test_byte_automata_allow_the_bytes_that_llguidance_allows():
    """One text leads to each state. After it, both allow the same bytes and agree whether the text is complete."""
    random = numpy_generator(0)
    for pattern in PATTERNS + [random_pattern(random, 4) for _ in range(60)]:
        automaton = ByteAutomaton.from_pattern(pattern)
        reached = {0: make_matcher(byte_tokenizer(), GrammarVerifier.regex(pattern, ALL_BYTES).grammar)}
        for state in (queue := [0]):
            matcher, moves = reached[state], automaton.moves[state]
            allowed = np.flatnonzero(moves < len(automaton.moves) - 1).tolist()
            assert automaton.accepting[state] == matcher.is_accepting(), pattern
            assert allowed == ([] if matcher.is_stopped() else allowed_bytes(matcher)), pattern
            for byte in allowed:
                if (target := int(moves[byte])) not in reached:
                    reached[target] = matcher.deep_copy()
                    reached[target].consume_token(byte)
                    queue.append(target)
        assert len(queue) == len(automaton.moves) - 1


def test_allowed_tokens_are_those_with_an_accepted_completion():
    """Canvases are made from complete texts, and half of them change in one token."""
    compared = completed = 0
    for seed in range(70):
        random = numpy_generator(seed, "canvas")
        vocab, sites = [(2, 6), (3, 5), (4, 4), (4, 5)][seed % 4]
        prompt = [0] * int(random.integers(2)) + [None] * sites
        sampler = random_constraint(seed, vocab, prompt, Ordered())
        model = RandomConditionals(seed, vocab, len(prompt))
        tokens = unmask(model, sampler, [prompt], num_samples=4, seed=seed).tokens
        tokens[:2, -1] = torch.from_numpy(random.integers(vocab, size=2))
        masked = torch.from_numpy(random.random(tokens.shape) < 0.6)
        masked[:, : len(prompt) - sites] = False
        free = torch.ones_like(masked)
        free[:, : len(prompt) - sites] = False
        state = sampler.init(torch.zeros_like(tokens), free)._replace(
            tokens=tokens.masked_fill(masked, 0), masked=masked
        )
        canvases = _Canvases(sampler, state)
        conditionals = model.log_probs(state.tokens, masked)
        allowed = canvases.restricted(conditionals)[0] > -torch.inf
        for row in range(4):
            canvas = tuple(
                None if hidden else t for t, hidden in zip(tokens[row].tolist(), masked[row], strict=True)
            )
            fits = completable(sampler, canvas, prompt)
            assert fits == canvases.backward[row, 0, 0], (sampler, canvas)
            completed += fits
            for site in masked[row].nonzero()[:, 0].tolist():
                expected = [
                    completable(sampler, (*canvas[:site], token, *canvas[site + 1 :]), prompt)
                    for token in range(vocab)
                ]
                assert allowed[row, site].tolist() == expected, (sampler, canvas, site)
                compared += 1
    assert compared > 300
    assert 100 < completed < 280


INNER = [
    Ordered(Random(), Fixed(3)),
    Ordered(Confidence(), Threshold(0.5), temperature=0.7, top_p=0.9),
    Ordered(LeftToRight(), Schedule("linear", 2), temperature=0),
    DrawThenSelect(Fixed(2), blocks=3),
    ReMDM(4, 0.5),
]


@pytest.mark.parametrize("inner", INNER, ids=str)
def test_every_sample_is_a_text_of_the_language(inner):
    model, pattern = RandomConditionals(1, 4, 5), "(?:ab|b)*a{1,2}b?"
    sampler = Constrained(language(pattern, 4), inner, eos=3)
    for batch_size in (1, 64):
        samples = unmask(model, sampler, num_samples=60, seed=2, eos=3, batch_size=batch_size)
        assert samples.accepted.all()
        assert all(is_text(row, pattern, PIECES[4], 3) for row in map(tuple, samples.tokens.tolist()))
        if batch_size == 1:
            alone = samples.tokens
    assert samples.tokens.equal(alone)
    exact = exact_distribution(sampler, model, eos=3)
    assert exact.rejected == 0
    assert {tuple(row[:n]) for row, n in zip(samples.tokens.tolist(), samples.lengths, strict=True)} <= {
        *exact.probabilities
    }


def test_left_to_right_equals_masked_decoding_with_the_same_conditionals():
    random, pattern = numpy_generator(0), "(?:ab|ba|aa)[ab]b|bbba"
    joint = torch.from_numpy(random.dirichlet([1.0] * 81).reshape([3] * 4))
    verifier = language(pattern, 3)
    expected = exact_distribution(MaskedDecoding(), Table(joint), verifier).probabilities
    found = exact_distribution(Constrained(verifier, Ordered(LeftToRight())), JointTable(joint)).probabilities
    assert found == pytest.approx(expected, abs=1e-12)
    restricted = {x: float(joint[x]) for x in expected}
    distance = max(abs(found[x] - p / sum(restricted.values())) for x, p in restricted.items())
    assert distance > 1e-3


def test_masks_bias_frequencies_as_the_guide_says():
    """Exactly three of six tokens must be 1 (docs/how-to/unmask-constraint.md)."""
    model = Ising.clique(n=6, clique=3, coupling=0.6, field=0.1)
    states = dict(zip(map(tuple, model.states().tolist()), model.probabilities().tolist(), strict=True))
    valid = {text: probability for text, probability in states.items() if sum(text) == 3}
    target = {text: probability / sum(valid.values()) for text, probability in valid.items()}
    choices = GrammarVerifier.choice(
        ["".join(map(str, text)) for text in valid], SpelledTokenization(["0", "1"])
    )
    masked = exact_distribution(Constrained(choices, Ordered(Random(), Fixed(1))), model).probabilities
    assert f"{total_variation(masked, target):.2f}" == "0.34"
    rejected = exact_distribution(Checked(lambda text: sum(text) == 3), model)
    accepted = {
        text: probability / (1 - rejected.rejected) for text, probability in rejected.probabilities.items()
    }
    assert total_variation(accepted, target) < 1e-9


def test_rejected_texts_are_drawn_with_masks_again():
    """`Checked` with another verifier restricts the distribution of masked texts, up to the quota."""
    model = RandomConditionals(3, 3, 3)
    masked = Constrained(language("[ab]{3}", 3))
    alone = exact_distribution(masked, model).probabilities
    found = exact_distribution(Checked(lambda text: text[0] == 0, masked, quota=3), model)
    accepted = sum(p for x, p in alone.items() if x[0] == 0)
    assert found.rejected == pytest.approx((1 - accepted) ** 4)
    for text, p in found.probabilities.items():
        assert p / (1 - found.rejected) == pytest.approx(alone[text] / accepted)


def test_bad_input_has_one_clear_message():
    model, verifier = RandomConditionals(0, 3, 4), language("ab", 3)
    tokens = Tokenization(ALL_BYTES.tokenizer, 128)
    lark = GrammarVerifier.lark('start: "a" | "(" start ")"', tokens)
    cases = [
        (r"lark=.*regular expression or a list.*--quota N", lambda: Constrained(lark)),
        (
            r"json-schema=.*regular expression or a list.*--quota N",
            lambda: Constrained(GrammarVerifier.json_schema({"type": "integer"}, tokens)),
        ),
        (r"verifier='function.*regular expression", lambda: Constrained(lambda text: True)),
        (r"sampler=.*wrap Ordered", lambda: Constrained(verifier, Corrected())),
        (r"sampler=.*give an unmasking", lambda: Constrained(verifier, Random())),
        (
            r"prompts='4 masked positions': no text.*exactly fills.*shortest one has 2",
            lambda: unmask(model, Constrained(verifier)),
        ),
        (
            r"prompts='1 masked positions': no text.*fits into.*shortest one has 2",
            lambda: unmask(model, Constrained(verifier, eos=2), [[0, 0, 0, None]]),
        ),
        (
            r"verifier='4 tokens': the model has 3 tokens",
            lambda: unmask(model, Constrained(language("a*", 4))),
        ),
        (r"regex='\(\?x\)'.*without the flag x", lambda: Constrained(language("(?x) a b", 3))),
        (r"regex=.*too large for masks", lambda: Constrained(language("(a|b)*a(a|b){20}", 3))),
    ]
    assert calls_without_expected_error(cases) == []
