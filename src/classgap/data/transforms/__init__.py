"""Augmentation, mixing and normalization of batches."""
