"""ClassGap against torchmetrics' own accuracy and against the audit of all predictions; its states."""

import copy
import pickle
import types
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torchmetrics.classification import MulticlassAccuracy
from torchmetrics_cases import BATCHES, NAMES, UNSEEN, D, K, N, assert_values, data, expected, updated, whole

import classgap as cg
from classgap.audit import AuditSettings
from classgap.integrations.torchmetrics import ClassGap


def same_states(metric: ClassGap, other: ClassGap) -> bool:
    return all(torch.allclose(value, other.metric_state[name]) for name, value in metric.metric_state.items())


def test_batches_give_the_values_of_the_audit() -> None:
    assert_values(updated().compute(), expected(whole()))


def test_classes_have_the_accuracies_of_torchmetrics_but_nan_if_unseen() -> None:
    logits, targets, _ = data()
    theirs = MulticlassAccuracy(num_classes=K, average=None)(logits, targets)
    assert theirs[UNSEEN] == 0
    theirs[UNSEEN] = torch.nan
    values = updated(per_class=True).compute()
    assert [values[f"accuracy_{name}"].item() for name in NAMES] == pytest.approx(theirs.tolist(), nan_ok=True)
    margins = [torch.nan if each.margin is None else each.margin for each in whole().classes]
    assert [values[f"margin_{name}"].item() for name in NAMES] == pytest.approx(margins, nan_ok=True)
    seen = theirs[~theirs.isnan()].sort().values
    assert values["balanced_accuracy"].item() == pytest.approx(seen.mean().item())
    assert values["worst_class_accuracy"].item() == pytest.approx(seen[0].item())
    assert updated(worst_k=3).compute()["worst_k_accuracy"].item() == pytest.approx(seen[:3].mean().item())
    assert updated(worst_k=K).compute()["worst_k_accuracy"].item() == pytest.approx(seen.mean().item())


@pytest.mark.parametrize("rank_by", ["numbers", "audit"])
def test_thirds_by_another_ranking(rank_by: str) -> None:
    reverse = list(range(K, 0, -1))
    ranking: Any = reverse
    if rank_by == "audit":
        right = torch.tensor([[i < reverse[k] for i in range(K)] for k in range(K)])
        labels = torch.arange(K)[:, None].expand(K, K)
        ranking = cg.Audit.from_predictions(
            predictions=torch.where(right, labels, (labels + 1) % K).flatten(),
            targets=labels.flatten(),
            class_names=NAMES,
        )
    metric = updated(rank_by=ranking)
    audit = whole(rank_by=reverse)
    assert metric.compute()["easy_hard_gap"] < 0
    assert_values(metric.compute(), expected(audit))
    assert metric.audit().groups["hard"].members == audit.groups["hard"].members


def test_the_audit_of_all_samples() -> None:
    logits, targets, features = data()
    metric = ClassGap(class_names=NAMES, feature_dim=D, train_counts=range(1, K + 1), name="val")
    for rows in BATCHES:
        metric.update(logits[rows], targets[rows], features[rows])
    audit = metric.audit(groups={"vowels": ["a", "e"]})
    assert audit.name == "val"
    reference = whole(features=features, groups={"vowels": ["a", "e"]})
    assert expected(audit) == pytest.approx(expected(reference))
    assert audit.groups["vowels"].accuracy == reference.groups["vowels"].accuracy
    assert audit.groups["vowels"].spread == pytest.approx(reference.groups["vowels"].spread, rel=1e-5)
    assert audit.classes[UNSEEN].accuracy is None
    assert audit.classes[0].train_count == 1
    metric.update(logits[:5], targets[:5], features[:5])  # an audit does not end the accumulation
    assert metric.audit().overall.n_samples == N + 5


def test_forward_returns_the_batch_and_accumulates() -> None:
    logits, targets, _ = data()
    metric = ClassGap(num_classes=K)
    for rows in BATCHES:
        audit = cg.Audit.from_predictions(logits[rows], targets[rows])
        assert_values(metric(logits[rows].requires_grad_(), targets[rows]), expected(audit))
    assert metric.update_count == len(BATCHES)
    assert_values(metric.compute(), expected(whole()))


def test_reset_and_no_samples() -> None:
    metric = updated()
    metric.reset()
    assert same_states(metric, ClassGap(num_classes=K))
    assert metric(torch.zeros(0, K), torch.zeros(0, dtype=torch.long))["hard_accuracy"].isnan()
    assert all(value.isnan() for value in metric.compute().values())
    with pytest.raises(ValueError, match="no samples"):
        metric.audit()
    logits, targets, _ = data()
    metric.update(logits, targets)
    assert_values(metric.compute(), expected(whole()))


def test_one_and_two_classes() -> None:
    single = ClassGap(num_classes=1)(torch.zeros(3, 1), torch.zeros(3, dtype=torch.long))
    assert single["accuracy"] == single["worst_class_accuracy"] == 1
    assert single["hard_accuracy"].isnan()
    assert single["easy_hard_gap"].isnan()
    assert single["margin"].isnan()
    pair = ClassGap(num_classes=2)(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([0, 1]))
    assert (pair["easy_accuracy"], pair["hard_accuracy"]) == (1, 0)
    assert pair["medium_accuracy"].isnan()


def test_ignored_samples_do_not_count() -> None:
    logits, targets, features = data()
    masked = torch.where(torch.arange(N) % 3 == 0, -100, targets)
    metric = ClassGap(num_classes=K, ignore_index=-100, feature_dim=D)
    metric.update(logits, masked, features)
    theirs = MulticlassAccuracy(num_classes=K, average="micro", ignore_index=-100)(logits, masked)
    assert metric.compute()["accuracy"].item() == pytest.approx(theirs.item())
    assert metric.audit().overall.n_samples == int((masked >= 0).sum())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_scores_of_other_precision(dtype: torch.dtype) -> None:
    logits, targets, _ = data()
    metric = ClassGap(class_names=NAMES)
    metric.update(logits.to(dtype), targets)
    audit = cg.Audit.from_predictions(logits.to(dtype), targets, class_names=NAMES)
    assert_values(metric.compute(), expected(audit))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, K)
        self.metric = ClassGap(class_names=NAMES)


def test_states_are_saved_with_the_model(tmp_path: Path) -> None:
    net, other = Net(), Net()
    net.metric = updated(BATCHES[:4])
    torch.save(net.state_dict(), tmp_path / "net.pt")
    other.metric.update(torch.zeros(1, K), torch.tensor([0]))
    before = other.metric.compute()
    saved = torch.load(tmp_path / "net.pt", weights_only=True)
    kept = copy.deepcopy(saved)
    other.load_state_dict(saved)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # compute warns unless the metric knows that it has samples
        assert other.metric.compute() != before
    logits, targets, _ = data()
    for rows in BATCHES[4:]:
        other.metric.update(logits[rows], targets[rows])
    assert_values(other.metric.compute(), expected(whole()))
    assert all(torch.equal(value, kept[name]) for name, value in saved.items())


def test_states_that_do_not_fit_change_nothing() -> None:
    metric = updated()
    with pytest.raises(RuntimeError, match=r"margin_K must have shape \(8,\), got \(3,\)"):
        metric.load_state_dict(ClassGap(num_classes=3).state_dict())
    part = {name: value for name, value in metric.state_dict().items() if name != "margin_K"}
    with pytest.raises(RuntimeError, match=r'Missing key.*"margin_K"'):
        metric.load_state_dict(part)
    metric.load_state_dict({}, strict=False)
    assert_values(metric.compute(), expected(whole()))


def test_copies() -> None:
    for copied in (updated().clone(), pickle.loads(pickle.dumps(updated()))):
        assert_values(copied.compute(), expected(whole()))
    first, second = updated(BATCHES[:4]), updated(BATCHES[4:])
    first.merge_state(second)
    assert_values(first.compute(), expected(whole()))


def test_a_model_in_half_precision_keeps_exact_sums() -> None:
    for change in (
        lambda net: net.to(torch.bfloat16),
        lambda net: net.half(),
        lambda net: net.metric.set_dtype(torch.float16),
    ):
        net = Net()
        net.metric = updated()
        change(net)
        assert net.metric.margin_K.dtype == torch.float64
        assert_values(net.metric.compute(), expected(whole()))


def test_states_move_with_the_model_except_to_mps() -> None:
    net = Net().to("meta")
    assert net.metric.device.type == net.metric.margin_K.device.type == "meta"
    metric = updated()
    metric._apply(lambda value: types.SimpleNamespace(device=torch.device("mps")))  # type: ignore[arg-type, return-value]
    assert metric.margin_K.device.type == "cpu"
    assert_values(metric.compute(), expected(whole()))


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_cuda() -> None:
    logits, targets, _ = (each.cuda() for each in data())
    metric = ClassGap(class_names=NAMES).cuda()
    metric.update(logits, targets)
    values = metric.compute()
    assert values["accuracy"].is_cuda
    assert_values({name: value.cpu() for name, value in values.items()}, expected(whole()))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "num_classes or class_names"),
        ({"num_classes": 3, "worst_k": 4}, "worst_k must be from 1 to 3.*got 4"),
        ({"num_classes": 3, "worst_k": 0}, "worst_k.*got 0"),
        ({"num_classes": 3, "rank_by": [0.1, 0.2]}, "rank_by must have 3 numbers"),
        ({"num_classes": 3, "top_k": 2}, "`top_k`"),
    ],
)
def test_bad_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ClassGap(**settings)


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ((torch.tensor([0, 1]), torch.tensor([0, 1])), r"preds.*\(2,\).*labels"),
        ((torch.zeros(2, K + 1), torch.tensor([0, 1])), r"preds.*\(2, 9\)"),
        ((torch.zeros(2, K), torch.zeros(2, K)), r"target.*\(2, 8\)"),
        ((torch.zeros(2, K), torch.tensor([0, K])), f"got {K}"),
        ((torch.full((2, K), torch.nan), torch.tensor([0, 1])), "NaN"),
        ((torch.zeros(2, K), torch.tensor([0, 1]), torch.zeros(2, D)), "feature_dim"),
    ],
)
def test_a_bad_batch_changes_nothing(batch: tuple[Tensor, ...], message: str) -> None:
    metric = updated()
    with pytest.raises(ValueError, match=message):
        metric.update(*batch)
    assert same_states(metric, updated())


def test_settings_reach_the_audit() -> None:
    assert updated(settings=AuditSettings(top_k=(1, 3))).audit().overall.top_k.keys() == {1, 3}
