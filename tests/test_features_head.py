"""FeatureTap finds the head of real models with random weights: head(features) must be the model's own logits."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn

from classgap.features import FeatureTap
from classgap.losses import MR2Loss
from tapped_models import CLASSES, TEXT, CosineHead, Net, check_tap, hugging_face

# Finding the head: timm


@pytest.mark.parametrize(
    ("architecture", "options", "name"),
    [
        ("resnet18", {}, "fc"),
        ("vit_tiny_patch16_224", {"img_size": 32, "depth": 2}, "head"),
        ("convnext_atto", {"depths": (1, 1, 1, 1), "dims": (8, 8, 16, 16)}, "head.fc"),
        ("efficientnet_b0", {}, "classifier"),
        ("mobilenetv3_small_050", {}, "classifier"),
    ],
)
def test_timm(architecture: str, options: dict[str, Any], name: str) -> None:
    timm = pytest.importorskip("timm")
    model = timm.create_model(architecture, num_classes=CLASSES, **options).eval()
    check_tap(model, torch.randn(2, 3, 32, 32), name)


def test_timm_classifier_with_a_norm_in_front() -> None:
    levit = pytest.importorskip("timm.models.levit")
    sizes = {"embed_dim": (16, 32), "key_dim": 8, "depth": (1, 1), "num_heads": (1, 2)}
    model = levit.Levit(img_size=64, num_classes=CLASSES, **sizes).eval()
    check_tap(model, torch.randn(2, 3, 64, 64), "head.linear")


@pytest.mark.parametrize(
    ("architecture", "classes", "message"),
    [
        ("resnet18", 0, r"Identity\(\).*with num_classes.*no linear layer"),
        (
            "deit_tiny_distilled_patch16_224",
            7,
            r"tuple\(Linear, Linear\).*'head_dist' .*'head'",
        ),
        ("resnetv2_18", 7, r"is Conv2d\(\).*Convolution.*no linear layer"),
        ("repvit_m0_9", 7, r"RepVitClassifier.*several heads.*Pass head="),
        ("crossvit_9_240", 7, r"ModuleList\(Linear, Linear\).*Pass head="),
    ],
)
def test_timm_without_a_single_linear_head_is_rejected(architecture: str, classes: int, message: str) -> None:
    timm = pytest.importorskip("timm")
    with torch.device("meta"):  # nothing is computed
        model = timm.create_model(architecture, num_classes=classes)
    with pytest.raises(ValueError, match=message):
        FeatureTap(model)


def test_distilled_model_with_the_head_that_is_named() -> None:
    timm = pytest.importorskip("timm")
    model = timm.create_model("deit_tiny_distilled_patch16_224", num_classes=CLASSES, depth=1, img_size=32)
    model.set_distilled_training(True)  # then a training forward gives both heads' logits
    tap = FeatureTap(model, head="head")
    logits, _ = model(torch.randn(2, 3, 32, 32))
    torch.testing.assert_close(tap.head(tap.features), logits)


# Finding the head: torchvision


@pytest.mark.parametrize(("architecture", "name"), [("resnet18", "fc"), ("mobilenet_v3_small", "classifier.3")])
def test_torchvision(architecture: str, name: str) -> None:
    models = pytest.importorskip("torchvision.models")
    model = models.get_model(architecture, weights=None, num_classes=CLASSES).eval()
    check_tap(model, torch.randn(2, 3, 32, 32), name)


def test_torchvision_container_whose_number_of_classes_is_out_of_date() -> None:
    models = pytest.importorskip("torchvision.models")
    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 16, "mlp_dim": 32, "representation_size": 8}
    model = models.VisionTransformer(32, 16, **sizes)  # says num_classes = 1000 for ever
    model.heads.head = nn.Linear(8, CLASSES)
    assert check_tap(model, torch.randn(2, 3, 32, 32), "heads.head").features.shape == (2, 8)


def test_torchvision_auxiliary_logits() -> None:
    models = pytest.importorskip("torchvision.models")
    model = models.googlenet(weights=None, num_classes=CLASSES, aux_logits=True, init_weights=False)
    check_tap(model, torch.randn(2, 3, 32, 32), "fc")  # in training the output is a tuple with a field `logits`


def test_torchvision_without_a_linear_classifier_is_rejected() -> None:
    models = pytest.importorskip("torchvision.models")
    with pytest.raises(ValueError, match=r"classifier is Sequential\(Dropout.*no linear"):
        FeatureTap(models.squeezenet1_1(weights=None))
    headless = models.mobilenet_v3_small(weights=None)
    headless.features.append(nn.Linear(3, 3))  # not to be taken for the head
    headless.classifier = nn.Identity()
    with pytest.raises(ValueError, match=r"classifier is Identity\(\)"):
        FeatureTap(headless)


# Finding the head: Hugging Face

IMAGE = {**TEXT, "image_size": 16, "patch_size": 8}
BART = {"vocab_size": 11, "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "eos_token_id": 2}


@pytest.mark.parametrize(
    ("kind", "options", "name"),
    [
        ("ViTForImageClassification", IMAGE, "classifier"),
        ("ResNetForImageClassification", {"embedding_size": 4, "hidden_sizes": [8], "depths": [1]}, "classifier.1"),
        ("BertForSequenceClassification", TEXT, "classifier"),
        ("RobertaForSequenceClassification", TEXT, "classifier.out_proj"),
        ("BartForSequenceClassification", BART, "classification_head.out_proj"),
        ("XLNetForSequenceClassification", {"vocab_size": 11, "d_model": 8, "n_layer": 1, "n_head": 2}, "logits_proj"),
    ],
)
def test_hugging_face(kind: str, options: dict[str, Any], name: str) -> None:
    check_tap(*hugging_face(kind, options), name)


def test_hugging_face_with_two_heads_of_one_shape_is_rejected() -> None:
    model, _ = hugging_face("DeiTForImageClassificationWithTeacher", IMAGE)
    with pytest.raises(ValueError, match=r"'distillation_classifier' .*'cls_classifier'"):
        FeatureTap(model)


def test_head_on_every_token_gives_features_that_losses_reject() -> None:
    sizes = {"vocab_size": 11, "n_embd": 8, "n_layer": 1, "n_head": 2, "pad_token_id": 0}
    model, inputs = hugging_face("GPT2ForSequenceClassification", sizes)
    tap = FeatureTap(model)
    logits = model(**inputs).logits
    assert tap.features.shape == (2, 4, 8)
    with pytest.raises(ValueError, match=r"features must be .*got shape \(2, 4, 8\)"):
        MR2Loss(CLASSES)(logits, torch.tensor([0, 1]), features=tap.features)


# Finding the head: plain modules


def test_plain_sequential_and_a_model_that_is_its_head() -> None:
    check_tap(nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, CLASSES)), torch.randn(2, 6), "2")
    check_tap(nn.Linear(6, CLASSES), torch.randn(2, 6, requires_grad=True), "")


@pytest.mark.parametrize("name", ["fc", "classifier", "head", "heads", "score", "out_proj", "last_linear", "linear"])
def test_known_names_come_before_the_last_linear(name: str) -> None:
    model = Net(name)
    model.zz_projection = nn.Linear(5, 128)
    check_tap(model, torch.randn(2, 6), name)


def test_width_comes_before_names_and_order() -> None:
    model = Net("top")
    model.zz_projection, model.num_classes = nn.Linear(5, 128), CLASSES
    check_tap(model, torch.randn(2, 6), "top")
    model = Net("classifier")
    model.fc, model.num_classes = nn.Linear(5, 128), CLASSES
    check_tap(model, torch.randn(2, 6), "classifier")


@pytest.mark.parametrize("name", ["fc", "something"])
def test_layers_that_count_as_linear(name: str) -> None:
    check_tap(Net(name, CosineHead()), torch.randn(2, 6), name)
    check_tap(Net(name, nn.utils.parametrizations.weight_norm(nn.Linear(5, CLASSES))), torch.randn(2, 6), name)
    lazy = nn.Sequential(nn.LazyBatchNorm1d(), nn.LazyLinear(CLASSES))
    check_tap(Net(name, lazy), torch.randn(2, 6), f"{name}.1")


def test_tapping_computes_no_parametrized_weight() -> None:
    model = Net("fc", nn.utils.parametrizations.spectral_norm(nn.Linear(5, CLASSES)))
    before = copy.deepcopy(model.state_dict())  # each reading of the weight is a step of power iteration
    FeatureTap(model)
    torch.testing.assert_close(dict(model.state_dict()), dict(before), rtol=0, atol=0)


def test_embeddings_and_norms_do_not_count_as_linear() -> None:
    model = nn.Sequential(nn.Linear(6, CLASSES), nn.LayerNorm([2, CLASSES]), nn.Embedding(3, 3))
    assert FeatureTap(model).head is model[0]


@pytest.mark.parametrize("name", ["classifier", "classifier.1"])
def test_head_that_is_given(name: str) -> None:
    model = Net("classifier", nn.Sequential(nn.Dropout(0.0), nn.Linear(5, CLASSES)))
    model.fc = nn.Linear(5, 9)  # would be found first
    check_tap(model, torch.randn(2, 6), "classifier.1", head=name)
    check_tap(model, torch.randn(2, 6), "classifier.1", head=model.get_submodule(name))


def test_head_that_is_given_wrongly() -> None:
    with pytest.raises(ValueError, match=r"head='fc' is not part of Net.*'top'"):
        FeatureTap(Net(), head="fc")
    with pytest.raises(ValueError, match=r"head=Linear\(\) is not part of Net"):
        FeatureTap(Net(), head=nn.Linear(5, CLASSES))
    with pytest.raises(ValueError, match=r"head is ReLU\(\).*Pass head=….*'0' \(5 wide\)"):
        FeatureTap(nn.Sequential(nn.Linear(6, 5), nn.ReLU()), head="1")


def test_model_without_linear_layers_is_rejected() -> None:
    with pytest.raises(ValueError, match=r"\(Conv2d, Flatten\).*no linear layer"):
        FeatureTap(nn.Sequential(nn.Conv2d(3, CLASSES, 1), nn.Flatten()))
