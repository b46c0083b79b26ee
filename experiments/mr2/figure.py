"""Draw docs/mr2.png: the gain of each form on the hard third over tuned cross-entropy, from stored results.

    python experiments/mr2/figure.py

Points are means over seeds, lines 95 % intervals of the paired differences (Student's t).
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from plans import problem_results
from tables import differences, half_width

from classgap._atomic_write import atomic_write

OUT = Path(__file__).parents[2] / "docs" / "mr2.png"
PROBLEMS = {"mnist1d-40": "MNIST-1D, 40 epochs", "clinc150-mlp": "CLINC150"}
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


def gains(problem: str, method: str) -> np.ndarray:
    """Gain on the hard third over cross-entropy in percentage points, one per seed."""
    return differences(problem_results("forms", problem), method, "cross-entropy", "hard")


def label(method: str) -> str:
    """Add the default force of 4 to penalties without one."""
    bounded = method in FORMS["Tighter classes"][2:] + FORMS["Smaller features"]
    return f"{method}, force 4" if bounded and "force" not in method else method


def main() -> None:
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    rows = [(method, color) for color, methods in zip(COLORS, FORMS.values(), strict=True) for method in methods]
    figure, axes = plt.subplots(1, len(PROBLEMS), figsize=(10, 6), sharey=True, layout="constrained")
    for axis, (problem, title) in zip(axes, PROBLEMS.items(), strict=True):
        axis.axvline(0, color="black", linewidth=0.8)
        for i, (method, color) in enumerate(rows):
            values = gains(problem, method)
            axis.errorbar(values.mean(), -i, xerr=half_width(values), fmt="o", color=color, capsize=2)
        axis.set_title(title)
        axis.set_xlabel("hard third: points over tuned cross-entropy")
        axis.grid(axis="x", alpha=0.3)
        axis.set_xlim(-8 if problem == "mnist1d-40" else -3, 5 if problem == "mnist1d-40" else 3)
    axes[0].set_yticks([-i for i in range(len(rows))], [label(method) for method, _ in rows])
    for text, (_, color) in zip(axes[0].get_yticklabels(), rows, strict=True):
        text.set_color(color)
    with atomic_write(OUT) as file:
        figure.savefig(file, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
