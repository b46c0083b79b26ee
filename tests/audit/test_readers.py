"""Every type of prediction file, valid and broken."""

import errno
import io
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from classgap.audit import Audit, read_predictions
from classgap.audit.results import Notice

RNG = np.random.default_rng(0)
TARGETS = RNG.integers(0, 3, 20)
LOGITS = (RNG.normal(size=(20, 3)) + 2 * np.eye(3)[TARGETS]).astype(np.float32)
LABELS = LOGITS.argmax(axis=1)
NAMES = ["cat", "dog, small", "<b>cow</b>"]


def arrays():
    return {
        "logits": LOGITS,
        "targets": TARGETS,
        "features": RNG.normal(size=(20, 4)).astype(np.float16),
        "head_weight": RNG.normal(size=(3, 4)).astype(np.float32),
        "head_bias": np.zeros(3, dtype=np.float32),
        "train_counts": np.array([5, 50, 500]),
    }


def check(got, names=NAMES):
    assert got.targets_N.tolist() == TARGETS.tolist()
    assert got.predictions_N.tolist() == LABELS.tolist()
    assert list(got.class_names) == list(names)


def test_npz(tmp_path):
    np.savez(tmp_path / "p.npz", class_names=np.array(NAMES), **arrays())
    got = read_predictions(tmp_path / "p.npz")
    check(got)
    assert got.features_ND.shape == (20, 4)
    assert got.train_counts_K.tolist() == [5, 50, 500]
    assert got.bias_K is not None


def test_safetensors_and_run_directory(tmp_path):
    run = tmp_path / "run-7"
    run.mkdir()
    tensors = {name: torch.from_numpy(value) for name, value in arrays().items()}
    tensors["logits"] = tensors["logits"].bfloat16()
    save_file(tensors, run / "predictions.safetensors", metadata={"class_names": json.dumps(NAMES)})
    got = read_predictions(run)
    assert list(got.class_names) == NAMES
    assert got.name == "run-7"
    assert read_predictions(run / "predictions.safetensors").name == "run-7"
    assert Audit.from_file(run).groups["tail"].members == ("cat",)


@pytest.mark.parametrize(
    ("extra", "notice"),
    [
        (["class_name", "feature"], (("class_name", "feature"), ("class_names", "features"))),
        (["train_count"], (("train_count",), ("train_counts",))),
        (["train_count", "zebra"], (("train_count", "zebra"), ("train_counts",))),
        (["zebra"], (("zebra",), ())),
        (["probability"], (("probability",), ())),  # beside logits there is no use for probabilities
        ([], None),
    ],
)
@pytest.mark.parametrize("ending", ["npz", "safetensors"])
def test_unknown_arrays_are_reported(tmp_path, extra, notice, ending):
    content = {"logits": LOGITS, "targets": TARGETS} | {name: np.arange(3.0) for name in extra}
    file = tmp_path / f"p.{ending}"
    if ending == "npz":
        np.savez(file, **content)
    else:
        slips = {"class_name": json.dumps(NAMES)} if "class_name" in content else {}
        tensors = {name: torch.from_numpy(value) for name, value in content.items() if name not in slips}
        save_file(tensors, file, metadata=slips | {"format": "pt"})
    found = [(entry.values["names"], entry.values["suggestions"]) for entry in read_predictions(file).notices]
    assert found == ([] if notice is None else [notice])


def test_a_name_in_the_file_is_not_suggested(tmp_path):
    np.savez(tmp_path / "p.npz", feature=np.zeros(2), **arrays())
    notice = Notice("unused-arrays", {"names": ("feature",), "suggestions": ("train_features",)})
    assert read_predictions(tmp_path / "p.npz").notices == (notice,)
    assert notice in Audit.from_file(tmp_path / "p.npz").notices


def test_csv_of_labels_as_names_and_numbers(tmp_path):
    file = tmp_path / "p.csv"
    rows = [f'{i},"{NAMES[t]}","{NAMES[p]}"' for i, (t, p) in enumerate(zip(TARGETS, LABELS, strict=True))]
    file.write_text("id,target,prediction\n" + "\n".join(rows) + "\n\n")
    got = read_predictions(file)
    assert [got.class_names[k] for k in got.targets_N] == [NAMES[t] for t in TARGETS]
    rows = [f"{t + 9},{p + 9}" for t, p in zip(TARGETS, LABELS, strict=True)]
    file.write_text("target,prediction\r\n" + "\r\n".join(rows))
    check(read_predictions(file), ("9", "10", "11"))


@pytest.mark.parametrize("kind", ["logits", "probabilities"])
def test_csv_of_scores(tmp_path, kind):
    file = tmp_path / "p.csv"
    scores = LOGITS if kind == "logits" else torch.from_numpy(LOGITS).softmax(dim=1).numpy()
    header = "index,target," + ",".join(f'"{name}"' for name in NAMES)
    rows = [f'{i},"{NAMES[TARGETS[i]]}",' + ",".join(f"{value:.7g}" for value in scores[i]) for i in range(20)]
    file.write_text("\ufeff" + "\n".join([header, *reversed(rows)]))
    got = read_predictions(file)
    check(got)  # in order of index again
    got_probabilities = got.logits_NK.softmax(dim=1)
    torch.testing.assert_close(got_probabilities, torch.from_numpy(LOGITS).softmax(dim=1), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ("target,prediction,index", None),
        ("target,prediction,score", "unused-columns"),
        (",target,prediction", "unused-columns"),
        ("target,prediction,path,score", "unused-columns"),  # of three classes
        (
            "index,target,prediction,cat,dog,cow",
            "unused-columns-maybe-scores",
        ),
        (
            "target,prediction,a,b,c,d,e,f,g",
            "unused-columns-maybe-scores",
        ),
    ],
)
def test_unused_columns_are_reported(tmp_path, header, code):
    places = {"target": TARGETS, "prediction": LABELS, "index": np.arange(20)}
    rows = [",".join(str(places[name][i]) if name in places else "1" for name in header.split(",")) for i in range(20)]
    (tmp_path / "p.csv").write_text("\n".join([header, *rows]))
    got = read_predictions(tmp_path / "p.csv")
    check(got, "012")
    unused = tuple(name or "column 1" for name in header.split(",") if name not in places)
    assert got.notices == (() if code is None else (Notice(code, {"names": unused}),))


@pytest.mark.parametrize("ending", ["npz", "safetensors", "csv"])
def test_an_unreadable_file_is_not_reported_as_damaged(tmp_path, monkeypatch, ending):
    file = tmp_path / f"p.{ending}"
    np.savez(tmp_path / "p.npz", logits=LOGITS, targets=TARGETS)
    save_file({"logits": torch.from_numpy(LOGITS), "targets": torch.from_numpy(TARGETS)}, tmp_path / "p.safetensors")
    (tmp_path / "p.csv").write_text("target,prediction\na,a\nb,a\n")
    usual = io.open

    def refuse(path, *rest, **more):  # for root, who may run this, permissions do not count
        if isinstance(path, str | Path) and str(path) == str(file):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return usual(path, *rest, **more)

    assert read_predictions(file).num_classes > 1
    monkeypatch.setattr(io, "open", refuse)
    with pytest.raises(ValueError, match=r"cannot be read: Permission denied\.$"):
        read_predictions(file)


def named(**content):
    def make(tmp_path):
        np.savez(tmp_path / "p.npz", **content)
        return tmp_path / "p.npz"

    return make


def run_with(**files):
    """A run directory with ``config.yaml``, ``checkpoints/`` and other files; the last _ of a name is its dot."""

    def make(tmp_path):
        run = tmp_path / "run"
        (run / "checkpoints").mkdir(parents=True)
        (run / "config.yaml").write_text("data: digits\n")
        for name, content in files.items():
            (run / ".".join(name.rsplit("_", 1))).write_text(content)
        return run

    return make


def batch_numbers(tmp_path):
    np.savez(tmp_path / "p.npz", logits=LOGITS, targets=TARGETS, index=np.arange(20) % 8)
    return tmp_path / "p.npz"


def truncated(tmp_path):
    np.savez(tmp_path / "p.npz", **arrays())
    content = (tmp_path / "p.npz").read_bytes()
    (tmp_path / "p.npz").write_bytes(content[: len(content) // 2])
    return tmp_path / "p.npz"


def truncated_safetensors(tmp_path):
    save_file({"targets": torch.from_numpy(TARGETS)}, tmp_path / "p.safetensors")
    content = (tmp_path / "p.safetensors").read_bytes()
    (tmp_path / "p.safetensors").write_bytes(content[:-9])
    return tmp_path / "p.safetensors"


def pickled(tmp_path):
    np.savez(tmp_path / "p.npz", logits=LOGITS, targets=np.array([{}] * 20, dtype=object))
    return tmp_path / "p.npz"


def single_array(tmp_path):
    np.save(tmp_path / "p.npy", LOGITS)
    (tmp_path / "p.npy").rename(tmp_path / "p.npz")
    return tmp_path / "p.npz"


def without_targets(tmp_path):
    np.savez(tmp_path / "p.npz", logits=LOGITS)
    return tmp_path / "p.npz"


def bad_metadata(tmp_path):
    tensors = {"logits": torch.from_numpy(LOGITS), "targets": torch.from_numpy(TARGETS)}
    save_file(tensors, tmp_path / "p.safetensors", metadata={"class_names": "cat"})
    return tmp_path / "p.safetensors"


def bias_alone(tmp_path):
    np.savez(tmp_path / "p.npz", logits=LOGITS, targets=TARGETS, head_bias=np.zeros(3))
    return tmp_path / "p.npz"


def text(content, name="p.csv"):
    def make(tmp_path):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return tmp_path / name

    return make


def empty_directory(tmp_path):
    return tmp_path


def audit_alone(tmp_path):
    Audit.from_predictions(LOGITS, TARGETS).save(tmp_path / "audit.json")
    return tmp_path


BROKEN = {
    "missing file": (lambda path: path / "p.npz", "does not exist"),
    "unknown suffix": (text("x", "p.pt"), r"\.npz, \.safetensors, \.csv or \.json.*got \.pt"),
    "no suffix": (text("x", "p"), "got no file extension"),
    "missing directory": (lambda path: path / "runs" / "nothere", "nothere does not exist"),
    "saved audit": (text("{}", "a.json"), r"pass the predictions that were audited .*Audit\.load"),
    "empty npz": (text("", "p.npz"), "is empty"),
    "empty csv": (text(""), "is empty"),
    "truncated npz": (truncated, "truncated or damaged"),
    "truncated safetensors": (truncated_safetensors, "truncated or damaged"),
    "not an npz": (text("hello", "p.npz"), "truncated or damaged"),
    "Python objects": (pickled, "pickled objects"),
    "single array": (single_array, "truncated or damaged"),
    "no targets": (without_targets, "targets is missing, found logits"),
    "bias without weight": (bias_alone, "head_bias requires head_weight"),
    "bad metadata": (bad_metadata, "JSON list of strings"),
    "no predictions in directory": (empty_directory, r"one of .*csv, audit\.json"),
    "only an audit in directory": (audit_alone, r"audit\.json or use Audit\.load"),
    "csv without target": (
        text("truth,prediction\na,b\n"),
        "truth, prediction: rename truth to target",
    ),
    "csv with semicolons": (text("target;prediction\na;b\n"), "target is missing.*commas, not semicolons"),
    "csv with tabs": (text("target\tprediction\na\tb\n"), "target is missing.*commas, not tabs"),
    "npz with labels": (named(logits=LOGITS, labels=TARGETS), r"labels, logits: rename labels to targets\.$"),
    "npz with a typo": (named(logits=LOGITS, Tragets=TARGETS), "rename Tragets to targets"),
    "npz with training targets alone": (
        named(logits=LOGITS, train_targets=TARGETS),
        r"missing, found logits, train_targets\.$",
    ),
    "npz with probs": (
        named(probs=LOGITS, targets=TARGETS),
        "probs, targets: rename probs to probabilities",
    ),
    "unfinished run": (run_with(metrics_jsonl='{"epoch": 1}\n'), "not finished.*the same train command"),
    "run that was killed": (run_with(metrics_jsonl='{"epoch": 1}\n{"epo'), "not finished"),
    "run that has just started": (run_with(), "not finished"),
    "finished run without its files": (run_with(metrics_jsonl='{"final": true}\n'), "no predictions: expected"),
    "failed run": (
        run_with(failure_json='{"where": "epoch 1, step 3", "not_finite": ["logits (nan)", "loss (nan)"]}'),
        r"run failed: .* epoch 1, step 3: logits \(nan\)",
    ),
    "failed run of another form": (run_with(failure_json="[]"), r"run failed: see .*failure\.json\.$"),
    "csv without prediction": (text("target\na\n"), "column prediction is missing"),
    "csv without rows": (text("target,prediction\n"), "no samples, only a header"),
    "csv of scores without rows": (text("target,a,b\n"), "no samples, only a header"),
    "csv with equal classes": (text("target,a,a\na,1,2\n"), "'a' appears more than once"),
    "csv with a short line": (text("target,prediction\na,b\na\n"), "line 3 must have 2 fields.*got 1"),
    "csv with an empty label": (text("target,prediction\na,\n"), "line 2: prediction must not be empty"),
    "csv with a word for a score": (
        text("target,a,b\na,1,x\n"),
        "line 2: column 'b' must be a number, got 'x'",
    ),
    "csv with a long word for a score": (
        text(f"target,a,b\na,{'x' * 99},1\n"),
        "column 'a' must be a number, got 'x{40}…'",
    ),
    "csv of labels under another name": (
        text("target,pred\na,b\n"),
        "got 'b': rename pred to prediction",
    ),
    "csv with NaN": (text("target,a,b\na,1,nan\n"), "row 0 contains NaN"),
    "csv with an unknown label": (text("target,a,b\nc,1,2\n"), "unknown label 'c'"),
    "csv with a bad index": (
        text("target,prediction,index\na,b,1\na,a,2.5\n"),
        "index must hold integers or strings, got '2.5'",
    ),
    "csv with an empty index": (text("target,a,b,index\na,1,2,\nb,1,2,x\n"), "sample ids must not be empty"),
    "npz with numbers within batches": (batch_numbers, "index must be the position of each sample"),
    "csv of labels with numbers within batches": (
        text("index,target,prediction\n0,a,a\n1,b,b\n0,b,b\n"),
        "0 occurs with targets 'a' and 'b'",
    ),
    "csv of scores with numbers within batches": (
        text("index,target,a,b\n0,a,1,2\n1,b,1,2\n0,b,1,2\n"),
        "0 occurs with targets 'a' and 'b'",
    ),
    "csv of names and numbers": (text("target,prediction\ncat,0\ndog,1\n"), "got '0' in one and 'cat' in the other"),
    "csv with a column without a name": (text("target,a,\na,1,2\n"), "column 3 has no name"),
    "csv with classes alike": (text("target,a, a\na,1,2\n"), "'a' appears more than once"),
    "csv with an open quote": (text('target,prediction\n"a,b\n'), "not valid CSV"),
    "not text": (text(b"target,\xff\xfe\n"), "not UTF-8 text"),
}


@pytest.mark.parametrize(("make", "message"), BROKEN.values(), ids=BROKEN)
def test_broken_files_are_rejected_in_one_sentence(tmp_path, make, message):
    with pytest.raises(ValueError, match=message) as caught:
        read_predictions(make(tmp_path))
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)


WITHOUT_DIMENSIONS = [
    *("logits", "targets", "features", "head_weight", "head_bias", "train_counts", "class_names", "index"),
    *("train_targets", "train_predictions"),
]


@pytest.mark.parametrize("name", WITHOUT_DIMENSIONS)
def test_scalars_instead_of_arrays_are_rejected(tmp_path, name):
    extra = {"train_targets": TARGETS} if name == "train_predictions" else {}
    np.savez(tmp_path / "p.npz", **(arrays() | extra | {name: np.array("cat" if name == "class_names" else 1)}))
    words = name.replace("_", ".") if "head" not in name else "head"
    with pytest.raises(ValueError, match=words) as caught:
        read_predictions(tmp_path / "p.npz")
    assert "\n" not in str(caught.value)


def test_a_scalar_for_predictions_is_rejected(tmp_path):
    np.savez(tmp_path / "p.npz", predictions=np.array(1), targets=TARGETS)
    with pytest.raises(ValueError, match=r"predictions must have shape \(samples,\)"):
        read_predictions(tmp_path / "p.npz")
    np.savez(tmp_path / "p.npz", predictions=np.array("cat"), targets=np.array(["cat"]))
    with pytest.raises(ValueError, match=r"predictions must have shape \(samples,\)"):
        read_predictions(tmp_path / "p.npz")
