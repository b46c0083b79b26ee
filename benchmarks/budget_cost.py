"""Cost of the error budget at the size of ImageNet's validation set, in products of features and head.

python benchmarks/budget_cost.py            # about three minutes; stores results/budget_cost.json
python benchmarks/budget_cost.py --quick    # a tenth of the samples and classes; stores nothing
python benchmarks/budget_cost.py docs       # writes the stored figures into docs/diagnosis.md
"""

from __future__ import annotations

import stored
import timing
import torch

from classgap.audit.diagnosis.budget import Assignment
from classgap.audit.io.predictions import Predictions

RESULTS = stored.RESULTS / "budget_cost.json"
SECTION = stored.Section("docs/diagnosis.md", "cost of the budget")
SAMPLES, CLASSES, WIDTH = 50_000, 1_000, 2_048


def measure(repeats: int, quick: bool) -> timing.Results:
    samples, classes = (SAMPLES // 10, CLASSES // 10) if quick else (SAMPLES, CLASSES)
    timing.use_one_thread()
    torch.manual_seed(0)
    targets = torch.arange(samples) % classes
    weight = 0.12 * torch.randn(classes, WIDTH)
    features = weight[targets] + torch.randn(samples, WIDTH)
    bias = -0.5 * weight.square().sum(dim=1)
    data = Predictions.from_arrays(targets, logits=features @ weight.T + bias, features=features, head=(weight, bias))
    jobs = {"product": lambda: features @ weight.T, "budget": lambda: Assignment.from_predictions(data, seed=0)}
    seconds = timing.repeat(repeats, lambda: timing.fastest(jobs, 1))
    return {"samples": samples, "classes": classes, "features": WIDTH, "seconds": seconds}


def describe(results: timing.Results) -> str:
    """Return the section of docs/diagnosis.md."""
    budget, product = (results["seconds"][name] for name in ("budget", "product"))
    size = f"{results['samples']:,} samples, {results['classes']:,} classes and {results['features']:,} features"
    return timing.paragraph(
        f"`python benchmarks/budget_cost.py`: for {size}, the budget takes {timing.describe_ratio(budget, product)} "
        f"times as long as a product of features and head: {timing.describe_seconds(budget)} against "
        f"{timing.describe_seconds(product)}. {timing.describe_conditions(results)}"
    )


if __name__ == "__main__":
    timing.main(__doc__, measure, describe, RESULTS, SECTION)
