"""Terminal output of audits and comparisons, at most 80 columns wide."""
