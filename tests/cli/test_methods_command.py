import pytest

from classgap import methods
from classgap.cli import main


def test_list_has_one_line_per_method_and_fits_a_screen(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["methods"]) == 0
    lines = capsys.readouterr().out.splitlines()
    listed = [line.split()[0] for line in lines if line.startswith("  ")]
    assert sorted(listed) == sorted(methods.names())
    assert len(lines) <= 50
    assert max(map(len, lines)) <= 80


def test_list_is_cut_to_a_narrow_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["methods"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines if line.startswith("  ")) <= 60


def test_description_has_formula_paper_inputs_options_and_an_example(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["methods", "tau-norm"]) == 0
    text = capsys.readouterr().out
    assert "w_k  ←  w_k / ‖w_k‖^τ" in text
    assert "Kang et al., ICLR 2020, arXiv 1910.09217" in text
    assert "held-out samples, linear head" in text
    assert "tau=validation  (float or str)" in text
    assert "published code" in text
    assert "classgap train --data mnist1d:imbalance=10 --method mr2+tau-norm --val-fraction 0.1" in text


@pytest.mark.parametrize("name", methods.names())
def test_every_description_fits_the_terminal(name: str, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["methods", name]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines if not line.startswith("  classgap ")) <= 80  # commands are not wrapped


def test_unknown_method(capsys):
    assert main(["methods", "mr3"]) == 2
    err = capsys.readouterr().err
    assert "'mr3'" in err
    assert "did you mean 'mr2'?" in err
