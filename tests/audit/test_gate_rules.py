"""Files and values that are no rules of a gate."""

import pytest

from classgap.audit import GateRules

INVALID = {
    "negative": ("max_class_drop: -1", "max_class_drop .* got -1"),
    "not a number": ("max_gap: .nan", "max_gap .* nan"),
    "text": ("max_gap: much", "max_gap .* 'much'"),
    "boolean": ("max_gap: yes", "max_gap .* True"),
    "group": ("max_group_drop: {hard: 100}", "'hard'.* got 100"),
    "no group": ("max_group_drop: 3", "max_group_drop .* hard: 0.5; got 3"),
    "unknown": ("max_drop: 3", r"max_drop is not a known key; did you mean max_class_drop\?"),
    "misspelled": ("max_clas_drop: 3", r"max_clas_drop is not a known key; did you mean max_class_drop\?"),
    "far": ("x: 3", "x is not a known key; the keys are max_class_drop, max_group_drop, min_class_accuracy"),
    "no value": ("max_gap: 3\nmax_class_drop:", "max_class_drop is empty: .* example max_class_drop: 3, or remove it"),
    "no groups": ("max_group_drop:", "max_group_drop is empty"),
    "group without value": ("max_group_drop:\n  hard:", "max_group_drop.hard is empty"),
    "no level": ("max_gap: 3\nconfidence_level: null", "confidence_level is empty"),
    "twice": ("max_gap: 3\nmax_gap: 4", "max_gap more than once"),
    "group twice": ("max_group_drop:\n  hard: 3\n  hard: 4", "hard more than once"),
    "a list": ("- 3", "must contain rules"),
    "empty": ("", "must contain rules"),
    "not yaml": ("max_gap: [", "not valid YAML"),
    "level": ("max_gap: 3\nconfidence_level: 95", "confidence_level .* got 95"),
}


@pytest.mark.parametrize(("text", "reason"), INVALID.values(), ids=INVALID)
def test_invalid_rules_are_rejected_with_the_file(text, reason, tmp_path):
    path = tmp_path / "gate.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=reason) as caught:
        GateRules.load(path)
    assert "gate.yaml" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("n_rules", "allowed"), [(1, 0.9995), (3, 0.9985)])
def test_a_confidence_level_that_swaps_cannot_reach_is_rejected(n_rules, allowed):
    others = {"max_class_drop": 3, "max_gap": 40} if n_rules == 3 else {}
    with pytest.raises(ValueError, match=rf"confidence_level must be at most {allowed}"):
        GateRules(max_group_drop={"hard": 1}, confidence_level=0.9999, **others)
    GateRules(max_group_drop={"hard": 1}, confidence_level=allowed, **others)
