"""Mixed precision: where the network computes in 16 bits, and the scaling that fp16 needs."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def autocast(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """Compute in ``precision`` inside; "fp32" changes nothing."""
    if precision == "fp32":
        return nullcontext()
    return torch.autocast(device.type, dtype=DTYPES[precision])


def grad_scaler(precision: str, device: torch.device) -> torch.amp.GradScaler:
    """A scaler of gradients, which does something with fp16 only."""
    return torch.amp.GradScaler(device.type, enabled=precision == "fp16")
