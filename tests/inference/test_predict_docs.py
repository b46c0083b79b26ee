"""Every command and every snippet of docs/predict.md works, in the order in which a reader meets them."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from classgap.cli import main

DOCS = Path(__file__).parents[2] / "docs" / "predict.md"


def test_the_page_works_from_top_to_bottom(tmp_path: Path, monkeypatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLASSGAP_CACHE", str(tmp_path / "cache"))
    text = DOCS.read_text(encoding="utf-8")
    names: dict[str, object] = {}
    for kind, block in re.findall(r"```(python|console)\n(.*?)```", text, flags=re.DOTALL):
        if kind == "python":
            exec(block, names)
            continue
        for line in block.splitlines():
            program, *words = shlex.split(line)
            assert program == "classgap"
            assert main(words) == 0, capsys.readouterr().err
    result, logits = names["result"], names["logits"]
    assert result.labels[0] == result.class_names[int(logits.argmax())]  # type: ignore[attr-defined]
    facts = json.loads((tmp_path / "runs" / "photos" / "preprocessing.json").read_text())
    listed = set(re.findall(r"`(\w+)`", text[text.index("| key |") :]))
    assert set(facts) - {"schema"} <= listed
    # The snippet without classgap gives the logits of the run.
    first_dog = np.load("test.npz")["logits"][8]
    np.testing.assert_allclose(names["scores"], first_dog[None], atol=1e-4)
