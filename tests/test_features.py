"""FeatureTap on real models with random weights: head(features) must be the model's own logits, everywhere."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn

from classgap.features import FeatureTap
from classgap.losses import MR2Loss

CLASSES = 7


class CosineHead(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(CLASSES, 5))

    def forward(self, features: Tensor) -> Tensor:
        return 16 * F.normalize(features) @ F.normalize(self.weight).T


class Net(nn.Module):
    """A plain model: body, ReLU, and a head of any kind under any name."""

    def __init__(self, name: str = "top", head: nn.Module | None = None) -> None:
        super().__init__()
        self.body = nn.Linear(6, 5)
        self.name = name
        self.add_module(name, nn.Linear(5, CLASSES) if head is None else head)

    def embed(self, x: Tensor) -> Tensor:
        return self.body(x).relu()

    def forward(self, x: Tensor) -> Tensor:
        return self.get_submodule(self.name)(self.embed(x))


@pytest.fixture(autouse=True)
def _fresh() -> None:
    torch.manual_seed(0)
    torch.compiler.reset()


def check_tap(model: nn.Module, inputs: Tensor | dict[str, Tensor], name: str, **given: Any) -> FeatureTap:
    """The head is the layer called ``name``, and applied to the features it gives the logits."""
    tap = FeatureTap(model, **given)
    assert tap.head is model.get_submodule(name)
    output = model(**inputs) if isinstance(inputs, dict) else model(inputs)
    assert tap.features.dim() == 2
    assert tap.features.requires_grad
    torch.testing.assert_close(tap.head(tap.features), getattr(output, "logits", output))
    return tap


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
        ("resnet18", 0, r"get_classifier\(\) is Identity\(\).*built with its num_classes.*no linear layer"),
        (
            "deit_tiny_distilled_patch16_224",
            7,
            r"tuple\(Linear, Linear\).*'head_dist' \(7 wide\), 'head' \(7 wide\), 'b",
        ),
        ("resnetv2_18", 7, r"is Conv2d\(\).*convolution.*no linear layer"),
        ("repvit_m0_9", 7, r"RepVitClassifier.*several heads.*Pass head="),
        ("crossvit_9_240", 7, r"ModuleList\(Linear, Linear\).*Pass head="),
    ],
)
def test_timm_without_a_single_linear_head_is_refused(architecture: str, classes: int, message: str) -> None:
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


def test_torchvision_without_a_linear_classifier_is_refused() -> None:
    models = pytest.importorskip("torchvision.models")
    with pytest.raises(ValueError, match=r"SqueezeNet: classifier is Sequential\(Dropout, Conv2d, ReLU.*no linear"):
        FeatureTap(models.squeezenet1_1(weights=None))
    headless = models.mobilenet_v3_small(weights=None)
    headless.features.append(nn.Linear(3, 3))  # not to be taken for the head
    headless.classifier = nn.Identity()
    with pytest.raises(ValueError, match=r"classifier is Identity\(\)"):
        FeatureTap(headless)


# Finding the head: Hugging Face

TEXT = {"vocab_size": 11, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
IMAGE = {**TEXT, "image_size": 16, "patch_size": 8}
BART = {"vocab_size": 11, "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "eos_token_id": 2}


def hugging_face(kind: str, options: dict[str, Any]) -> tuple[nn.Module, dict[str, Tensor]]:
    model_class = getattr(pytest.importorskip("transformers"), kind)
    model = model_class(model_class.config_class(num_labels=CLASSES, **options)).eval()
    if "Image" in kind:
        return model, {"pixel_values": torch.randn(2, 3, 16, 16)}
    return model, {"input_ids": torch.tensor([[3, 4, 5, 2], [6, 7, 8, 2]])}


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


def test_hugging_face_with_two_heads_of_one_shape_is_refused() -> None:
    model, _ = hugging_face("DeiTForImageClassificationWithTeacher", IMAGE)
    with pytest.raises(ValueError, match=r"'distillation_classifier' \(7 wide\), 'cls_classifier' \(7 wide\)"):
        FeatureTap(model)


def test_head_on_every_token_gives_features_that_losses_refuse() -> None:
    sizes = {"vocab_size": 11, "n_embd": 8, "n_layer": 1, "n_head": 2, "pad_token_id": 0}
    model, inputs = hugging_face("GPT2ForSequenceClassification", sizes)
    tap = FeatureTap(model)
    logits = model(**inputs).logits
    assert tap.features.shape == (2, 4, 8)
    with pytest.raises(ValueError, match=r"features must be a tensor of shape \(2, features\).*got shape \(2, 4, 8\)"):
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
    with pytest.raises(ValueError, match=r"head='fc' is not a part of Net.*'top' \(7 wide\), 'body' \(5 wide\)"):
        FeatureTap(Net(), head="fc")
    with pytest.raises(ValueError, match=r"head=Linear\(\) is not a part of Net.*Pass head="):
        FeatureTap(Net(), head=nn.Linear(5, CLASSES))
    with pytest.raises(ValueError, match=r"head is ReLU\(\).*Pass head=….*'0' \(5 wide\)"):
        FeatureTap(nn.Sequential(nn.Linear(6, 5), nn.ReLU()), head="1")


def test_model_without_linear_layers_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the model is Sequential\(Conv2d, Flatten\).*no linear layer: give it"):
        FeatureTap(nn.Sequential(nn.Conv2d(3, CLASSES, 1), nn.Flatten()))


# The features and their life


def test_features_are_the_live_tensor_with_its_gradient() -> None:
    model, x, seen = Net(), torch.randn(4, 6), []
    model.top.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    tap = FeatureTap(model)
    model(x)
    assert tap.features is seen[0]
    tap.features.square().sum().backward()
    by_hand = torch.autograd.grad(model.embed(x).square().sum(), model.body.weight)[0]
    torch.testing.assert_close(model.body.weight.grad, by_hand)
    assert model.top.weight.grad is None


def test_head_that_is_called_by_keyword() -> None:
    class ByKeyword(Net):
        def forward(self, x: Tensor) -> Tensor:
            return self.top(input=self.embed(x))

    check_tap(ByKeyword(), torch.randn(2, 6), "top")


def test_no_features_is_explained() -> None:
    model = Net()
    tap = FeatureTap(model)
    with pytest.raises(RuntimeError, match="call the model first"):
        _ = tap.features
    model(torch.randn(2, 6))
    tap.release()
    with pytest.raises(RuntimeError, match="call the model first"):
        _ = tap.features
    model(torch.randn(2, 6))
    model.top = nn.Linear(5, CLASSES)
    model(torch.randn(2, 6))
    with pytest.raises(RuntimeError, match="layer was replaced"):
        _ = tap.features


@pytest.mark.parametrize("compiled", [False, True])
def test_wrong_layer_is_noticed(compiled: bool) -> None:
    model = Net()
    tap = FeatureTap(model, head="body")
    run = torch.compile(model, backend="aot_eager", fullgraph=True) if compiled else model
    run(torch.randn(2, 6))
    with pytest.raises(ValueError, match=r"logits have 7 columns, but Linear\(in_features=6.*gave 5\. Pass head="):
        _ = tap.features


def test_old_features_are_gone_when_the_next_forward_starts() -> None:
    watched: list[weakref.ref[Tensor]] = []
    alive: list[bool] = []

    class Watching(Net):
        def embed(self, x: Tensor) -> Tensor:
            alive.extend(old() is not None for old in watched)
            return super().embed(x)

    model = Watching()
    tap = FeatureTap(model)
    for _ in range(3):
        model(torch.randn(2, 6))
        watched.append(weakref.ref(tap.features))
        assert watched[-1]() is not None
    assert alive == [False] * 3
    tap.release()
    assert watched[-1]() is None


def test_remove_takes_the_hooks_off() -> None:
    model = Net()
    with FeatureTap(model) as tap:
        model(torch.randn(2, 6))
        last = weakref.ref(tap.features)
    assert last() is None
    model(torch.randn(2, 6))
    with pytest.raises(RuntimeError, match="tap removed"):
        _ = tap.features
    tap.remove()  # twice is fine
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_model_gains_nothing_but_hooks() -> None:
    model = Net()
    before = [*model.state_dict()], [*model.named_modules()]
    tap = FeatureTap(model)
    model(torch.randn(2, 6))
    assert ([*model.state_dict()], [*model.named_modules()]) == before
    watched = weakref.ref(model), weakref.ref(tap.features)
    del model, before, tap
    gc.collect()
    assert [ref() for ref in watched] == [None, None]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))])
def test_copies_of_model_and_tap_live_their_own_life(copied: Callable[[Any], Any]) -> None:
    model = Net()
    tap = FeatureTap(model)
    model(torch.randn(2, 6))  # features with a gradient history, which cannot be copied
    features = tap.features
    twin = copied(model)
    other, other_tap = copied((model, tap))
    with pytest.raises(RuntimeError, match="call the model first"):
        _ = other_tap.features
    twin(torch.randn(3, 6))
    logits = other(torch.randn(4, 6))
    assert tap.features is features
    assert other_tap.head is other.top
    torch.testing.assert_close(other.top(other_tap.features), logits)
    other_tap.remove()
    assert not other.top._forward_hooks
    model(torch.randn(5, 6))
    assert len(tap.features) == 5  # the first tap's hooks are still on


def test_shallow_copy_of_the_head_is_not_recorded() -> None:
    model = Net()
    tap = FeatureTap(model)
    model(torch.randn(2, 6))
    copy.copy(model.top)(torch.randn(9, 5))  # what DataParallel does for each device; hooks are shared
    assert len(tap.features) == 2


# Wrappers, precision, compilation


@pytest.fixture
def process_group(tmp_path: Path) -> Iterator[None]:
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/rendezvous", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("process_group")
@pytest.mark.parametrize("wrappers", ["D", "P", "CD", "DC", "CP", "PC"])
def test_wrappers_are_looked_through(wrappers: str) -> None:
    model, x = Net("fc"), torch.randn(3, 6)
    model.zz_projection = nn.Linear(5, 128).requires_grad_(False)  # found if the names are not seen
    wrapped: Any = model
    for letter in reversed(wrappers):
        if letter == "C":
            wrapped = torch.compile(wrapped, backend="aot_eager")
        else:
            wrapped = {"D": nn.parallel.DistributedDataParallel, "P": nn.DataParallel}[letter](wrapped)
    tap = FeatureTap(wrapped)
    assert tap.head is model.fc
    torch.testing.assert_close(F.linear(model.embed(x), model.fc.weight, model.fc.bias), wrapped(x))
    torch.testing.assert_close(tap.features, model.embed(x))
    tap.features.sum().backward()
    assert model.body.weight.grad is not None
    wrapped_name = next(name for name, module in wrapped.named_modules() if module is model.fc)  # "module.fc", say
    assert FeatureTap(wrapped, head=wrapped_name).head is model.fc


def test_averaged_model_is_looked_through() -> None:
    average = torch.optim.swa_utils.AveragedModel(Net("fc"))
    average.module.zz_projection = nn.Linear(5, 128)
    assert FeatureTap(average).head is average.module.fc


@pytest.mark.parametrize(
    ("order", "dynamic"), [("tap first", None), ("compile first", None), ("compile first", True), ("in place", None)]
)
def test_compiled_model(order: str, dynamic: bool | None) -> None:
    graphs = []

    def backend(graph: torch.fx.GraphModule, inputs: Any) -> Any:
        graphs.append(graph)
        return torch._dynamo.lookup_backend("aot_eager")(graph, inputs)

    model, reference = Net(), Net()
    reference.load_state_dict(model.state_dict())
    tap = FeatureTap(model) if order == "tap first" else None
    run: Any = model
    if order == "in place":
        model.compile(backend=backend, fullgraph=True, dynamic=dynamic)
    else:
        run = torch.compile(model, backend=backend, fullgraph=True, dynamic=dynamic)
    tap = tap or FeatureTap(run)
    for _ in range(3):
        x, scale = torch.randn(4, 6), torch.randn(4, 5)
        logits, old = run(x), weakref.ref(tap.features)
        torch.testing.assert_close(tap.features, reference.embed(x))
        torch.testing.assert_close(logits, reference(x))
        model.zero_grad()
        ((tap.features * scale).sum() + logits.square().sum()).backward()
        expected = (reference.embed(x) * scale).sum() + reference(x).square().sum()
        torch.testing.assert_close(model.body.weight.grad, torch.autograd.grad(expected, reference.body.weight)[0])
    run(x)
    assert old() is None  # one batch is kept, not more
    assert len(graphs) == 1  # the tap neither breaks the graph nor makes it compile again
    tap.remove()
    run(x)
    with pytest.raises(RuntimeError, match="tap removed"):
        _ = tap.features


def test_whole_training_step_in_one_graph() -> None:
    model, x, targets = Net(), torch.randn(4, 6), torch.tensor([0, 1, 0, 1])
    tap, loss = FeatureTap(model), MR2Loss(CLASSES)

    def step() -> Tensor:
        logits = model(x)
        return loss(logits, targets, features=tap.features)

    with loss.frozen():
        eager = torch.autograd.grad(step(), model.body.weight)[0]
        torch.compile(step, backend="aot_eager", fullgraph=True)().backward()
    torch.testing.assert_close(model.body.weight.grad, eager)


def test_compiled_library_model() -> None:
    model, inputs = hugging_face("BertForSequenceClassification", TEXT)
    run = torch.compile(model, backend="aot_eager", fullgraph=True)
    tap = FeatureTap(run)
    logits = run(**inputs).logits
    torch.testing.assert_close(F.linear(tap.features, tap.head.weight, tap.head.bias), logits)
    tap.features.sum().backward()
    assert next(model.parameters()).grad is not None


def test_compiled_model_that_ran_before_the_tap_is_explained() -> None:
    inner, x = Net(), torch.randn(4, 6)
    model = torch.compile(inner, backend="aot_eager")
    model(x)
    tap = FeatureTap(model)
    model(x)
    with pytest.raises(RuntimeError, match="tap before the first call of a compiled model"):
        _ = tap.features
    torch.compiler.reset()
    model(x)
    torch.testing.assert_close(tap.features, inner.embed(x))


CUDA = pytest.param(
    "cuda", marks=[pytest.mark.cuda, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]
)


@pytest.mark.parametrize("device", ["cpu", CUDA])
@pytest.mark.parametrize("compiled", [False, True])
def test_autocast_gives_what_the_head_was_given(device: str, compiled: bool) -> None:
    model = Net().to(device)
    tap = FeatureTap(model)
    run = torch.compile(model, backend="aot_eager", fullgraph=True) if compiled else model
    with torch.autocast(device, dtype=torch.bfloat16):
        logits = run(torch.randn(4, 6, device=device))
        features = tap.features
        torch.testing.assert_close(model.top(features), logits)
    assert (features.dtype, features.device.type) == (torch.bfloat16, device)
    features.float().sum().backward()
    assert model.body.weight.grad.isfinite().all()
    assert model.body.weight.grad.abs().sum() > 0
