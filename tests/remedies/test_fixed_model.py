"""Fix: saved, loaded, exported; damaged folders are named."""

import json

import numpy as np
import pytest
import torch
from fix_cases import biased, biased_logits, softmax
from safetensors.torch import save
from torch import nn

from classgap.audit import Audit
from classgap.audit.io.predictions import Predictions
from classgap.remedies import Fix, fix, load_fix
from classgap.remedies.modules import ClassAffine, ExpectedCost, Head, MeanProbability
from classgap.remedies.networks import Network
from classgap.remedies.views import Views

RNG = np.random.default_rng(0)
NAMES = ("cat", "dog", "cow")


def random_affine(dtype=torch.float32):
    return ClassAffine(torch.tensor([0.5, 1.0, 2.0], dtype=dtype), torch.tensor([0.3, -1.0, 0.7], dtype=dtype))


def cases():
    logits = torch.from_numpy(RNG.normal(size=(6, 3))).float()
    several = torch.from_numpy(RNG.normal(size=(2, 6, 3))).float()
    features = torch.from_numpy(RNG.normal(size=(6, 4))).float()
    cost = ExpectedCost(torch.from_numpy(RNG.exponential(size=(3, 3))).float())
    head = Head(torch.from_numpy(RNG.normal(size=(3, 4))), torch.from_numpy(RNG.normal(size=3)))
    return {
        "offsets": (Fix("class-offsets", "logits", [random_affine()], NAMES), logits),
        "cost": (Fix("expected-cost", "logits", [random_affine(), cost], NAMES), logits),
        "ensemble": (
            Fix("ensemble", "ensemble", [MeanProbability(), random_affine()], NAMES, members=("a", "b")),
            several,
        ),
        "head": (Fix("head", "features", [head, random_affine()], NAMES), features),
    }


def any_inputs():
    """All cases, and a network."""
    about = {"model": "mlp:width=8", "num_classes": 3, "input_shape": [1, 4, 4], "head": "linear"}
    views = Views(Network.from_config(about), "mirror", 1)
    images = torch.from_numpy(RNG.normal(size=(6, 1, 4, 4))).float()
    return cases() | {"views": (Fix("mirror", "images", [views, random_affine()], NAMES), images)}


@pytest.mark.parametrize("name", any_inputs())
def test_inputs_of_any_precision(name):
    fixed, inputs = any_inputs()[name]
    expected = fixed(inputs)
    for given in (inputs.double(), inputs.double().numpy(), inputs.numpy(), inputs.tolist()):
        torch.testing.assert_close(torch.as_tensor(fixed(given)).float(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", cases())
def test_saved_and_loaded_fixes_are_equal(name, tmp_path):
    fixed, inputs = cases()[name]
    fixed.details["note"] = "α"
    fixed.save(tmp_path / "new" / "folder")
    loaded = load_fix(tmp_path / "new" / "folder")
    torch.testing.assert_close(loaded(inputs), fixed(inputs), rtol=0, atol=0)
    for field in ("name", "inputs", "class_names", "members", "details", "input_description"):
        assert getattr(loaded, field) == getattr(fixed, field)
    assert repr(loaded) == repr(fixed)
    assert not loaded.training


@pytest.mark.parametrize("name", cases())
def test_onnx_gives_the_same_scores(name, tmp_path):
    pytest.importorskip("onnxscript")
    runtime = pytest.importorskip("onnxruntime")
    fixed, inputs = cases()[name]
    batch = torch.export.Dim("batch", min=1, max=4096)
    dynamic = ({1 if inputs.dim() == 3 else 0: batch},)
    torch.onnx.export(fixed, (inputs,), tmp_path / "fix.onnx", dynamic_shapes=dynamic, verbose=False)
    session = runtime.InferenceSession(str(tmp_path / "fix.onnx"))
    for given in (inputs, inputs[..., :2, :]):
        (found,) = session.run(None, {session.get_inputs()[0].name: given.numpy()})
        np.testing.assert_allclose(found, fixed(given).numpy(), atol=1e-5)


def test_onnx_of_a_model_with_its_fix(tmp_path):
    pytest.importorskip("onnxscript")
    runtime = pytest.importorskip("onnxruntime")
    torch.manual_seed(0)
    both = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3), cases()["offsets"][0]).eval()
    inputs = torch.randn(6, 4)
    torch.onnx.export(both, (inputs,), tmp_path / "both.onnx", verbose=False)
    session = runtime.InferenceSession(str(tmp_path / "both.onnx"))
    (found,) = session.run(None, {session.get_inputs()[0].name: inputs.numpy()})
    np.testing.assert_allclose(found, both(inputs).detach().numpy(), atol=1e-5)


def test_scores_by_numpy_from_arrays_lists_and_tensors():
    fixed, inputs = cases()["offsets"]
    logits = inputs.numpy().astype(float)
    expected = np.log(softmax(logits)) * [0.5, 1, 2] + [0.3, -1, 0.7]
    for given in (inputs, logits, logits.tolist(), inputs.double()):
        found = fixed(given)
        assert isinstance(found, torch.Tensor) == isinstance(given, torch.Tensor)
        np.testing.assert_allclose(np.asarray(found), expected, atol=1e-5)
        np.testing.assert_array_equal(np.asarray(fixed.predict(given)), expected.argmax(axis=1))
        np.testing.assert_allclose(np.asarray(fixed.predict_proba(given)), softmax(expected), atol=1e-5)
    half = fixed(logits.astype(np.float16))
    assert half.dtype == np.float32
    np.testing.assert_allclose(half, expected, atol=0.02)


def compiled(fixed, inputs, path):
    return torch.compile(fixed, backend="eager", dynamic=True)


def exported(fixed, inputs, path):
    return torch.export.export(fixed, (inputs,), dynamic_shapes=dynamic_batch(inputs)).module()


def traced(fixed, inputs, path):
    return torch.jit.trace(fixed, inputs)


def in_onnx(fixed, inputs, path, **options):
    pytest.importorskip("onnxscript")
    runtime = pytest.importorskip("onnxruntime")
    torch.onnx.export(fixed, (inputs,), path, input_names=["x"], verbose=False, **options)
    session = runtime.InferenceSession(str(path))
    return lambda given: torch.from_numpy(session.run(None, {"x": given.numpy()})[0])


def in_new_onnx(fixed, inputs, path):
    return in_onnx(fixed, inputs, path, dynamic_shapes=dynamic_batch(inputs))


def in_old_onnx(fixed, inputs, path):
    return in_onnx(fixed, inputs, path, dynamo=False, dynamic_axes={"x": {inputs.dim() - 2: "batch"}})


def dynamic_batch(inputs):
    return ({inputs.dim() - 2: torch.export.Dim("batch", min=1, max=4096)},)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("route", [compiled, exported, traced, in_new_onnx, in_old_onnx])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("name", ["offsets", "ensemble"])
def test_every_route_reads_logits_and_probabilities_alike(name, dtype, route, tmp_path):
    fixed, logits = cases()[name]
    probabilities, mixed = logits.softmax(dim=-1), logits.clone()
    mixed[..., ::2, :] = probabilities[..., ::2, :]
    run = route(fixed, logits.to(dtype), tmp_path / "fix.onnx")
    for given in (logits, probabilities, mixed, probabilities[..., :1, :], logits[..., :1, :]):
        torch.testing.assert_close(run(given.to(dtype)), fixed(given.to(dtype)), rtol=1e-5, atol=1e-5)
        expected = fixed(logits[..., : given.shape[-2], :])
        torch.testing.assert_close(
            run(given.to(dtype)), expected, rtol=0, atol=1e-5 if dtype == torch.float32 else 0.02
        )


@pytest.mark.parametrize("name", ["head", "views"])
def test_compiled_networks_take_any_precision(name):
    fixed, inputs = any_inputs()[name]
    run = torch.compile(fixed, backend="eager")
    torch.testing.assert_close(run(inputs.double()).float(), fixed(inputs), rtol=1e-4, atol=1e-5)


def test_one_row_of_logits_changes_no_other_row():
    fixed, logits = cases()["offsets"]
    rows = torch.cat([logits.softmax(dim=1)] * 20 + [logits[:1]])
    torch.testing.assert_close(fixed(rows)[:-1], fixed(logits).repeat(20, 1), atol=1e-5, rtol=0)


def test_a_fix_of_independent_scores_converts_no_row(tmp_path):
    labels, logits = biased_logits(4, 100, separation=4.0, bias=3.0)
    scores = 1 / (1 + np.exp(3 - logits))  # most sum to 1 within rounding errors, and some do not
    result = fix(
        Predictions.from_arrays(labels, logits=scores.round(2), name="sigmoid"), max_easy_loss=50, max_medium_loss=50
    )
    (notice,) = [each for each in result.notices if "look like probabilities" in each]
    assert "of the 400 samples of sigmoid" in notice
    result.fix.save(tmp_path)
    loaded, given = load_fix(tmp_path), torch.from_numpy(scores.round(2)).float()
    assert torch.equal(loaded(given), loaded.parts(given))
    assert "probabilities" not in loaded.input_description
    several = Fix("x", "ensemble", [MeanProbability()], NAMES, members=("a", "b"))
    partly = Fix(
        "x", "ensemble", [MeanProbability()], NAMES, members="ab", details={"reads_probabilities": [False, True]}
    )
    stacked = cases()["ensemble"][1].softmax(dim=-1)
    torch.testing.assert_close(partly(torch.stack([stacked[0].log(), stacked[1]])), several(stacked))
    assert not torch.allclose(partly(stacked), several(stacked))


def test_probabilities_and_logits_give_the_same_scores():
    for name in ("offsets", "ensemble"):
        fixed, inputs = cases()[name]
        np.testing.assert_allclose(fixed(inputs.softmax(dim=-1)), fixed(inputs), atol=1e-5)
    zeros = cases()["offsets"][0]([[1.0, 0.0, 0.0]])
    assert np.isfinite(zeros).all()


def test_costs_have_no_probabilities():
    fixed, inputs = cases()["cost"]
    assert fixed.predict(inputs).shape == (6,)
    with pytest.raises(ValueError, match="expected cost"):
        fixed.predict_proba(inputs)


@pytest.mark.parametrize(
    ("name", "shape"),
    [("offsets", (6, 4)), ("offsets", (3,)), ("ensemble", (3, 6, 3)), ("ensemble", (6, 3)), ("head", (2, 6, 4))],
)
def test_inputs_of_another_shape_are_named(name, shape):
    with pytest.raises(ValueError, match=str(shape).replace("(", r"\(").replace(")", r"\)")):
        cases()[name][0](torch.zeros(shape))


def test_inputs_must_be_finite_and_of_a_known_kind():
    with pytest.raises(ValueError, match="NaN"):
        cases()["offsets"][0]([[0.0, np.nan, 1.0]])
    with pytest.raises(ValueError, match="audio"):
        Fix("x", "audio", [random_affine()], NAMES)


def damaged_descriptions():
    good = {
        "schema": 1,
        "name": "class-offsets",
        "inputs": "logits",
        "parts": [{"type": "ClassAffine", "num_classes": 3}],
        "class_names": list(NAMES),
        "members": [],
        "details": {},
    }
    changes = {
        "schema": 2,
        "inputs": "audio",
        "parts": [{"type": "Unknown"}],
        "class_names": ["cat", "dog"],
        "members": None,
        "details": [1],
    }
    yield "empty", ""
    yield "truncated", json.dumps(good)[:40]
    yield "list", "[]"
    yield "null", "null"
    yield from ((name, json.dumps(good | {name: value})) for name, value in changes.items())
    yield from ((f"no {name}", json.dumps({k: v for k, v in good.items() if k != name})) for name in good)
    yield "negative", json.dumps(good | {"parts": [{"type": "ClassAffine", "num_classes": -3}]})
    yield "no type", json.dumps(good | {"parts": [{"num_classes": 3}]})


@pytest.mark.parametrize(("case", "text"), list(damaged_descriptions()))
def test_damaged_descriptions_are_named(case, text, tmp_path):
    cases()["offsets"][0].save(tmp_path)
    (tmp_path / "fix.json").write_text(text)
    with pytest.raises(ValueError, match=r"fix\.json"):
        load_fix(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b"x" * 100,
        save({"parts.0.scale": torch.ones(3)}),
        save({"parts.0.scale": torch.ones(4), "parts.0.offset": torch.zeros(4)}),
        save({"parts.0.scale": torch.ones(3), "parts.0.offset": torch.tensor([0.0, float("nan"), 0.0])}),
    ],
    ids=["missing", "empty", "noise", "one tensor", "other shape", "nan"],
)
def test_damaged_weights_are_named(content, tmp_path):
    cases()["offsets"][0].save(tmp_path)
    (tmp_path / "fix.safetensors").unlink()
    if content is not None:
        (tmp_path / "fix.safetensors").write_bytes(content)
    with pytest.raises(ValueError, match=r"fix\.safetensors"):
        load_fix(tmp_path)


def test_a_folder_without_a_fix_is_named(tmp_path):
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(ValueError, match=folder.name):
            load_fix(folder)


def test_what_is_no_folder_of_a_fix_is_named(tmp_path):
    cases()["offsets"][0].save(tmp_path)
    assert load_fix(tmp_path / "fix.json").name == "class-offsets"
    with pytest.raises(ValueError, match=r"folder must be the path .* got a NoneType: pass the folder"):
        load_fix(None)
    fix(biased(3, 20)).save(tmp_path / "fix.json")
    for path in (tmp_path, tmp_path / "fix.json"):
        with pytest.raises(ValueError, match=r"is the result of a fix \(--json\), not the fix"):
            load_fix(path)
    with pytest.raises(ValueError, match="this is a fix result, not an audit"):
        Audit.load(tmp_path / "fix.json")


def test_a_found_fix_predicts_as_proved(tmp_path):
    """The saved fix reproduces the accuracy of the proof from the raw test logits."""
    labels, logits = biased_logits(5, 80, seed=1)
    result = fix(biased(5, 80), biased(5, 80, seed=1), max_easy_loss=50)
    assert result.fix is not None
    result.fix.save(tmp_path)
    predicted = load_fix(tmp_path).predict(logits)
    assert np.mean(predicted == labels) == pytest.approx(result.proof["overall"].after)
    assert np.mean(logits.argmax(axis=1) == labels) == pytest.approx(result.proof["overall"].before)
