"""Tokenizers in the configurations of well-known model families, trained on local text with the
reference library (PyPI: tokenizers), since no model's own file is at hand."""
import json
import pathlib

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers import processors, trainers

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + REST
QWEN2 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + REST
MARKS = (CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
         r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
         r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
         r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = [r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
            r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
            r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"]
# Most tokens of a model; make_fixtures.py sets fewer.
SIZE_MAX, ALPHABET_MAX = 6000, 200
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|begin_of_text|>"]


def text_files():
    """Files that are on most machines: Python sources, headers, and words of many scripts."""
    roots = [pathlib.Path(json.__file__).parent.parent, pathlib.Path("/usr/include")]
    found = []
    for root in roots:
        for path in sorted(root.rglob("*.py" if "python" in str(root) else "*.h")):
            if path.stat().st_size < 100_000:
                found.append(path)
            if len(found) > 400:
                break
    return found


def corpus(files=400):
    for path in text_files()[:files]:
        yield path.read_text(errors="ignore")
    yield from ["Grüße aus Köln, naïve café, Ærøskøbing, Straße, façade, Überraschung! " * 50,
                "Привет, мир! Как дела? Всё хорошо, спасибо. " * 50,
                "今日は世界。日本語のテキストです。カタカナとひらがな。 中文文本，你好世界。" * 50,
                "안녕하세요 세계 한국어 텍스트 " * 50, "مرحبا بالعالم هذا نص عربي " * 50,
                "नमस्ते दुनिया यह हिन्दी है " * 50, "😀 🎉 👩‍👩‍👧 🇩🇪 ✅ → ≤ ½ ² ① " * 50]


def train(tokenizer, size, special, **more):
    trainer = trainers.BpeTrainer(vocab_size=min(size, SIZE_MAX), special_tokens=special, show_progress=False,
                                  **more)
    tokenizer.train_from_iterator(corpus(), trainer)
    return tokenizer


def byte_level(pre, size=6000, special=(), ignore=False, normalizer=None):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore))
    tokenizer.pre_tokenizer = pre
    tokenizer.decoder = decoders.ByteLevel()
    if normalizer:
        tokenizer.normalizer = normalizer
    return train(tokenizer, size, list(special or SPECIAL),
                 initial_alphabet=pre_tokenizers.ByteLevel.alphabet())


def split(pattern, behavior="isolated", **more):
    return pre_tokenizers.Split(Regex(pattern), behavior, **more)


def last():
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)


def gpt2():
    return byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False))


def gpt2_spaced():
    tokenizer = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=True))
    tokenizer.add_tokens([AddedToken("<mask>", lstrip=True, normalized=False, special=True),
                          AddedToken("<tail>", rstrip=True), AddedToken("word", single_word=True),
                          AddedToken("  ", normalized=False), AddedToken("\n\n\n")])
    return tokenizer


def llama3():
    tokenizer = byte_level(pre_tokenizers.Sequence([split(LLAMA3), last()]), ignore=True)
    bos = tokenizer.token_to_id("<|begin_of_text|>")
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single="<|begin_of_text|> $A",
                                      pair="<|begin_of_text|> $A <|begin_of_text|>:1 $B:1",
                                      special_tokens=[("<|begin_of_text|>", bos)])])
    return tokenizer


def qwen2():
    tokenizer = byte_level(pre_tokenizers.Sequence([split(QWEN2), last()]),
                           normalizer=normalizers.NFC())
    tokenizer.add_tokens([AddedToken("<think>", normalized=False), AddedToken("</think>"),
                          AddedToken("é́x")])
    return tokenizer


def marks():
    return byte_level(pre_tokenizers.Sequence([split(MARKS), last()]),
                      normalizer=normalizers.NFC())


def o200k():
    return byte_level(pre_tokenizers.Sequence([split(O200K, "removed", invert=True), last()]))


def deepseek():
    return byte_level(pre_tokenizers.Sequence([split(p) for p in DEEPSEEK] + [last()]))


def smollm():
    return byte_level(pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False)]))


def pieces(pre, normalizer, decoder, **more):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizers.Metaspace()
    names = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    train(tokenizer, 6000, names, limit_alphabet=ALPHABET_MAX, **more)
    text = json.loads(tokenizer.to_str())
    text["added_tokens"] = [t for t in text["added_tokens"] if not t["content"].startswith("<0x")]
    tokenizer = Tokenizer.from_str(json.dumps(text))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre, decoder
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)])
    return tokenizer


def without(tokenizer, key):
    text = json.loads(tokenizer.to_str())
    text[key] = None
    return Tokenizer.from_str(json.dumps(text))


def llama2():
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
             decoders.Strip(" ", 1, 0)]
    tokenizer = pieces(pre_tokenizers.Metaspace(), normalizers.Sequence([]),
                       decoders.Sequence(steps))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"),
                                                 normalizers.Replace(" ", "▁")])
    return without(tokenizer, "pre_tokenizer")


def mistral():
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
             decoders.Strip(" ", 1, 0)]
    pre = pre_tokenizers.Metaspace("▁", prepend_scheme="first", split=False)
    tokenizer = without(pieces(pre, normalizers.Sequence([]), decoders.Sequence(steps)),
                        "normalizer")
    tokenizer.add_special_tokens(["[INST]", "[/INST]"])
    return tokenizer


def metaspace():
    tokenizer = pieces(pre_tokenizers.Metaspace(), normalizers.NFKC(), decoders.Metaspace())
    tokenizer.add_tokens([AddedToken("Tok en"), AddedToken("x ", rstrip=True)])
    return tokenizer


def gemma():
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    pre = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer = pieces(pre, normalizers.Sequence([]), decoders.Sequence(steps))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.add_tokens([AddedToken("\n" * n, normalized=False) for n in range(2, 9)])
    tokenizer.add_tokens([AddedToken("▁" * n, normalized=False) for n in range(2, 9)])
    tokenizer.add_tokens([AddedToken("<start_of_turn>", normalized=False)])
    return tokenizer


def unknown():
    """Unknown characters without byte tokens, not fused; lower case; several behaviours."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.Lowercase(),
                                                 normalizers.Replace(Regex("[0-9]+"), "#")])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        split(r"\s+", "removed"), split("[,.]", "merged_with_previous"),
        split(r"[(\[]", "merged_with_next"), split("[-_=]", "contiguous")])
    return train(tokenizer, 3000, ["<unk>"], limit_alphabet=min(80, ALPHABET_MAX))


FAMILIES = [gpt2, gpt2_spaced, llama3, qwen2, marks, o200k, deepseek, smollm, llama2, mistral,
            metaspace, gemma, unknown]
