"""A model over a loader, in one process and in two."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler, TensorDataset

from classgap.audit import Audit, AuditSettings
from classgap.audit.io.inference import collect_predictions, id2label_names
from classgap.audit.results import Notice

SIZE, CLASSES = 23, 3  # two processes get 12 each: one sample is repeated
QUICK = AuditSettings(map="none", n_resamples=20)


def parts():
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(SIZE, 5, generator=generator)
    targets = torch.randint(0, CLASSES, (SIZE,), generator=generator)
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, CLASSES))
    return model, inputs, targets


class Numbered(Dataset):
    """Samples that return their position."""

    def __init__(self, inputs, targets):
        self.inputs, self.targets = inputs, targets

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, i):
        return self.inputs[i], self.targets[i], i


def test_logits_features_and_head_are_those_of_the_model():
    model, inputs, targets = parts()
    model.train()
    got = collect_predictions(model, DataLoader(TensorDataset(inputs, targets), batch_size=4))
    assert model.training
    model.eval()
    torch.testing.assert_close(got.logits_NK, model(inputs).detach())
    torch.testing.assert_close(got.features_ND, model[:3](inputs).detach())
    torch.testing.assert_close(got.weight_KD, model[3].weight.detach())
    assert got.targets_N.tolist() == targets.tolist()
    assert got.index_N is None
    assert model[1].num_batches_tracked == 0
    assert not model._forward_hooks
    assert not model[3]._forward_hooks


def test_index_restores_the_order_of_a_shuffled_loader():
    model, inputs, targets = parts()
    got = collect_predictions(model, DataLoader(Numbered(inputs, targets), batch_size=5, shuffle=True))
    assert got.index_N.tolist() == list(range(SIZE))
    assert got.targets_N.tolist() == targets.tolist()


class Keyword(nn.Module):
    """Takes keywords and returns an object with logits, as Hugging Face models do."""

    def __init__(self, model):
        super().__init__()
        self.body, self.classifier = model[:3], model[3]

    def forward(self, pixels):
        return type("Output", (), {"logits": self.classifier(self.body(pixels))})()


def test_mappings_and_outputs_with_logits():
    model, inputs, targets = parts()
    batches = [{"pixels": inputs[i : i + 6], "labels": targets[i : i + 6]} for i in range(0, SIZE, 6)]
    got = collect_predictions(Keyword(model), batches)
    torch.testing.assert_close(got.logits_NK, model.eval()(inputs).detach())


class Returns(nn.Module):
    """Returns whatever ``shape`` makes of features and logits."""

    def __init__(self, model, shape):
        super().__init__()
        self.body, self.fc, self.shape = model[:3], model[3], shape

    def forward(self, inputs):
        features = self.body(inputs)
        return self.shape(features, self.fc(features))


OUTPUTS = {
    "logits first": lambda features, logits: (logits, features),
    "features first": lambda features, logits: (features, logits),
    "list": lambda features, logits: [features, logits],
    "three": lambda features, logits: (None, features[:, :, None], logits),
    "mapping": lambda features, logits: {"features": features, "logits": logits},
}


class BypassedHead(nn.Module):
    """Has a linear layer that its forward does not call, or whose output it extends."""

    def __init__(self, called):
        super().__init__()
        self.called = called
        self.fc = nn.Linear(CLASSES, CLASSES)

    def forward(self, inputs):
        inputs = inputs[:, :CLASSES]
        return torch.cat([self.fc(inputs), inputs], dim=1) if self.called else inputs


@pytest.mark.parametrize(
    ("called", "notice"),
    [
        (False, Notice("features-not-computed", {"head": "Linear"})),
        (True, Notice("features-not-of-logits", {"head": "Linear", "logits": 2 * CLASSES})),
    ],
)
def test_features_of_another_layer_are_not_used(called, notice):
    _, inputs, targets = parts()
    audit = Audit.from_model(BypassedHead(called), [(inputs, targets)], settings=QUICK)
    assert audit.features is None
    assert audit.notices[0] == notice


@pytest.mark.parametrize("shape", OUTPUTS.values(), ids=OUTPUTS)
def test_logits_are_found_among_other_outputs(shape):
    model, inputs, targets = parts()
    got = collect_predictions(Returns(model, shape), [(inputs[:9], targets[:9]), (inputs[9:], targets[9:])])
    model.eval()
    torch.testing.assert_close(got.logits_NK, model(inputs).detach())
    torch.testing.assert_close(got.features_ND, model[:3](inputs).detach())
    torch.testing.assert_close(got.weight_KD, model[3].weight.detach())


def test_of_several_as_wide_as_the_head_the_first_is_taken():
    model, inputs, targets = parts()
    got = collect_predictions(Returns(model, lambda features, logits: (logits, logits + 1)), [(inputs, targets)])
    torch.testing.assert_close(got.logits_NK, model.eval()(inputs).detach())
    _, inputs, targets = parts()
    two = type("Two", (nn.Module,), {"forward": lambda self, inputs: (inputs[:, :CLASSES], inputs)})()  # no head tells
    torch.testing.assert_close(collect_predictions(two, [(inputs, targets)]).logits_NK, inputs[:, :CLASSES])


def test_outputs_without_logits_are_rejected():
    model, inputs, targets = parts()
    scores = Returns(model, lambda features, logits: {"scores": logits, "hidden": features})
    with pytest.raises(ValueError, match="keys 'scores', 'hidden': return logits"):
        collect_predictions(scores, [(inputs, targets)])
    with pytest.raises(ValueError, match="returned NoneType instead of logits"):
        collect_predictions(Returns(model, lambda features, logits: None), [(inputs, targets)])


def test_a_function_is_rejected():
    model, inputs, targets = parts()
    with pytest.raises(ValueError, match=r"got function.*from_predictions"):
        Audit.from_model(lambda inputs: model(inputs), [(inputs, targets)])


class NoHead(nn.Module):
    """Has no linear layer."""

    def forward(self, inputs):
        return inputs[:, :CLASSES]


def test_model_without_a_head_is_audited_without_features():
    _, inputs, targets = parts()
    audit = Audit.from_model(NoHead(), [(inputs, targets)], settings=QUICK)
    assert audit.features is None
    assert audit.notices[0] == Notice("features-not-found", {"model": "NoHead"})
    assert all(notice.code != "no-features" for notice in audit.notices)


@pytest.mark.parametrize(
    ("loader", "message"),
    [([], "loader is empty"), ([(torch.ones(2, 5),)], "a batch must be"), ([{"pixels": 1}], "must have labels")],
)
def test_bad_loaders_are_rejected(loader, message):
    with pytest.raises(ValueError, match=message):
        collect_predictions(parts()[0], loader)


ENVIRONMENTS = {
    "fractions": (torch.linspace(0, 1, SIZE), r"23 non-negative .*\(23,\) of torch.float32"),
    "names": (["sea"] * SIZE, "got a list that is not numeric"),
    "flags": (torch.ones(SIZE, dtype=torch.bool), "of torch.bool"),
    "a row a sample": (torch.zeros(SIZE, 2, dtype=torch.long), r"got shape \(23, 2\)"),
    "one for all": (torch.tensor(3), r"got shape \(\)"),
    "too few": (torch.arange(SIZE - 1), r"got shape \(22,\)"),
    "negative": (torch.arange(SIZE) - 4, "got -4"),
    "groups": (torch.arange(SIZE) % 2, "but 0 occurs with targets 0 and [12]"),
    "unsigned": (np.zeros(SIZE, dtype=np.uint32), "but 0 occurs with targets 0 and 1"),
}


@pytest.mark.parametrize(("third", "message"), ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_a_third_item_that_is_not_an_index_is_rejected(third, message):
    model, inputs, targets = parts()
    with pytest.raises(ValueError, match=message) as caught:
        collect_predictions(model, [(inputs, targets, third)])
    text = str(caught.value)
    assert text.startswith("the third item of a batch")
    assert text.endswith("pass (batch[:2] for batch in loader).")
    loader = [(inputs, targets, third)]
    assert len(collect_predictions(model, (batch[:2] for batch in loader))) == SIZE  # as the message advises
    with pytest.raises(ValueError, match=r'^the entry "index" of a batch'):
        collect_predictions(Keyword(model), [{"pixels": inputs, "labels": targets, "index": third}])


def test_positions_within_batches_are_rejected():
    model, inputs, targets = parts()
    batches = [(inputs[i : i + 6], targets[i : i + 6], torch.arange(len(inputs[i : i + 6]))) for i in range(0, SIZE, 6)]
    with pytest.raises(ValueError, match="count over the full test set"):
        collect_predictions(model, batches)


def job(with_numbers: bool):
    """Run on every process: audit a model over a sampler that repeats a sample."""
    model, inputs, targets = parts()
    dataset = Numbered(inputs, targets) if with_numbers else TensorDataset(inputs, targets)
    sampler = DistributedSampler(dataset, shuffle=True, seed=5)
    loader = DataLoader(dataset, batch_size=5, sampler=sampler)
    audit = Audit.from_model(model, loader, settings=QUICK)
    return len(sampler), audit.to_dict()


def collect_without_index():
    """Run on every process: return the error of a loader without index."""
    model, inputs, targets = parts()
    try:
        collect_predictions(model, [(inputs, targets)])
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("with_numbers", [True, False])
def test_two_processes_count_no_sample_twice(processes, with_numbers):
    model, inputs, targets = parts()
    alone = Audit.from_model(model, [(inputs, targets, torch.arange(SIZE))], settings=QUICK)
    (size, first), (_, second) = processes.run(job, with_numbers)
    assert 2 * size == SIZE + 1  # a sample was repeated
    assert first == second
    got = Audit.from_dict(first)
    assert got.samples == alone.samples
    for name in ("calibration_error", "margin"):  # scores of other batch sizes differ by rounding
        assert getattr(got.overall, name) == pytest.approx(getattr(alone.overall, name), rel=1e-6)
    rounded = {"calibration_error": None, "margin": None}
    assert replace(got.overall, **rounded) == replace(alone.overall, **rounded)
    assert Notice("duplicate-index", {"dropped": 1, "samples": 24}) in got.notices
    assert all(notice.code != "duplicate-index" for notice in alone.notices)
    assert np.isclose(got.classes[0].spread, alone.classes[0].spread)


def test_two_processes_require_an_index(processes):
    for message in processes.run(collect_without_index):
        assert "index is required" in message


def test_names_of_a_transformers_model():
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=20,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        id2label={0: "negative", 1: "neutral", 2: "positive"},
        label2id={"negative": 0, "neutral": 1, "positive": 2},
    )
    torch.manual_seed(0)
    model = transformers.BertForSequenceClassification(config)
    batch = {"input_ids": torch.randint(0, 20, (6, 5)), "labels": torch.arange(6) % 3}
    assert Audit.from_model(model, [batch], settings=QUICK).class_names == ("negative", "neutral", "positive")
    given = Audit.from_model(model, [batch], class_names=["a", "b", "c"], settings=QUICK)
    assert given.class_names == ("a", "b", "c")


class Configured(nn.Linear):
    def __init__(self, id2label):
        super().__init__(2, 3)
        self.config = SimpleNamespace(id2label=id2label)


@pytest.mark.parametrize(
    ("id2label", "names"),
    [
        ({2: "c", 0: "a", 1: "b"}, ("a", "b", "c")),
        ({"0": "a", "1": "b", "2": "c"}, ("a", "b", "c")),
        ({0: "a", 1: "b"}, None),  # the head was replaced
        ({0: "a", 1: "a", 2: "c"}, None),
        ({1: "a", 2: "b", 3: "c"}, None),
        (None, None),
    ],
)
def test_names_must_be_one_per_logit(id2label, names):
    assert id2label_names(Configured(id2label), 3) == names


def test_wrapped_models_have_names_and_others_none():
    wrapper = nn.Module()
    wrapper.module = Configured({0: "a", 1: "b", 2: "c"})
    assert id2label_names(wrapper, 3) == ("a", "b", "c")
    assert id2label_names(nn.Linear(2, 3), 3) is None
