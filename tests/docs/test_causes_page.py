"""docs/causes.md constructs every cause of the diagnosis, and the audit names it."""

import re

import pytest

from classgap.audit.diagnosis.causes import CAUSES
from classgap.report.causes import SENTENCES
from doc_pages import read_page, run_page


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("causes"))
        return run_page("causes.md")


@pytest.mark.parametrize("cause", sorted(SENTENCES))
def test_the_audit_names_the_cause(cause: str, printed: str):
    assert re.search(rf"(^|\s){cause}(\s|$)", printed, flags=re.MULTILINE)


def test_causes_of_the_diagnosis_have_a_section_each():
    titles = re.findall(r"^## (.+)$", read_page("causes.md"), flags=re.MULTILINE)
    sections = [title.lower().replace(" ", "-") for title in titles]
    named = [function.__name__.replace("_", "-") for function in CAUSES]
    assert sections == [*named, "too-few-test-samples", "not-enough-evidence"]


def test_healthy_classes_have_no_cause(printed: str):
    gap, chance = map(float, re.search(r"gap ([\d.]+) points, by chance ([\d.]+)", printed).groups())
    assert gap < 2 * chance


def test_a_smaller_shift_is_named_close_boundary():
    """As the page says below decision bias."""
    page = read_page("causes.md")
    setup, *blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    (block,) = [block for block in blocks if "biased" in block]
    namespace: dict = {}
    exec(setup, namespace)
    exec(block.replace("5.0", "4.0"), namespace)
    assert namespace["cause"].name == "close-boundary"
