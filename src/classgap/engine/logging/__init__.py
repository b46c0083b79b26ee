"""Metrics and progress of a run."""
