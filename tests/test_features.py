"""What a FeatureTap holds, for how long, and through which wrappers, precisions and compilers it sees."""

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
from tapped_models import CLASSES, TEXT, Net, check_tap, hugging_face


@pytest.fixture(autouse=True)
def _nothing_compiled() -> None:
    torch.compiler.reset()


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
    with pytest.raises(RuntimeError, match="head was replaced"):
        _ = tap.features


@pytest.mark.parametrize("compiled", [False, True])
def test_wrong_layer_is_noticed(compiled: bool) -> None:
    model = Net()
    tap = FeatureTap(model, head="body")
    run = torch.compile(model, backend="aot_eager", fullgraph=True) if compiled else model
    run(torch.randn(2, 6))
    with pytest.raises(ValueError, match=r"have 7 columns, but Linear.*returned 5\."):
        _ = tap.features


def test_wrong_layer_is_noticed_in_a_mapping() -> None:
    class Mapped(Net):
        def forward(self, x: Tensor) -> Any:
            return {"logits": super().forward(x)}

    model = Mapped()
    tap = FeatureTap(model, head="body")
    model(torch.randn(2, 6))
    with pytest.raises(ValueError, match="logits have 7 columns"):
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


# Earlier layers


@pytest.mark.parametrize("compiled", [False, True])
def test_output_of_an_earlier_layer(compiled: bool) -> None:
    model, x, seen = Net(), torch.randn(4, 6), []
    model.body.register_forward_hook(lambda _, args, output: seen.append(output))
    tap = FeatureTap(model, layer="body")
    run = torch.compile(model, backend="aot_eager", fullgraph=True) if compiled else model
    run(x)
    torch.testing.assert_close(tap.features, F.linear(x, model.body.weight, model.body.bias))
    assert compiled or tap.features is seen[0]
    tap.features.sum().backward()
    torch.testing.assert_close(model.body.weight.grad, x.sum(dim=0).expand(5, -1))
    tap.remove()
    with pytest.raises(RuntimeError, match="tap removed"):
        _ = tap.features


def test_layers_by_module_and_by_wrapped_name() -> None:
    model = nn.DataParallel(Net())
    assert FeatureTap(model, layer="body").layer is model.module.body
    assert FeatureTap(model, layer="module.body").layer is model.module.body
    assert FeatureTap(model, layer=model.module.body).layer is model.module.body


@pytest.mark.parametrize("layer", ["bodi", "", nn.Linear(2, 2)])
def test_unknown_layer_is_rejected(layer: Any) -> None:
    with pytest.raises(ValueError, match=r"layer=.* is not part of Net\. Its parts are .*body"):
        FeatureTap(Net(), layer=layer)


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


def test_full_training_step_in_one_graph() -> None:
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
    with pytest.raises(RuntimeError, match="before the first call of a compiled model"):
        _ = tap.features
    torch.compiler.reset()
    model(x)
    torch.testing.assert_close(tap.features, inner.embed(x))


CUDA = pytest.param(
    "cuda", marks=[pytest.mark.cuda, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]
)


@pytest.mark.parametrize("device", ["cpu", CUDA])
@pytest.mark.parametrize("compiled", [False, True])
def test_autocast_returns_the_input_of_the_head(device: str, compiled: bool) -> None:
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
