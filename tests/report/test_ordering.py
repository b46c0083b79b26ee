"""Groups that repeat all classes are not shown."""

import numpy as np

from classgap.audit import Audit
from classgap.report import audit_text, render_html
from classgap.report.ordering import order_groups

TARGETS = np.repeat(np.arange(6), 10)
LABELS = np.where(np.arange(60) % 10 < TARGETS, (TARGETS + 1) % 6, TARGETS)


def audit_of(counts: list[int]) -> Audit:
    return Audit.from_predictions(
        predictions=LABELS, targets=TARGETS, train_counts=counts, groups={"every": list(range(6))}
    )


def test_head_that_holds_all_classes_is_left_out():
    audit = audit_of([1300] * 6)
    assert len(audit.groups["head"].members) == 6  # still in the audit
    assert [group.name for group in order_groups(audit.groups)] == ["easy", "medium", "hard", "every"]
    assert "head (6)" not in render_html(audit)
    assert not [line for line in audit_text(audit).splitlines() if line.startswith("head ")]


def test_head_and_tail_are_shown():
    names = [group.name for group in order_groups(audit_of([1300] * 5 + [3]).groups)]
    assert names == ["easy", "medium", "hard", "head", "tail", "every"]
