"""Fill the tables of docs/mr2.md and draw docs/mr2.png from the stored results.

``python docs/generate_mr2.py [FOLDER]``, or ``make docs``. A table of the page is replaced by the one with its header;
the text between the tables is written by hand, and :func:`state_figures` checks its figures.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from classgap._atomic_write import atomic_write, atomic_write_text
from classgap.reproduce.catalog import load_recipe
from classgap.reproduce.cells import make_plan
from classgap.reproduce.results import EntryResult, RecipeResult, collect
from classgap.reproduce.store import ResultStore
from classgap.reproduce.verdicts import Comparison, compare_paired

ROOT = Path(__file__).parents[1]
DEFAULT_DECAY = 0.0005  # default weight decay of ``classgap train``
FITTED = {"c": 0.9}  # parts of the search that only choose settings with this training accuracy
SEARCHED = {"MNIST-1D, 40 epochs": "a", "MNIST-1D, 200 epochs": "a", "CLINC150": "a", "digits": "a"} | {
    "CIFAR-100, fitted": "c",
    "CIFAR-100, plain": "d",
}
FORMS = {
    "Other margins γ, no pull": [
        "γ from feature norm, exponent 1/3 (the paper's)",
        "γ from feature norm, exponent -1/3",
        "γ from spread, exponent 1/3",
        "γ from spread relative to ‖μ̂‖², exponent 1/3",
        "γ from spread relative to nearest mean, exponent 1/3",
        "γ from training error, exponent 1/3",
        "γ from training margin, exponent 1/3",
        "γ = 1/2 for all (temperature)",
        "γ = 2 for all (temperature)",
    ],
    "Tighter classes": [
        "MR², strength auto",
        "MR², strength auto, no logit margin",
        "pairs (Eq. 2), cap factor 4",
        "mean pair, cap factor 4",
        "centroid, cap factor 4",
    ],
    "Smaller features": [
        "feature norm, cap factor 1",
        "feature norm, cap factor 2",
        "feature norm, cap factor 4",
        "feature norm, cap factor 8",
        "‖f‖²/γ² (Eq. 13), cap factor 2",
        "‖f‖²/γ² (Eq. 13), logit margin, cap factor 2",
        "feature norm and pairs, cap factor 2",
        "feature norm, more for hard classes, cap factor 4",
        "feature norm, more for easy classes, cap factor 4",
    ],
    "Usual remedies": ["label smoothing"],
}
COLORS = ("#888888", "#d95f02", "#1b7f79", "#5e60ce")
LIMITS = {"MNIST-1D, 40 epochs": (-8, 5), "CLINC150": (-3, 3)}  # of the figure, in points

Table = list[list[str]]  # the first row is the header


def find_result(name: str, store: ResultStore) -> RecipeResult:
    """Return the stored results of a recipe of the package, or of one in experiments/."""
    path = ROOT / "experiments" / f"{name}.yaml"
    return collect(make_plan(load_recipe(str(path) if path.exists() else name), "cpu"), store)


def find_entry(result: RecipeResult, part: str, row: str, column: str) -> EntryResult:
    """Return an entry that has been run."""
    (found,) = [each for each in result.part(part) if (each.row, each.column) == (row, column)]
    if not found.values:
        raise ValueError(f"{result.recipe.name}: {row} / {column} has not been run.")
    return found


def tuned_table(result: RecipeResult) -> Table:
    """Return one row per problem: cross-entropy, and the changes of MR² and the feature norm."""
    header = ["problem", "seeds", "train accuracy", "cross-entropy: hard", "MR²: change", "easy"]
    rows = [[*header, "feature norm auto: change", "easy", "MR² against feature norm auto"]]
    for column in result.recipe.parts["a"].columns:
        base, *others = (find_entry(result, "a", row, column) for row in ("cross-entropy", "MR2", "feature norm"))
        fitted = [
            round(100 * _mean(result.records["a", each.row, column], "train_accuracy")) for each in (base, *others)
        ]
        cells = [column, str(len(base.values)), f"{_range(fitted)} %", f"{base.mean:.1f}"]
        for each in others:
            cells += [_interval(each.comparison), _interval(find_entry(result, "b", each.row, column).comparison)]
        rows.append([*cells, _interval(compare_paired(others[0].values, others[1].values))])
    return rows


def thirds_table(result: RecipeResult) -> Table:
    """Return the hard third of each method, and the changes of the hard and the easy third."""
    part = result.recipe.parts["a"]
    rows = [["method", *(head for each in part.columns for head in (f"{each}: hard", "change", "easy, change"))]]
    for row in part.rows:
        cells = []
        for column in part.columns:
            hard, easy = (find_entry(result, name, row, column) for name in ("a", "b"))
            cells += [f"{hard.mean:.1f}", _interval(hard.comparison), _interval(easy.comparison)]
        rows.append([row, *cells])
    return rows


def decay_table(search: RecipeResult) -> Table:
    """Return the best hard thirds of the search at the default and at a tuned weight decay, and gains over them."""
    at = f"{DEFAULT_DECAY:g}"
    forms = ("MR²", "feature norm auto")
    heads = ["problem", "seeds", *(f"{form}: at {at} | tuned" for form in ("cross-entropy", *forms))]
    rows = [" | ".join(heads).split(" | ")]
    for column in SEARCHED:
        reached = best_settings(search, column, "cross-entropy")
        cells = [_level(each.values) for each in reached]
        for form in forms:
            pairs = zip(best_settings(search, column, form), reached, strict=True)
            cells += [_interval(compare_paired(new.values, old.values)) for new, old in pairs]
        rows.append([column, str(len(reached[0].values)), *cells])
    return rows


def best_settings(search: RecipeResult, column: str, method: str) -> tuple[EntryResult, EntryResult]:
    """Return the best results of a method at the default weight decay, and over all settings of the search."""
    part = SEARCHED[column]
    settings = search.recipe.parts[part].rows
    default = [row for row in settings if settings[row]["weight_decay"] == DEFAULT_DECAY]
    at_default, tuned = (find_best(search, part, column, method, rows)[0] for rows in (default, settings))
    return find_entry(search, part, at_default, column), find_entry(search, part, tuned, column)


def find_best(
    search: RecipeResult, part: str, column: str, method: str, rows: Iterable[str] | None = None
) -> tuple[str, float]:
    """Return the row of a method with the highest mean accuracy of the hard third, and this accuracy.

    Only rows that fit the training samples count.
    """
    found = {}
    for row in search.recipe.parts[part].rows if rows is None else rows:
        if re.split(r",? (?:lr |wd |0\.)", row)[0] == method:
            hard = find_entry(search, part, row, column).mean
            if _mean(search.records[part, row, column], "train_accuracy") >= FITTED.get(part, 0):
                found[row] = hard
    best = max(found, key=lambda row: (found[row], row))
    return best, found[best]


def margins_table(result: RecipeResult) -> Table:
    """Return the variation of γ between classes, and its rank correlation with their error."""
    rows = [["problem", "deviation / mean", "largest / smallest", "correlation with the error"]]
    for column in result.recipe.parts["a"].columns:
        columns = zip(*map(_margins, result.records["a", "hard third", column]), strict=True)
        rows.append([column, *(", ".join(f"{value:.2f}" for value in values) for values in columns)])
    return rows


def _margins(record: Mapping[str, Any]) -> tuple[float, float, float]:
    trained = record["train_classes"]
    assert trained["name"] == record["classes"]["name"]
    gamma_K = np.cbrt(_squared_sizes(trained))
    errors_K = 1 - np.asarray(record["classes"]["accuracy"])
    correlation = spearmanr(gamma_K, errors_K)[0]
    return gamma_K.std(ddof=1) / gamma_K.mean(), gamma_K.max() / gamma_K.min(), correlation


def size_table(result: RecipeResult) -> Table:
    """Return the mean ‖f‖² of test samples and the hard third by weight decay, with 95 % intervals."""
    methods = list(result.recipe.parts["a"].rows)
    rows = [["weight decay", *(head for name in methods for head in (f"{name}: ‖f‖²", "hard"))]]
    for decay in result.recipe.parts["a"].columns:
        cells = []
        for name in methods:
            sizes = [_squared_sizes(each["classes"]).mean() for each in result.records["a", name, decay]]
            cells += [_level(sizes, digits=2), _level(find_entry(result, "a", name, decay).values)]
        rows.append([decay, *cells])
    return rows


def _squared_sizes(classes: Mapping[str, Any]) -> np.ndarray:
    """Mean ‖f‖² of each class: ‖mean‖² and the squared spread around it."""
    return np.square(classes["mean_norm"]) + np.square(classes["spread"])


def generate_tables(store: ResultStore) -> list[Table]:
    """Return the tables of the page."""
    return [
        tuned_table(find_result("question-tuned", store)),
        margins_table(find_result("question-margins", store)),
        thirds_table(find_result("mr2-collapse", store)),
        decay_table(find_result("mr2-search", store)),
        size_table(find_result("mr2-feature-size", store)),
        thirds_table(find_result("mr2-strength", store)),
    ]


def state_figures(store: ResultStore) -> list[str]:
    """Return the figures in the text between the tables, as phrases of the page."""
    forms, search, tuned, strength, control, augment = (
        find_result(name, store)
        for name in ("mr2-forms", "mr2-search", "question-tuned", "mr2-strength", "question-control", "mr2-augment")
    )
    short, long, clinc = "MNIST-1D, 40 epochs", "MNIST-1D, 200 epochs", "CLINC150"

    def change(result: RecipeResult, row: str, column: str, part: str = "a") -> str:
        return _interval(find_entry(result, part, row, column).comparison)

    def both(row: str, word: str) -> str:
        return f"{change(forms, row, short)}{word}{change(forms, row, clinc)}"

    def gain(method: str, column: str) -> str:
        """Gain at the default weight decay, with a tuned learning rate."""
        new, old = (best_settings(search, column, each)[0] for each in (method, "cross-entropy"))
        return _interval(compare_paired(new.values, old.values))

    def tuning(column: str) -> str:
        """Gain of cross-entropy from a tuned weight decay."""
        old, new = best_settings(search, column, "cross-entropy")
        return _interval(compare_paired(new.values, old.values))

    def best(column: str, method: str) -> str:
        return f"{best_settings(search, column, method)[1].mean:.1f}"

    default = "MR², strength auto (default)"
    tighter = [
        find_entry(forms, "a", row, each).mean for row in FORMS["Tighter classes"][2:] for each in (short, clinc)
    ]
    bases = [find_entry(forms, "a", "cross-entropy", each).mean for each in (short, clinc)] * (len(tighter) // 2)
    losses = [base - each for each, base in zip(tighter, bases, strict=True)]
    norm = [find_entry(tuned, "a", "feature norm", each).comparison.mean for each in (short, long, clinc)]
    seeds = augment.records["a", "MR²", "hard"], augment.records["a", "cross-entropy", "hard"]
    single = [100 * (a["metrics"]["hard"] - b["metrics"]["hard"]) for a, b in zip(*seeds, strict=True)]
    level = {
        name: find_entry(tuned, "a", "cross-entropy", f"CIFAR-100, {name}").mean for name in ("fitted", "augmented")
    }
    plain = find_entry(search, "c", "cross-entropy, lr 0.1, wd 0.0005", "CIFAR-100, fitted")
    changes = [each.comparison.mean for each in forms.part("a") if each.column == clinc and each.comparison is not None]
    large = [each for each in changes if round(each, 1) >= 1]
    fitted, not_fitted = "CIFAR-100, fitted", "CIFAR-100, plain"
    return [
        f"gains {change(strength, default, short)} points on the hard third after 40 epochs and "
        f"{change(strength, default, long)} after 200",
        f"it gains {gain('MR²', short)} and {gain('MR²', long)} (two seeds",
        f"gains {min(norm):.1f} to {max(norm):.1f} points on the first three problems",
        f"MR² is {change(control, 'MR2', 'CIFAR-100 or MNIST-1D, hard')} points better",
        f"third {change(tuned, 'MR2', 'CIFAR-100, augmented', 'b')} points",
        f"fitted: MR² {best(fitted, 'MR²')}, control {best(fitted, 'feature norm auto')}, cross-entropy "
        f"{best(fitted, 'cross-entropy')}; not fitted: MR² {best(not_fitted, 'MR²')}, cross-entropy "
        f"{best(not_fitted, 'cross-entropy')}",
        f"own γ on CLINC150 ({change(forms, FORMS['Other margins γ, no pull'][0], clinc)})",
        f"γ from the feature norm hurts ({both('γ from feature norm, exponent 1', ', ')})",
        f"gains {both('feature norm, cap factor 2', ' and ')} points",
        f"With twice the cap it gains {both('feature norm, cap factor 4', ' and ')}",
        f"lose {min(losses):.1f} to {max(losses):.1f} points",
        f"without the logit margin gives {both('MR², strength auto, no logit margin', ' and ')}",
        f"class-agnostic penalty: {both('‖f‖²/γ² (Eq. 13), cap factor 2', ' and ')}",
        f"batches of 128 ({both('MR², strength auto, memory', ', ')})",
        f"gains {tuning(short)} and {tuning(long)} points for cross-entropy",
        f"hard third {level['fitted']:.1f} without them after 40 epochs, {level['augmented']:.1f} with them after 50",
        f"cross-entropy reaches {find_entry(augment, 'a', 'cross-entropy', 'hard').mean:.1f} % on the hard third",
        f"({plain.mean:.1f} % without augmentation after 40 epochs)",
        f"reach {_signed(min(large))} to {_signed(max(large))} on CLINC150",
        f"detect: {', '.join(map(_signed, single[:-1]))} and {_signed(single[-1])} points, on average "
        f"{change(augment, 'MR²', 'hard')}; easy third {change(augment, 'MR²', 'easy')}",
        f"factor of 1 gains {both('feature norm, cap factor 1', ' and ')}",
        *(
            f"{place} {', '.join(change(forms, f'feature norm, cap factor {each}', column) for each in (2, 4))} and "
            f"{change(forms, 'feature norm, cap factor 8', column)}"
            for place, column in (("2, 4 and 8 gain", short), ("on CLINC150,", clinc))
        ),
    ]


def find_unstated(page: str, figures: Iterable[str]) -> list[str]:
    """Return the phrases that a page does not have."""
    text = " ".join(page.replace("−", "-").split())
    return [each for each in figures if each not in text]


def fill(page: str, tables: Sequence[Table]) -> str:
    """Replace the tables of a page that have the same headers.

    Raises:
        ValueError: If the page has no table with a header, or several.
    """
    for rows in tables:
        header, *body = (f"| {' | '.join(cells)} |" for cells in rows)
        text = "\n".join([header, "|" + "---|" * len(rows[0]), *body])
        pattern = re.compile(rf"^( *){re.escape(header)}\n(?: *\|.*\n)+", re.MULTILINE)
        if len(pattern.findall(page)) != 1:
            raise ValueError(f"the page must have one table with the header {header}")
        page = pattern.sub(lambda match, text=text: re.sub("^", match[1], text, flags=re.MULTILINE) + "\n", page)
    return page


def draw_figure(result: RecipeResult) -> bytes:
    """Draw the gain of each variant on the hard third over tuned cross-entropy, with 95 % intervals, as PNG."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    rows = [(row, color) for color, names in zip(COLORS, FORMS.values(), strict=True) for row in names]
    figure, axes = plt.subplots(1, len(LIMITS), figsize=(10, 6), sharey=True, layout="constrained")
    for axis, (column, limits) in zip(axes, LIMITS.items(), strict=True):
        axis.axvline(0, color="black", linewidth=0.8)
        for i, (row, color) in enumerate(rows):
            found = find_entry(result, "a", row, column).comparison
            assert found is not None
            axis.errorbar(found.mean, -i, xerr=found.high - found.mean, fmt="o", color=color, capsize=2)
        axis.set(title=column, xlabel="hard third: points over tuned cross-entropy", xlim=limits)
        axis.grid(axis="x", alpha=0.3)
    axes[0].set_yticks([-i for i in range(len(rows))], [row for row, _ in rows])
    for text, (_, color) in zip(axes[0].get_yticklabels(), rows, strict=True):
        text.set_color(color)
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=110, metadata={"Software": None})
    plt.close(figure)
    return drawn.getvalue()


def _mean(records: Iterable[Mapping[str, Any]], metric: str) -> float:
    return float(np.mean([record["metrics"].get(metric, 0.0) for record in records]))


def _range(values: Sequence[int]) -> str:
    return f"{min(values)} to {max(values)}" if len(set(values)) > 1 else str(values[0])


def _interval(found: Comparison | None) -> str:
    """Format a mean difference and half of its 95 % interval; the baseline has none."""
    if found is None:
        return ""
    return _signed(found.mean) if found.n < 2 else f"{_signed(found.mean)} ± {found.high - found.mean:.1f}"


def _level(values: Sequence[float], digits: int = 1) -> str:
    """Format a mean over seeds and half of its 95 % interval."""
    found = compare_paired(values, np.zeros(len(values)).tolist())
    half = "" if found.n < 2 else f" ± {found.high - found.mean:.{digits}f}"
    return f"{found.mean:.{digits}f}{half}"


def _signed(value: float) -> str:
    """Format with sign and one digit; never -0.0."""
    return f"{round(value, 1) + 0.0:+.1f}"


def main() -> None:
    """Write the page and its figure."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    store = ResultStore(ROOT / "results")
    page = fill((Path(__file__).parent / "mr2.md").read_text(encoding="utf-8"), generate_tables(store))
    atomic_write_text(folder / "mr2.md", page)
    with atomic_write(folder / "mr2.png") as file:
        file.write(draw_figure(find_result("mr2-forms", store)))
    if missing := find_unstated(page, state_figures(store)):
        raise SystemExit("the text of docs/mr2.md does not have these figures of the results:\n" + "\n".join(missing))


if __name__ == "__main__":
    main()
