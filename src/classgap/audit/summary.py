"""A comparison in plain words, for someone who reads nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from classgap.audit.diff_results import Change, ClassChange, GroupChange

NAMED = 3


def summary(
    overall: Change,
    groups: Mapping[str, GroupChange],
    gap: Mapping[str, Change],
    classes: Sequence[ClassChange],
    *,
    runs_per_side: int,
) -> str:
    """Overall accuracy, the hard and easy thirds with their gap, then who gained and who paid for certain."""
    over = f" (mean of {runs_per_side} seeds)" if runs_per_side > 1 else ""
    sentences = [f"Overall accuracy{over} {_course(overall)}."]
    if "hard" in groups and "easy" in groups and "easy_hard" in gap:
        hard, easy = groups["hard"].change, groups["easy"].change
        sentences.append(
            f"The classes that were hard {_moved(hard)} and the easy ones {_moved(easy)}; the gap between them "
            f"{_course(gap['easy_hard'], points=True)}."
        )
    sentences.append(_who(classes))
    return " ".join(sentences)


def _course(change: Change, *, points: bool = False) -> str:
    unit = " points" if points else " %"
    if not change.significant:
        return f"did not clearly change ({_figure(change.before)}{unit} before, {_figure(change.after)}{unit} after)"
    verb = "rose" if change.change > 0 else "fell"
    return f"{verb} from {_figure(change.before)}{unit} to {_figure(change.after)}{unit}"


def _figure(share: float, sign: str = "-") -> str:
    text = f"{100 * share:{sign}.1f}"
    return text[1:] if text in ("+0.0", "-0.0") else text.replace("-", "\N{MINUS SIGN}")


def _moved(change: Change) -> str:
    if not change.significant:
        return f"did not clearly change ({_figure(change.change, '+')} points)"
    return f"{'gained' if change.change > 0 else 'lost'} {abs(100 * change.change):.1f} points"


def _who(classes: Sequence[ClassChange]) -> str:
    known = [entry for entry in classes if entry.status == "ok"]
    gained = _ranked(known, "gained")
    regressed = _ranked(known, "regressed")
    if not gained and not regressed:
        return f"For none of the {len(known)} classes is the change certain."
    parts = [_list(gained, "gained"), _list(regressed, "regressed")]
    return f"Of {len(known)} classes {' and '.join(parts)} for certain."


def _ranked(classes: Sequence[ClassChange], verdict: str) -> list[ClassChange]:
    return sorted((entry for entry in classes if entry.verdict == verdict), key=lambda entry: -abs(entry.change or 0.0))


def _list(classes: Sequence[ClassChange], verb: str) -> str:
    if not classes:
        return f"none {verb}"
    named = ", ".join(f"{entry.name} {_figure(entry.change or 0.0, '+')}" for entry in classes[:NAMED])
    more = " …" if len(classes) > NAMED else ""
    return f"{len(classes)} {verb} ({named}{more})"
