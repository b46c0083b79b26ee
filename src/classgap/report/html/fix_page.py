"""Template variables of the page of a fix."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from classgap.remedies.results import FixResult, RemedyResult
from classgap.report.charts.fix_chart import proof_chart, remedy_scatter
from classgap.report.details import diff_details
from classgap.report.fix_summary import (
    NAMES,
    evidence_sentence,
    exceeded_limits,
    fix_headline,
    fix_sentences,
    format_cost_change,
    remedy_cost,
    remedy_mark,
    rule_sentence,
    settings_text,
    shown_measures,
)
from classgap.report.formatting import (
    format_level,
    format_percent,
    format_points,
    format_points_interval,
)
from classgap.report.html.diff_page import diff_view
from classgap.report.notes import fix_notes


def fix_page(result: FixResult) -> dict[str, Any]:
    """Return the variables of ``fix.html``."""
    headers, text_columns = _remedy_headers(result)
    return {
        "result": result,
        "level": format_level(result.confidence_level),
        "headline": fix_headline(result, interval=False),
        "metrics": _metrics(result),
        "evidence": evidence_sentence(result),
        "sentences": fix_sentences(result),
        "rule": rule_sentence(result),
        "legend": _legend(result),
        "chart": remedy_scatter(result) if result.remedies else None,
        "remedy_headers": headers,
        "remedy_rows": [_remedy_row(result, remedy) for remedy in result.remedies],
        "text_columns": text_columns,
        "proof_text": _proof_text(result),
        "proof_chart": None if result.proof is None else proof_chart(result),
        "proof_rows": _proof_rows(result),
        "use": _use(result),
        "view": None if result.diff is None else diff_view(result.diff, ""),
        "data_sets": [] if result.diff is None else [diff_details(result.diff)],
        "notes": fix_notes(result),
    }


def _metrics(result: FixResult) -> list[tuple[str, Any, str]]:
    """The changes at the top of the page: label, proof, CSS class."""
    if result.proof is None:
        return []
    return [
        (_capitalize(NAMES[name]), result.proof[name], name if name in ("easy", "hard") else "")
        for name in ("hard", "medium", "easy", *(["balanced"] if result.goal == "balanced" else []), "overall", "worst")
        if name in result.proof
    ]


def _legend(result: FixResult) -> list[tuple[str, str]]:
    exceeding = any(exceeded_limits(result, remedy) for remedy in result.remedies if not remedy.chosen)
    plain = any(not remedy.chosen and not exceeded_limits(result, remedy) for remedy in result.remedies)
    entries = [("gained", "chosen", result.chosen is not None), ("unclear", "within the limits", plain)]
    entries.append(("cross regressed", "estimate exceeds a limit", exceeding))
    return [(kind, text) for kind, text, shown in entries if shown]


def _remedy_headers(result: FixResult) -> tuple[list[str], tuple[int, ...]]:
    measures = [_capitalize(NAMES[name]) for name in shown_measures(result)]
    cost = ["Mean cost"] if result.goal == "cost" else []
    headers = ["Remedy", *measures, *cost, "Per prediction", "Setting"]
    return headers, (len(headers) - 1,)


def _remedy_row(result: FixResult, remedy: RemedyResult) -> tuple[Any, ...]:
    def change(name: str) -> Markup | str:
        if name not in remedy.change:
            return ""
        text = Markup("{}<br><small class=soft>{}</small>")
        return text.format(format_points(remedy.change[name]), format_points_interval(remedy.interval[name]))

    cost = [format_cost_change(remedy.change["cost"])] if result.goal == "cost" else []
    cells = (*map(change, shown_measures(result)), *cost, remedy_cost(remedy))
    name = Markup("+<wbr>").join(remedy.name.split("+"))
    mark = remedy_mark(result, remedy)
    if mark:
        name += Markup('<br><small class="{}">{}</small>').format("badge gained" if remedy.chosen else "soft", mark)
    return (name, *cells, settings_text(remedy.settings))


def _proof_text(result: FixResult) -> str:
    if result.nested:
        return (
            "Each fold evaluates the remedy that the other four folds chose. The choice may differ between folds, and "
            "may be none. The values describe the whole procedure."
        )
    return f"{evidence_sentence(result)} Both sides use the thirds ranked on the fitting samples."


def _proof_rows(result: FixResult) -> list[tuple[str, ...]]:
    return [
        (
            NAMES[name],
            format_percent(proof.before),
            format_percent(proof.after),
            format_points(proof.change),
            format_points_interval(proof.interval),
        )
        for name, proof in (result.proof or {}).items()
        if name != "cost"
    ]


def _use(result: FixResult) -> dict[str, str] | None:
    if result.fix is None:
        return None
    given = {"logits": "logits", "ensemble": "stacked_logits", "features": "features"}.get(result.fix.inputs, "inputs")
    code = f'import classgap as cg\n\nfix = cg.load_fix("fixed")\npredictions = fix.predict({given})'
    return {"inputs": result.fix.input_description, "code": code}


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]
