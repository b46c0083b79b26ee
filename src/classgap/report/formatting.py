"""Numbers and names as people read them: per cent with one decimal, points with a sign, a dash for "not known"."""

from __future__ import annotations

import re
from collections.abc import Iterable

from classgap.audit.figures import ClassResult
from classgap.audit.results import Interval

MISSING = "–"

# The order of groups in every chart and table; other groups follow in the order of the audit.
GROUP_ORDER = ("easy", "medium", "hard", "head", "torso", "tail")

CAUSES = {
    "few-training-samples": "few training samples",
    "large-spread": "large feature spread",
    "overlap": "overlap with another class",
    "close-boundary": "decision boundary too close",
    "wrong-labels": "likely wrong labels",
    "over-fitted": "over-fitted",
    "too-few-test-samples": "too few test samples to tell",
    "not-enough-evidence": "not enough evidence",
}

# Losses of this package by the name to import; other methods by the name they are known under.
METHODS = {
    "mr2": "MR2Loss",
    "elm": "ELMLoss",
    "feature-norm": "FeatureNormLoss",
    "lmdl": "LargeMarginDiscriminativeLoss",
    "ldam": "LDAM",
    "sam": "SAM",
    "supcon": "supervised contrastive learning",
}

GAPS = {
    "easy_hard": "easy third − hard third",
    "own_easy_hard": "easy third − hard third, each side's own thirds",
    "best_worst": "best class − worst class",
    "worst_class": "worst class",
    "worst_tenth": "worst 10 % of the classes",
    "std": "standard deviation over classes",
    "gini": "Gini coefficient",
}


def format_level(confidence_level: float) -> str:
    """Format a confidence level as a percentage.

    >>> format_level(0.95), format_level(0.975)
    ('95 %', '97.5 %')
    """
    return f"{100 * confidence_level:g} %"


def percent(value: float | None) -> str:
    """A fraction as per cent, without the sign.

    >>> percent(0.6321), percent(-0.05), percent(None)
    ('63.2', '−5.0', '–')
    """
    if value is None:
        return MISSING
    text = f"{100 * value:.1f}"
    return "0.0" if text == "-0.0" else text.replace("-", "−")


def points(value: float | None) -> str:
    """A difference of two fractions as signed percentage points.

    >>> points(0.0321), points(-0.5), points(0.0)
    ('+3.2', '−50.0', '0.0')
    """
    if value is None:
        return MISSING
    text = f"{100 * value:+.1f}"
    return text[1:] if text in ("+0.0", "-0.0") else text.replace("-", "−")


def percent_range(interval: Interval | None) -> str:
    """An interval of fractions.

    >>> percent_range(Interval(0.5, 0.75))
    '50.0 to 75.0'
    """
    return MISSING if interval is None else f"{percent(interval.low)} to {percent(interval.high)}"


def points_range(interval: Interval | None) -> str:
    """An interval of differences.

    >>> points_range(Interval(-0.01, 0.04))
    '−1.0 to +4.0'
    """
    return MISSING if interval is None else f"{points(interval.low)} to {points(interval.high)}"


def number(value: float | None) -> str:
    """Any other figure, with three significant digits.

    >>> number(0.01234), number(1234.5), number(-2.0), number(100), number(None)
    ('0.0123', '1,234', '−2.00', '100', '–')
    """
    if value is None:
        return MISSING
    text = f"{value:,.0f}" if 1000 <= abs(value) < 1e6 else f"{value:#.3g}".rstrip(".")
    return text.replace("-", "−")


def count(value: float | None) -> str:
    """A number of samples.

    >>> count(50000)
    '50,000'
    """
    return MISSING if value is None else f"{value:,.0f}"


def chance(p_value: float | None) -> str:
    """A p-value.

    >>> chance(0.00001), chance(0.0421)
    ('< 0.001', '0.042')
    """
    if p_value is None:
        return MISSING
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


def plural(amount: int, one: str, several: str) -> str:
    """An amount and its noun.

    >>> plural(1, "class", "classes"), plural(1200, "class", "classes")
    ('1 class', '1,200 classes')
    """
    return f"{amount:,} {one if amount == 1 else several}"


def printable(name: str) -> str:
    """A class name on one line; what a terminal would obey instead of showing is replaced.

    >>> printable("cat\\x1b[31m\\n")
    'cat\ufffd[31m\ufffd'
    """
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in name)


def cause_name(name: str) -> str:
    """A cause in words; a cause unknown here is shown as it is.

    >>> cause_name("over-fitted"), cause_name("new-cause")
    ('over-fitted', 'new cause')
    """
    return CAUSES.get(name, name.replace("-", " "))


def method_names(methods: Iterable[str]) -> str:
    """Methods that address a cause.

    >>> method_names(["mr2", "logit-adjustment"]), method_names([])
    ('MR2Loss, logit adjustment', '')
    """
    return ", ".join(METHODS.get(method, method.replace("-", " ")) for method in methods)


def minus_signs(text: str) -> str:
    """A text of ours with true minus signs; hyphens between letters stay.

    >>> minus_signs("t-SNE of a - b, n - 1, -1/(K-1)")
    't-SNE of a − b, n − 1, −1/(K−1)'
    """
    return re.sub(r"(?<= )-(?= )|(?<![\w-])-(?=\d)|(?<=\(\w)-(?=\d)", "−", text)


def gap_name(measure: str, rank_by: str = "own") -> str:
    """A gap measure in words; ``rank_by`` is the audit's.

    >>> gap_name("std")
    'standard deviation over classes'
    >>> gap_name("easy_hard", "baseline")
    "easy third − hard third, the baseline's thirds"
    """
    name = GAPS.get(measure, measure.replace("_", " "))
    return f"{name}, the baseline's thirds" if measure == "easy_hard" and rank_by != "own" else name


def third_name(group: str, rank_by: str = "own") -> str:
    """A third in words; ``rank_by`` is the audit's.

    >>> third_name("hard"), third_name("hard", "baseline")
    ('hard third', 'hard for the baseline')
    """
    return f"{group} third" if rank_by == "own" else f"{group} for the baseline"


def measure(name: str, value: float | None) -> str:
    """A gap measure's value: per cent or points for all but the Gini coefficient.

    >>> measure("std", 0.125), measure("gini", 0.125)
    ('12.5', '0.125')
    """
    return number(value) if name == "gini" else percent(value)


def hardest_first(classes: tuple[ClassResult, ...]) -> list[ClassResult]:
    """The classes that have test samples, lowest accuracy first; ties in the order of the class indices."""
    seen = [entry for entry in classes if entry.accuracy is not None]
    return sorted(seen, key=lambda entry: (entry.accuracy or 0.0, entry.index))


def failing_first(classes: tuple[ClassResult, ...]) -> list[ClassResult]:
    """Classes with a diagnosis: those that fail for certain, then those that chance may explain, each hardest first."""
    diagnosed = [entry for entry in hardest_first(classes) if entry.diagnosis]
    return sorted(diagnosed, key=lambda entry: entry.diagnosis[0].name == "too-few-test-samples")
