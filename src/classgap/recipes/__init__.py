"""Recipes: one YAML file per table or figure of a paper, read by :mod:`classgap.reproduce`.

``_bases.yaml`` holds the training settings that several recipes share.
"""
