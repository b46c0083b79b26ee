"""Render audits, comparisons, gates, fixes and reproduced tables.

Formats: HTML, terminal output, notebook output, CSV, Markdown and JUnit XML.

All numbers come from ``classgap.audit``, ``classgap.remedies`` and ``classgap.reproduce``.
"""

from classgap.report.csv_table import write_csv, write_diff_csv
from classgap.report.diff_summary import diff_summary
from classgap.report.gate_files import render_markdown, write_junit, write_markdown
from classgap.report.html.render import render_html, write_html
from classgap.report.notebook import audit_fragment, diff_fragment, fix_fragment
from classgap.report.terminal.audit_output import audit_text, print_audit
from classgap.report.terminal.diff_output import diff_text, print_diff
from classgap.report.terminal.fix_output import fix_text, print_fix
from classgap.report.terminal.gate_output import gate_text, print_gate
from classgap.report.terminal.history_output import history_text, print_history
from classgap.report.terminal.label_checks import print_label_checks
from classgap.report.terminal.reproduction_output import print_reproduction, reproduction_text

__all__ = [
    "audit_fragment",
    "audit_text",
    "diff_fragment",
    "diff_summary",
    "diff_text",
    "fix_fragment",
    "fix_text",
    "gate_text",
    "history_text",
    "print_audit",
    "print_diff",
    "print_fix",
    "print_gate",
    "print_history",
    "print_label_checks",
    "print_reproduction",
    "render_html",
    "render_markdown",
    "reproduction_text",
    "write_csv",
    "write_diff_csv",
    "write_html",
    "write_junit",
    "write_markdown",
]
