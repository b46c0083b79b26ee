"""Every snippet of docs/figures.md works, and writes charts that stand alone."""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np

DOCS = Path(__file__).parents[2] / "docs" / "figures.md"


def test_the_page_works_from_top_to_bottom(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), flags=re.DOTALL):
        exec(block, names)
    figures = {path.name for path in tmp_path.glob("*.svg")}
    assert figures == {"spread.svg", "margins.svg", "margin_cdf.svg", "farthest.svg", "moons.svg", "ramp.svg"}
    for figure in figures:
        assert ElementTree.parse(tmp_path / figure).getroot().tag.endswith("svg")
    ends = np.array([end for segment in names["boundary"] for end in segment])
    cell = np.array([names["grid"].x_W[1] - names["grid"].x_W[0], names["grid"].y_H[1] - names["grid"].y_H[0]])
    around = [names["classifier"].predict(ends + cell * (a, b)) for a in (-1, 0, 1) for b in (-1, 0, 1)]
    assert (np.min(around, axis=0) != np.max(around, axis=0)).all()  # both classes within a cell of the line
    assert (names["losses"]["0-1 loss"] <= names["losses"]["ramp loss"]).all()
    assert (names["losses"]["ramp loss"] <= names["losses"]["Φ_γ, γ = 3"]).all()
