"""Structured distributions whose truth is known exactly."""

from trialogue.data.dyck.kernels import DyckError
from trialogue.data.dyck.language import Dyck, DyckErrors
from trialogue.data.ising.grid import ising_grid
from trialogue.data.ising.model import Ising
from trialogue.data.pattern_corpus import PatternCorpus, maximal_length_patterns
from trialogue.data.potts.chain import PottsChain
from trialogue.data.potts.law import PottsLaw
from trialogue.data.puzzles.arithmetic import SemiprimeTuples
from trialogue.data.puzzles.integer_polynomials import RootedPolynomials
from trialogue.data.puzzles.random_primes import RandomNumbers, RandomPrimes
from trialogue.data.puzzles.sudoku import SudokuPuzzles
from trialogue.data.puzzles.twenty_questions import TwentyQuestions
from trialogue.data.table import Table

__all__ = [
    "Dyck",
    "DyckError",
    "DyckErrors",
    "Ising",
    "PatternCorpus",
    "PottsChain",
    "PottsLaw",
    "RandomNumbers",
    "RandomPrimes",
    "RootedPolynomials",
    "SemiprimeTuples",
    "SudokuPuzzles",
    "Table",
    "TwentyQuestions",
    "ising_grid",
    "maximal_length_patterns",
]
