"""Structured distributions whose truth is known exactly."""

from trialogue.data.arithmetic import SemiprimeTuples
from trialogue.data.dyck import Dyck, DyckErrors
from trialogue.data.dyck_kernels import DyckError
from trialogue.data.integer_polynomials import RootedPolynomials
from trialogue.data.ising import Ising
from trialogue.data.ising_grid import ising_grid
from trialogue.data.pattern_corpus import PatternCorpus, maximal_length_patterns
from trialogue.data.potts import PottsChain
from trialogue.data.potts_law import PottsLaw
from trialogue.data.random_primes import RandomNumbers, RandomPrimes
from trialogue.data.sudoku import SudokuPuzzles
from trialogue.data.table import Table
from trialogue.data.twenty_questions import TwentyQuestions

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
