"""Test the alias tables and exact samples of Potts chains, token by token and in distribution."""

import numpy as np
import pytest
import torch

from data.potts import potts_enumeration as by_hand
from trialogue.data import PottsChain
from trialogue.data.potts import sampling as potts_sampling
from trialogue.data.potts.sampling import LANES, alias_tables, split_entry_bits
from trialogue.randomness import GAMMA, Streams, derive_seed, mix

CHAINS = {
    "neighbours": PottsChain(by_hand.random_table(1, 3, 2)),
    "three": PottsChain(by_hand.random_table(2, 2, 3)),
    "independent": PottsChain(by_hand.random_table(3, 5, 1)),
    "wide": PottsChain(by_hand.random_table(4, 2, 4)),
}


def distribution_of_entries(entries: np.ndarray, vocab: int) -> torch.Tensor:
    """Return the distributions (contexts, V) of packed alias tables (contexts * V,)."""
    coin, bits = split_entry_bits(vocab)
    entries = entries.reshape(-1, vocab)
    threshold, other = entries >> np.uint64(bits), (entries & np.uint64((1 << bits) - 1)).astype(np.int64)
    keep = np.ldexp(threshold.astype(np.float64), -coin)
    distribution = keep.copy()
    np.add.at(distribution, (np.arange(len(distribution))[:, None], other), 1 - keep)
    return torch.from_numpy(distribution / vocab)


def site_distributions(chain: PottsChain, length: int, temperature: float) -> list[torch.Tensor]:
    """Return p(x_t | previous tokens, at most W - 1) of every site according to the tables."""
    messages, vocab, distributions = chain.messages(temperature), chain.vocab_size, []
    for tables in alias_tables(messages, length - chain.window + 1):
        for offset in tables.offsets.tolist():
            contexts = vocab ** min(len(distributions), chain.window - 1)
            distributions.append(
                distribution_of_entries(tables.entries[offset : offset + contexts * vocab], vocab)
            )
    return distributions


def distribution_of_tables(chain: PottsChain, length: int, temperature: float) -> torch.Tensor:
    """Return p(x) (V^L,) as the product of the conditional distributions of the tables."""
    x = by_hand.sequences(chain.vocab_size, length)
    distribution = torch.ones(len(x), dtype=torch.float64)
    for site, conditional in enumerate(site_distributions(chain, length, temperature)):
        context = torch.zeros(len(x), dtype=torch.int64)
        for before in range(max(0, site - chain.window + 1), site):
            context = context * chain.vocab_size + x[:, before]
        distribution *= conditional[context, x[:, site]]
    return distribution


@pytest.mark.parametrize("temperature", [0.01, 0.7, 20.0])
@pytest.mark.parametrize("name", CHAINS)
def test_tables_multiply_to_the_distribution(name, temperature):
    chain, length = CHAINS[name], 6
    distribution, _ = by_hand.distribution(chain, length, temperature)
    torch.testing.assert_close(
        distribution_of_tables(chain, length, temperature), distribution, rtol=0, atol=1e-14
    )


def sample_in_python(chain: PottsChain, n: int, length: int, temperature: float, seed: int) -> torch.Tensor:
    """Sample from the same tables in Python. Token t of sequence k uses number t of stream k."""
    messages, vocab = chain.messages(temperature), chain.vocab_size
    keys = Streams(derive_seed(seed, "potts"), torch.arange(n)).keys.tolist()
    coin, bits = split_entry_bits(vocab)
    tables = [
        tables.entries[offset:].tolist()
        for tables in alias_tables(messages, length - chain.window + 1)
        for offset in tables.offsets.tolist()
    ]
    sample = torch.empty(n, length, dtype=torch.int64)
    for row, key in enumerate(keys):
        tokens: list[int] = []
        for site in range(length):
            count = (key % 2**64 + (site + 1) * int(GAMMA)) % 2**64
            column, rest = divmod(int(mix(np.uint64(count))) * vocab, 2**64)
            context = 0
            for token in tokens[max(0, site - chain.window + 1) :]:
                context = context * vocab + token
            entry = tables[site][context * vocab + column]
            tokens.append(column if rest >> (64 - coin) < entry >> bits else entry & ((1 << bits) - 1))
        sample[row] = torch.tensor(tokens)
    return sample


@pytest.mark.parametrize("name", CHAINS)
def test_compiled_sampler_equals_python_sampler(name):
    """The sample has more rows than a block of lanes and more sites than a block of sites."""
    n, length = LANES + 3, 70
    expected = sample_in_python(CHAINS[name], n, length, 0.8, 5)
    assert torch.equal(CHAINS[name].sample(n, length, 0.8, seed=5), expected)


def test_tables_that_do_not_fit_into_memory_at_once(monkeypatch):
    chain = PottsChain(by_hand.random_table(6, 3, 3))
    whole = chain.sample(70, 150, 0.9, seed=2)
    monkeypatch.setattr(potts_sampling, "_MAX_ENTRIES", 7 * 27)
    monkeypatch.setattr(potts_sampling, "_MAX_BATCH_ENTRIES", 2 * 27)
    again = PottsChain(chain.energies)
    assert torch.equal(again.sample(70, 150, 0.9, seed=2), whole)
    assert again.at(150, 0.9)._tables == []


def test_a_sequence_depends_on_the_seed_and_its_index_only():
    chain = CHAINS["three"]
    whole = chain.sample(300, 40, 0.7, seed=3)
    assert torch.equal(chain.sample(7, 40, 0.7, seed=3), whole[:7])
    assert not torch.equal(chain.sample(300, 40, 0.7, seed=4), whole)
    assert len({tuple(row) for row in whole.tolist()}) > 290
    assert chain.sample(0, 40, 0.7).shape == (0, 40)


@pytest.mark.usefixtures("restored_threads")
def test_samples_do_not_depend_on_the_number_of_threads():
    chain = PottsChain(by_hand.random_table(7, 4, 3))
    torch.set_num_threads(1)
    one = chain.sample(3000, 200, 0.7, seed=1)
    torch.set_num_threads(3)
    assert torch.equal(chain.sample(3000, 200, 0.7, seed=1), one)
