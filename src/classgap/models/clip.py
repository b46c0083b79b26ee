"""CLIP classifiers: the image encoder of an open_clip model with a head from its text encoder."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from classgap.models.cosine import CosineClassifier
from classgap.models.heads import Frozen
from classgap.models.optional import package
from classgap.models.shapes import image_channels
from classgap.models.statistics import expect_images
from classgap.registry import suggestion

_WORDNET_ID = re.compile(r"n\d{8}")


class ClipClassifier(nn.Module):
    """An image encoder and a cosine classifier. Features are the unnormalized outputs of the encoder.

    Args:
        visual: Image encoder.
        head: Classifier.
    """

    def __init__(self, visual: nn.Module, head: CosineClassifier) -> None:
        super().__init__()
        self.visual = visual
        self.head = head

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits, (B, K)."""
        return self.head(self.visual(images))


def open_clip_model(
    name: str,
    *,
    num_classes: int,
    input_shape: tuple[int, ...],
    class_names: Sequence[str] | None = None,
    weights: str | None = None,
    template: str = "a photo of a {}.",
    names: Literal["auto", "data", "imagenet"] = "auto",
    frozen: bool = False,
    learn_scale: bool = False,
    load: bool = True,
) -> nn.Module:
    """Create an open_clip model as a classifier that starts from zero-shot CLIP.

    The rows of the head have the norm of CLIP's logit scale. Optimizer steps then rotate them as slowly as in the
    published MR² code, which multiplies the weights by the scale.

    Args:
        name: open_clip name such as ``ViT-B-32`` or ``RN50-quickgelu``, or ``local-dir:PATH``.
        num_classes: Number of outputs.
        input_shape: Shape of an image. Weights of vision transformers are adapted to this size; CLIP's ResNets only
            support their own.
        class_names: Inputs of the text encoder.
        weights: A tag such as ``openai``, downloaded by open_clip on first use, or a file; random weights by default.
        template: Prompt with ``{}`` for the class name; separate several by ``|``. ``imagenet`` selects the 80 prompts
            of CLIP's authors.
        names: Names in the prompts. "data" takes the class names of the data. "imagenet" takes the names that CLIP's
            authors curated, for classes that are WordNet IDs of ImageNet, or for all 1,000 classes ordered by WordNet
            ID. "auto" does so if all classes are WordNet IDs of ImageNet.
        frozen: Train the head only.
        learn_scale: Train the logit scale.
        load: Whether to load ``weights``; otherwise only the architecture is created.
    """
    open_clip = package("open_clip", f"open_clip:{name}")
    channels = image_channels(f"open_clip:{name}", input_shape)
    if channels != 3 or input_shape[1] != input_shape[2]:
        raise ValueError(f"open_clip:{name} requires square images with 3 channels, got input shape {input_shape}.")
    if class_names is None:
        raise ValueError(f"open_clip:{name} requires class_names, from which it creates its head.")
    templates = _templates(open_clip, template)
    if load:  # otherwise the head is overwritten, and the names may be placeholders
        class_names = prompt_names(class_names, names)
    clip = _create(open_clip, name, weights, input_shape, load).eval()  # disables the dropout of some text encoders
    text_KD = zero_shot_weights(clip.encode_text, open_clip.get_tokenizer(name), class_names, templates)
    scale = clip.logit_scale.detach().exp().item()
    head = CosineClassifier(text_KD.shape[1], num_classes, scale, learn_scale=learn_scale)
    with torch.no_grad():
        head.weight.copy_(scale * text_KD)
    model = ClipClassifier(clip.visual, head).train()
    if weights is not None or ":" in name:
        expect_images(model, clip.visual.image_mean, clip.visual.image_std)
    return Frozen(model) if frozen else model


def prompt_names(class_names: Sequence[str], names: str) -> Sequence[str]:
    """Return the class names for prompts.

    Args:
        class_names: Class names of the data.
        names: "auto", "data" or "imagenet"; see :func:`open_clip_model`.

    Raises:
        ValueError: If ``names`` is "imagenet" and the classes are not those of ImageNet.
    """
    if names == "data":
        return class_names
    curated: Sequence[str] = package("open_clip", "open_clip").IMAGENET_CLASSNAMES
    if all(_WORDNET_ID.fullmatch(name) for name in class_names):
        synsets = package("timm.data", "open_clip with names=imagenet").ImageNetInfo("imagenet-1k").label_names()
        by_id = dict(zip(synsets, curated, strict=True))
        unknown = [name for name in class_names if name not in by_id]
        if not unknown:
            return [by_id[name] for name in class_names]
    elif len(class_names) == len(curated):
        unknown = []
    else:
        unknown = list(class_names)
    if names == "auto":
        return class_names
    if unknown:
        raise ValueError(
            f"names=imagenet needs WordNet IDs of ImageNet as class names, or {len(curated)} classes in their order; "
            f"got {len(class_names)} classes such as {unknown[0]!r}. Use names=data."
        )
    return curated


@torch.no_grad()
def zero_shot_weights(
    encode: Callable[[Tensor], Tensor],
    tokenize: Callable[[list[str]], Tensor],
    class_names: Sequence[str],
    templates: Sequence[Callable[[str], str]],
) -> Tensor:
    """Return zero-shot weights, (K, D): the normalized mean of the normalized text features of each class.

    Args:
        encode: Text encoder, from tokens to features, (N, D).
        tokenize: Tokenizer.
        class_names: One name per class; underscores become spaces.
        templates: Functions from a name to a prompt.
    """
    rows = []
    for name in class_names:
        sentences = [template(name.replace("_", " ")) for template in templates]
        rows.append(F.normalize(encode(tokenize(sentences)), dim=-1).mean(dim=0))
    return F.normalize(torch.stack(rows), dim=-1)


def _create(open_clip: Any, name: str, weights: str | None, input_shape: tuple[int, ...], load: bool) -> Any:
    if ":" not in name:
        known = open_clip.list_models()
        if name.replace("/", "-") not in known:
            raise ValueError(f"open_clip has no model {name!r}; {suggestion(name, known)}")
        tags = open_clip.list_pretrained_tags_by_model(name.replace("/", "-"))
        if load and weights is not None and weights not in tags and not Path(weights).is_file():
            near = suggestion(weights, tags)
            raise ValueError(f"weights={weights} is neither a file nor a tag of {name}; {near}")
    elif weights is not None:
        raise ValueError(f"open_clip:{name} has its own weights; remove weights={weights}.")
    try:
        # pretrained_hf=False: otherwise models without weights download a text encoder.
        make = partial(open_clip.create_model, name, force_image_size=input_shape[1], pretrained_hf=False)
        if load or weights is None:
            return make(pretrained=weights)
        return make(force_preprocess_cfg=open_clip.get_pretrained_cfg(name, weights))  # sets image statistics
    except (RuntimeError, OSError) as error:
        raise ValueError(f"open_clip:{name} does not support input shape {input_shape}: {error}") from error


def _templates(open_clip: Any, text: str) -> Sequence[Callable[[str], str]]:
    if text == "imagenet":
        return open_clip.OPENAI_IMAGENET_TEMPLATES
    sentences = text.split("|")
    for sentence in sentences:
        if sentence.count("{}") != 1:
            raise ValueError(f"template must contain one {{}} for the class name, or be imagenet, got {sentence!r}.")
    return [sentence.format for sentence in sentences]
