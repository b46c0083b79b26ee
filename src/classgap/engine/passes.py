"""One pass over a split in evaluation mode: every sample once, whatever the number of processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from classgap.data.batches import evaluation_batches
from classgap.data.dataset import Split
from classgap.distributed import Shards, share_buffers
from classgap.engine.scores import Scores

if TYPE_CHECKING:
    from classgap.engine.run import Run


@torch.no_grad()
def one_pass(run: Run, split: Split, *, features: bool) -> Scores:
    """Logits, features (if asked for) and targets of all samples, in the split's order, on every process."""
    training = run.model.training
    share_buffers(run.model, run.method)  # what process 0 saves is what all of them look through
    run.model.eval()
    run.method.eval()
    try:
        logits_NK, features_ND, targets_N = _run(run, split, features)
    finally:
        run.model.train(training)
        run.method.train(training)
    shards = Shards.of(len(targets_N), run.device)

    def whole(local: Tensor) -> Tensor:
        return shards.gather(local.to(run.device)).cpu() if len(shards.sizes) > 1 else local

    return Scores(whole(logits_NK), whole(features_ND), whole(targets_N))


def _run(run: Run, split: Split, keep: bool) -> tuple[Tensor, Tensor, Tensor]:
    assert run.config.batch is not None
    logits, features, targets = [], [], []
    batches = evaluation_batches(
        split,
        batch_size=run.config.batch,
        mean=run.mean,
        std=run.std,
        size=run.crop,
        device=run.device,
        channels_last=run.config.channels_last,
    )
    for batch in batches:
        logits_BK, features_BD = run.method.predict(run, batch.inputs)
        logits.append(logits_BK.to(torch.promote_types(logits_BK.dtype, torch.float32)).cpu())
        features.append(features_BD[:, : None if keep else 0].float().cpu())  # a training set's may not fit in memory
        targets.append(batch.labels.cpu())
    if not targets:  # more processes than samples
        width = run.tap.head.get_parameter("weight").shape[1] if keep else 0
        return torch.zeros(0, run.num_classes), torch.zeros(0, width), torch.zeros(0, dtype=torch.long)
    return torch.cat(logits), torch.cat(features), torch.cat(targets)
