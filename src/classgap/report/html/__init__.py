"""HTML pages of audits and comparisons."""
