import resource
import signal
from pathlib import Path

import pytest
import torch

from classgap.engine.storage.checkpoint import load_checkpoint, load_weights, save_checkpoint, save_weights
from forked import run_forked


def test_round_trip(tmp_path: Path) -> None:
    state = {"weights": {"a": torch.randn(3)}, "position": {"epoch": 2}, "random": [[3, (1, 2), None]], "best": None}
    save_checkpoint(state, tmp_path / "last.pt")
    found = load_checkpoint(tmp_path / "last.pt")
    assert torch.equal(found["weights"]["a"], state["weights"]["a"])
    assert {key: found[key] for key in ("position", "random", "best")} == {
        key: state[key] for key in ("position", "random", "best")
    }


class Danger:
    def __reduce__(self):
        return (print, ("executed",))


def test_loading_executes_no_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save({"format": 1, "danger": Danger()}, tmp_path / "last.pt")
    with pytest.raises(ValueError, match="damaged"):
        load_checkpoint(tmp_path / "last.pt")
    assert "executed" not in capsys.readouterr().out


@pytest.mark.parametrize("keep", [0, 10, 200])
def test_a_damaged_file_is_reported(keep: int, tmp_path: Path) -> None:
    save_checkpoint({"a": torch.randn(100)}, tmp_path / "last.pt")
    (tmp_path / "last.pt").write_bytes((tmp_path / "last.pt").read_bytes()[:keep])
    with pytest.raises(ValueError, match="damaged"):
        load_checkpoint(tmp_path / "last.pt")


def save_beyond_the_limit(path: Path) -> str:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # writing beyond the limit is then an error, as on a full disk
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    with pytest.raises(OSError, match="cannot write") as error:
        save_checkpoint({"a": torch.zeros(100_000)}, path)
    return str(error.value)


def test_a_full_disk_keeps_the_last_good_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "last.pt"
    save_checkpoint({"a": torch.zeros(10)}, path)
    message = run_forked(save_beyond_the_limit, path)
    assert "the disk is full" in message
    assert "the previous file is kept" in message
    assert load_checkpoint(path)["a"].shape == (10,)
    assert [each.name for each in tmp_path.iterdir()] == ["last.pt"]


def test_weights_with_tied_tensors(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
    model[1].weight = model[0].weight
    save_weights(model, tmp_path / "model.safetensors")
    found = load_weights(tmp_path / "model.safetensors")
    assert found.keys() == model.state_dict().keys()
    assert all(torch.equal(found[name], tensor) for name, tensor in model.state_dict().items())
