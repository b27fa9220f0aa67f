from .dyck.kernels import DyckError as DyckError
from .dyck.language import (
    Dyck as Dyck,
)
from .dyck.language import (
    DyckErrors as DyckErrors,
)
from .ising.grid import ising_grid as ising_grid
from .ising.model import Ising as Ising
from .pattern_corpus import (
    PatternCorpus as PatternCorpus,
)
from .pattern_corpus import (
    maximal_length_patterns as maximal_length_patterns,
)
from .potts.chain import PottsChain as PottsChain
from .potts.law import PottsLaw as PottsLaw
from .potts.window_tables import window_tables as window_tables
from .puzzles.arithmetic import SemiprimeTuples as SemiprimeTuples
from .puzzles.integer_polynomials import RootedPolynomials as RootedPolynomials
from .puzzles.random_primes import (
    RandomNumbers as RandomNumbers,
)
from .puzzles.random_primes import (
    RandomPrimes as RandomPrimes,
)
from .puzzles.sudoku import SudokuPuzzles as SudokuPuzzles
from .puzzles.twenty_questions import TwentyQuestions as TwentyQuestions
from .table import Table as Table
