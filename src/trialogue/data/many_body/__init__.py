"""Many-body distributions: energies of two, three or four bodies made of low-rank symmetric tensors."""
