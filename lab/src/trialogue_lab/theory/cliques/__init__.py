"""Two samplers of coupled spins, one joint and one parallel, with published bounds on both."""
