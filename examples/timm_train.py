"""Train a timm model on a folder of images with a loss of classgap, on ``timm.task``.

The data folder has ``train/CLASS/…`` and ``validation/CLASS/…``. Supported arguments, named as in timm's own training
script: --data-dir, --model, --pretrained, --img-size, --batch-size, --workers, --epochs, --opt, --lr, --weight-decay,
--sched, --warmup-epochs, --clip-grad, --no-aug, --eval-metric, --seed, --output, --resume; and --loss, a loss by name.
Any other argument is an error. It trains in one process.

    python examples/timm_train.py --data-dir photos --model resnet18 --loss mr2 --epochs 10 --output runs/timm
    python examples/timm_train.py … --resume runs/timm/last.pth.tar
"""

import argparse
from pathlib import Path

import timm
import torch
from timm.data import create_dataset, create_loader, resolve_data_config
from timm.optim import create_optimizer_v2
from timm.scheduler import create_scheduler_v2
from timm.task import resume_task_checkpoint
from timm.utils import CheckpointSaver, random_seed
from torch.utils.data import DataLoader

import classgap as cg
from classgap.integrations.timm import ClassLossTask

METRICS = {
    "accuracy": lambda audit: audit.overall.accuracy,
    "hard_accuracy": lambda audit: audit.groups["hard"].accuracy,
    "worst_class_accuracy": lambda audit: audit.gap.worst_class,
}


def parse(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--pretrained", action="store_true")
    parser.add_argument("--img-size", type=int)
    parser.add_argument("--loss", default="mr2", help="a loss by name, such as mr2:strength=0.1 or erm")
    parser.add_argument("-b", "--batch-size", type=int, default=128)
    parser.add_argument("-j", "--workers", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--opt", default="sgd")
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--weight-decay", type=float, default=2e-5)
    parser.add_argument("--sched", default="cosine")
    parser.add_argument("--warmup-epochs", type=int, default=0)
    parser.add_argument("--clip-grad", type=float)
    parser.add_argument("--no-aug", action="store_true")
    parser.add_argument("--eval-metric", choices=METRICS, default="accuracy")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--output", default="runs/timm")
    parser.add_argument("--resume", default="")
    return parser.parse_args(words)


def loaders(options: argparse.Namespace, data_config: dict[str, object]) -> tuple[DataLoader, DataLoader, list[str]]:
    """Loaders of the training and the validation images, and the names of the classes."""
    common = {"batch_size": options.batch_size, "num_workers": options.workers, "use_prefetcher": False}
    common |= {key: data_config[key] for key in ("input_size", "mean", "std", "interpolation")}
    common |= {"persistent_workers": False, "pin_memory": False}
    train = create_dataset("", root=options.data_dir, split="train", is_training=True)
    val = create_dataset("", root=options.data_dir, split="validation")
    names = sorted(train.reader.class_to_idx, key=train.reader.class_to_idx.__getitem__)
    return (
        create_loader(train, is_training=True, no_aug=options.no_aug, **common),
        create_loader(val, crop_pct=data_config["crop_pct"], **common),
        names,
    )


def main(words: list[str] | None = None) -> None:
    options = parse(words)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    output = Path(options.output)
    output.mkdir(parents=True, exist_ok=True)

    random_seed(options.seed)
    classes = len([folder for folder in Path(options.data_dir, "train").iterdir() if folder.is_dir()])
    model = timm.create_model(options.model, pretrained=options.pretrained, num_classes=classes).to(device)
    train, val, names = loaders(options, resolve_data_config(vars(options), model=model))
    counts = torch.bincount(torch.tensor([label for _, label in train.dataset.reader.samples]), minlength=classes)

    task = ClassLossTask(model, options.loss, class_counts=counts, device=device)
    optimizer = create_optimizer_v2(model, opt=options.opt, lr=options.lr, weight_decay=options.weight_decay)
    task.train_loss_parameters(optimizer)
    start = resume_task_checkpoint(task, options.resume, optimizer) if options.resume else 0
    scheduler, epochs = create_scheduler_v2(
        optimizer, sched=options.sched, num_epochs=options.epochs, warmup_epochs=options.warmup_epochs
    )
    scheduler.step(start)
    saver = CheckpointSaver(model, optimizer, args=options, task=task, checkpoint_dir=str(output))

    for epoch in range(start, epochs):
        random_seed(options.seed + epoch)  # a resumed run sees the same images in the same order
        task.train()
        for images, labels in train:
            result = task(images.to(device), labels.to(device))
            optimizer.zero_grad()
            result["loss"].backward()
            if options.clip_grad is not None:
                torch.nn.utils.clip_grad_norm_(task.get_clip_parameters(), options.clip_grad)
            optimizer.step()
        scheduler.step(epoch + 1)

        audit = cg.Audit.from_model(task.get_eval_model(), val, class_names=names, train_counts=counts)
        audit.save(output / "audit.json")
        audit.to_html(output / "report.html")
        saver.save_checkpoint(epoch, metric=METRICS[options.eval_metric](audit))
        shown = ", ".join(f"{name} {metric(audit):.3f}" for name, metric in METRICS.items())
        print(f"epoch {epoch}: loss {result['loss'].item():.4f}, {shown}")


if __name__ == "__main__":
    main()
