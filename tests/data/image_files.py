"""Write small images with known pixels."""

from pathlib import Path

import numpy as np
from PIL import Image

SIDE = 6


def pixels(seed: int, height: int = SIDE, width: int = SIDE) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def write(path: Path, seed: int, height: int = SIDE, width: int = SIDE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels(seed, height, width)).save(path)
    return path


def write_tree(base: Path, counts: dict[str, int], seed: int = 0, suffix: str = ".png") -> list[Path]:
    """Write ``counts`` images per class, all different."""
    return [
        write(base / name / f"{number:03d}{suffix}", seed + 1000 * class_index + number)
        for class_index, (name, count) in enumerate(counts.items())
        for number in range(count)
    ]


def as_tensor_layout(image: np.ndarray) -> np.ndarray:
    return image.transpose(2, 0, 1)
