"""Hugging Face Trainer: gradients of the global batch, state in checkpoints, evaluation without learning, audits."""

import warnings
from pathlib import Path

import pytest
import torch
from hf_cases import (
    CLASSES,
    JOINT_STEPS,
    arguments,
    image_model,
    samples,
    stacked,
    take_joint_step,
    take_joint_steps,
    text_model,
)
from torch import Tensor, nn
from transformers import AutoModelForImageClassification, AutoModelForSequenceClassification, Trainer

import classgap as cg
from classgap.integrations.huggingface import AuditCallback, ClassGapTrainer, make_compute_loss_func
from forked import run_ranks

KINDS = {
    "text": (text_model, AutoModelForSequenceClassification),
    "image": (image_model, AutoModelForImageClassification),
}


def weights(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def assert_equal(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=0, atol=0, msg=name)


def gradients_by_torch(model: nn.Module, data: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    batch = stacked(data)
    nn.functional.cross_entropy(model(**{**batch, "labels": None}).logits, batch["labels"]).backward()
    return {name: each.grad.clone() for name, each in model.named_parameters() if each.grad is not None}


@pytest.mark.parametrize("by_function", [False, True], ids=["mixin", "function"])
@pytest.mark.parametrize("kind", KINDS)
def test_accumulation_gives_the_gradient_of_the_batch(kind: str, by_function: bool, tmp_path: Path) -> None:
    build, _ = KINDS[kind]
    data = samples(32, images=kind == "image", ignored=5)  # micro-batches differ in their number of labels
    expected = gradients_by_torch(build(), data)
    for size, steps in ((32, 1), (8, 4), (12, 3)):  # the last micro-batch of 12 has 8 samples
        args = arguments(tmp_path, per_device_train_batch_size=size, gradient_accumulation_steps=steps)
        model, loss = build(), cg.losses.CrossEntropyLoss(CLASSES)
        before = weights(model)
        if by_function:
            func = make_compute_loss_func(loss, model, args)
            trainer = Trainer(model, args, train_dataset=data, compute_loss_func=func)
        else:
            trainer = ClassGapTrainer(model, args, train_dataset=data, loss=loss)
        trainer.train()
        assert trainer.state.global_step == 1
        for name, gradient in expected.items():
            found = before[name] - model.state_dict()[name]
            torch.testing.assert_close(found, gradient, rtol=1e-4, atol=1e-6, msg=f"{name}, {steps} × {size}")


def test_sums_are_added_up(tmp_path: Path) -> None:
    data, model = samples(12, ignored=4), text_model()
    expected, before = gradients_by_torch(text_model(), data), weights(model)
    args = arguments(tmp_path, per_device_train_batch_size=4, gradient_accumulation_steps=3)
    loss = cg.losses.CrossEntropyLoss(CLASSES, reduction="sum")
    ClassGapTrainer(model, args, train_dataset=data, loss=loss).train()
    for name, gradient in expected.items():  # 8 samples have a label
        found = before[name] - model.state_dict()[name]
        torch.testing.assert_close(found, 8 * gradient, rtol=1e-4, atol=1e-5, msg=name)


def test_batches_without_a_count_are_averaged(tmp_path: Path) -> None:
    model, args = text_model(), arguments(tmp_path, gradient_accumulation_steps=4)
    func = make_compute_loss_func("erm", model, args)
    logits, labels = torch.randn(6, CLASSES), torch.arange(6) % CLASSES
    mean = nn.functional.cross_entropy(logits, labels)
    torch.testing.assert_close(func({"logits": logits}, labels), mean / 4)
    torch.testing.assert_close(func({"logits": logits}, labels, num_items_in_batch=12), mean / 2)
    model.eval()
    torch.testing.assert_close(func({"logits": logits}, labels), mean)


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of two processes, as if torchrun had started them."""
    folder = tmp_path_factory.mktemp("two")
    run_ranks(take_joint_steps, folder)
    return folder


@pytest.mark.parametrize("name", JOINT_STEPS)
def test_two_processes_equal_one(name: str, two_processes: Path, tmp_path: Path) -> None:
    expected = take_joint_step(tmp_path, name, 1)
    for rank in (0, 1):
        found = torch.load(two_processes / f"{name}-{rank}.pt", weights_only=True)
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            torch.testing.assert_close(found[key], value, rtol=1e-4, atol=1e-6, msg=f"{key} on process {rank}")


def test_samples_repeated_by_two_processes_are_audited_once(two_processes: Path) -> None:
    audit = cg.Audit.load(two_processes / "eval" / "audit.json")
    assert audit.overall.n_samples == 7
    assert audit.samples.targets.tolist() == [0, 1, 2, 0, 1, 2, 0]


@pytest.mark.parametrize("loss", ["mr2:memory_size=8", "center:strength=0.5:centers=trained"])
def test_interrupted_equals_uninterrupted(loss: str, tmp_path: Path) -> None:
    settings = {"num_train_epochs": 2, "per_device_train_batch_size": 4, "learning_rate": 0.05, "optim": "adamw_torch"}
    settings |= {"save_strategy": "steps", "save_steps": 5, "lr_scheduler_type": "linear"}

    def trainer() -> ClassGapTrainer:
        data = samples(24)
        return ClassGapTrainer(text_model(dropout=0.1), arguments(tmp_path, **settings), train_dataset=data, loss=loss)

    whole = trainer()
    whole.train()
    for choice in (str(tmp_path / "checkpoint-5"), True):  # in the middle of an epoch; the last one
        resumed = trainer()
        resumed.train(resume_from_checkpoint=choice)
        assert resumed.state.global_step == 12
        assert_equal(weights(resumed.model), weights(whole.model))
        assert_equal(resumed.loss.state_dict(), whole.loss.state_dict())
    (tmp_path / "checkpoint-5" / "class_loss.safetensors").unlink()
    with pytest.raises(ValueError, match=r"class_loss\.safetensors"):
        trainer().train(resume_from_checkpoint=str(tmp_path / "checkpoint-5"))


def test_evaluation_does_not_change_the_loss(tmp_path: Path) -> None:
    results = []
    for every in ("no", "steps"):
        args = arguments(tmp_path, per_device_train_batch_size=6, eval_strategy=every, eval_steps=1, learning_rate=0.1)
        model, other = text_model(), samples(9, seed=1)
        trainer = ClassGapTrainer(model, args, train_dataset=samples(18), eval_dataset=other, loss="mr2:memory_size=4")
        trainer.train()
        results.append({**weights(model), **weights(trainer.loss)})
        assert len([each for each in trainer.state.log_history if "eval_loss" in each]) == (
            3 if every == "steps" else 0
        )
    assert_equal(results[1], results[0])


def test_the_parameters_of_a_loss_are_trained_as_in_a_plain_loop(tmp_path: Path) -> None:
    data = samples(18)
    model, loss = text_model(), cg.losses.CenterLoss(CLASSES, 16, strength=0.5, centers="trained")
    tap, batch = cg.FeatureTap(model), stacked(data)
    optimizer = torch.optim.SGD([{"params": model.parameters()}, {"params": loss.parameters(), "lr": 0.5}], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        loss(model(**{**batch, "labels": None}).logits, batch["labels"], features=tap.features).backward()
        optimizer.step()

    args = arguments(tmp_path, per_device_train_batch_size=18, num_train_epochs=3, learning_rate=0.1)
    trained = cg.losses.CenterLoss(CLASSES, 16, strength=0.5, centers="trained")
    trainer = ClassGapTrainer(text_model(), args, train_dataset=data, loss=trained, loss_lr=0.5)
    trainer.train()
    for name, value in {**weights(model), **weights(loss)}.items():
        found = {**weights(trainer.model), **weights(trained)}[name]
        torch.testing.assert_close(found, value, rtol=1e-4, atol=1e-6, msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_the_saved_folder_is_a_pretrained_model(kind: str, tmp_path: Path) -> None:
    build, auto = KINDS[kind]
    data = samples(12, images=kind == "image")
    trainer = ClassGapTrainer(build(), arguments(tmp_path), train_dataset=data, loss="mr2")
    trainer.train()
    trainer.save_model(str(tmp_path / "final"))
    model, info = auto.from_pretrained(tmp_path / "final", output_loading_info=True)
    assert not any(info[name] for name in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert type(model) is type(build())
    assert_equal(weights(model), weights(trainer.model))


def test_the_loss_of_the_best_checkpoint_is_restored(tmp_path: Path) -> None:
    every = {"eval_strategy": "steps", "save_strategy": "steps", "eval_steps": 1, "save_steps": 1}
    best = {"load_best_model_at_end": True, "metric_for_best_model": "first", "greater_is_better": True}
    args = arguments(tmp_path, per_device_train_batch_size=6, **every, **best)
    scores = iter([1.0, 0.0, 0.0])
    trainer = ClassGapTrainer(
        text_model(),
        args,
        train_dataset=samples(18),
        eval_dataset=samples(6),
        loss="mr2",
        compute_metrics=lambda prediction: {"first": next(scores)},
    )
    trainer.train()
    from safetensors.torch import load_file

    assert_equal(trainer.loss.state_dict(), load_file(tmp_path / "checkpoint-1" / "class_loss.safetensors"))
    with pytest.raises(AssertionError):
        assert_equal(trainer.loss.state_dict(), load_file(tmp_path / "checkpoint-3" / "class_loss.safetensors"))


@pytest.mark.parametrize("kind", KINDS)
def test_evaluations_and_predictions_are_audited(kind: str, tmp_path: Path) -> None:
    build, _ = KINDS[kind]
    data, audit = samples(30, images=kind == "image"), AuditCallback(train_counts=[9, 9, 9])
    model = build()
    trainer = ClassGapTrainer(
        model,
        arguments(tmp_path),
        eval_dataset=data,
        loss="mr2",
        callbacks=[audit],
        compute_metrics=audit.compute_metrics,
    )
    metrics = trainer.evaluate()
    with torch.no_grad():
        right = model(**stacked(data)).logits.argmax(dim=1) == stacked(data)["labels"]
    by_class = [right[label::CLASSES].float().mean().item() for label in range(CLASSES)]
    assert metrics["eval_accuracy"] == pytest.approx(right.float().mean().item())
    assert metrics["eval_worst_class_accuracy"] == pytest.approx(min(by_class))
    saved = cg.Audit.load(tmp_path / "eval" / "audit.json")
    assert [each.accuracy for each in saved.classes] == pytest.approx(by_class)
    if kind == "text":
        assert saved.class_names == ("cat", "dog", "fox")
    assert (tmp_path / "eval" / "report.html").exists()
    assert trainer.predict(data).metrics["test_accuracy"] == metrics["eval_accuracy"]
    assert (tmp_path / "test" / "audit.json").exists()


def test_samples_without_a_label_are_not_audited(tmp_path: Path) -> None:
    audit = AuditCallback()
    trainer = Trainer(
        text_model(),
        arguments(tmp_path),
        eval_dataset=samples(12, ignored=5),
        callbacks=[audit],
        compute_metrics=audit.compute_metrics,
    )
    trainer.evaluate()
    assert cg.Audit.load(tmp_path / "eval" / "audit.json").overall.n_samples == 7


def test_an_audit_needs_predictions(tmp_path: Path) -> None:
    trainer = Trainer(text_model(), arguments(tmp_path), eval_dataset=samples(6), callbacks=[AuditCallback()])
    with pytest.raises(ValueError, match="compute_metrics"):
        trainer.evaluate()


def test_a_loss_that_compares_samples_warns_of_accumulation(tmp_path: Path) -> None:
    args = arguments(tmp_path, gradient_accumulation_steps=4)
    with pytest.warns(UserWarning, match="gradient_accumulation_steps=4: MR2Loss"):
        ClassGapTrainer(text_model(), args, loss="mr2")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ClassGapTrainer(text_model(), args, loss="erm")
        ClassGapTrainer(text_model(), arguments(tmp_path), loss="mr2")


def test_the_function_names_what_only_the_trainer_does(tmp_path: Path) -> None:
    args = arguments(tmp_path)
    with pytest.raises(ValueError, match=r"CenterLoss.*ClassGapTrainer"):
        make_compute_loss_func("center:centers=trained", text_model(), args)
    with pytest.warns(UserWarning, match=r"state of MR2Loss.*ClassGapTrainer"):
        func = make_compute_loss_func("mr2", text_model(), args)
    with pytest.raises(ValueError, match="labels"):
        func({"logits": torch.zeros(2, 3)}, None)


def test_settings_that_would_be_ignored_are_errors(tmp_path: Path) -> None:
    model, args = text_model(), arguments(tmp_path)
    with pytest.raises(ValueError, match=r"label_smoothing_factor.*0\.1"):
        ClassGapTrainer(model, arguments(tmp_path, label_smoothing_factor=0.1), loss="erm")
    with pytest.raises(ValueError, match="compute_loss_func must be None"):
        ClassGapTrainer(model, args, loss="erm", compute_loss_func=print)
    with pytest.raises(ValueError, match="model_init must be None"):
        ClassGapTrainer(model_init=lambda: text_model(), args=args, loss="erm")
    with pytest.raises(ValueError, match=r"'none'.*-100"):
        ClassGapTrainer(model, args, loss=cg.losses.CrossEntropyLoss(CLASSES, reduction="none"))
    with pytest.raises(ValueError, match="more than a loss"):
        ClassGapTrainer(model, args, loss="sam+mr2")
    with pytest.raises(ValueError, match=r"^loss='elm' needs .*pass class_counts=\[…\] to ClassGapTrainer\.$"):
        ClassGapTrainer(model, args, loss="elm")
    with pytest.raises(ValueError, match=r"pass class_counts=\[…\] to make_compute_loss_func"):
        make_compute_loss_func("elm", model, args)
    with pytest.raises(ValueError, match=r'got a CrossEntropyLoss: pass .* "erm" for cross-entropy'):
        ClassGapTrainer(model, args, loss=torch.nn.CrossEntropyLoss())
    assert ClassGapTrainer(model, args, loss="elm", class_counts=[9, 5, 1]).loss.num_classes == CLASSES
