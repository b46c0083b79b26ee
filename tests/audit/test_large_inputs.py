"""Inputs that are mapped, converted block by block or joined give the audit of the same arrays in memory."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from classgap import _array_files
from classgap.audit import Audit, AuditSettings, read_predictions
from classgap.audit.io import rows
from classgap.audit.io.rows import Rows, convert_rows, highest_scores, stack_rows, take_rows
from classgap.audit.metrics import scores
from forked import run_forked

N, K, D = 700, 6, 5
SETTINGS = AuditSettings(map="none")


def arrays(seed=0, samples=N):
    rng = np.random.default_rng(seed)
    targets = rng.integers(0, K, samples)
    features = rng.normal(size=(samples, D)) + 1.5 * np.eye(K, D)[targets]
    logits = features @ rng.normal(size=(D, K)) + 3 * np.eye(K)[targets] * rng.random((samples, 1))
    return {"targets": targets, "logits": logits.astype(np.float16), "features": features.astype(np.float16)}


def audit_of(content):
    content = dict(content)
    return Audit.from_predictions(content.pop("logits", None), content.pop("targets"), settings=SETTINGS, **content)


def same(got, expected):
    assert got.overall == expected.overall
    assert got.classes == expected.classes
    assert got.groups == expected.groups
    assert got.error_budget == expected.error_budget
    assert got.features == expected.features
    assert got.samples == expected.samples


@pytest.fixture
def tiny_blocks(monkeypatch):
    """Blocks of a few rows, and no matrix small enough to be copied."""
    for module in (rows, scores):
        monkeypatch.setattr(module, "CACHED_ENTRIES", 7 * K)
    monkeypatch.setattr(rows, "MAX_COPIED", 10)
    monkeypatch.setattr(_array_files, "MIN_BYTES", 1)


def test_rows_agree_with_a_whole_matrix():
    whole = torch.randn(20, 3)
    parts = Rows([whole[:7].half(), whole[7:8].half(), whole[8:].half()], convert=torch.exp, dtype=torch.float32)
    expected = whole.half().exp().float()
    some = torch.tensor([19, 0, 7, 7, 8])
    torch.testing.assert_close(parts[:], expected)
    torch.testing.assert_close(parts[5:9], expected[5:9])
    torch.testing.assert_close(parts[some], expected[some])
    torch.testing.assert_close(parts[:, 1], expected[:, 1])
    taken = parts.take(some.numpy())
    torch.testing.assert_close(taken[1:4], expected[some][1:4])
    torch.testing.assert_close(taken.take(np.array([4, 0]))[:], expected[some][[4, 0]])
    assert (parts.shape, len(taken), parts.dtype) == ((20, 3), 5, torch.float32)
    assert parts[3:3].shape == (0, 3)


@pytest.mark.parametrize("columns", [9, 97, 250, 1003])
@pytest.mark.parametrize("values", ["distinct", "tied", "equal"])
def test_highest_scores_are_those_of_topk(columns, values):
    scores_BK = torch.randn(30, columns)
    if values != "distinct":
        scores_BK = scores_BK.mul(2 if values == "tied" else 0).round()
    found, where = highest_scores(scores_BK, 9)
    assert torch.equal(found, scores_BK.topk(9, dim=1).values)
    assert torch.equal(scores_BK.gather(1, where), found)
    assert all(len(set(row)) == 9 for row in where.tolist())


def test_large_matrices_are_not_copied(monkeypatch):
    monkeypatch.setattr(rows, "MAX_COPIED", 10)
    whole = torch.randn(20, 3)
    for lazy in (take_rows(whole, np.arange(20)[::-1]), convert_rows(whole, torch.exp, whole.dtype)):
        assert isinstance(lazy, Rows)
        assert lazy.parts[0].data_ptr() == whole.data_ptr()
    assert isinstance(stack_rows([whole, whole]), Rows)


@pytest.mark.parametrize("kind", ["logits", "probabilities", "logits that are probabilities"])
def test_blocks_give_the_same_audit(monkeypatch, kind):
    content = arrays()
    if kind != "logits":
        p = torch.from_numpy(content.pop("logits")).float().softmax(dim=1).numpy()
        content["probabilities" if kind == "probabilities" else "logits"] = p
    content["index"] = np.random.default_rng(1).permutation(N)  # rows are read in another order
    whole = audit_of(content)
    monkeypatch.setattr(rows, "MAX_COPIED", 10)
    for module in (rows, scores):
        monkeypatch.setattr(module, "CACHED_ENTRIES", 7 * K)
    same(audit_of(content), whole)


def write(path, content, ending):
    if ending == "npz":
        np.savez(path.with_suffix(".npz"), **content)
    elif ending == "safetensors":
        save_file({name: torch.from_numpy(value) for name, value in content.items()}, path.with_suffix(".safetensors"))
    elif ending == "npy":
        path.mkdir()
        for name, value in content.items():
            np.save(path / f"{name}.npy", value)
        return path
    return path.with_suffix(f".{ending}")


@pytest.mark.usefixtures("tiny_blocks")
@pytest.mark.parametrize("ending", ["npz", "safetensors", "npy"])
def test_mapped_files_give_the_same_audit(tmp_path, ending):
    content = arrays()
    got = Audit.from_file(write(tmp_path / "p", content, ending), settings=SETTINGS)
    same(got, audit_of(content))
    assert got.name == "p"


@pytest.mark.usefixtures("tiny_blocks")
@pytest.mark.parametrize("ending", ["npz", "safetensors"])
def test_shards_give_the_audit_of_all_samples(tmp_path, ending):
    content = arrays()
    for number, part in enumerate(np.array_split(np.arange(N), 11)):  # shard 10 comes after shard 2
        write(tmp_path / f"p-{number}", {name: value[part] for name, value in content.items()}, ending)
    got = Audit.from_file(tmp_path / f"p-*.{ending}", settings=SETTINGS)
    same(got, audit_of(content))
    assert isinstance(read_predictions(tmp_path / f"p-*.{ending}").logits_NK, Rows)


def test_shards_of_ranks_are_put_in_order(tmp_path):
    content = arrays()
    for rank in range(2):
        part = np.append(np.arange(rank, N, 2), rank)  # as a distributed sampler deals them, with padding
        np.savez(tmp_path / f"{rank}.npz", index=part, **{name: value[part] for name, value in content.items()})
    got = Audit.from_file(tmp_path / "[01].npz", settings=SETTINGS)
    assert got.overall == audit_of(content).overall
    assert got.samples.targets.tolist() == content["targets"].tolist()
    assert any(notice.code == "duplicate-index" and notice.values["dropped"] == 2 for notice in got.notices)


def shards(**changes):
    def make(folder):
        first, second = arrays(samples=40), arrays(1, samples=40) | changes
        np.savez(folder / "p-0.npz", **first)
        np.savez(folder / "p-1.npz", **{name: value for name, value in second.items() if value is not None})
        return folder / "p-*.npz"

    return make


def named_shards(folder):
    for number, names in enumerate((list("abcdef"), list("abcdeg"))):
        np.savez(folder / f"p-{number}.npz", class_names=np.array(names), **arrays(samples=40))
    return folder / "p-*.npz"


def mixed_shards(folder):
    np.savez(folder / "p-0.npz", **arrays(samples=40))
    (folder / "p-1.csv").write_text("target,prediction\na,a\n")
    return folder / "p-*"


BROKEN = {
    "other number of classes": (shards(logits=np.zeros((40, 7))), ["same classes", "logits", "p-1.npz", "6 and 7"]),
    "other class names": (named_shards, ["same classes", "class_names", "p-0.npz and p-1.npz"]),
    "other features": (shards(features=np.zeros((40, 9))), ["same features", "5 and 9"]),
    "missing array": (shards(features=None), ["same arrays", "has features: p-0.npz"]),
    "ragged": (shards(targets=np.zeros(39, dtype=int)), ["targets must have the same length", "80 and 79"]),
    "several types": (mixed_shards, ["several types", "p-0.npz", "p-1.csv"]),
    "no match": (lambda folder: folder / "q-*.npz", ["matches no file"]),
}


@pytest.mark.parametrize(("make", "facts"), BROKEN.values(), ids=BROKEN)
def test_broken_shards_are_one_line(tmp_path, make, facts):
    with pytest.raises(ValueError, match=r"\A[^\n]+\.\Z") as caught:
        Audit.from_file(make(tmp_path))
    assert all(fact in str(caught.value) for fact in facts), caught.value


def test_a_large_set_is_examined_in_part():
    content = arrays(samples=3000)
    part = Audit.from_predictions(
        content["logits"],
        content["targets"],
        features=content["features"],
        settings=AuditSettings(map="none", diagnosis_samples=900),
    )
    whole = audit_of(content)
    assert part.overall == whole.overall
    assert [entry.accuracy for entry in part.classes] == [entry.accuracy for entry in whole.classes]
    notice = next(notice for notice in part.notices if notice.code == "diagnosis-sampled")
    assert notice.values == {"examined": 900, "samples": 3000}
    assert not any(notice.code == "diagnosis-sampled" for notice in whole.notices)
    assert part.error_budget is not None
    assert whole.error_budget is not None
    expected = whole.error_budget.errors * 900 / 3000
    assert abs(part.error_budget.errors - expected) < 5 * expected**0.5
    assert Audit.from_dict(json.loads(json.dumps(part.to_dict()))).error_budget == part.error_budget


def anonymous_memory():
    return int(re.search(r"RssAnon:\s+(\d+)", Path("/proc/self/status").read_text())[1]) * 1024


def audit_memory(path):
    """Return the bytes that an audit of a file keeps, and the number of samples."""
    settings = AuditSettings(diagnose=False, n_resamples=10)
    Audit.from_predictions([[1.0, 0.0], [0.0, 1.0]], [0, 1], settings=settings)  # imports
    before = anonymous_memory()
    audit = Audit.from_file(path, settings=settings)
    return anonymous_memory() - before, audit.overall.n_samples


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="reads the memory of a process from /proc")
def test_memory_does_not_grow_with_the_file(tmp_path):
    samples, classes = 60_000, 1000  # 240 MB in single precision
    logits = np.lib.format.open_memmap(tmp_path / "logits.npy", "w+", np.float16, (samples, classes))
    rng = np.random.default_rng(0)
    block = rng.normal(size=(5000, classes)).astype(np.float16)
    for start in range(0, samples, 5000):
        logits[start : start + 5000] = block
    np.save(tmp_path / "targets.npy", rng.integers(0, classes, samples))
    del logits
    grown, read = run_forked(audit_memory, tmp_path)
    assert read == samples
    assert grown < 60e6  # the file has 120 MB
