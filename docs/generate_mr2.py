"""Fill the tables of docs/mr2.md and draw docs/mr2.png from the stored results.

``python docs/generate_mr2.py [FOLDER]``, or ``make docs``. A table of the page is replaced by the one with its header;
the text between the tables is written by hand.
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
SEEDS = {"mr2-search": 10}  # the search has 10 on digits; the other recipes state theirs
DEFAULT_DECAY = 0.0005  # default weight decay of ``classgap train``
FITTED = {"c": 0.9}  # parts of the search that only choose settings with this training accuracy
SEARCHED = {"MNIST-1D, 40 epochs": "a", "MNIST-1D, 200 epochs": "a", "CLINC150": "a", "digits": "a"} | {
    "CIFAR-100, fitted": "c",
    "CIFAR-100, plain": "d",
}
FORMS = {
    "Other margins γ, no pull": [
        "γ of size, power 1/3 (the paper's)",
        "γ of size, power -1/3",
        "γ of spread, power 1/3",
        "γ of spread by ‖μ‖², power 1/3",
        "γ of spread by nearest mean, power 1/3",
        "γ of training error, power 1/3",
        "γ of training margin, power 1/3",
        "γ = 1/2 for all (temperature)",
        "γ = 2 for all (temperature)",
    ],
    "Tighter classes": [
        "MR², strength auto",
        "MR², strength auto, no logit margin",
        "pairs (Eq. 2)",
        "mean pair",
        "centroid",
    ],
    "Smaller features": [
        "norm, force 1",
        "norm, force 2",
        "norm, force 4",
        "norm, force 8",
        "norm by γ² (Eq. 13), force 2",
        "norm by γ² (Eq. 13), logit margin, force 2",
        "norm and pairs, force 2",
        "norm, more for hard classes",
        "norm, more for easy classes",
    ],
    "Usual remedies": ["label smoothing"],
}
COLORS = ("#888888", "#d95f02", "#1b7f79", "#5e60ce")
LIMITS = {"MNIST-1D, 40 epochs": (-8, 5), "CLINC150": (-3, 3)}  # of the figure, in points

Table = list[list[str]]  # the first row is the header


def find_result(name: str, store: ResultStore) -> RecipeResult:
    """Return the stored results of a recipe of the package, or of one in experiments/."""
    path = ROOT / "experiments" / f"{name}.yaml"
    return collect(make_plan(load_recipe(str(path) if path.exists() else name), "cpu", SEEDS.get(name)), store)


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
    heads = ["problem", *(f"{form}: at {at} | tuned" for form in ("cross-entropy", *forms))]
    rows = [" | ".join(heads).split(" | ")]
    for column, part in SEARCHED.items():
        settings = search.recipe.parts[part].rows
        default = [row for row in settings if settings[row]["weight_decay"] == DEFAULT_DECAY]
        best = {
            form: [find_best(search, part, column, form, some)[1] for some in (default, settings)]
            for form in ("cross-entropy", *forms)
        }
        reached = best.pop("cross-entropy")
        gains = [_signed(new - old) for each in best.values() for new, old in zip(each, reached, strict=True)]
        rows.append([column, *(f"{hard:.1f}" for hard in reached), *gains])
    return rows


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
    """Return the mean ‖f‖² of test samples and the hard third by weight decay."""
    methods = list(result.recipe.parts["a"].rows)
    rows = [["weight decay", *(head for name in methods for head in (f"{name}: ‖f‖²", "hard"))]]
    for decay in result.recipe.parts["a"].columns:
        cells = []
        for name in methods:
            sizes = [_squared_sizes(each["classes"]).mean() for each in result.records["a", name, decay]]
            cells += [f"{np.mean(sizes):.2f}", f"{find_entry(result, 'a', name, decay).mean:.1f}"]
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
    bounded = FORMS["Tighter classes"][2:] + FORMS["Smaller features"]  # with a force of 4 if they name none
    labels = [f"{row}, force 4" if row in bounded and "force" not in row else row for row, _ in rows]
    axes[0].set_yticks([-i for i in range(len(rows))], labels)
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


def _signed(value: float) -> str:
    """Format with sign and one digit; never -0.0."""
    return f"{round(value, 1) + 0.0:+.1f}"


def main() -> None:
    """Write the page and its figure."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    store = ResultStore(ROOT / "results")
    page = (Path(__file__).parent / "mr2.md").read_text(encoding="utf-8")
    atomic_write_text(folder / "mr2.md", fill(page, generate_tables(store)))
    with atomic_write(folder / "mr2.png") as file:
        file.write(draw_figure(find_result("mr2-forms", store)))


if __name__ == "__main__":
    main()
