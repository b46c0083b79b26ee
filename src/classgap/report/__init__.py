"""Render audits and comparisons as HTML, terminal output or CSV. All numbers come from ``classgap.audit``."""

from classgap.report.csv_table import write_csv, write_diff_csv
from classgap.report.html.render import render_html, write_html
from classgap.report.terminal.audit_output import print_audit
from classgap.report.terminal.diff_output import print_diff

__all__ = ["print_audit", "print_diff", "render_html", "write_csv", "write_diff_csv", "write_html"]
