"""Train an image or a text classifier with the Hugging Face Trainer, MR² and a per-class audit.

The model is small and randomly initialized and the data is generated, so the script needs no download:

    python examples/huggingface_trainer.py --task text --out runs/hf
"""

import argparse
from pathlib import Path

import torch
from datasets import Dataset
from transformers import (
    AutoModelForImageClassification,
    AutoModelForSequenceClassification,
    BertConfig,
    PreTrainedModel,
    TrainingArguments,
    ViTConfig,
)

from classgap.integrations.huggingface import AuditCallback, ClassGapTrainer

NAMES = {0: "plain", 1: "mixed", 2: "noisy"}
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}


def texts(size: int, seed: int) -> Dataset:
    """Sequences of 12 tokens; the token of the class is among them, in fewer places for harder classes."""
    random = torch.Generator().manual_seed(seed)
    labels = torch.arange(size) % len(NAMES)
    tokens = torch.randint(4, 40, (size, 12), generator=random)
    for place in range(3):
        shown = place < 3 - labels
        tokens[shown, place] = labels[shown] + 1
    return Dataset.from_dict({"input_ids": tokens.tolist(), "labels": labels.tolist()})


def images(size: int, seed: int) -> Dataset:
    """Images of 8×8 with a bright stripe; harder classes have more noise."""
    random = torch.Generator().manual_seed(seed)
    labels = torch.arange(size) % len(NAMES)
    pixels = torch.randn(size, 1, 8, 8, generator=random) * (0.5 + labels)[:, None, None, None]
    pixels[torch.arange(size), 0, 2 * labels] += 1.5
    return Dataset.from_dict({"pixel_values": pixels.tolist(), "labels": labels.tolist()})


def text_model() -> PreTrainedModel:
    config = BertConfig(vocab_size=40, max_position_embeddings=12, id2label=NAMES, **SIZES)
    return AutoModelForSequenceClassification.from_config(config)


def image_model() -> PreTrainedModel:
    config = ViTConfig(image_size=8, patch_size=4, num_channels=1, id2label=NAMES, **SIZES)
    return AutoModelForImageClassification.from_config(config)


TASKS = {
    "text": (texts, text_model, AutoModelForSequenceClassification),
    "image": (images, image_model, AutoModelForImageClassification),
}


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", choices=TASKS, default="text")
    parser.add_argument("--loss", default="mr2", help="a loss by name, such as mr2:strength=0.1 or erm")
    parser.add_argument("--epochs", type=float, default=3)
    parser.add_argument("--out", type=Path, default=Path("runs/hf"))
    options = parser.parse_args(words)

    torch.manual_seed(0)
    data, model, auto = TASKS[options.task]
    audit = AuditCallback()
    trainer = ClassGapTrainer(
        model(),
        TrainingArguments(
            output_dir=str(options.out),
            num_train_epochs=options.epochs,
            per_device_train_batch_size=32,
            learning_rate=2e-3,
            eval_strategy="epoch",
            save_strategy="epoch",
            load_best_model_at_end=True,
            metric_for_best_model="hard_accuracy",
            report_to="none",
        ),
        train_dataset=data(600, seed=0),
        eval_dataset=data(300, seed=1),
        loss=options.loss,
        callbacks=[audit],
        compute_metrics=audit.compute_metrics,
    )
    trainer.train()
    trainer.evaluate()
    print(audit.audit)
    trainer.save_model(str(options.out / "final"))
    auto.from_pretrained(options.out / "final")  # a plain model of transformers
    print(f"Report: {options.out / 'eval' / 'report.html'}")


if __name__ == "__main__":
    main()
