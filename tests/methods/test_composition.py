"""Compositions of methods: any order, and invalid ones."""

from itertools import permutations
from pathlib import Path

import pytest
import torch
from method_cases import assert_resumes, first_batch, moons_run

from classgap import methods
from classgap.losses import LDAMLoss, MR2Loss
from classgap.methods.crt import ClassifierRetraining
from classgap.methods.post_hoc import PostHocLogitAdjustment
from classgap.methods.sam import SharpnessAware
from classgap.methods.tau_norm import WeightNormalization

GIVEN = {"num_classes": 2, "class_counts": [90, 10], "feature_dim": 4, "num_samples": 100}


def build(text: str) -> methods.Method:
    return methods.build(text, **GIVEN)


def test_any_order() -> None:
    for order in permutations(["sam:rho=0.1", "mr2:strength=0.2", "tau-norm:tau=1"]):
        method = build("+".join(order))
        assert isinstance(method, WeightNormalization)
        assert isinstance(method.inner, SharpnessAware)
        assert (method.inner.rho, method.loss.strength, method.tau) == (0.1, 0.2, 1.0)


def test_without_a_loss_it_is_cross_entropy() -> None:
    run, other = moons_run("sam+crt"), moons_run("erm+crt+sam")
    for each in (run, other):
        each.method.step(each, first_batch(each))
    assert all(torch.equal(a, b) for a, b in zip(run.model.parameters(), other.model.parameters(), strict=True))


def test_steps_and_losses() -> None:
    method = build("asam+ldam")
    assert method.adaptive
    assert isinstance(method.loss, LDAMLoss)
    run = moons_run("asam+ldam")
    assert type(run.tap.head).__name__ == "CosineClassifier"  # prepare reaches the method inside
    run.method.step(run, first_batch(run))


@pytest.mark.parametrize("text", ["mr2+logit-adjustment", "logit-adjustment+mr2:margin=2", "sam+mr2+logit-adjustment"])
def test_mr2_includes_logit_adjustment(text: str) -> None:
    loss = build(text).loss
    expected = MR2Loss(2, class_counts=[90, 10], margin=2.0 if "margin" in text else 1.0)
    assert isinstance(loss, MR2Loss)
    assert torch.equal(loss.log_prior, expected.log_prior)
    assert loss.margin == expected.margin
    logits, targets, features = torch.randn(8, 2), torch.tensor([0, 0, 1, 1] * 2), torch.randn(8, 4)
    assert torch.equal(loss(logits, targets, features=features), expected(logits, targets, features=features))


@pytest.mark.parametrize(
    ("text", "kind"), [("elm+crt", ClassifierRetraining), ("center+post-hoc-logit-adjustment", PostHocLogitAdjustment)]
)
def test_losses_with_post_hoc_methods(text: str, kind: type) -> None:
    assert isinstance(build(text), kind)


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("mr2+elm", ["mr2 and elm", "both are losses"]),
        ("erm+mr2", ["erm and mr2", "both are losses"]),
        ("sam+asam", ["sam and asam", "optimizer step"]),
        ("sam+mr2+sam", ["sam and sam"]),
        ("mr2+crt+tau-norm", ["crt and tau-norm", "classifier after training"]),
        ("elm+logit-adjustment", ["elm and logit-adjustment", "includes logit adjustment"]),
        ("logit-adjustment+post-hoc-logit-adjustment", ["class priors", "twice"]),
        ("mr2+logit-adjustment+post-hoc-logit-adjustment", ["class priors", "twice"]),
        ("tau-norm+lgm", ["tau-norm and lgm", "Gaussian mixture"]),
        ("ldam-drw+lws", ["ldam-drw and lws", "cosine head"]),
        ("mr2+jtt", ["mr2 and jtt", "jtt is a training procedure"]),
        ("supcon+dro-lt", ["supcon and dro-lt", "procedure"]),
        ("mr2+logit-adjustment:tau=0.5", ["logit-adjustment", "mr2", "tau"]),
        ("mr2+samm", ["'samm'", "'sam'"]),
        ("sam:row=0.1+mr2", ["method sam", "'row'", "'rho'"]),
    ],
)
def test_invalid_compositions_are_explained(text: str, facts: list[str]) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        build(text)
    assert all(fact in str(caught.value) for fact in facts)


def test_a_plus_inside_a_number_does_not_compose() -> None:
    assert build("mr2:strength=1e+1+sam").loss.strength == 10.0


@pytest.mark.parametrize("text", ["sam+dro-lt-joint", "supcon+crt", "jtt+tau-norm:tau=1"])
def test_compositions_resume(text: str, tmp_path: Path) -> None:
    assert_resumes(tmp_path, text, [5, 11], epochs=2)
