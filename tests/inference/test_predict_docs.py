"""Every command and every snippet of docs/predict.md works, in the order in which a reader meets them."""

import json
import re
from pathlib import Path

import numpy as np

from doc_pages import read_page, run_page


def test_the_page_works_from_top_to_bottom(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLASSGAP_CACHE", str(tmp_path / "cache"))
    names: dict[str, object] = {}
    run_page("predict.md", namespace=names)
    result, logits = names["result"], names["logits"]
    assert result.labels[0] == result.class_names[int(logits.argmax())]  # type: ignore[attr-defined]
    facts = json.loads((tmp_path / "runs" / "photos" / "preprocessing.json").read_text())
    text = read_page("predict.md")
    listed = set(re.findall(r"`(\w+)`", text[text.index("| key |") :]))
    assert set(facts) - {"schema"} <= listed
    # The snippet without classgap gives the logits of the run.
    first_dog = np.load("test.npz")["logits"][8]
    np.testing.assert_allclose(names["scores"], first_dog[None], atol=1e-4)
