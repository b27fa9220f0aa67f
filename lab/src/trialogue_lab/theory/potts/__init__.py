"""How long sequences of a Potts chain or a finite-window model keep repeating one pattern."""
