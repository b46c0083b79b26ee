"""Audits in TensorBoard, Weights & Biases (offline) and a logger of one's own, read back from disk."""

import json
from pathlib import Path

import numpy as np
import pytest
import wandb
from lightning.pytorch.loggers import TensorBoardLogger
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch.utils.tensorboard import SummaryWriter

import classgap as cg
from classgap.integrations._audit_images import accuracy_image, confusion_image
from classgap.integrations.loggers import AuditLogger, log_audit

NAMES = ["cat", "dog", "a | b"]


@pytest.fixture(scope="module")
def audit() -> cg.Audit:
    rng = np.random.default_rng(0)
    targets = np.arange(90) % 3
    logits = 1.5 * np.eye(3)[targets] + rng.normal(size=(90, 3)) * [1, 1, 2]
    return cg.Audit.from_predictions(logits, targets, class_names=NAMES)


@pytest.fixture
def offline():
    with wandb.init(project="test") as run:
        yield run


def events_of(folder: Path) -> EventAccumulator:
    events = EventAccumulator(str(folder), size_guidance={"images": 0, "tensors": 0})
    return events.Reload()


def test_tensorboard(audit: cg.Audit, tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        log_audit(audit, writer, step=1, name="val")
        log_audit(audit, writer, step=2, name="val")
    events = events_of(tmp_path)
    hard = events.Scalars("val/hard_accuracy")
    assert [each.step for each in hard] == [1, 2]
    assert hard[0].value == pytest.approx(audit.groups["hard"].accuracy)
    assert {"val/accuracy", "val/easy_hard_gap", "val/worst_class_accuracy"} <= set(events.Tags()["scalars"])
    assert {"val/accuracy_by_class", "val/confusions"} == set(events.Tags()["images"])
    text = events.Tensors("val/classes/text_summary")[0].tensor_proto.string_val[0].decode()
    header, rule, *rows = text.splitlines()
    assert len(rows) == 3
    assert all(len(line.replace(r"\|", "").split("|")) == header.count("|") + 1 for line in (rule, *rows))
    assert r"a \| b" in rows[2]
    for step in ("1", "2"):
        assert cg.Audit.load(tmp_path / "val" / step / "audit.json").gap == audit.gap
        assert "<html" in (tmp_path / "val" / step / "report.html").read_text()


def test_weights_and_biases(audit: cg.Audit, offline, tmp_path: Path) -> None:
    log_audit(audit, offline, step=3, name="test")
    offline.log({"next": 1.0}, step=4)  # completes step 3
    summary = dict(offline.summary)
    assert summary["test/hard_accuracy"] == pytest.approx(audit.groups["hard"].accuracy)
    assert summary["test/accuracy_by_class"]["_type"] == "image-file"
    media = Path(offline.dir) / "media"
    table = json.loads(next(media.rglob("*.table.json")).read_text())
    accuracy = table["columns"].index("accuracy")
    assert [row[accuracy] for row in table["data"]] == pytest.approx([each.accuracy for each in audit.classes])
    assert [row[table["columns"].index("name")] for row in table["data"]] == NAMES
    assert "<html" in next(media.rglob("*.html")).read_text()
    assert len(list(media.rglob("*.png"))) == 2
    staged = [path.read_bytes() for path in (tmp_path / "wandb_data_dir").rglob("staging/*")]
    assert any(json.loads(data) == json.loads(json.dumps(audit.to_dict())) for data in staged if data[:1] == b"{")


def test_two_audits_are_two_steps(audit: cg.Audit, offline) -> None:
    for step in (1, 2):
        log_audit(audit, offline, step=step)
        assert offline.step == step
    assert len(list((Path(offline.dir) / "media").rglob("*.table.json"))) == 2


def test_loggers_of_lightning(audit: cg.Audit, tmp_path: Path) -> None:
    logger = TensorBoardLogger(tmp_path)
    log_audit(audit, logger, step=0)
    logger.finalize("success")
    assert "audit/hard_accuracy" in events_of(Path(logger.log_dir)).Tags()["scalars"]


class Notebook:
    """A logger of one's own."""

    def __init__(self) -> None:
        self.calls: list[tuple] = []

    def log_metrics(self, metrics, step) -> None:
        self.calls.append(("metrics", sorted(metrics), step))

    def log_table(self, name, columns, rows, step) -> None:
        self.calls.append(("table", name, len(rows), step))
        assert all(len(row) == len(columns) for row in rows)

    def log_image(self, name, image, step) -> None:
        self.calls.append(("image", name, image.dtype, step))

    def log_files(self, name, files, step) -> None:
        self.calls.append(("files", name, [file.name for file in files if file.is_file()], step))


def test_a_logger_of_ones_own(audit: cg.Audit) -> None:
    logger = Notebook()
    assert isinstance(logger, AuditLogger)
    log_audit(audit, logger, name="a")
    kinds = [call[:2] for call in logger.calls[1:]]
    assert kinds == [
        ("table", "a/classes"),
        ("image", "a/accuracy_by_class"),
        ("image", "a/confusions"),
        ("files", "a"),
    ]
    assert logger.calls[-1][2] == ["audit.json", "report.html"]
    with pytest.raises(ValueError, match="SummaryWriter"):
        log_audit(audit, print)


def test_figures_show_the_numbers(audit: cg.Audit) -> None:
    matrix = audit.confusion_matrix("true")
    image = confusion_image(audit).astype(float)
    cells = image[image.shape[0] // 6 :: image.shape[0] // 3, image.shape[1] // 6 :: image.shape[1] // 3, 0][:3, :3]
    np.testing.assert_allclose(((255 - cells) / 230) ** 2, matrix, atol=0.01)
    bars = accuracy_image(audit)
    inked = [int((bars[10 + 18 * i + 6, 180:581] != 255).any(axis=1).sum()) for i in range(3)]
    expected = [400 * accuracy for accuracy in sorted(each.accuracy for each in audit.classes)]
    np.testing.assert_allclose(inked, expected, atol=7)  # grid lines beyond the end of a bar count as well


def test_many_classes_and_unseen_ones() -> None:
    targets = np.arange(3000) // 2
    audit = cg.Audit.from_predictions(
        targets=targets, predictions=np.where(targets % 3, targets, 0), class_names=[f"class {i}" for i in range(1600)]
    )
    assert confusion_image(audit).shape == (800, 800, 3)
    assert accuracy_image(audit).shape[0] < 800
