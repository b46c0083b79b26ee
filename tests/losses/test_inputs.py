"""Messages that name the argument, the value seen, what is allowed and how to fix it."""

import pytest
import torch
from torch import nn

from classgap.losses import CrossEntropyLoss, InvalidBatchError, LargeMarginDiscriminativeLoss, MR2Loss

LOGITS = torch.randn(4, 3)
TARGETS = torch.tensor([0, 1, 2, 0])
FEATURES = torch.randn(4, 5)


def call(**changes) -> torch.Tensor:
    given = {"logits": LOGITS, "targets": TARGETS, "features": FEATURES, **changes}
    return MR2Loss(3)(given.pop("logits"), given.pop("targets"), **given)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"logits": torch.randn(4, 2)}, r"logits .*num_classes=3.*got shape \(4, 2\)"),
        ({"logits": torch.randn(4, 3, 2)}, "logits must be .*num_classes=3"),
        ({"targets": torch.rand(4, 3)}, r"MR2Loss .*soft targets \(mixup, CutMix\)"),
        ({"targets": torch.tensor([0, 1, 2, 3])}, "targets .* 0 to 2.*got 3.*num_classes"),
        ({"targets": torch.tensor([0, 1, 2, -7])}, "got -7"),
        ({"targets": TARGETS.bool()}, "targets must be an integer tensor"),
        ({"targets": TARGETS.float()}, r"targets .*got shape \(4,\) of float32: .*long\(\)"),
        ({"targets": TARGETS[:, None]}, r"got shape \(4, 1\).*squeeze\(1\)"),
        ({"targets": torch.eye(3, dtype=torch.int64)[TARGETS]}, r"got shape \(4, 3\).*argmax\(1\)"),
        ({"targets": TARGETS.tolist()}, r"got list: use torch\.tensor\(targets\)"),
        ({"logits": {"logits": LOGITS}}, 'logits .*got dict: pass its "logits"'),
        ({"logits": (FEATURES, LOGITS)}, "got tuple: pass the entry that holds the logits"),
        ({"logits": torch.randn(4, 3, 8, 8)}, r"got shape \(4, 3, 8, 8\).*each pixel or token"),
        ({"features": None}, r"MR2Loss needs features: .*tap\.features"),
        ({"features": FEATURES.long()}, "features must be floating point"),
        ({"features": FEATURES.where(torch.arange(4)[:, None] != 2, torch.nan)}, "features must be finite, but row 2"),
        ({"logits": LOGITS.where(torch.arange(4)[:, None] != 1, torch.inf)}, "logits must be finite, but row 1"),
        ({"sample_weight": torch.tensor([1.0, 1.0, -2.0, 1.0])}, "sample_weight .*negative, got -2"),
    ],
)
def test_invalid_inputs_are_rejected(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(**changes)


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (torch.rand(4, 2), r"soft targets .*\(4, 3\); got shape \(4, 2\)"),
        (torch.rand(4), r"targets .*shape \(4,\).*targets\.long\(\)"),
        (torch.tensor([[0.5, 0.5, 0.0]] * 3 + [[1.0, 1.0, 0.0]]), "sum to 1; row 3 is 1, 1, 0"),
        (torch.tensor([[0.5, 0.5, 0.0]] * 3 + [[1.5, -0.5, 0.0]]), "nonnegative.*row 3 is 1.5, -0.5, 0"),
        (torch.full((4, 3), torch.nan), "row 0 is nan"),
    ],
)
def test_invalid_soft_targets_are_rejected(targets: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CrossEntropyLoss(3)(LOGITS, targets)


def test_soft_targets_are_never_ignored() -> None:
    targets = torch.tensor([[0.0, 0.0, 1.0]] * 4)
    terms = CrossEntropyLoss(3, ignore_index=2, reduction="none")(LOGITS, targets)
    torch.testing.assert_close(terms, -LOGITS.log_softmax(dim=1)[:, 2])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_soft_targets_of_any_precision_serve(dtype: torch.dtype) -> None:
    shares = torch.rand(4, 1000).softmax(dim=1)
    logits = torch.randn(4, 1000)
    value = CrossEntropyLoss(1000)(logits, shares.to(dtype))
    assert value.dtype == torch.float32
    torch.testing.assert_close(value, nn.functional.cross_entropy(logits, shares), rtol=0.01, atol=0)


def test_any_integer_type_and_any_ignore_index_serve() -> None:
    expected = call()
    torch.testing.assert_close(call(targets=TARGETS.to(torch.uint8)), expected)
    torch.testing.assert_close(call(targets=TARGETS.int()), expected)
    loss = MR2Loss(3, ignore_index=2, reduction="none")
    assert loss(LOGITS, TARGETS, features=FEATURES)[2] == 0


def test_finite_numbers_whose_sum_overflows_are_accepted() -> None:
    logits = torch.full((4, 3), 1e38)
    assert call(logits=logits).isfinite()


def test_unneeded_inputs_are_not_looked_at() -> None:
    MR2Loss(3, logit="none", strength=0)(LOGITS, TARGETS, features="anything", head=nn.ReLU(), index=None)


def test_a_mismatched_head_is_rejected() -> None:
    loss = LargeMarginDiscriminativeLoss(3, 5)
    for head in (nn.ReLU(), nn.Linear(4, 3)):
        with pytest.raises(ValueError, match=r"head must be the nn.Linear\(5, 3\).*got "):
            loss(LOGITS, TARGETS, features=FEATURES, head=head)
    broken = nn.Linear(5, 3)
    broken.weight.data[1] = torch.nan
    with pytest.raises(ValueError, match=r"head\.weight must be finite, but row 1"):
        loss(LOGITS, TARGETS, features=FEATURES, head=broken)


def test_a_head_of_another_dtype_or_only_its_weight_is_rejected() -> None:
    loss = LargeMarginDiscriminativeLoss(3, 5)
    before = {name: value.clone() for name, value in loss.state_dict().items()}
    with pytest.raises(InvalidBatchError, match=r"head and features .*dtype; got torch\.float32"):
        loss(LOGITS.double(), TARGETS, features=FEATURES.double(), head=nn.Linear(5, 3))
    with pytest.raises(InvalidBatchError, match=r"got shape \(3, 5\) of float32, not a module"):
        loss(LOGITS, TARGETS, features=FEATURES, head=nn.Linear(5, 3).weight)
    for name, value in loss.state_dict().items():
        assert torch.equal(value, before[name])


def test_compiled_code_ignores_the_ignored_alone() -> None:
    loss = torch.compile(CrossEntropyLoss(3), backend="eager", fullgraph=True)
    ignored = torch.tensor([0, 1, 2, -100])
    torch.testing.assert_close(loss(LOGITS, ignored), nn.functional.cross_entropy(LOGITS, ignored))
    with pytest.raises((IndexError, RuntimeError)):
        loss(LOGITS, torch.tensor([0, 1, 2, -1]))


def test_other_devices_are_rejected() -> None:
    with pytest.raises(ValueError, match=r"MR2Loss is on meta.*loss.to\('cpu'\)"):
        MR2Loss(3).to("meta")(LOGITS, TARGETS, features=FEATURES)
    with pytest.raises(ValueError, match=r"features must be on .*cpu; got meta"):
        call(features=FEATURES.to("meta"))


def test_a_head_without_bias_serves() -> None:
    loss = LargeMarginDiscriminativeLoss(3, 5)
    assert loss(LOGITS, TARGETS, features=FEATURES, head=nn.Linear(5, 3, bias=False)).isfinite()
