"""Export the network of a run to ONNX, with everything that its user needs in the metadata."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO

import torch

from classgap._version import __version__
from classgap.inference.loaded_run import LoadedRun

CHECKED_BATCHES = (1, 5)
MAX_DIFFERENCE = 1e-3  # of logits, relative to the largest one; kernels of two programs round differently
MAX_BYTES = 2**31 - 1  # of a protobuf message


def export_onnx(run: LoadedRun) -> bytes:
    """Export a network, run the result with onnxruntime, and compare its logits with those of torch.

    The input "inputs" (B, …) is prepared as by ``run.preprocessing``; the output "logits" is (B, K). The batch size is
    free. The metadata hold ``class_names`` and ``preprocessing`` as JSON, and the version that exported.

    Args:
        run: The model; the export is in float32.

    Returns:
        The content of the ``.onnx`` file.

    Raises:
        ValueError: If a package is missing, or the network cannot be exported or gives other logits.
    """
    _require_packages()
    model = run.model.to("cpu").float()
    try:
        example = torch.zeros(2, *run.preprocessing.shape)
        batch = torch.export.Dim("batch", min=1)
        with _quiet():
            program = torch.onnx.export(
                model,
                (example,),
                input_names=["inputs"],
                output_names=["logits"],
                dynamic_shapes=({0: batch},),
                dynamo=True,
                verbose=False,
            )
        assert program is not None
        program.model.metadata_props.update(onnx_metadata(run))
        content: bytes = program.model_proto.SerializeToString()
    except Exception as error:  # the exporter raises errors of many types
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ValueError(f"{run.config.model} cannot be exported to ONNX: {reason}") from error
    finally:
        run.model.to(run.device)
    if len(content) > MAX_BYTES:
        raise ValueError(f"{run.config.model} takes {len(content) / 1e9:.1f} GB, but an ONNX file holds at most 2 GB.")
    _check(run, content)
    return content


def onnx_metadata(run: LoadedRun) -> dict[str, str]:
    """Return the metadata of an exported network: class names and preprocessing as JSON, and the version."""
    return {
        "class_names": json.dumps(list(run.class_names), ensure_ascii=False),
        "preprocessing": json.dumps(run.preprocessing.to_dict()),
        "producer": f"classgap {__version__}",
    }


def _require_packages() -> None:
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise ValueError(f"--onnx needs {error.name}: pip install 'classgap[onnx]'.") from None


def _check(run: LoadedRun, content: bytes) -> None:
    """Compare the logits of onnxruntime and torch for random inputs."""
    try:
        import onnxruntime
    except ImportError as error:
        raise ValueError(f"--onnx needs {error.name}: pip install 'classgap[onnx]'.") from None
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    generator = torch.Generator().manual_seed(0)
    for size in CHECKED_BATCHES:
        inputs = torch.randn(size, *run.preprocessing.shape, generator=generator)
        with torch.inference_mode():
            expected = run.model(inputs.to(run.device)).float().cpu()
        got = torch.from_numpy(session.run(["logits"], {"inputs": inputs.numpy()})[0])
        largest = max(1.0, float(expected.abs().max()))
        difference = float((got - expected).abs().max()) / largest if got.shape == expected.shape else float("inf")
        if not difference <= MAX_DIFFERENCE:
            raise ValueError(
                f"the logits of the ONNX model of {run.config.model} differ from torch's by {difference:.2g}, relative "
                f"to the largest logit; at most {MAX_DIFFERENCE:g} is allowed. Nothing was written."
            )


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporter, which reports its progress with prints, logs and warnings."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
