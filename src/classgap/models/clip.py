"""CLIP as a classifier: the image encoder of an open_clip model, and a head that starts from its text encoder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from classgap.models.cosine import CosineClassifier
from classgap.models.heads import Frozen
from classgap.models.optional import package
from classgap.models.shapes import image_channels
from classgap.models.statistics import expect_images
from classgap.registry import suggestion


class ClipClassifier(nn.Module):
    """An image encoder and a cosine classifier; features are the encoder's, before they are normalised.

    Args:
        visual: from images to features.
        head: from features to logits.
    """

    def __init__(self, visual: nn.Module, head: CosineClassifier) -> None:
        super().__init__()
        self.visual = visual
        self.head = head

    def forward(self, images: Tensor) -> Tensor:
        """Logits, (B, K)."""
        return self.head(self.visual(images))


def open_clip_model(
    name: str,
    *,
    num_classes: int,
    input_shape: tuple[int, ...],
    class_names: Sequence[str] | None = None,
    weights: str | None = None,
    template: str = "a photo of a {}.",
    frozen: bool = False,
    learn_scale: bool = False,
    load: bool = True,
) -> nn.Module:
    """A model of open_clip that classifies as zero-shot CLIP does, until it is trained.

    The head's rows get the norm of CLIP's scale, so that one step of an optimiser turns them as little as it does in
    the published MR² code, which keeps the scale in the weights.

    Args:
        name: as open_clip spells it, such as ``ViT-B-32`` or ``RN50-quickgelu``, or ``local-dir:PATH``.
        num_classes: outputs.
        input_shape: of an image; the encoder is made for this size. Its weights can be fitted to another size than
            their own in vision transformers, not in CLIP's ResNets.
        class_names: what the text encoder reads.
        weights: a tag such as ``openai``, which open_clip downloads the first time, or a file; random ones if none.
        template: the sentence around a name, with ``{}`` for it; several are separated by ``|``. ``imagenet`` stands
            for the 80 of CLIP's authors.
        frozen: train the head only.
        learn_scale: train the scale of the logits too.
        load: whether ``weights`` are loaded here; if not, the model is the same but for its weights.
    """
    open_clip = package("open_clip", f"open_clip:{name}")
    channels = image_channels(f"open_clip:{name}", input_shape)
    if channels != 3 or input_shape[1] != input_shape[2]:
        raise ValueError(f"open_clip:{name} takes square images of 3 channels; got input shape {input_shape}.")
    if class_names is None:
        raise ValueError(f"open_clip:{name} makes its head from class names; class_names is missing.")
    templates = _templates(open_clip, template)
    clip = _create(open_clip, name, weights, input_shape, load).eval()  # some text encoders have dropout
    text_KD = zero_shot_weights(clip.encode_text, open_clip.get_tokenizer(name), class_names, templates)
    scale = clip.logit_scale.detach().exp().item()
    head = CosineClassifier(text_KD.shape[1], num_classes, scale, learn_scale=learn_scale)
    with torch.no_grad():
        head.weight.copy_(scale * text_KD)
    model = ClipClassifier(clip.visual, head).train()
    if weights is not None or ":" in name:
        expect_images(model, clip.visual.image_mean, clip.visual.image_std)
    return Frozen(model) if frozen else model


@torch.no_grad()
def zero_shot_weights(
    encode: Callable[[Tensor], Tensor],
    tokenize: Callable[[list[str]], Tensor],
    class_names: Sequence[str],
    templates: Sequence[Callable[[str], str]],
) -> Tensor:
    """The direction of each class, (K, D): the mean of its sentences' directions, normalised again.

    Args:
        encode: from tokens to text features, (N, D).
        tokenize: from sentences to tokens.
        class_names: one a class; underscores are read as spaces.
        templates: each makes a sentence from a name.
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
            raise ValueError(f"there is no file {weights!r}, and no weights of that name for {name}; {near}")
    elif weights is not None:
        raise ValueError(f"open_clip:{name} brings its own weights; leave weights={weights} out.")
    try:
        # pretrained_hf=False: without weights of the whole model nothing is downloaded, not even a text encoder.
        make = partial(open_clip.create_model, name, force_image_size=input_shape[1], pretrained_hf=False)
        if load or weights is None:
            return make(pretrained=weights)
        return make(force_preprocess_cfg=open_clip.get_pretrained_cfg(name, weights))  # what a tag's images were like
    except (RuntimeError, OSError) as error:
        raise ValueError(f"open_clip:{name} cannot be made for input shape {input_shape}: {error}") from error


def _templates(open_clip: Any, text: str) -> Sequence[Callable[[str], str]]:
    if text == "imagenet":
        return open_clip.OPENAI_IMAGENET_TEMPLATES
    sentences = text.split("|")
    for sentence in sentences:
        if sentence.count("{}") != 1:
            raise ValueError(f"template must hold one {{}} for the class name, or be imagenet; got {sentence!r}.")
    return [sentence.format for sentence in sentences]
