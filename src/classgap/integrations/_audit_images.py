"""Figures of an audit as RGB arrays, for trackers that show images but no HTML."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from classgap.audit import Audit

Pixels = NDArray[np.uint8]

MAX_ROWS = 40  # classes of the accuracy figure, the hardest ones
MAX_CLASSES = 1000  # of the confusion figure; larger matrices are summed over blocks
MAX_LETTERS = 26  # of a class name
ROW, NAME_WIDTH, PLOT_WIDTH, MARGIN = 18, 180, 400, 10
SIDE = 512  # smallest side of the confusion figure
INK, GRID, BAR = (60, 60, 60), (225, 225, 225), (120, 160, 205)
THIRDS = {"easy": (90, 160, 100), "medium": BAR, "hard": (205, 105, 80)}


def accuracy_image(audit: Audit) -> Pixels:
    """Draw the accuracy of each class with its interval, hardest first and colored by third.

    >>> accuracy_image(Audit.from_predictions(targets=[0, 0, 1], predictions=[0, 1, 1])).shape
    (76, 600, 3)
    """
    known = [entry for entry in audit.classes if entry.accuracy is not None]
    # Thirds break ties by class index; sort ties by third, so that the colors do not interleave.
    rows = sorted(known, key=lambda entry: (entry.accuracy, entry.group != "hard", entry.group == "easy"))[:MAX_ROWS]
    size = (NAME_WIDTH + PLOT_WIDTH + 2 * MARGIN, (len(rows) + 1) * ROW + 2 * MARGIN + 2)
    image = Image.new("RGB", size, "white")
    draw, font = ImageDraw.Draw(image), ImageFont.load_default()
    bottom = MARGIN + len(rows) * ROW
    for percent in range(0, 101, 20):
        x = NAME_WIDTH + PLOT_WIDTH * percent / 100
        draw.line((x, MARGIN, x, bottom), fill=GRID)
        draw.text((x, bottom + 4), f"{percent} %", fill=INK, font=font, anchor="mt")
    for i, entry in enumerate(rows):
        middle = MARGIN + i * ROW + ROW / 2
        draw.text((NAME_WIDTH - 6, middle), _shorten(entry.name), fill=INK, font=font, anchor="rm")
        end = NAME_WIDTH + PLOT_WIDTH * float(entry.accuracy or 0.0)
        draw.rectangle((NAME_WIDTH, middle - 5, end, middle + 5), fill=THIRDS.get(entry.group or "", BAR))
        if entry.interval is not None:
            low, high = (NAME_WIDTH + PLOT_WIDTH * each for each in (entry.interval.low, entry.interval.high))
            draw.line((low, middle, high, middle), fill=INK)
    return np.asarray(image)


def confusion_image(audit: Audit) -> Pixels:
    """Draw the confusion matrix, rows of true classes normalized; darker is more.

    >>> image = confusion_image(Audit.from_predictions(targets=[0, 0, 1], predictions=[0, 1, 1]))
    >>> image.shape, image[0, 0, 0] == image[0, -1, 0], image[-1, 0, 0] > image[-1, -1, 0]
    ((512, 512, 3), np.True_, np.True_)
    """
    rates_KK = np.asarray(audit.confusion_matrix("true", sparse=False), dtype=np.float64)
    block = math.ceil(len(rates_KK) / MAX_CLASSES)
    if block > 1:
        starts = np.arange(0, len(rates_KK), block)
        rates_KK = np.add.reduceat(np.add.reduceat(rates_KK, starts, axis=0), starts, axis=1) / block
    shade_KK = np.sqrt(np.clip(np.nan_to_num(rates_KK), 0, 1))[..., None]  # roots make rare confusions visible
    colors = 255 - shade_KK * (255 - np.array([25.0, 55.0, 110.0]))
    scale = math.ceil(SIDE / len(rates_KK))
    return colors.round().astype(np.uint8).repeat(scale, axis=0).repeat(scale, axis=1)


def _shorten(name: str) -> str:
    return name if len(name) <= MAX_LETTERS else name[: MAX_LETTERS - 1] + "…"
