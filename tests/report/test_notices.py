"""Every notice and every cause has a sentence."""

import re
from pathlib import Path

import numpy as np
import pytest

import classgap
from classgap.audit import Audit
from classgap.audit.results import Cause, Notice
from classgap.report.causes import SENTENCES as EVIDENCE
from classgap.report.causes import cause_evidence
from classgap.report.notices import SENTENCES, notice_text

SOURCE = "\n".join(path.read_text() for path in (Path(classgap.__file__).parent / "audit").rglob("*.py"))


def test_every_code_has_a_sentence():
    codes = set(re.findall(r'Notice\(\s*"([a-z-]+)"', SOURCE))
    codes |= {"unused-columns", "unused-columns-maybe-scores"}
    assert codes == set(SENTENCES)


def test_every_cause_has_a_sentence():
    assert set(re.findall(r'Cause\(\s+name="([a-z-]+)"', SOURCE)) <= set(EVIDENCE)


@pytest.mark.parametrize(
    ("notice", "facts"),
    [
        (Notice("duplicate-index", {"dropped": 1, "samples": 24}), ("1 sample", "24")),
        (Notice("duplicate-index", {"dropped": 1200, "samples": 2400}), ("1,200 samples", "2,400")),
        (Notice("unused-arrays", {"names": ("feature",), "suggestions": ("features",)}), ("feature is", "features?")),
        (Notice("unused-columns", {"names": tuple("abcdefgh")}), ("a, b, c, d, e, f …", "are not used")),
        (Notice("features-not-found", {"model": "UNet"}), ("UNet",)),
        (Notice("features-not-computed", {"head": "Linear"}), ("Linear",)),
        (Notice("features-not-of-logits", {"head": "Linear", "logits": 10}), ("Linear", "10 logits")),
        (Notice("features-not-per-sample", {"shape": (2, 3, 4)}), ("(2, 3, 4)",)),
        (Notice("diagnosis-sampled", {"examined": 50_000, "samples": 1_281_167}), ("50,000 of 1,281,167",)),
        (Notice("map-sampled", {"points": 300}), ("300",)),
        (Notice("distances-sampled", {"outermost": 16}), ("16 samples", "lower bounds")),
        (Notice("accumulated", {"feature_dim": 4}), ("no distances within classes",)),
        (Notice("accumulated", {"feature_dim": 0}), ("no feature metrics",)),
        (Notice("from-the-future", {"value": 3}), ("from-the-future", "3")),
    ],
)
def test_sentences_have_the_values(notice: Notice, facts: tuple[str, ...]):
    text = notice_text(notice)
    assert all(fact in text for fact in facts)


def test_no_prose_is_saved(audit: Audit):
    """No text in the JSON has more than one word apart from names of classes and of the audit."""

    def texts(value):
        if isinstance(value, str):
            yield value
        for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from texts(part)

    known = {*audit.class_names, audit.name}
    assert {text for text in texts(audit.to_dict()) if " " in text} <= known


def test_an_unknown_cause_is_shown():
    assert "3.0" in cause_evidence(Cause("new", 3.0, 2.0, 1.0, None, ()))


def test_evidence_names_its_figures():
    targets = np.repeat(np.arange(9), 20)
    predictions = targets.copy()
    predictions[:12] = 1
    audit = Audit.from_predictions(targets=targets, predictions=predictions, train_counts=[5] + [100] * 8)
    few = next(cause for cause in audit.classes[0].diagnosis if cause.name == "few-training-samples")
    assert "5 training samples" in cause_evidence(few)
    assert "100" in cause_evidence(few)
