"""``classgap methods``: the table and the pages."""

import pytest

from classgap import methods
from classgap.cli import main


def test_the_table_has_every_method(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "280")
    assert main(["methods"]) == 0
    lines = capsys.readouterr().out.splitlines()
    first = [line.split()[0] for line in lines[1:] if line and not line.startswith(" ")]
    assert [word for word in first if word in methods.names()] == methods.names()
    assert "Khosla et al., NeurIPS 2020, arXiv 2004.11362" in " ".join(lines)


def test_a_page_has_formula_paper_needs_options_and_an_example(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["methods", "tau-norm"]) == 0
    text = capsys.readouterr().out
    assert "w_k  ←  w_k / ‖w_k‖^τ" in text
    assert "paper: Kang et al., ICLR 2020, arXiv 1910.09217" in text
    assert "needs: held-out samples, linear head" in text
    assert "published code" in text
    assert "classgap train --data mnist1d:imbalance=10 --method mr2+tau-norm --val-fraction 0.1" in text


@pytest.mark.parametrize("name", methods.names())
def test_every_page_fits_the_terminal(name: str, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["methods", name]) == 0
    out = capsys.readouterr().out
    assert max(len(line.rstrip()) for line in out.splitlines() if not line.startswith("classgap train")) <= 80


def test_a_wrong_name_is_corrected(capsys):
    assert main(["methods", "mr3"]) == 2
    assert capsys.readouterr().err == "classgap: there is no method 'mr3'; did you mean 'mr2'?\n"
