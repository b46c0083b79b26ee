"""The cost of audits of files on docs/audit.md is the stored one."""

from types import ModuleType

import pytest

from scripts import load_script


@pytest.fixture(scope="module")
def audit_cost() -> ModuleType:
    return load_script("benchmarks/audit_cost.py")


def test_page_shows_the_stored_cost(audit_cost: ModuleType) -> None:
    measured = audit_cost.stored.read(audit_cost.RESULTS)
    assert [each["samples"] for each in measured] == list(audit_cost.FILES)
    assert audit_cost.SECTION.read() == audit_cost.describe_files(measured).strip()


def test_the_note_divides_the_time_by_that_of_the_log_softmax(audit_cost: ModuleType) -> None:
    line = {"samples": 1_000_000, "bytes": 2e9, "seconds": 6.0, "log_softmax": 1.5, "fastest_log_softmax": 1.0}
    text = " ".join(audit_cost.describe_files([line | {"peak_bytes": 5e8}]).split())
    assert "| 1,000,000 | 2.00 GB | 6.0 s | 1.50 s | 0.5 GB |" in text
    assert "takes 4.0 times as long" in text
    assert "and 6.0 times as long" in text
