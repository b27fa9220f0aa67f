"""Faulty chains."""

import torch

from trialogue.oracles import Sequences, StepInfo
from trialogue.samplers import AdaptiveBlockDynamics, BlockDynamics, BlockGibbs, Gibbs, Metropolis
from trialogue.samplers.chains.conditionals import site_distribution, site_distributions
from trialogue.samplers.chains.gibbs import resample_block
from trialogue.samplers.chains.subsets import choose_subsets


class UniformGibbs(Gibbs):
    """Draw a value with equal weights."""

    def step(self, model, state, choose):
        flat = type("Flat", (), {"vocab_size": 2, "energy": lambda self, tokens: torch.zeros(len(tokens))})()
        return super().step(flat, state, choose)


class StaleSweep(Gibbs):
    """Sweep with the conditionals of the state before the sweep, as the parallel sampler does."""

    def step(self, model, state, choose):
        distributions, rows = site_distributions(model, state.tokens), torch.arange(len(state.tokens))
        values = [choose(distributions[:, site], rows) for site in range(state.tokens.shape[1])]
        return Sequences(torch.stack(values, 1)), StepInfo()


class ColdGibbs(Gibbs):
    """Draw at half the temperature."""

    def step(self, model, state, choose):
        rows = torch.arange(len(state.tokens))
        cold = self.scan(state.tokens, choose, lambda *at: choose(2 * site_distribution(model, *at), rows))
        return Sequences(cold[0]), StepInfo()


class NodewiseBlockGibbs(BlockGibbs):
    """Draw the sites of a block independently given the old state."""

    def step(self, model, state, choose):
        rows = torch.arange(len(state.tokens))
        block = choose_subsets(state.tokens.shape[1], self.block_size, rows, choose)
        distributions, tokens = site_distributions(model, state.tokens), state.tokens
        for site in range(tokens.shape[1]):
            value = choose(distributions[:, site], rows)
            tokens = torch.where(block & (torch.arange(tokens.shape[1]) == site), value[:, None], tokens)
        return Sequences(tokens), StepInfo()


class UnweightedBlockDynamics(BlockDynamics):
    """Choose all blocks with the same probability."""

    def step(self, model, state, choose):
        return BlockDynamics(self.blocks).step(model, state, choose)


class UntiltedAdaptiveDynamics(AdaptiveBlockDynamics):
    """Ignore that the choice of the block depends on the state."""

    def step(self, model, state, choose):
        index = choose(self._log_probs(state.tokens), torch.arange(len(state.tokens)))
        return resample_block(model, state.tokens, self._select_blocks(index, state.tokens.shape[1]), choose)


class ReluctantMetropolis(Metropolis):
    """Accept a decrease of the energy with the inverse ratio only."""

    def step(self, model, state, choose):
        inverted = type(
            "Inverted", (), {"vocab_size": 2, "energy": lambda self, tokens: -model.energy(tokens)}
        )()
        return super().step(inverted, state, choose)


class CountingGibbs(Gibbs):
    """Keep the state at every seventh step of all runs together."""

    calls = 0

    def step(self, model, state, choose):
        CountingGibbs.calls += 1
        moved = super().step(model, state, choose)
        return (state, StepInfo()) if CountingGibbs.calls % 7 == 0 else moved


class WritingGibbs(Gibbs):
    """Write into the given state."""

    def step(self, model, state, choose):
        state.tokens[:] = super().step(model, state, choose)[0].tokens
        return state, StepInfo()


class SharedGibbs(Gibbs):
    """Use the values drawn for the first copy in every copy."""

    def step(self, model, state, choose):
        tokens = super().step(model, state, choose)[0].tokens
        return state._replace(tokens=torch.where(tokens == state.tokens, tokens, tokens[:1])), StepInfo()
