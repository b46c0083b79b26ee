"""Show an audit or a comparison as an HTML file, terminal page, notebook fragment or CSV file. Computes no metrics."""

from classgap.report.csv_table import write_csv, write_diff_csv
from classgap.report.diff_summary import diff_summary
from classgap.report.html import render_html, write_html
from classgap.report.notebook import audit_fragment, diff_fragment
from classgap.report.terminal import audit_text, print_audit
from classgap.report.terminal_diff import diff_text, print_diff

__all__ = [
    "audit_fragment",
    "audit_text",
    "diff_fragment",
    "diff_summary",
    "diff_text",
    "print_audit",
    "print_diff",
    "render_html",
    "write_csv",
    "write_diff_csv",
    "write_html",
]
