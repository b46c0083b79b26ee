"""Prediction files as pandas, Hugging Face, timm and pyarrow write them, and companions beside them."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from classgap.audit import Audit, read_predictions
from classgap.audit.io import parquet, rows

RNG = np.random.default_rng(0)
N = 40
TARGETS = np.append(np.arange(4), RNG.integers(0, 4, N - 4))
LOGITS = (RNG.normal(size=(N, 4)) + 2 * np.eye(4)[TARGETS]).astype(np.float32)
PROBABILITIES = torch.from_numpy(LOGITS).softmax(dim=1).numpy()
LABELS = LOGITS.argmax(axis=1)
NAMES = np.array(["bee", "cat", "dog", "eel"])
FILES = [f"img_{i:03d}.jpg" for i in range(N)]


def check(got, names=("0", "1", "2", "3")):
    assert got.targets_N.tolist() == TARGETS.tolist()
    assert got.predictions_N.tolist() == LABELS.tolist()
    assert got.class_names == tuple(names)


@pytest.mark.parametrize("scores", [True, False])
def test_default_output_of_pandas(tmp_path, scores):
    frame = pd.DataFrame(LOGITS, columns=NAMES) if scores else pd.DataFrame({"prediction": NAMES[LABELS]})
    frame.insert(0, "target", NAMES[TARGETS])
    frame.to_csv(tmp_path / "p.csv")
    got = read_predictions(tmp_path / "p.csv")
    check(got, NAMES)
    assert not any(notice.code.startswith("unused") for notice in got.notices)


@pytest.mark.parametrize("predicted", ["pred", "prediction", "predicted_label"])
def test_hugging_face_labels(tmp_path, predicted):
    frame = pd.DataFrame({"note": ["a, b"] * N, "text": "a", "label": TARGETS, predicted: LABELS})
    frame.to_csv(tmp_path / "p.csv", index=False)
    frame.to_parquet(tmp_path / "p.parquet")
    for ending in ("csv", "parquet"):
        got = read_predictions(tmp_path / f"p.{ending}")
        check(got)
        assert [notice.values["names"] for notice in got.notices] == [("note",)]


def test_hugging_face_logits(tmp_path):
    frame = pd.DataFrame({"label": TARGETS, "logits": [row.tolist() for row in LOGITS]})
    frame.to_csv(tmp_path / "p.csv")
    frame.to_parquet(tmp_path / "p.parquet")
    for ending in ("csv", "parquet"):
        got = read_predictions(tmp_path / f"p.{ending}")
        check(got)
        np.testing.assert_allclose(got.logits_NK.numpy(), LOGITS, rtol=1e-6)


def timm_frame(top, *, index=True, separate=False, named=True, output="prob"):
    """The columns of timm's inference.py: top classes as arrays in one column, or one column each."""
    scores = PROBABILITIES if output == "prob" else LOGITS
    order = np.argsort(-scores, axis=1)[:, :top] if top else np.tile(np.arange(4), (N, 1))
    blocks = {output: np.take_along_axis(scores, order, axis=1)}
    if top and named:
        blocks = {"label": NAMES[order].astype(object)} | blocks
    if top and index:
        blocks = {"index": order} | blocks
    columns = {"filename": FILES}
    for name, values in blocks.items():
        if separate and values.shape[1] > 1:
            columns |= {f"{name}_{i}": values[:, i] for i in range(values.shape[1])}
        else:
            columns[name] = list(values[:, 0] if values.shape[1] == 1 else values)
    return pd.DataFrame(columns)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("separate", [False, True])
@pytest.mark.parametrize("top", [1, 3, 0])
@pytest.mark.parametrize("index", [True, False])
def test_timm_inference(tmp_path, ending, separate, top, index):
    frame = timm_frame(top, index=index, separate=separate)
    if ending == "csv":
        with np.printoptions(threshold=10**6):
            frame.to_csv(tmp_path / "resnet50-224.csv", index=False)
    else:
        frame.set_index("filename").to_parquet(tmp_path / "resnet50-224.parquet")
    labels = TARGETS if index or not top else NAMES[TARGETS]
    pd.DataFrame({"filename": FILES, "target": labels}).sample(frac=1, random_state=0).to_csv(
        tmp_path / "targets.csv", index=False
    )
    (tmp_path / "targets.txt").write_text("\n".join(map(str, labels)))
    for targets in ("targets.csv", "targets.txt"):
        got = read_predictions(tmp_path / f"resnet50-224.{ending}", targets=tmp_path / targets)
        check(got, [str(k) for k in range(4)] if index or not top else NAMES)
        assert (got.logits_NK is None) == bool(top)
    if top:  # names as targets fit the column of names, whether or not there are indices
        (tmp_path / "names.txt").write_text("\n".join(NAMES[TARGETS]))
        check(read_predictions(tmp_path / f"resnet50-224.{ending}", targets=tmp_path / "names.txt"), NAMES)
    with pytest.raises(ValueError, match=r"timm.*--targets") as caught:
        read_predictions(tmp_path / f"resnet50-224.{ending}")
    assert "\n" not in str(caught.value)


def test_timm_shards_with_names_as_targets(tmp_path):
    frame = timm_frame(1)
    for i, part in enumerate(np.array_split(np.arange(N), 2)):
        frame.iloc[part].to_csv(tmp_path / f"p-{i}.csv", index=False)
    (tmp_path / "names.txt").write_text("\n".join(NAMES[TARGETS]))
    check(read_predictions(tmp_path / "p-*.csv", targets=tmp_path / "names.txt"), NAMES)


def write_parquet(path, *, size=7, metadata=None, **columns):
    pq.write_table(pa.table(columns).replace_schema_metadata(metadata), path, row_group_size=size)
    return path


def lists(matrix, kind=None):
    kind = kind or pa.from_numpy_dtype(matrix.dtype)
    return pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel(), kind), matrix.shape[1])


@pytest.mark.parametrize("spilled", [False, True])
@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()])
def test_parquet_of_scores_and_features(tmp_path, monkeypatch, spilled, kind):
    if spilled:
        for module in (rows, parquet):
            monkeypatch.setattr(module, "MAX_COPIED", 10)
    monkeypatch.setattr(parquet, "BATCH_ROWS", 3)
    scores, features = LOGITS.astype(kind.to_pandas_dtype()), RNG.normal(size=(N, 3)).astype(np.float32)
    file = write_parquet(
        tmp_path / "p.parquet",
        target=pa.array(NAMES[TARGETS]),
        logits=lists(scores, kind),
        features=lists(features),
        index=np.arange(N) + 5,
        metadata={"class_names": json.dumps(NAMES.tolist())},
    )
    got = read_predictions(file)
    expected = read_predictions_from(scores, features)
    check(got, NAMES)
    assert got.index_N.tolist() == list(range(5, N + 5))
    assert got.logits_NK.dtype == expected.logits_NK.dtype
    np.testing.assert_array_equal(got.logits_NK[:].numpy(), scores)
    np.testing.assert_array_equal(got.features_ND[:].numpy(), features)
    assert Audit.from_file(file).overall == Audit.from_checked(expected).overall


def read_predictions_from(scores, features):
    from classgap.audit import Predictions

    return Predictions.from_arrays(TARGETS, logits=scores, features=features, class_names=NAMES.tolist())


def test_names_of_a_class_label(tmp_path):
    described = {"info": {"features": {"label": {"names": NAMES.tolist(), "_type": "ClassLabel"}}}}
    metadata = {"huggingface": json.dumps(described)}
    file = write_parquet(tmp_path / "p.parquet", label=TARGETS, pred=LABELS, metadata=metadata)
    check(read_predictions(file), NAMES)


def test_parquet_shards(tmp_path):
    for number, part in enumerate(np.array_split(np.arange(N), 3)):
        write_parquet(tmp_path / f"p-{number}.parquet", target=TARGETS[part], logits=lists(LOGITS[part]))
    check(read_predictions(tmp_path / "p-*.parquet"))


RAGGED = pa.array([[1.0, 2.0]] * (N - 1) + [[1.0]])
BROKEN = {
    "no predictions": ({"target": TARGETS}, ["column prediction, logits or probabilities is missing", "target"]),
    "no targets": ({"logits": lists(LOGITS)}, ["targets is missing", "logits"]),
    "ragged": ({"target": TARGETS, "logits": RAGGED}, ["logits", "equal length"]),
    "numbers for lists": ({"target": TARGETS, "logits": LOGITS[:, 0]}, ["logits", "lists of numbers", "float"]),
    "missing values": ({"target": pa.array([None, *TARGETS[1:]]), "pred": LABELS}, ["target", "missing values, got 1"]),
    "twice the same": ({"target": TARGETS, "pred": LABELS, "preds": LABELS}, ["pred and preds", "keep one"]),
    "no rows": ({"target": TARGETS[:0], "pred": LABELS[:0]}, ["no rows"]),
    "words in lists": ({"target": TARGETS, "logits": pa.array([["a"]] * N)}, ["logits", "lists of numbers"]),
}


@pytest.mark.parametrize(("columns", "facts"), BROKEN.values(), ids=BROKEN)
def test_broken_parquet_is_one_line(tmp_path, columns, facts):
    with pytest.raises(ValueError, match=r"\A[^\n]+\.\Z") as caught:
        read_predictions(write_parquet(tmp_path / "p.parquet", **columns))
    assert all(fact in str(caught.value) for fact in ("p.parquet", *facts)), caught.value


def test_damaged_parquet(tmp_path):
    (tmp_path / "p.parquet").write_bytes(b"PAR1" + bytes(50))
    with pytest.raises(ValueError, match=r"not a valid Parquet file: [^\n]+\Z"):
        read_predictions(tmp_path / "p.parquet")


COUNTS = {"eel": 4, "bee": 1, "dog": 3, "cat": 2, "fox": 9}


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_companions_of_a_csv_file(tmp_path, ending):
    pd.DataFrame({"target": NAMES[TARGETS], "prediction": NAMES[LABELS]}).to_csv(tmp_path / "p.csv")
    features = RNG.normal(size=(N, 3)).astype(np.float16)
    np.save(tmp_path / "f.npy", features)
    (tmp_path / "c.json").write_text(json.dumps(COUNTS))
    (tmp_path / "c.csv").write_text("class,count\n" + "".join(f"{name},{count}\n" for name, count in COUNTS.items()))
    got = read_predictions(tmp_path / "p.csv", features=tmp_path / "f.npy", train_counts=tmp_path / f"c.{ending}")
    assert got.class_names == ("bee", "cat", "dog", "eel", "fox")  # fox has training samples only
    assert got.train_counts_K.tolist() == [1, 2, 3, 4, 9]
    np.testing.assert_array_equal(got.features_ND.numpy(), features)


def test_arrays_in_files_of_their_own(tmp_path):
    np.save(tmp_path / "logits.npy", LOGITS)
    np.save(tmp_path / "labels.npy", LABELS)
    np.save(tmp_path / "y.npy", TARGETS)
    for part in range(2):
        np.save(tmp_path / f"f-{part}.npy", np.full((N // 2, 3), part, dtype=np.float32))
    got = read_predictions(tmp_path / "logits.npy", targets=tmp_path / "y.npy", features=tmp_path / "f-*.npy")
    check(got)
    assert got.features_ND[:, 0].tolist() == [0] * (N // 2) + [1] * (N // 2)
    check(read_predictions(tmp_path / "labels.npy", targets=tmp_path / "y.npy"))


@pytest.mark.parametrize(
    ("name", "content", "facts"),
    [
        ("targets", ("t.txt", "0\n1\n"), ["already has targets"]),
        ("features", ("f.npy", "hello"), ["f.npy does not hold features"]),
        ("features", ("f.pt", "hello"), ["must end in .npy", "got .pt"]),
        ("features", ("f.json", "[1, 2]"), ["features must be a 2-D array"]),
        ("train_counts", ("c.json", '{"bee": 1}'), ["no count for class 'cat'", "3 are missing"]),
        ("train_counts", ("c.txt", "1\n2\n3\n4\n"), ["train_counts must name the classes"]),
        ("train_counts", ("c.csv", "class,count\nbee,1\nbee,2\n"), ["'bee'", "more than once"]),
        ("train_counts", ("c.csv", "class,count\nbee,x\ncat,1\ndog,1\neel,1\n"), ["train_counts must be numbers"]),
    ],
)
def test_broken_companions_are_one_line(tmp_path, name, content, facts):
    pd.DataFrame({"target": NAMES[TARGETS], "prediction": NAMES[LABELS]}).to_csv(tmp_path / "p.csv")
    (tmp_path / content[0]).write_text(content[1])
    with pytest.raises(ValueError, match=r"\A[^\n]+\.\Z") as caught:
        read_predictions(tmp_path / "p.csv", **{name: tmp_path / content[0]})
    assert all(fact in str(caught.value) for fact in facts), caught.value


def test_targets_by_file_name_need_all_files(tmp_path):
    timm_frame(1).to_csv(tmp_path / "p.csv", index=False)
    pd.DataFrame({"filename": FILES[1:], "target": TARGETS[1:]}).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(ValueError, match=r"'img_000\.jpg' \(1 of 40"):
        read_predictions(tmp_path / "p.csv", targets=tmp_path / "t.csv")
