"""Many-body distributions whose energies couple two, three or four sites through low-rank symmetric tensors."""
