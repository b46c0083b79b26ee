"""Versions and hardware of a run."""

from __future__ import annotations

import platform
import sys
from importlib import metadata
from typing import Any

import torch

from classgap.distributed import world_size

PACKAGES = ("classgap", "torch", "numpy", "torchvision", "timm", "open_clip_torch", "mnist1d", "scikit-learn")


def describe_environment(device: torch.device) -> dict[str, Any]:
    """Return versions and hardware, without names of users or machines."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "packages": versions,
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "processes": world_size(),
        "threads": torch.get_num_threads(),
        "byte_order": sys.byteorder,
    }
