"""Where data sets come from."""
