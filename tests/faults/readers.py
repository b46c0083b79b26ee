"""Every reader of files, with small valid files that the fuzzer damages."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from PIL import Image
from safetensors.torch import save_file

from classgap.audit import Audit, AuditDiff
from classgap.audit.gate import gate
from classgap.audit.gate_results import GateResult
from classgap.cli.main import describe_error, main
from classgap.data import load
from classgap.engine import RunDirectory, TrainConfig, TrainingInterrupted, train
from classgap.engine.config import read_settings
from classgap.engine.signals import StopRequest
from classgap.models.state_files import read_weights
from classgap.remedies.class_values import read_class_values
from classgap.remedies.fixed_model import Fix, load_fix
from classgap.remedies.modules import ClassAffine
from classgap.remedies.networks import MeanNetwork, Network
from classgap.remedies.search.config import SearchConfig
from classgap.remedies.search.directory import SearchDirectory
from classgap.remedies.search.space import Space
from classgap.remedies.search.study import TrialStudy
from classgap.report import write_html
from classgap.report.reproduction_files import write_reproduction_csv, write_reproduction_markdown
from classgap.reproduce.catalog import load_recipe
from classgap.reproduce.cells import make_plan
from classgap.reproduce.metrics import measure_run
from classgap.reproduce.results import collect
from classgap.reproduce.schema import Recipe
from classgap.reproduce.store import ResultStore

MOONS = """
paper: elm
item: Table 9
title: Two moons
base: elm-moons
settings: {data: "two-moons:n_train=32:n_test=32", epochs: 2}
parts:
  a:
    shows: Two moons
    rows: {CE: {method: erm}, LA: {method: logit-adjustment}}
    columns: {overall: {metric: accuracy}, hard: {metric: accuracy@hard}}
    values: {CE: [90.0, 60.0], LA: [89.0, 80]}
    baseline: {settings: {method: erm}, row: CE}
    plot: {kind: classes, metric: accuracy}
"""
SEARCH = {"data": "two-moons", "seed": 0}
TRAINING = {"data": "two-moons:n_train=32:n_test=32", "epochs": 2, "batch_size": 16, "val_fraction": 0.25}
RUN_FILES = ("config.yaml", "metrics.jsonl", "data.json", "env.json", "preprocessing.json", "predictions.safetensors")


@dataclass(frozen=True)
class Reader:
    """One way to read a file.

    Attributes:
        target: File that is damaged.
        words: Command line; ``None`` if ``read`` is called.
        read: Function of the file's path that raises only ValueError and OSError.
        needs: Other files and directories.
        verdict: Exit code that is a result and no error.
        argument: Names of arguments that an error may show instead of the file that they were read from.
    """

    target: str
    words: tuple[str, ...] | None = None
    read: Callable[[Path], Any] | None = None
    needs: tuple[str, ...] = ()
    verdict: int = 0
    argument: tuple[str, ...] = ()

    progress = ("erm, seed 0: epoch", "Generating train split", "Loading weights")

    @property
    def names(self) -> tuple[str, ...]:
        """Texts of which an error shows at least one: the file, its directory, or a file that it does not fit."""
        return (*Path(self.target).parts, *self.needs, *self.argument)

    def run(self, directory: Path) -> int:
        """Read the file; return an exit code."""
        if self.words is not None:
            return main([str(directory / word) if word.split("/")[0] in FILES else word for word in self.words])
        assert self.read is not None
        try:
            self.read(directory / self.target)
        except (ValueError, OSError) as error:
            print(describe_error(error), file=sys.stderr)
            return 2
        return 0


class StopSoon(StopRequest):
    """Stop in the second epoch."""

    steps = 3

    def poll(self) -> None:
        self.steps -= 1
        if not self.steps:
            self.name = "the fuzzer"


def _resume(path: Path) -> None:
    directory = path.parents[len(path.parts) - path.parts.index("half") - 2]
    train(TrainConfig(**TRAINING, out=directory, audit=False), quiet=True)


def _load_data(text: str) -> Callable[[Path], Any]:
    def read(path: Path) -> None:
        data = load(text.format(path))
        data.train.inputs[torch.arange(len(data.train))]

    return read


def _reproduce(path: Path) -> None:
    """Read a recipe, and the result of its first run from a store; write a report."""
    load_recipe.cache_clear()
    plan = make_plan(load_recipe(str(path.with_name("recipe.yaml"))), "tiny", 1)
    store = ResultStore(path.with_name("store"))
    store.entries.mkdir(parents=True, exist_ok=True)
    entry = path.with_name("entry.json").read_bytes()
    (store.entries / f"{ENTRY}.json").write_bytes(entry)
    result = collect(plan, store)
    write_html(result, path.with_name("o.html"))
    write_reproduction_markdown(result, path.with_name("o.md"))
    write_reproduction_csv([result], path.with_name("o.csv"))
    store.rebuild_index()


def _open_search(path: Path) -> None:
    config = SearchConfig(data=TRAINING["data"], epochs=1, n_trials=2)
    directory = SearchDirectory(path.parent)
    with directory.open(SEARCH):
        study = TrialStudy(directory, Space.from_data(config, load(config.data)), 0)
        study.history()
        study.ask()


def _audit(target: str, *words: str, needs: tuple[str, ...] = ()) -> Reader:
    return Reader(target, ("audit", *words), needs=needs)


def _option(target: str, flag: str) -> Reader:
    argument = (flag[2:].replace("-", "_"),)
    return Reader(target, ("audit", "ok.npz", flag, target), needs=("ok.npz",), argument=argument)


CELL = make_plan(Recipe.model_validate({"name": "recipe", **yaml.safe_load(MOONS)}), "tiny", 1).cells[0]
ENTRY = CELL.key(0)
_FIXED = ("run", "x.npy", "affine")
READERS = {
    "npz": _audit("p.npz", "p.npz", "--json", "o.json", "--html", "o.html"),
    "npz-features": _audit("f.npz", "f.npz", "--json", "o.json"),
    "npy-directory": Reader("arrays/logits.npy", ("audit", "arrays"), needs=("arrays",)),
    "names-of-arrays": Reader("arrays/class_names.json", ("audit", "arrays"), needs=("arrays",)),
    "safetensors": _audit("p.safetensors", "p.safetensors"),
    "csv": _audit("labels.csv", "labels.csv", "--json", "o.json", "--csv", "o.csv"),
    "csv-scores": _audit("scores.csv", "scores.csv", "--slices", "camera"),
    "parquet": _audit("p.parquet", "p.parquet", "--key", "id"),
    "slices": _audit("s.npz", "s.npz", "--slices", "camera", "--json", "o.json"),
    "shards": Reader("part-1.npz", ("audit", "part-*.npz"), needs=("part-0.npz",), argument=("part-*.npz",)),
    "audit": _audit("a.json", "a.json", "--html", "o.html", "--json", "o.json"),
    "compare": Reader("a.json", ("compare", "b.json", "a.json", "--json", "o.json"), needs=("b.json",)),
    "gate": Reader("a.json", ("gate", "a.json", "b.json", "--max-gap", "3"), needs=("b.json",), verdict=1),
    "history": Reader("a.json", ("history", "b.json", "a.json", "--html", "o.html"), needs=("b.json",)),
    "rules": Reader(
        "rules.yaml",
        ("gate", "b.json", "b.json", "--rules", "rules.yaml"),
        needs=("b.json",),
        verdict=1,
        argument=("max_group_drop", "at least one rule"),
    ),
    "comparison": Reader("diff.json", read=AuditDiff.load),
    "gate-result": Reader("gate.json", read=GateResult.load),
    "targets.npy": Reader("t.npy", ("audit", "scores.npy", "--targets", "t.npy"), needs=("scores.npy",)),
    "targets.txt": Reader("t.txt", ("audit", "scores.npy", "--targets", "t.txt"), needs=("scores.npy",)),
    "targets.json": Reader("t.json", ("audit", "scores.npy", "--targets", "t.json"), needs=("scores.npy",)),
    "targets.csv": Reader("t.csv", ("audit", "scores.npy", "--targets", "t.csv"), needs=("scores.npy",)),
    "features.npy": _option("features.npy", "--features"),
    "train-counts.csv": _option("counts.csv", "--train-counts"),
    "train-counts.json": _option("counts.json", "--train-counts"),
    "groups": _option("groups.json", "--groups"),
    "superclasses": _option("groups.json", "--superclasses"),
    "hierarchy": _option("hierarchy.json", "--hierarchy"),
    "valid-labels": _option("valid.json", "--valid-labels"),
    "rank-by": _option("b.json", "--rank-by"),
    "costs.json": Reader("costs.json", read=lambda path: read_class_values(path, "costs")),
    "costs.csv": Reader("costs.csv", read=lambda path: read_class_values(path, "costs")),
    "priors.npy": Reader("priors.npy", read=lambda path: read_class_values(path, "priors")),
    "config": Reader(
        "config.yaml",
        read=lambda path: TrainConfig(**{"data": "digits"} | read_settings(path)),
        argument=tuple(field.name for field in fields(TrainConfig)),
    ),
    "features": Reader("f.npz", read=_load_data("features:{}")),
    "features.safetensors": Reader("f.safetensors", read=_load_data("features:{}")),
    "table": Reader("table.csv", read=_load_data("csv:{}:target=kind")),
    "table.parquet": Reader("table.parquet", read=_load_data("parquet:{}:target=kind")),
    "list": Reader("list.txt", read=_load_data("list:{}:size=8"), needs=("images",)),
    "image": Reader(
        "images/a/0.png", read=lambda path: _load_data("folder:{}:size=8")(path.parents[1]), needs=("images",)
    ),
    "weights": Reader("w.pt", read=read_weights),
    "weights.safetensors": Reader("w.safetensors", read=read_weights),
    "metrics": Reader("run/metrics.jsonl", read=lambda path: RunDirectory(path.parent).read_metrics(), needs=("run",)),
    **{f"run-{name}": Reader(f"run/{name}", ("audit", "run"), needs=("run",)) for name in RUN_FILES},
    **{
        f"predict-{Path(name).name}": Reader(f"run/{name}", ("predict", "run"), needs=("run",))
        for name in (*RUN_FILES, "checkpoints/model.safetensors")
    },
    "predict-input.npy": Reader("x.npy", ("predict", "run", "x.npy", "--out", "o.csv"), needs=("run",)),
    "predict-input.npz": Reader("x.npz", ("predict", "run", "x.npz", "--out", "o.npz"), needs=("run",)),
    "predict-input.csv": Reader("x.csv", ("predict", "run", "x.csv"), needs=("run",)),
    **{
        f"resume-{Path(name).name}": Reader(f"half/{name}", read=_resume, needs=("half",))
        for name in ("config.yaml", "metrics.jsonl", "data.json", "checkpoints/last.pt")
    },
    "run-class_stats.jsonl": Reader(
        "stats/class_stats.jsonl", read=lambda path: measure_run(path.parent), needs=("stats",)
    ),
    "predict-val_predictions": Reader("run/val_predictions.safetensors", ("audit", "run/val_predictions.safetensors")),
    "recipe": Reader("recipe.yaml", read=_reproduce, needs=("entry.json",), argument=("elm-moons", "recipe")),
    "entry": Reader("entry.json", read=_reproduce, needs=("recipe.yaml",), argument=("entries",)),
    "hf": Reader("table.parquet", read=_load_data("hf:{}:target=kind")),
    "text-folder": Reader(
        "texts/a/0.txt",
        read=lambda path: _load_data(f"text:{{}}:encoder={path.parents[2] / 'encoder'}")(path.parents[1]),
        needs=("texts", "encoder"),
    ),
    "text-encoder": Reader(
        "encoder/config.json",
        read=lambda path: _load_data(f"text:{{}}:encoder={path.parent}")(path.parents[1] / "texts"),
        needs=("texts", "encoder"),
    ),
    "search.json": Reader("search/search.json", read=_open_search, needs=("search",)),
    "session.json": Reader("search/session.json", read=_open_search, needs=("search",)),
    "journal.log": Reader("search/journal.log", read=_open_search, needs=("search",)),
    "network-fix.json": Reader("network/fix.json", read=lambda path: load_fix(path.parent), needs=("network",)),
    "network-fix.safetensors": Reader(
        "network/fix.safetensors", read=lambda path: load_fix(path.parent), needs=("network",)
    ),
    "predict-fix": Reader("affine/fix.json", ("predict", "run", "x.npy", "--fix", "affine"), needs=_FIXED),
    "fix.json": Reader("fix/fix.json", read=lambda path: load_fix(path.parent), needs=("fix",)),
    "fix.safetensors": Reader("fix/fix.safetensors", read=lambda path: load_fix(path.parent), needs=("fix",)),
}
FILES = {
    *(part.split("/")[0] for reader in READERS.values() for part in (reader.target, *reader.needs)),
    *("o.json", "o.html", "o.csv", "o.npz", "part-*.npz"),
}


def write_files(directory: Path) -> None:
    """Write all files, valid."""
    directory.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    targets = np.arange(36) % 3
    logits = np.eye(3)[targets] * 2 + rng.normal(size=(36, 3))
    features, cameras = rng.normal(size=(36, 4)), np.array(["north", "south"])[np.arange(36) // 3 % 2]
    names = ["cat", "dog", "owl"]
    arrays = {"targets": targets, "logits": logits, "class_names": np.array(names)}
    np.savez(directory / "p.npz", **arrays, index=np.arange(36), train_counts=np.array([9, 5, 7]))
    np.savez(directory / "ok.npz", **arrays)
    np.savez_compressed(directory / "f.npz", targets=targets, logits=logits, features=features)
    np.savez(directory / "s.npz", **arrays, camera=cameras)
    for part in range(2):
        np.savez(directory / f"part-{part}.npz", targets=targets, logits=logits, class_names=np.array(names))
    (directory / "arrays").mkdir(exist_ok=True)
    np.save(directory / "arrays" / "targets.npy", targets)
    np.save(directory / "arrays" / "logits.npy", logits)
    (directory / "arrays" / "class_names.json").write_text(json.dumps(names))
    tensors = {"targets": torch.from_numpy(targets), "logits": torch.from_numpy(logits)}
    save_file(tensors, directory / "p.safetensors", {"class_names": json.dumps(names)})
    save_file({"targets": tensors["targets"], "features": torch.from_numpy(features)}, directory / "f.safetensors")
    _write_tables(directory, targets, logits, cameras, names)
    _write_audits(directory, targets, logits, names)
    for name, values in {
        "t": targets,
        "scores": logits,
        "features": features,
        "priors": np.array([0.5, 0.3, 0.2]),
    }.items():
        np.save(directory / f"{name}.npy", values)
    (directory / "t.txt").write_text("\n".join(map(str, targets)))
    (directory / "t.csv").write_text("target\n" + "\n".join(map(str, targets)))
    plain: dict[str, Any] = {
        "t.json": targets.tolist(),
        "counts.json": {"cat": 9, "dog": 5, "owl": 7},
        "groups.json": {"pets": ["cat", "dog"], "birds": ["owl"]},
        "hierarchy.json": {"cat": "pet", "dog": "pet", "owl": ["bird", "animal"], "pet": "animal"},
        "valid.json": [[names[k], names[0]] for k in targets],
        "costs.json": {"cat": {"dog": 2.0}, "owl": {"cat": 3, "dog": 0.5}},
    }
    for name, value in plain.items():
        (directory / name).write_text(json.dumps(value))
    (directory / "counts.csv").write_text("class,count\ncat,9\ndog,5\nowl,7\n")
    (directory / "costs.csv").write_text(",cat,dog,owl\ncat,0,1,2\ndog,1,0,1\nowl,2,1,0\n")
    (directory / "rules.yaml").write_text("max_class_drop: 3\nmax_group_drop: {hard: 2, overall: 1}\nmax_gap: 40\n")
    _write_images(directory)
    _write_runs(directory)


def _write_tables(directory: Path, targets: Any, logits: Any, cameras: Any, names: list[str]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    predictions = logits.argmax(1)
    rows = [f"{names[t]},{names[p]}" for t, p in zip(targets, predictions, strict=True)]
    (directory / "labels.csv").write_text("target,prediction\n" + "\n".join(rows) + "\n")
    rows = [f"{names[t]},{a:.4f},{b:.4f},{c:.4f},{m}" for t, (a, b, c), m in zip(targets, logits, cameras, strict=True)]
    (directory / "scores.csv").write_text("target,cat,dog,owl,camera\n" + "\n".join(rows) + "\n")
    rows = [f"{a:.3f},{b:.3f},{m},{names[t]}" for t, (a, b, _), m in zip(targets, logits, cameras, strict=True)]
    (directory / "table.csv").write_text("width,height,camera,kind\n" + "\n".join(rows) + "\n")
    ids = [f"sample {i}" for i in range(len(targets))]
    pq.write_table(pa.table({"target": targets, "logits": logits.tolist(), "id": ids}), directory / "p.parquet")
    kinds = [names[t] for t in targets]
    pq.write_table(
        pa.table({"width": logits[:, 0], "camera": cameras.tolist(), "kind": kinds}), directory / "table.parquet"
    )
    np.save(directory / "x.npy", logits[:, :2].astype(np.float32))
    np.savez(directory / "x.npz", features=logits[:, :2].astype(np.float32), targets=targets % 2)
    (directory / "x.csv").write_text("a,b,target\n" + "\n".join(f"{a:.3f},{b:.3f},1" for a, b, _ in logits) + "\n")


def _write_audits(directory: Path, targets: Any, logits: Any, names: list[str]) -> None:
    first = Audit.from_predictions(targets=targets, logits=logits, class_names=names, name="a")
    second = Audit.from_predictions(targets=targets, logits=-logits, class_names=names, name="b")
    first.save(directory / "a.json")
    second.save(directory / "b.json")
    first.diff(second).save(directory / "diff.json")
    gate(first, second, max_gap=3, max_class_drop=2).save(directory / "gate.json")


def _write_images(directory: Path) -> None:
    lines = []
    for name in ("a", "b"):
        (directory / "images" / name).mkdir(parents=True, exist_ok=True)
        for i in range(4):
            Image.new("RGB", (8, 8), (40 * i, 9, 99)).save(directory / "images" / name / f"{i}.png")
            lines.append(f"images/{name}/{i}.png {name}")
    (directory / "list.txt").write_text("\n".join(lines) + "\n")


def _write_runs(directory: Path) -> None:
    train(TrainConfig(**TRAINING, out=directory / "run", audit=False), quiet=True)
    with contextlib.suppress(TrainingInterrupted):
        train(TrainConfig(**TRAINING, out=directory / "half", audit=False), quiet=True, stop=StopSoon())
    (directory / "config.yaml").write_text((directory / "run" / "config.yaml").read_text())
    weights = {"fc.weight": torch.zeros(2, 3), "fc.bias": torch.ones(2)}
    torch.save(weights, directory / "w.pt")
    save_file(weights, directory / "w.safetensors")
    Fix("class-offsets", "logits", [ClassAffine(torch.ones(3), torch.zeros(3))], ("a", "b", "c")).save(
        directory / "fix"
    )
    Fix("class-offsets", "logits", [ClassAffine(torch.ones(2), torch.zeros(2))], ("Head", "Tail")).save(
        directory / "affine"
    )
    config = {"model": "mlp:width=4", "num_classes": 3, "input_shape": [4], "head": "linear"}
    networks = MeanNetwork([Network.from_config(config), Network.from_config(config)])
    Fix("ensemble", "samples", [networks], ("a", "b", "c"), details={"input_shape": [4]}).save(directory / "network")
    stats = TrainConfig(**TRAINING, out=directory / "stats", audit=False, class_stats=True)
    train(stats, quiet=True)
    _write_stored(directory)


def _write_stored(directory: Path) -> None:
    sys.path.append(str(Path(__file__).parents[1]))
    from text_encoders import save_encoder

    (directory / "recipe.yaml").write_text(MOONS)
    record = {"key": ENTRY, "seed": 0, "settings": CELL.to_dict(), **measure_run(directory / "stats", "test")}
    (directory / "entry.json").write_text(json.dumps({"schema": 1, **record}))
    for name in ("a", "b"):
        (directory / "texts" / name).mkdir(parents=True, exist_ok=True)
        for i in range(4):
            (directory / "texts" / name / f"{i}.txt").write_text(f"the {name} is very red {i}")
    save_encoder(directory / "encoder")
    (directory / "search").mkdir(exist_ok=True)
    _open_search(directory / "search" / "search.json")
