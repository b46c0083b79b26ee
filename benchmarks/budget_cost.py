"""Cost of the error budget at the size of ImageNet's validation set, in products of features and head.

python benchmarks/budget_cost.py
"""

import time
from collections.abc import Callable
from typing import Any

import torch

from classgap.audit.diagnosis.budget import Assignment
from classgap.audit.io.predictions import Predictions

SAMPLES, CLASSES, WIDTH = 50_000, 1_000, 2_048


def timed(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def main() -> None:
    torch.manual_seed(0)
    targets = torch.arange(SAMPLES) % CLASSES
    weight = 0.12 * torch.randn(CLASSES, WIDTH)
    features = weight[targets] + torch.randn(SAMPLES, WIDTH)
    bias = -0.5 * weight.square().sum(dim=1)
    data = Predictions.from_arrays(targets, logits=features @ weight.T + bias, features=features, head=(weight, bias))
    product = min(timed(lambda: features @ weight.T) for _ in range(3))
    budget = min(timed(lambda: Assignment.from_predictions(data, seed=0)) for _ in range(2))
    print(f"product {product:.2f} s, error budget {budget:.2f} s: {budget / product:.1f} products")


if __name__ == "__main__":
    main()
