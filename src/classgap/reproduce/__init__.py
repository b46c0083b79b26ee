"""Reproduce the tables and figures of the papers: recipes, runs, a store of results, and verdicts."""
