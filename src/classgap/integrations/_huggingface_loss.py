"""Hugging Face ``Trainer``: a ``compute_loss_func`` with the gradient of the global batch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from classgap.distributed import all_reduce_sum, world_size
from classgap.integrations._tapped_loss import TappedLoss
from classgap.losses.base import ClassLoss

try:
    from transformers import TrainingArguments
except ImportError as error:
    raise ImportError("classgap.integrations.huggingface requires transformers: pip install 'classgap[hf]'.") from error


def make_compute_loss_func(
    loss: ClassLoss | str,
    model: nn.Module,
    args: TrainingArguments,
    *,
    head: nn.Module | str | None = None,
    class_counts: Sequence[float] | Tensor | None = None,
) -> Callable[..., Tensor]:
    """Return a ``compute_loss_func`` for ``Trainer``.

    Under gradient accumulation and on several processes the gradient equals that of the global batch, if the loss is a
    mean over samples. Checkpoints do not contain the state of the loss, and the optimizer does not train its
    parameters: use ``ClassGapTrainer`` for losses with either.

    Args:
        loss: A loss, or the name of a method: "mr2", "elm:strength=0.1".
        model: The model that the trainer trains.
        args: The arguments of the trainer.
        head: Head of the model or its name, if it is not found.
        class_counts: Training samples per class, for methods built by name that need them.

    Raises:
        ValueError: If the loss has parameters, or an argument is not supported.

    >>> import torch
    >>> from tempfile import TemporaryDirectory
    >>> from transformers import BertConfig, BertForSequenceClassification, TrainingArguments
    >>> sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    >>> model = BertForSequenceClassification(BertConfig(vocab_size=20, num_labels=3, **sizes))
    >>> with TemporaryDirectory() as folder:
    ...     args = TrainingArguments(folder, report_to="none", use_cpu=True)
    ...     compute_loss = make_compute_loss_func("label-smoothing", model, args)
    >>> output = model(input_ids=torch.tensor([[1, 2], [3, 4]]))
    >>> compute_loss(output, torch.tensor([0, 2])).dim()
    0
    """
    tapped = TappedLoss(loss, model, head=head, class_counts=class_counts, caller="make_compute_loss_func")
    func = LossFunc(tapped, args)
    name = type(func.tapped.loss).__name__
    if any(each.requires_grad for each in func.tapped.loss.parameters()):
        raise ValueError(f"{name} has parameters, which the optimizer would not train; use ClassGapTrainer.")
    if not func.tapped.loss.by_sample and func.tapped.loss.state_dict():
        warnings.warn(f"Checkpoints will not contain the state of {name}; use ClassGapTrainer.", stacklevel=2)
    return func


class LossFunc:
    """``compute_loss_func`` whose accumulated and averaged gradient is that of the global batch."""

    def __init__(self, tapped: TappedLoss, args: TrainingArguments) -> None:
        loss, steps = tapped.loss, args.gradient_accumulation_steps
        if loss.reduction == "none" or loss.ignore_index != -100:
            raise ValueError(
                f"loss must have reduction 'mean' or 'sum' and ignore_index -100, as Trainer counts labels; got "
                f"{loss.reduction!r} and {loss.ignore_index}."
            )
        if args.label_smoothing_factor:
            raise ValueError(
                f"label_smoothing_factor must be 0, got {args.label_smoothing_factor}: Trainer would not apply it to "
                "this loss; use CrossEntropyLoss(…, label_smoothing=…)."
            )
        if args.n_gpu > 1:
            raise ValueError(f"Trainer would copy the model to {args.n_gpu} devices; start it with torchrun instead.")
        if steps > 1 and not loss.by_sample:
            warnings.warn(
                f"gradient_accumulation_steps={steps}: {type(loss).__name__} compares samples or keeps statistics, and "
                "sees one micro-batch at a time instead of the whole batch.",
                stacklevel=4,
            )
        self.tapped = tapped
        self.args = args
        loss.to(args.device)

    def __call__(self, outputs: Any, labels: Tensor | None, num_items_in_batch: Tensor | int | None = None) -> Tensor:
        if labels is None:
            raise ValueError("labels are missing: the dataset or the data collator must provide 'labels'.")
        # The loss is not part of the model, so model.eval() does not reach it, and evaluation would change its state.
        self.tapped.loss.train(self.tapped.model.training)
        value = self.tapped(outputs, labels)
        # Trainer multiplies the result by the number of processes, in training and in evaluation.
        joint = self.args.average_tokens_across_devices and num_items_in_batch is not None
        factor = 1 / world_size() if joint else 1.0
        if not self.tapped.loss.training or self.tapped.loss.reduction == "sum":
            return value * factor
        if num_items_in_batch is None:
            return value / self.args.gradient_accumulation_steps
        # A micro-batch contributes its fraction of the labels. Both counts are global, because so is the loss.
        mine = labels.ne(-100).sum()
        total = torch.as_tensor(num_items_in_batch, device=mine.device).to(mine.dtype).reshape(())
        if world_size() > 1:
            own, summed = all_reduce_sum(torch.stack([mine, total])).unbind()
            mine, total = own, total if joint else summed
        return value * (mine / total.clamp(min=1)) * factor
