"""An audit or a comparison as an HTML file, a terminal page or a CSV file. No figure is computed here."""

from classgap.report.csv_table import write_csv, write_diff_csv
from classgap.report.html import render_html, write_html
from classgap.report.terminal import print_audit
from classgap.report.terminal_diff import print_diff

__all__ = ["print_audit", "print_diff", "render_html", "write_csv", "write_diff_csv", "write_html"]
