"""Training methods by name."""
