"""A small, randomly initialized BERT with a tokenizer of a few words, saved as ``transformers`` saves models."""

from pathlib import Path

import torch

WORDS = {"cat": ["purr", "meow", "whiskers"], "dog": ["bark", "woof", "leash"], "fox": ["den", "red", "sly"]}
COMMON = ["the", "a", "is", "and", "very"]


def save_encoder(folder: Path, *, seed: int = 0) -> Path:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    words = ["[PAD]", "[UNK]", *COMMON, *(word for group in WORDS.values() for word in group)]
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]").save_pretrained(folder)
    torch.manual_seed(seed)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    BertModel(BertConfig(vocab_size=len(words), max_position_embeddings=12, **sizes)).save_pretrained(folder)
    return folder


def make_texts(per_class: int, *, seed: int = 0) -> tuple[list[str], list[str]]:
    """Return texts of different lengths and their classes; two of their words depend on the class."""
    generator = torch.Generator().manual_seed(seed)

    def draw(words: list[str], count: int) -> list[str]:
        return [words[int(number)] for number in torch.randint(len(words), (count,), generator=generator)]

    texts, labels = [], []
    for number in range(per_class):
        for name, words in WORDS.items():
            texts.append(" ".join(draw(COMMON, 1 + number % 4) + draw(words, 2)))
            labels.append(name)
    return texts, labels
