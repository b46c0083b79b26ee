"""Predictions in batches, and the values that ClassGap should give for them."""

from typing import Any

import pytest
import torch
from torch import Tensor

import classgap as cg
from classgap.integrations.torchmetrics import ClassGap

N, K, D = 300, 8, 4
NAMES = list("abcdefgh")
UNSEEN = 5
BATCHES = torch.arange(N).split(32)


def data() -> tuple[Tensor, Tensor, Tensor]:
    """Logits, targets and features; a class has no samples, and classes are not equally hard."""
    random = torch.Generator().manual_seed(0)
    seen = torch.tensor([k for k in range(K) if k != UNSEEN])
    targets = seen[torch.randint(K - 1, (N,), generator=random)]
    logits = torch.randn(N, K, generator=random) + (0.4 * targets[:, None]) * torch.eye(K)[targets]
    return logits, targets, torch.randn(N, D, generator=random)


def whole(**settings: Any) -> cg.Audit:
    logits, targets, _ = data()
    return cg.Audit.from_predictions(logits, targets, class_names=NAMES, **settings)


def updated(batches: Any = BATCHES, **settings: Any) -> ClassGap:
    logits, targets, _ = data()
    metric = ClassGap(class_names=NAMES, **settings)
    for rows in batches:
        metric.update(logits[rows], targets[rows])
    return metric


def expected(audit: cg.Audit) -> dict[str, float]:
    thirds = {name: audit.groups[name] for name in ("easy", "medium", "hard")}
    values = {
        "accuracy": audit.overall.accuracy,
        "balanced_accuracy": audit.overall.balanced_accuracy,
        "easy_hard_gap": audit.gap.easy_hard,
        "worst_class_accuracy": audit.gap.worst_class,
        "worst_k_accuracy": audit.gap.worst_tenth,
        "margin": audit.overall.margin,
        **{f"{name}_accuracy": group.accuracy for name, group in thirds.items()},
        **{f"{name}_margin": group.margin for name, group in thirds.items()},
    }
    assert None not in values.values()
    return values  # type: ignore[return-value]


def assert_values(found: dict[str, Tensor], values: dict[str, float]) -> None:
    assert found.keys() == values.keys()
    assert all(value.shape == () and value.dtype == torch.float32 for value in found.values())
    assert {name: value.item() for name, value in found.items()} == pytest.approx(values, rel=1e-6, nan_ok=True)
