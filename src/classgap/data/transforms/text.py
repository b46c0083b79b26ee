"""Encode texts as vectors with a frozen sentence encoder."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from classgap._atomic_write import atomic_write
from classgap.data.sources.cache_dirs import cache_dir, file_lock
from classgap.data.transforms.table import to_text

_FORMAT = "1"  # increase when the encoding changes
DEFAULT_ENCODER = "sentence-transformers/all-MiniLM-L6-v2"
BATCH_SIZE = 32
MAX_TOKENS = 512  # of encoders without a limit of their own

Encode = Callable[[Sequence[str]], NDArray[np.float32]]


@dataclass(frozen=True)
class TextColumn:
    """A column of texts, encoded by a sentence encoder that is not trained.

    Attributes:
        name: Name of the column.
        encoder: Folder or name of the encoder; see :func:`load_encoder`.
        width: Number of features.
        weights: Hash of the weights, so that no other encoder is used with the trained model.
    """

    name: str
    encoder: str
    width: int
    weights: str

    @classmethod
    def from_encoder(cls, name: str, encoder: str) -> TextColumn:
        """Create a column for the encoder in a folder or of the Hub.

        Raises:
            ValueError: If the encoder cannot be loaded.
        """
        folder = Path(os.path.expanduser(encoder))
        place = str(folder.resolve()) if folder.is_dir() else encoder
        encode, weights = load_encoder(place)
        return cls(name, place, encode(["a text"]).shape[1], weights)

    def encode(self, cells: Sequence[Any]) -> NDArray[np.float32]:
        """Return the features of texts, (N, D). They are kept in the cache directory.

        Raises:
            ValueError: If the encoder cannot be loaded, or is not the one of the training.
        """
        encode, weights = load_encoder(self.encoder)
        if weights != self.weights:
            raise ValueError(f"column {self.name!r}: the weights of the encoder {self.encoder} changed since training.")
        texts = [to_text(cell) for cell in cells]
        key = hashlib.sha256(json.dumps([_FORMAT, weights, texts]).encode("utf-8", "surrogatepass")).hexdigest()[:32]
        file = cache_dir() / "texts" / f"{key}.npy"
        with file_lock(file.with_suffix(".lock")):  # one process encodes while the others wait
            features = _read(file, (len(texts), self.width))
            if features is None:
                features = encode(texts)
                _write(file, features)
        return features


@lru_cache(maxsize=2)
def load_encoder(encoder: str) -> tuple[Encode, str]:
    """Load a frozen encoder of texts, and return it with a hash of its weights.

    A folder that ``save_pretrained`` of ``transformers`` wrote is used with mean pooling over the tokens. Folders with
    a ``modules.json``, and names on the Hugging Face Hub, are loaded with ``sentence-transformers``.

    Raises:
        ValueError: If the library that is needed is not installed, or the encoder cannot be loaded.
    """
    folder = Path(os.path.expanduser(encoder))
    plain = folder.is_dir() and not (folder / "modules.json").is_file()
    try:
        encode, model = _load_transformer(str(folder)) if plain else _load_sentence_encoder(encoder)
    except ImportError as error:
        raise ValueError(f"the encoder {encoder} {error}") from None
    except (OSError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:300]
        raise ValueError(f"the encoder {encoder!r} cannot be loaded ({type(error).__name__}: {reason}).") from None
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return encode, digest.hexdigest()


def _load_transformer(folder: str) -> tuple[Encode, Any]:
    try:
        from transformers import AutoModel, AutoTokenizer
    except ImportError:
        raise ImportError("needs transformers: pip install 'classgap[hf]'.") from None
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder, use_safetensors=True).eval().float()
    limit = min(tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", MAX_TOKENS))

    @torch.inference_mode()
    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        parts = []
        for start in range(0, len(texts), BATCH_SIZE):
            batch = list(texts[start : start + BATCH_SIZE])
            tokens = tokenizer(batch, padding=True, truncation=True, max_length=limit, return_tensors="pt")
            mask_BL1 = tokens["attention_mask"][..., None]
            if not mask_BL1.any():  # empty texts, and a tokenizer without special tokens
                parts.append(torch.zeros(len(batch), model.config.hidden_size))
                continue
            hidden_BLD = model(**tokens).last_hidden_state.masked_fill(mask_BL1 == 0, 0.0)
            parts.append(hidden_BLD.sum(dim=1) / mask_BL1.sum(dim=1).clamp(min=1))
        return torch.cat(parts).numpy()

    return encode, model


def _load_sentence_encoder(name: str) -> tuple[Encode, Any]:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise ImportError(
            "needs sentence-transformers: pip install 'classgap[text]', or name the folder of a transformers model."
        ) from None
    model = SentenceTransformer(name, device="cpu", model_kwargs={"use_safetensors": True}).eval().float()

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        return np.asarray(model.encode(list(texts), batch_size=BATCH_SIZE, show_progress_bar=False), dtype=np.float32)

    return encode, model


def _read(file: Path, shape: tuple[int, int]) -> NDArray[np.float32] | None:
    try:
        features = np.load(file, allow_pickle=False)
    except (OSError, ValueError):
        return None
    return features if features.shape == shape and features.dtype == np.float32 else None


def _write(file: Path, features: NDArray[np.float32]) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(file) as target:
            np.save(target, features, allow_pickle=False)
    except OSError:  # texts are encoded again next time
        pass
