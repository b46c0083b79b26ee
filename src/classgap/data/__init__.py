"""Data sets by name, splits, orders of samples, and batches of tensors."""
