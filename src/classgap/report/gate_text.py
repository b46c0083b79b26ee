"""Sentences and table rows of a gate, shared by terminal, Markdown and JUnit output."""

from __future__ import annotations

from classgap.audit.gate_results import GateResult, GroupDrop, RuleResult, Violation
from classgap.report.formatting import format_count, format_level, format_percent, format_points, pluralize
from classgap.report.match_text import name_some

NAMED = 5
LITTLE_POWER = 10  # points between a limit and the drop of a class that is detected
GROUP_HEADERS = ("group", "before", "after", "change", "by chance", "beyond chance ≥", "detectable")
CLASS_HEADERS = ("class", "before", "after", "drop", "at least", "samples")
ACCURACY_HEADERS = ("class", "before", "after", "at most", "samples")


def gate_headline(result: GateResult) -> str:
    """Return the verdict in one sentence."""
    total = pluralize(len(result.rules), "rule", "rules")
    if result.passed:
        count = format_count(len(result.rules))
        return f"Passed: {'the rule holds' if len(result.rules) == 1 else f'{count} of {total} hold'}."
    verb = "is" if len(result.broken) == 1 else "are"
    return f"Failed: {format_count(len(result.broken))} of {total} {verb} broken."


def power_warnings(result: GateResult) -> list[str]:
    """Say which rules about classes hold without showing much: no class could break them, or one seems to.

    These sentences belong next to the verdict, because a rule that cannot be broken here counts as one that holds.
    """
    found, power = [], result.power
    for rule in result.rules:
        if rule.rule == "max_class_drop" and rule.passed:
            if power.median is None:
                shows = "max_class_drop cannot show any drop of a single class here"
            elif rule.value > rule.limit or power.median > rule.limit + LITTLE_POWER:
                least = _points(power.median)
                shows = (
                    f"max_class_drop has little power here: a class must typically drop by {least} points to be "
                    "detected"
                )
            else:
                continue
            largest = f"the largest observed drop is {_points(rule.value)}" if rule.value > 0 else "no class dropped"
            found.append(f"{shows}; {largest}.")
        if rule.rule == "min_class_accuracy" and rule.passed and rule.value < rule.limit:
            found.append(
                f"min_class_accuracy has too little power for class {rule.worst}: its samples do not show that its "
                f"accuracy, {_points(rule.value)} %, is below {rule.limit:g} %."
            )
    return found


def rule_title(rule: RuleResult) -> str:
    """Return a rule as it is written: its name and limit.

    >>> rule_title(RuleResult("max_group_drop", "hard", 0.5, True, 0.2, 0.0))
    'max_group_drop hard=0.5'
    """
    return f"{rule.rule} {f'{rule.group}=' if rule.group else ''}{rule.limit:g}"


def rule_sentence(rule: RuleResult) -> str:
    """Return the outcome of a rule in one sentence."""
    limit = f"{rule.limit:g}"
    if rule.rule == "max_class_drop":
        if rule.violations:
            found = name_some([f"{v.name} {_points(v.value)} (at least {_points(v.bound)})" for v in rule.violations])
            return f"{_count(rule)} shown to have dropped by more than {limit} points: {found}."
        return (
            f"{_none(rule)} shown to have dropped by more than {limit} points; largest observed drop: "
            f"{_points(rule.value)} (class {rule.worst})."
        )
    if rule.rule == "min_class_accuracy":
        if rule.violations:
            found = name_some(
                [f"{v.name} {_points(v.value)} % (at most {_points(v.bound)} %)" for v in rule.violations]
            )
            return f"{_count(rule)} shown to be below {limit} %: {found}."
        return f"{_none(rule)} shown to be below {limit} %; lowest: {_points(rule.value)} % (class {rule.worst})."
    if rule.rule == "max_group_drop":
        name = f"{rule.group} third" if rule.group in ("easy", "medium", "hard") else str(rule.group)
        text = f"{name} {_moved(rule.value, 'dropped', 'rose') or 'did not change'}"
        expected = _moved(rule.expected_by_chance, "drop", "rise")
        chance = f" (by chance, it would {expected})" if expected else ""  # the bound counts from there
        shown = f"at least {_points(rule.bound)} points beyond chance" if rule.bound > 0 else "no drop beyond chance"
        return f"{text[:1].upper()}{text[1:]}{chance}, {shown}; limit {limit}."
    return f"Gap {_points(rule.value)} points, at least {_points(rule.bound)}; limit {limit}."


def power_sentence(result: GateResult) -> str:
    """Say which drops this test set could detect."""
    power = result.power
    if power.median is None:
        classes = "No drop of a single class can be detected, not even to 0 %: the classes have too few samples."
    else:
        low, median, high = map(_points, (power.low, power.median, power.high))
        spread = "" if low == high else f" (median over classes; {low} to {high})"
        classes = f"Drops of a single class are detected with a probability of 80 % from {median} points{spread}."
        if power.n_undetectable:
            classes += (
                f" In {pluralize(power.n_undetectable, 'class', 'classes')}, not even a drop to 0 % can be detected: "
                "too few samples, or too low an accuracy before."
            )
    found = [
        f"{each.name} {_points(each.detectable)}" for each in result.groups.values() if each.detectable is not None
    ]
    missed = [each.name for each in result.groups.values() if each.detectable is None]
    groups = [f"Groups: from {', '.join(found)} points."] if found else []
    if missed:
        groups.append(f"No drop can be detected in {', '.join(missed)}.")
    return " ".join([classes, *groups])


def level_sentence(result: GateResult) -> str:
    """Say how often the gate fails by chance."""
    alpha = format_level(round(1 - result.confidence_level, 10))
    return (
        f"A model that is truly within all limits fails with a probability of at most {alpha}, over all rules and "
        "classes."
    )


def group_row(group: GroupDrop) -> tuple[str, ...]:
    """Return the cells of ``GROUP_HEADERS``."""
    return (
        group.name,
        _points(group.before),
        _points(group.after),
        format_points(-group.drop / 100),
        format_points(-group.expected_by_chance / 100),
        _points(max(group.bound, 0.0)),
        _points(group.detectable),
    )


def violation_headers(rule: RuleResult) -> tuple[str, ...]:
    """Return the headers of the classes that break a rule."""
    return CLASS_HEADERS if rule.rule == "max_class_drop" else ACCURACY_HEADERS


def violation_row(rule: RuleResult, violation: Violation) -> tuple[str, ...]:
    """Return the cells below :func:`violation_headers`."""
    sides = (violation.name, _points(violation.before), _points(violation.after))
    bounds = (_points(violation.value), _points(violation.bound))
    return (*sides, *(bounds if rule.rule == "max_class_drop" else bounds[1:]), format_count(violation.support))


def _moved(drop: float, down: str, up: str) -> str:
    """Describe a drop, which may be negative; empty if it rounds to 0."""
    points = _points(abs(drop))
    return "" if points == _points(0.0) else f"{down if drop > 0 else up} by {points} points"


def _count(rule: RuleResult) -> str:
    found, verb = len(rule.violations), "is" if len(rule.violations) == 1 else "are"
    return f"{format_count(found)} of {pluralize(rule.n_tested, 'class', 'classes')} {verb}"


def _none(rule: RuleResult) -> str:
    return "The only class is not" if rule.n_tested == 1 else f"None of {format_count(rule.n_tested)} classes is"


def _points(value: float | None) -> str:
    return format_percent(None if value is None else value / 100)
