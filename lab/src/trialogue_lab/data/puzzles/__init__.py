"""Laws that are hard to emit in one order: primes and products, Sudoku, polynomials, twenty questions."""
