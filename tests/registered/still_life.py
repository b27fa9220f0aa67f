"""A user's package with one example of each kind of entry point."""

from dataclasses import dataclass

import torch
from torch import nn

from trialogue.generation.verifiers.kinds import VerifierKind
from trialogue.oracles import Energy, StepInfo
from trialogue.samplers import Ancestral, Gibbs
from trialogue.verifiers import FunctionVerifier


@dataclass(frozen=True)
class Plain(Ancestral):
    """Ancestral sampling under another name."""


@dataclass(frozen=True)
class LazyGibbs(Gibbs):
    """Gibbs sampling that keeps the state in half of the steps."""

    def step(self, model, state, choose):
        moved = super().step(model, state, choose)[0].tokens
        rests = choose(torch.zeros(len(moved), 2).double(), torch.arange(len(moved))) == 0
        return state._replace(tokens=torch.where(rests[:, None], state.tokens, moved)), StepInfo()


class LoadedDice(Energy):
    """Dice with faces 0 to 5 and an energy of `weight` for each face above 2."""

    vocab_size = 6

    def __init__(self, sites, weight=1.0):
        self.sites, self.weight = sites, weight

    def energy(self, tokens):
        return self.weight * (tokens > 2).sum(1).double()


def at_most(wanted):
    return FunctionVerifier(lambda prefix: len(prefix) <= int(wanted.content), scope="completion")


AT_MOST = VerifierKind("NUMBER", "at most so many tokens", at_most, path=lambda _: None, judges_prompts=False)


class Linear(nn.Linear):
    """A network."""


def greet(arguments):
    """Print a greeting."""
    print(f"hello {arguments.name}")


def add(commands):
    commands.add("greet", greet).add_argument("name")
