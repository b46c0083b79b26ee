"""Augmentation, mixing and normalization."""
