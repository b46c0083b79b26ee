"""Confidence intervals, paired tests and rank correlations."""
