"""Class names of Hugging Face models."""

from types import SimpleNamespace

import pytest
import torch
from audit_cases import QUICK
from torch import nn

from classgap.audit import Audit
from classgap.audit.io.model_output import id2label_names


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
