"""Small Hugging Face models and data sets, built in code, and a step on two processes."""

from pathlib import Path
from typing import Any

import torch
from accelerate.state import AcceleratorState
from torch import Tensor
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    TrainingArguments,
    ViTConfig,
    ViTForImageClassification,
)

import classgap as cg
from classgap.distributed import rank
from classgap.integrations.huggingface import AuditCallback, ClassGapTrainer

CLASSES = 3
SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
NAMES = {0: "cat", 1: "dog", 2: "fox"}


def text_model(*, dropout: float = 0.0) -> BertForSequenceClassification:
    torch.manual_seed(0)
    rates = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    return BertForSequenceClassification(
        BertConfig(vocab_size=20, max_position_embeddings=8, num_labels=CLASSES, id2label=NAMES, **SIZES, **rates)
    )


def image_model() -> ViTForImageClassification:
    torch.manual_seed(0)
    rates = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return ViTForImageClassification(
        ViTConfig(image_size=8, patch_size=4, num_channels=1, num_labels=CLASSES, **SIZES, **rates)
    )


def samples(size: int, *, images: bool = False, ignored: int = 0, seed: int = 0) -> list[dict[str, Tensor]]:
    """Random samples, of which the first ``ignored`` have no label."""
    random = torch.Generator().manual_seed(seed)
    labels = torch.arange(size) % CLASSES
    labels[:ignored] = -100
    name, shape = ("pixel_values", (1, 8, 8)) if images else ("input_ids", (6,))
    values = torch.randn(size, *shape, generator=random)
    inputs = values if images else (values.abs() * 7).long().clamp(max=19)
    return [{name: each, "labels": label} for each, label in zip(inputs, labels, strict=True)]


def stacked(data: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    return {name: torch.stack([each[name] for each in data]) for name in data[0]}


def arguments(folder: Path, **settings: Any) -> TrainingArguments:
    """Settings of one step of plain gradient descent: the weights change by the gradient."""
    defaults = {
        "optim": "sgd",
        "learning_rate": 1.0,
        "lr_scheduler_type": "constant",
        "max_grad_norm": 0.0,
        "num_train_epochs": 1,
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": True,
        "dataloader_pin_memory": False,
    }
    return TrainingArguments(output_dir=str(folder), **(defaults | settings))


# name → loss, samples without label, settings; each takes one step on 18 samples
JOINT_STEPS: dict[str, tuple[Any, int, dict[str, Any]]] = {
    "accumulated": (lambda: cg.losses.CrossEntropyLoss(CLASSES), 5, {"gradient_accumulation_steps": 3}),
    "counted by each process": (
        lambda: cg.losses.CrossEntropyLoss(CLASSES),
        5,
        {"gradient_accumulation_steps": 3, "average_tokens_across_devices": False},
    ),
    "mr2": (lambda: cg.losses.MR2Loss(CLASSES, strength=0.5), 0, {}),
    "center": (lambda: cg.losses.CenterLoss(CLASSES, 16, strength=0.5, centers="trained"), 0, {}),
}


def take_joint_step(folder: Path, name: str, processes: int) -> dict[str, Tensor]:
    """The weights and the state of the loss after one step on 18 samples."""
    build, ignored, settings = JOINT_STEPS[name]
    size = 18 // processes // settings.get("gradient_accumulation_steps", 1)
    args = arguments(folder, per_device_train_batch_size=size, **settings)
    trainer = ClassGapTrainer(text_model(), args, train_dataset=samples(18, ignored=ignored), loss=build())
    trainer.train()
    assert trainer.state.global_step == 1
    loss = {f"loss.{key}": value for key, value in trainer.loss.state_dict().items()}
    return {key: value.clone() for key, value in trainer.model.state_dict().items()} | loss


def audit_with_padding(folder: Path) -> None:
    """Evaluate 7 samples in batches of 2, which two processes cannot divide equally."""
    audit = AuditCallback()
    trainer = ClassGapTrainer(
        text_model(),
        arguments(folder, per_device_eval_batch_size=2),
        eval_dataset=samples(7),
        loss="mr2",
        callbacks=[audit],
        compute_metrics=audit.compute_metrics,
    )
    trainer.evaluate()


def take_joint_steps(folder: Path) -> None:
    """Take the steps, and evaluate, as one of two processes."""
    AcceleratorState._reset_state(reset_partial_state=True)  # a fork of the tests has that of one process
    for name in JOINT_STEPS:
        torch.save(take_joint_step(folder, name, 2), folder / f"{name}-{rank()}.pt")
    audit_with_padding(folder)
