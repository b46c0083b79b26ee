"""``Fix``: a fitted remedy as a module, saved without pickle."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor, nn

from classgap._atomic_write import atomic_write, atomic_write_text
from classgap._regular_files import check_regular_file, to_path
from classgap._tensor_files import has_valid_checksum, serialize_checked
from classgap.audit.io.arrays import to_tensor
from classgap.audit.io.probabilities import log_probabilities, probability_rows
from classgap.audit.serialization import is_fix_result, read_json
from classgap.remedies.modules import ExpectedCost, Part, build_part, describe_part
from classgap.remedies.sources import READS_PROBABILITIES, Inputs

DESCRIPTION, WEIGHTS = "fix.json", "fix.safetensors"
DESCRIPTION_KEY = "description_sha256"  # in the metadata of the tensors
SCHEMA = 1


class Fix(nn.Module):
    """A remedy for a trained classifier, which turns outputs of the model into adjusted scores.

    Call it with a tensor, an array or a list; an array or a list gives an array. Each row of scores that is not
    negative and sums to 1 is read as probabilities, and each other one as logits, in compiled and exported fixes too.
    They take tensors only and check nothing.

    Args:
        name: name of the remedy.
        inputs: "logits" of one model (B, K), an "ensemble" of the stacked logits of several models (M, B, K),
            "features" (B, D), "images" (B, C, H, W), or "samples" of another shape, as in training.
        parts: modules that are applied in order.
        class_names: names of the K classes.
        members: for an ensemble, names of the models in order.
        details: plain values for ``fix.json``. ``reads_probabilities`` false (or a list of bool, one per member) means
            that the fix was fitted on scores that look like probabilities in some rows only, so no row is converted.

    >>> from classgap.remedies.modules import ClassAffine
    >>> fix = Fix("class-offsets", "logits", [ClassAffine(torch.ones(2), torch.tensor([0.0, 3.0]))], ("cat", "dog"))
    >>> fix(torch.tensor([[2.0, 0.0]])).argmax(dim=1)
    tensor([1])
    >>> fix.predict([[2.0, 0.0]]).tolist(), fix.inputs
    ([1], 'logits')
    """

    reads_probabilities: Tensor

    def __init__(
        self,
        name: str,
        inputs: str,
        parts: Sequence[Part],
        class_names: Sequence[str],
        *,
        members: Sequence[str] = (),
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        if inputs not in get_args(Inputs):
            raise ValueError(f"inputs must be one of {', '.join(get_args(Inputs))}; got {inputs!r}.")
        self.name, self.inputs, self.class_names = name, inputs, tuple(class_names)
        self.members, self.details = tuple(members), dict(details or {})
        self.parts = nn.Sequential(*parts)
        reads = torch.tensor(self.details.get(READS_PROBABILITIES, True), dtype=torch.bool)
        if reads.dim() and reads.shape != (len(self.members),):
            raise ValueError(f"{READS_PROBABILITIES} must have {len(self.members)} values, one per member.")
        self.register_buffer(READS_PROBABILITIES, reads[..., None], persistent=False)  # (1,), or (M, 1) by member
        self.eval()

    @property
    def input_description(self) -> str:
        """Kind and shape of the inputs, in words."""
        classes, models = len(self.class_names), len(self.members)
        scores = (
            "logits or probabilities" if bool(self.reads_probabilities.all()) else "scores, as in the fitted files,"
        )
        return {
            "logits": f"{scores} of the model, shape (samples, {classes})",
            "ensemble": f"{scores} of {models} models in the order {', '.join(self.members)}, stacked to shape "
            f"({models}, samples, {classes})",
            "features": "penultimate features of the model, shape (samples, features)",
            "images": f"images, {self._shape('channels, height, width')}{self._normalization()}",
            "samples": f"inputs of the model, {self._shape('...')}{self._normalization()}",
        }[self.inputs]

    def _shape(self, otherwise: str) -> str:
        sides = self.details.get("input_shape")
        return f"shape (samples, {otherwise if sides is None else ', '.join(map(str, sides))})"

    def _normalization(self) -> str:
        mean, std = self.details.get("mean"), self.details.get("std")
        if mean is None or std is None:
            return ", prepared as in training"
        mean, std = ([round(each, 4) for each in values] for values in (mean, std))
        return f", scaled to [0, 1] and normalized with mean {mean} and std {std}"

    def forward(self, inputs: Any) -> Any:
        """Return scores (B, K). Their softmax is a probability, unless the remedy minimizes costs.

        Raises:
            ValueError: if the inputs have the wrong shape or are not finite.
        """
        if isinstance(inputs, Tensor):
            if not _is_traced():
                self._check(inputs)
            return self.parts(self._prepare(inputs))
        with torch.no_grad():
            return self(to_tensor("inputs", np.asarray(inputs))).numpy()

    def predict(self, inputs: Any) -> Any:
        """Return predicted class indices."""
        return self(inputs).argmax(-1)

    def predict_proba(self, inputs: Any) -> Any:
        """Return adjusted probabilities.

        Raises:
            ValueError: if the remedy scores classes by their expected cost.
        """
        if any(isinstance(part, ExpectedCost) for part in self.parts):
            raise ValueError(f"{self.name} scores classes by expected cost and has no probabilities; use predict().")
        scores = self(inputs)
        probabilities = torch.as_tensor(scores).softmax(dim=-1)
        return probabilities if isinstance(scores, Tensor) else probabilities.numpy()

    def extra_repr(self) -> str:
        """Return name and inputs for ``repr``."""
        return f"name={self.name!r}, inputs={self.inputs!r}"

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write ``fix.json`` and ``fix.safetensors`` to a folder; :func:`load_fix` reads them."""
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in self.state_dict().items()}
        description = {
            "schema": SCHEMA,
            "name": self.name,
            "inputs": self.inputs,
            "parts": [describe_part(part) for part in self.parts],
            "class_names": list(self.class_names),
            "members": list(self.members),
            "details": self.details,
        }
        text = json.dumps(description, allow_nan=False, ensure_ascii=False, indent=2) + "\n"
        with atomic_write(path / WEIGHTS) as file:
            file.write(serialize_checked(tensors, {DESCRIPTION_KEY: hashlib.sha256(text.encode()).hexdigest()}))
        atomic_write_text(path / DESCRIPTION, text)  # last: it marks the fix as complete

    def _check(self, values: Tensor) -> None:
        shape, dims, classes = tuple(values.shape), values.dim(), len(self.class_names)
        fits = {
            "logits": dims == 2 and shape[-1] == classes,
            "ensemble": dims == 3 and (shape[0], shape[-1]) == (len(self.members), classes),
            "features": dims == 2,
            "images": dims == 4 and list(shape[1:]) == self.details.get("input_shape", list(shape[1:])),
            "samples": dims >= 2 and list(shape[1:]) == self.details.get("input_shape", list(shape[1:])),
        }[self.inputs]
        if not fits:
            raise ValueError(f"inputs must be {self.input_description}; got shape {shape}.")
        if not bool(values.isfinite().all()):
            raise ValueError("inputs must be finite, but contain NaN or infinity.")

    def _prepare(self, values: Tensor) -> Tensor:
        """Convert types and rows of probabilities by tensor operations only, which compilers and exporters keep."""
        values = values.to(torch.promote_types(values.dtype, torch.float32))
        if self.inputs in ("logits", "ensemble"):
            converted = self.reads_probabilities & probability_rows(values, len(self.class_names))
            return torch.where(converted[..., None], log_probabilities(values), values)
        own = next((each.dtype for each in self.parameters() if each.is_floating_point()), values.dtype)
        return values.to(own)  # layers of a network take their own precision only, and lists are of double precision


def _is_traced() -> bool:
    if torch.compiler.is_compiling() or torch.onnx.is_in_onnx_export():
        return True
    return bool(torch.jit.is_tracing())  # type: ignore[attr-defined, no-untyped-call]


def load_fix(folder: str | os.PathLike[str]) -> Fix:
    """Load a fix that :meth:`Fix.save` or ``classgap fix --out`` wrote.

    Args:
        folder: the folder, or ``fix.json`` in it.

    Raises:
        ValueError: if the folder has no fix, or its files are damaged.

    >>> from tempfile import TemporaryDirectory
    >>> from classgap.remedies.modules import ClassAffine
    >>> with TemporaryDirectory() as folder:
    ...     Fix("class-offsets", "logits", [ClassAffine(torch.ones(2), torch.zeros(2))], ("cat", "dog")).save(folder)
    ...     load_fix(folder).inputs
    'logits'
    """
    import classgap.remedies.networks
    import classgap.remedies.views  # noqa: F401  # both register their parts
    from classgap.engine.storage.networks import check_sizes

    path = to_path("folder", folder, "pass the folder that `classgap fix --out` wrote")
    if path.is_file() and path.name in (DESCRIPTION, WEIGHTS):
        path = path.parent
    if not (path / DESCRIPTION).is_file():
        raise ValueError(f"{path} contains no {DESCRIPTION}: pass the folder that `classgap fix --out` wrote.")
    description = read_json(path / DESCRIPTION)
    if isinstance(description, dict) and is_fix_result(description):
        raise ValueError(
            f"{path / DESCRIPTION} is the result of a fix (--json), not the fix: pass the folder that `classgap fix "
            "--out` wrote."
        )
    state = _read_state(path)
    with _name_damage(path / DESCRIPTION):
        if description["schema"] != SCHEMA:
            raise ValueError(f"schema must be {SCHEMA}, got {description['schema']!r}")
        parts = description["parts"]
        check_sizes(lambda: nn.ModuleDict({"parts": nn.Sequential(*map(build_part, parts))}), state, path / WEIGHTS)
        fix = Fix(
            description["name"],
            description["inputs"],
            [build_part(part) for part in description["parts"]],
            description["class_names"],
            members=description["members"],
            details=description["details"],
        )
        for part in description["parts"]:
            if part.get("num_classes", len(fix.class_names)) != len(fix.class_names):
                raise ValueError(
                    f"{part['type']} has {part['num_classes']} classes, class_names {len(fix.class_names)}"
                )
    try:
        fix.load_state_dict(state)
    except RuntimeError as error:
        raise ValueError(f"{path / WEIGHTS} is missing or damaged ({error}): run `classgap fix` again.") from None
    bad = next((name for name, tensor in fix.state_dict().items() if not bool(tensor.isfinite().all())), None)
    if bad is not None:
        raise ValueError(f"{path / WEIGHTS} is damaged ({bad} contains NaN or infinity): run `classgap fix` again.")
    return fix


def _read_state(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a fix; they must match their checksum, and so must the description beside them."""
    from safetensors import SafetensorError, safe_open

    check_regular_file(path / WEIGHTS)
    try:
        with safe_open(path / WEIGHTS, "pt") as file:
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # it is no mapping
            metadata = file.metadata() or {}
        text = (path / DESCRIPTION).read_bytes()
    except (OSError, SafetensorError) as error:
        raise ValueError(f"{path / WEIGHTS} is missing or damaged ({error}): run `classgap fix` again.") from None
    if not has_valid_checksum(state, metadata):
        raise ValueError(f"{path / WEIGHTS} does not match its checksum, so it is damaged: run `classgap fix` again.")
    if metadata.get(DESCRIPTION_KEY, digest := hashlib.sha256(text).hexdigest()) != digest:
        raise ValueError(f"{path / DESCRIPTION} is damaged or belongs to another fix: run `classgap fix` again.")
    return state


@contextmanager
def _name_damage(path: Path) -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, AttributeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{path} is not a valid fix ({error}): run `classgap fix` again.") from None
