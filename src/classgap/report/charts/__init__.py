"""SVG charts of audits and comparisons."""
