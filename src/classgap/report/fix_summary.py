"""Headline and sentences of a fix, shared by the terminal output, the HTML page and notebooks."""

from __future__ import annotations

from collections.abc import Mapping

from classgap.remedies.results import FixResult, Proof, RemedyResult
from classgap.remedies.selection import prefers_balance
from classgap.report.diff_summary import class_changes
from classgap.report.formatting import (
    format_count,
    format_level,
    format_number,
    format_percent,
    format_points,
    format_points_interval,
    pluralize,
)

MEASURES = ("overall", "easy", "medium", "hard", "worst")
NAMES = {
    "overall": "overall",
    "balanced": "balanced accuracy",
    "easy": "easy third",
    "medium": "medium third",
    "hard": "hard third",
    "worst": "worst tenth",
    "cost": "mean cost",
}
VIEWS = {"mirror", "ten-views"}  # remedies that average views of an image
FLAGS = {"easy": "--max-easy-loss", "medium": "--max-medium-loss", "overall": "--max-overall-loss"}


def shown_measures(result: FixResult) -> tuple[str, ...]:
    """Return the measures to show; balanced accuracy only if it is the goal."""
    return ("overall", "balanced", *MEASURES[1:]) if result.goal == "balanced" else MEASURES


def fix_headline(result: FixResult, *, interval: bool = True) -> str:
    """Return the chosen remedy with the change of the goal, the easy third and overall, or that nothing helped.

    A significant loss of the medium third is named too, and so is the largest significant loss of a class.

    Args:
        result: the fix.
        interval: whether to add the interval of the change.
    """
    if result.proof is None:
        return f"Nothing helped: {_no_choice(result)}"
    goal = result.proof[result.goal]
    others = [
        f"{NAMES[name]} {format_points(each.change)}"
        for name in ("hard", "easy", "medium", "overall")
        if name != result.goal and (each := result.proof.get(name)) is not None
        if name != "medium" or each.interval.high < 0
    ]
    name = NAMES[result.goal]
    lead = f"{name} {_before_after(result.goal, goal)} ({_goal_change(result, goal, interval)})"
    return f"{result.chosen}: {lead}; {', '.join(others)} points{_worst_class(result)}."


def _worst_class(result: FixResult) -> str:
    worse = [] if result.diff is None else [each for each in result.diff.classes if each.verdict == "regressed"]
    if not worse:
        return ""
    worst = min(worse, key=lambda each: each.change or 0.0)
    return f"; largest significant loss of a class: {worst.name} {format_points(worst.change)} points"


def fix_sentences(result: FixResult) -> list[str]:
    """Return the sentences below the headline: confirmation, classes that changed, and the excluded remedy."""
    found = [_confirmation(result), _losses(result)]
    if result.diff is not None:
        found.append(class_changes(result.diff.classes))
    return [sentence for sentence in [*found, excluded_sentence(result)] if sentence]


def evidence_sentence(result: FixResult) -> str:
    """Return where the numbers come from."""
    fit = pluralize(result.n_fit, "sample", "samples")
    if result.nested:
        return (
            f"Changes from nested cross-fitting of {fit}: each fold evaluates the remedy that the other folds chose. "
            "Intervals are approximate."
        )
    test = pluralize(result.n_test, "test sample", "test samples")
    return f"Changes on {test}; remedies were fitted and chosen on {fit} only."


def rule_sentence(result: FixResult) -> str:
    """Return the rule of the choice."""
    if result.goal == "cost":
        return "Rule: the lowest cross-fitted mean cost, if it is lower by more than its standard error."
    if prefers_balance(result.goal, result.limits["easy"]):
        rule = (
            f"among the remedies whose cross-fitted gain of the {NAMES[result.goal]} exceeds its standard error and is "
            "within one standard error of the largest, the one with the highest balanced accuracy"
        )
    else:
        rule = f"the largest cross-fitted gain of the {NAMES[result.goal]}, if it exceeds its standard error"
    limits = [f"{NAMES[name]} {format_percent(value)}" for name, value in _active(result).items()]
    unlimited = [NAMES[name] for name in result.limits if name not in _active(result)]
    allowed = f" Largest drops allowed, in points: {', '.join(limits)}." if limits else ""
    free = f" No limit: {', '.join(unlimited)}." if unlimited else ""
    return f"Rule: {rule}.{allowed}{free}"


def excluded_sentence(result: FixResult) -> str:
    """Return which limits would allow a remedy with a larger gain, or an empty string."""
    excluded = result.excluded
    if excluded is None:
        return ""
    flags = " ".join(f"{FLAGS[name]} {100 * value:.1f}" for name, value in excluded.limits.items())
    label = remedy_label(excluded.name, excluded.settings)
    return f"{flags} would allow {label}, which may gain more: try it."


def remedy_label(name: str, settings: Mapping[str, float]) -> str:
    """Return the name of a remedy with its settings.

    >>> remedy_label("class-offsets", {"emphasis": 2.0, "strength": 0.5})
    'class-offsets with emphasis 2, strength 0.5'
    """
    text = settings_text(settings)
    return f"{name} with {text}" if text else name


def settings_text(settings: Mapping[str, float]) -> str:
    """Return the settings of a remedy.

    >>> settings_text({"emphasis": 2.0, "strength": 0.5})
    'emphasis 2, strength 0.5'
    """
    return ", ".join(f"{key.replace('_', ' ')} {value:g}" for key, value in settings.items())


def format_cost_change(change: float) -> str:
    """Format the change of the mean cost; records hold minus the cost, so that higher is better.

    >>> format_cost_change(0.125), format_cost_change(-2.0)
    ('−0.125', '+2')
    """
    return "0" if change == 0 else f"{-change:+.3g}".replace("-", "−")


def remedy_cost(remedy: RemedyResult) -> str:
    """Return the forward passes per prediction, named after their source."""
    parts = set(remedy.name.split("+"))
    if "ensemble" in parts and not parts & VIEWS:
        return pluralize(round(remedy.passes), "model", "models")
    if parts & VIEWS and "ensemble" not in parts:
        return pluralize(round(remedy.passes), "view", "views")
    return f"{remedy.passes:g} {'pass' if remedy.passes == 1 else 'passes'}"


def exceeded_limits(result: FixResult, remedy: RemedyResult) -> list[str]:
    """Return the names of the limits that the estimate of a remedy exceeds, if the rule excludes it for that."""
    if remedy.within_limits:
        return []
    return [name for name, limit in result.limits.items() if -remedy.estimate[name] > limit]


def remedy_mark(result: FixResult, remedy: RemedyResult) -> str:
    """Return "chosen", "easy limit" or the like, or an empty string."""
    if remedy.chosen:
        return "chosen"
    exceeded = exceeded_limits(result, remedy)
    return f"exceeds {' and '.join(exceeded)} limit{'s' if len(exceeded) > 1 else ''}" if exceeded else ""


def _no_choice(result: FixResult) -> str:
    if not result.remedies:
        return "no remedy applies to these predictions."
    tried = pluralize(len(result.remedies), "remedy", "remedies")
    within = [remedy for remedy in result.remedies if remedy.within_limits]
    if not within:
        return f"none of {tried} stays within the limits." if len(result.remedies) > 1 else f"{tried} exceeds a limit."
    goal = "lowers the mean cost" if result.goal == "cost" else f"raises the {NAMES[result.goal]}"
    where = "" if result.goal == "cost" else " within the limits"
    return f"none of {tried} {goal} by more than its standard error{where}."


def _confirmation(result: FixResult) -> str:
    if result.proof is None:
        return ""
    interval = result.proof[result.goal].interval
    who = "The samples" if result.nested else f"The {format_count(result.n_test)} test samples"
    if interval.low > 0:
        return ""
    if interval.high < 0:
        return f"{who} contradict the gain that the fitting samples showed: do not use this fix."
    return f"{who} cannot confirm the gain: its {format_level(result.confidence_level)} interval includes 0."


def _losses(result: FixResult) -> str:
    """Name the thirds whose loss in the proof is beyond its limit, which applies to estimates only."""
    if result.proof is None or result.goal == "cost":
        return ""
    thirds = [name for name in ("easy", "medium") if name in result.proof and name in result.limits]
    lost = [name for name in thirds if result.proof[name].interval.high < -result.limits[name]]
    if not lost:
        return ""
    losses = " and ".join(
        f"the {NAMES[name]} lost {format_percent(-result.proof[name].change)} points "
        f"(allowed: {format_percent(result.limits[name])})"
        for name in lost
    )
    where = "the samples" if result.nested else f"the {format_count(result.n_test)} test samples"
    return f"On {where}, {losses}, beyond chance: limits apply to the estimates of the choice."


def _before_after(measure: str, proof: Proof) -> str:
    if measure == "cost":  # stored as minus the cost, so that higher is better
        return f"{format_number(0 - proof.before)} → {format_number(0 - proof.after)}"  # 0 has no sign
    return f"{format_percent(proof.before)} % → {format_percent(proof.after)} %"


def _goal_change(result: FixResult, proof: Proof, interval: bool) -> str:
    if result.goal == "cost":
        change = format_cost_change(proof.change)
        ends = f"{format_cost_change(proof.interval.high)} to {format_cost_change(proof.interval.low)}"
    else:
        change, ends = f"{format_points(proof.change)} points", format_points_interval(proof.interval)
    return f"{change}, {format_level(result.confidence_level)} CI {ends}" if interval else change


def _active(result: FixResult) -> dict[str, float]:
    """Limits that can exclude anything; a limit of 1 cannot."""
    return {name: value for name, value in result.limits.items() if value < 1}
