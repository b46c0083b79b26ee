"""Lightning: audits of validation and test epochs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import BatchSampler, DistributedSampler

from classgap.audit import Audit
from classgap.audit.io.inference import LABEL_KEYS
from classgap.distributed import all_agree, gather_rows, world_size
from classgap.integrations._audit_metrics import audit_metrics, write_audit

try:
    from lightning.fabric.utilities.distributed import DistributedSamplerWrapper
    from lightning.pytorch import Callback
    from lightning.pytorch.utilities import CombinedLoader
except ImportError as error:
    raise ImportError(
        "classgap.integrations.lightning requires lightning: pip install 'classgap[lightning]'."
    ) from error


class AuditCallback(Callback):
    """Audits every validation and test epoch, class by class.

    ``validation_step`` and ``test_step`` return ``{"logits": …}``, and optionally ``targets`` and ``index``. Without
    ``targets``, they come from the batch: its second item, or its entry "labels", "label", "targets" or "target".

    It logs ``val_hard_accuracy``, ``val_worst_class_accuracy``, …, for ``ModelCheckpoint`` and ``EarlyStopping``, and
    writes ``audit.json`` and ``report.html`` to ``dirpath/val`` and ``dirpath/test``. With several loaders, names end
    in ``/dataloader_idx_0``, …. The sanity check is not audited.

    With several processes, every process has the audit of all samples. ``DistributedSampler`` adds repeated samples so
    that all processes get the same number; the callback counts each sample once. With another sampler, return
    ``index``, the position of each sample in the dataset.

    Args:
        dirpath: Folder for the files; the folder of the logger by default, or else ``default_root_dir``.
        settings: Keyword arguments of ``Audit.from_predictions``: ``class_names``, ``train_counts``, ``rank_by``, ….

    Attributes:
        audits: The last audits by name: "val", "test", or "val/dataloader_idx_0", ….

    >>> import torch
    >>> from lightning.pytorch import LightningModule, Trainer
    >>> class Net(LightningModule):
    ...     def validation_step(self, batch, batch_idx):
    ...         return {"logits": torch.nn.functional.one_hot(batch[1].clamp(max=1), 3).float()}
    >>> data = torch.utils.data.TensorDataset(torch.randn(6, 4), torch.arange(6) % 3)
    >>> quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     audit = AuditCallback(folder, class_names=["cat", "dog", "fox"])
    ...     _ = Trainer(callbacks=[audit], **quiet).validate(Net(), torch.utils.data.DataLoader(data, 3), verbose=False)
    >>> audit.audits["val"].gap.worst_name
    'fox'
    """

    def __init__(self, dirpath: str | os.PathLike[str] | None = None, **settings: Any) -> None:
        self.dirpath = dirpath
        self.settings = settings
        self.audits: dict[str, Audit] = {}
        self._seen: dict[int, list[dict[str, Tensor]]] = {}

    def on_validation_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Forget the previous epoch."""
        self._seen = {}

    def on_test_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Forget the previous epoch."""
        self._seen = {}

    def on_validation_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """Keep the logits and targets of a batch."""
        if not trainer.sanity_checking:
            self._seen.setdefault(dataloader_idx, []).append(_rows("validation_step", outputs, batch))

    def on_test_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """Keep the logits and targets of a batch."""
        self._seen.setdefault(dataloader_idx, []).append(_rows("test_step", outputs, batch))

    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Audit the epoch."""
        if not trainer.sanity_checking:
            self._audit(trainer, pl_module, "val", trainer.val_dataloaders)

    def on_test_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Audit the epoch."""
        self._audit(trainer, pl_module, "test", trainer.test_dataloaders)

    def _audit(self, trainer: Any, pl_module: Any, prefix: str, loaders: Any) -> None:
        loaders = CombinedLoader(loaders, "sequential").flattened
        root = Path(self.dirpath or trainer.log_dir or trainer.default_root_dir)
        for number, loader in enumerate(loaders):
            suffix = f"/dataloader_idx_{number}" if len(loaders) > 1 else ""
            rows: dict[str, Any] = _gather(self._seen.get(number, []), loader)
            audit = Audit.from_predictions(**rows, **self.settings)
            self.audits[prefix + suffix] = audit
            metrics = {f"{prefix}_{name}{suffix}": value for name, value in audit_metrics(audit).items()}
            pl_module.log_dict(metrics, add_dataloader_idx=False)  # equal on all processes: no need to synchronize
            if trainer.is_global_zero:
                write_audit(audit, root / f"{prefix}{suffix}")
        self._seen = {}


def _rows(step: str, outputs: Any, batch: Any) -> dict[str, Tensor]:
    """Return the logits, targets and index of a batch, on the CPU."""
    if not isinstance(outputs, Mapping) or "logits" not in outputs:
        seen = f"keys {', '.join(map(str, outputs))}" if isinstance(outputs, Mapping) else type(outputs).__name__
        raise ValueError(f'AuditCallback needs logits: return {{"logits": logits}} from {step}, got {seen}.')
    logits, targets = outputs["logits"], outputs.get("targets")
    if targets is None and isinstance(batch, Mapping):
        targets = next((batch[key] for key in LABEL_KEYS if key in batch), None)
    elif targets is None and isinstance(batch, (tuple, list)) and len(batch) > 1:
        targets = batch[1]
    if not isinstance(targets, Tensor) or len(targets) != len(logits):
        raise ValueError(f'AuditCallback needs targets: return {{"logits": …, "targets": targets}} from {step}.')
    rows = {"logits": logits.float(), "targets": targets}
    if outputs.get("index") is not None:
        rows["index"] = torch.as_tensor(outputs["index"])
    return {name: each.detach().cpu() for name, each in rows.items()}


def _gather(batches: list[dict[str, Tensor]], loader: Any) -> dict[str, Any]:
    """Concatenate the rows of all batches and processes, with the position of each sample if it is known."""
    local = {name: torch.cat([each[name] for each in batches]) for name in (batches[0] if batches else ())}
    if world_size() == 1 and local:
        return local
    if local and "index" not in local:
        local |= _positions(loader, len(local["targets"]))
    if not all_agree("index" in local):
        raise ValueError(
            "AuditCallback cannot identify the samples of several processes: use DistributedSampler with at least one "
            'sample per process, or return "index", the position of each sample in the dataset, from the step.'
        )
    return {name: gather_rows(each) for name, each in local.items()}


def _positions(loader: Any, count: int) -> dict[str, Tensor]:
    """Return the positions of the samples that a ``DistributedSampler`` gave to this process, or nothing."""
    batches = getattr(loader, "batch_sampler", None)
    sampler: Any = getattr(loader if batches is None else batches, "sampler", None)
    ordered = batches is None or type(batches) is BatchSampler
    if not ordered or type(sampler) not in (DistributedSampler, DistributedSamplerWrapper):
        return {}
    # The wrapper of another sampler would draw it again. The positions among its draws identify samples as well.
    return {"index": torch.tensor(list(DistributedSampler.__iter__(sampler))[:count])}
