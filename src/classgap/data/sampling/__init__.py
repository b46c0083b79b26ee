"""Epoch orders, samplers and keyed random numbers."""
