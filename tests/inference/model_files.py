"""Small random models, their files as other programs write them, and their scores by NumPy.

All numbers that are stored are drawn as such: blocks of quantised weights are packed from random
parts, and the weights follow from the parts, not from the bytes.
"""
import json
import struct

import numpy as np


def byte_names():
    """GPT-2's characters of the bytes, then two tokens of their own."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = iter(range(256, 512))
    return [chr(b if b in shown else next(rest)) for b in range(256)] + ["<|begin|>", "<|end|>"]


VOCAB = len(byte_names())


def tokenizer_json():
    names = byte_names()
    special = [{"id": i, "content": names[i], "single_word": False, "lstrip": False,
                "rstrip": False, "normalized": False, "special": True} for i in (256, 257)]
    level = {"type": "ByteLevel", "add_prefix_space": False}
    return {"version": "1.0", "added_tokens": special, "pre_tokenizer": level, "decoder": level,
            "model": {"type": "BPE", "vocab": {n: i for i, n in enumerate(names)}, "merges": []}}


def as_bfloat16(x):
    """Rounds by cutting: the result is exact in bfloat16."""
    return (x.astype("<f4").view("<u4") & 0xFFFF0000).view("<f4")


def halves(draw, count):
    return (draw.random((count, 1)) * 0.004 + 0.001).astype("<f2")


def pack_q8_0(draw, count):
    scale, q = halves(draw, count), draw.integers(-128, 128, (count, 32), "i1")
    return np.hstack([scale.view("u1"), q.view("u1")]), scale.astype("f4") * q


def pack_fours(q):
    return (q[:, :16] | q[:, 16:] << 4).astype("u1")


def pack_q4_0(draw, count):
    scale, q = halves(draw, count) * 8, draw.integers(0, 16, (count, 32))
    return np.hstack([scale.view("u1"), pack_fours(q)]), scale.astype("f4") * (q - 8)


def pack_q4_1(draw, count):
    scale, q = halves(draw, count) * 8, draw.integers(0, 16, (count, 32))
    least = (-8 * scale).astype("<f2")
    values = scale.astype("f4") * q + least.astype("f4")
    return np.hstack([scale.view("u1"), least.view("u1"), pack_fours(q)]), values


def pack_q5_0(draw, count):
    scale, q = halves(draw, count) * 4, draw.integers(0, 32, (count, 32))
    packed = [scale.view("u1"), np.packbits(q >> 4, axis=1, bitorder="little"), pack_fours(q & 15)]
    return np.hstack(packed), scale.astype("f4") * (q - 16)


def pack_q5_1(draw, count):
    scale, q = halves(draw, count) * 4, draw.integers(0, 32, (count, 32))
    least = (-16 * scale).astype("<f2")
    packed = [scale.view("u1"), least.view("u1"), np.packbits(q >> 4, axis=1, bitorder="little"),
              pack_fours(q & 15)]
    return np.hstack(packed), scale.astype("f4") * q + least.astype("f4")


def pack_parts(draw, count, limit):
    """A large block of 8 parts whose numbers are below the limit, 16 or 32."""
    scale, least = halves(draw, count) / 8, halves(draw, count) / 8
    q = draw.integers(0, limit, (count, 8, 32))
    s, m = draw.integers(0, 64, (count, 8)), draw.integers(0, 64, (count, 8))
    parts = np.hstack([s[:, :4] | s[:, 4:] >> 4 << 6, m[:, :4] | m[:, 4:] >> 4 << 6,
                       s[:, 4:] & 15 | (m[:, 4:] & 15) << 4]).astype("u1")
    bits = (q[:, 0::2] & 15 | (q[:, 1::2] & 15) << 4).astype("u1").reshape(count, 128)
    tops = sum(q[:, part] >> 4 << part for part in range(8)).astype("u1")
    values = (scale.astype("f4") * s)[:, :, None] * q - (least.astype("f4") * m)[:, :, None]
    packed = [scale.view("u1"), least.view("u1"), parts, *([tops] if limit == 32 else []), bits]
    return np.hstack(packed), values.reshape(count, 256)


def pack_q4_k(draw, count):
    return pack_parts(draw, count, 16)


def pack_q5_k(draw, count):
    return pack_parts(draw, count, 32)


def pack_q6_k(draw, count):
    scale = halves(draw, count) / 64
    q = draw.integers(0, 64, (count, 2, 4, 32))
    s = draw.integers(-128, 128, (count, 16), "i1")
    low = np.concatenate([q[:, :, :2] & 15 | (q[:, :, 2:] & 15) << 4], axis=2)
    high = sum(q[:, :, column] >> 4 << 2 * column for column in range(4))
    packed = [low.astype("u1").reshape(count, 128), high.astype("u1").reshape(count, 64),
              s.view("u1"), scale.view("u1")]
    values = (scale.astype("f4") * s)[:, :, None] * (q.reshape(count, 16, 16) - 32)
    return np.hstack(packed), values.reshape(count, 256)


# name: number in ggml, weights of a block, packer
QUANTISED = {"Q8_0": (8, 32, pack_q8_0), "Q4_0": (2, 32, pack_q4_0), "Q4_1": (3, 32, pack_q4_1),
             "Q5_0": (6, 32, pack_q5_0), "Q5_1": (7, 32, pack_q5_1),
             "Q4_K": (12, 256, pack_q4_k), "Q5_K": (13, 256, pack_q5_k), "Q6_K": (14, 256, pack_q6_k)}
FLOATS = {"F32": 0, "F16": 1, "BF16": 30}


def stored(draw, kind, shape, mean):
    """Random weights and their bytes."""
    if kind in QUANTISED:
        _, block, pack = QUANTISED[kind]
        packed, values = pack(draw, int(np.prod(shape)) // block)
        return values.reshape(shape).astype("f8"), packed.tobytes()
    values = as_bfloat16(draw.normal(mean, 0.15, shape).astype("f4"))
    if kind == "F16":
        values = values.astype("<f2")
        return values.astype("f8"), values.tobytes()
    if kind == "BF16":
        return values.astype("f8"), (values.view("<u4") >> 16).astype("<u2").tobytes()
    return values.astype("f8"), values.tobytes()


def llama_shapes(c):
    width, kv, inner = c["width"], c["kv_heads"] * c["width"] // c["heads"], c["inner"]
    shapes = {"model.embed_tokens.weight": (VOCAB, width), "model.norm.weight": (width,)}
    for i in range(c["layers"]):
        at = f"model.layers.{i}."
        shapes |= {at + "input_layernorm.weight": (width,),
                   at + "self_attn.q_proj.weight": (width, width),
                   at + "self_attn.k_proj.weight": (kv, width),
                   at + "self_attn.v_proj.weight": (kv, width),
                   at + "self_attn.o_proj.weight": (width, width),
                   at + "post_attention_layernorm.weight": (width,),
                   at + "mlp.gate_proj.weight": (inner, width),
                   at + "mlp.up_proj.weight": (inner, width),
                   at + "mlp.down_proj.weight": (width, inner)}
    if not c["tied"]:
        shapes["lm_head.weight"] = (VOCAB, width)
    return shapes


def gpt2_shapes(c):
    width, inner = c["width"], c["inner"]
    shapes = {"wte.weight": (VOCAB, width), "wpe.weight": (c["context"], width),
              "ln_f.weight": (width,), "ln_f.bias": (width,)}
    for i in range(c["layers"]):
        for name, rows, columns in (("attn.c_attn", width, 3 * width), ("attn.c_proj", width, width),
                                    ("mlp.c_fc", width, inner), ("mlp.c_proj", inner, width)):
            shapes |= {f"h.{i}.{name}.weight": (rows, columns), f"h.{i}.{name}.bias": (columns,)}
        for name in ("ln_1", "ln_2"):
            shapes |= {f"h.{i}.{name}.weight": (width,), f"h.{i}.{name}.bias": (width,)}
    return shapes


def draw_weights(draw, shapes, kind):
    """Weights and bytes by name. Quantised files keep their vectors as floats."""
    drawn = {}
    for name, shape in shapes.items():
        each = kind if len(shape) > 1 or kind in FLOATS else "F32"
        is_norm = name.endswith("weight") and len(shape) == 1
        drawn[name] = (each, shape, *stored(draw, each, shape, 1 if is_norm else 0))
    return drawn


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(q, k, v, heads):
    """q: time x heads x size; k, v: time x fewer heads x size."""
    k, v = (np.repeat(x, heads // x.shape[1], axis=1) for x in (k, v))
    scores = np.einsum("thd,shd->hts", q, k) / np.sqrt(q.shape[-1])
    scores[:, np.triu(np.ones(scores.shape[1:], bool), 1)] = -np.inf
    return np.einsum("hts,shd->thd", softmax(scores), v).reshape(len(q), -1)


def frequencies(c):
    half = c["width"] // c["heads"] // 2
    turn = c["theta"] ** -(np.arange(half) / half)
    scaling = c.get("scaling")
    if not scaling:
        return turn
    # transformers, modeling_rope_utils.py, _compute_llama3_parameters.
    length = 2 * np.pi / turn
    original = scaling["original_max_position_embeddings"]
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    slow = np.where(length > original / low, turn / scaling["factor"], turn)
    smooth = (original / length - low) / (high - low)
    middle = (1 - smooth) * slow / scaling["factor"] + smooth * slow
    is_middle = ~(length < original / high) & ~(length > original / low)
    return np.where(is_middle, middle, slow)


def rotated(x, c):
    angle = np.outer(np.arange(len(x)), frequencies(c))
    cos, sin = (np.concatenate([f(angle), f(angle)], -1)[:, None] for f in (np.cos, np.sin))
    half = x.shape[-1] // 2
    return x * cos + np.concatenate([-x[..., half:], x[..., :half]], -1) * sin


def llama_scores(c, weights, tokens):
    def norm(x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + c["epsilon"]) * weights[name]

    x = weights["model.embed_tokens.weight"][tokens]
    for i in range(c["layers"]):
        w = {name: weights[f"model.layers.{i}.{name}.weight"] for name in (
            "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
            "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")}
        y = norm(x, f"model.layers.{i}.input_layernorm.weight")
        size = c["width"] // c["heads"]
        q, k, v = ((y @ w[f"self_attn.{n}_proj"].T).reshape(len(x), -1, size) for n in "qkv")
        x = x + attention(rotated(q, c), rotated(k, c), v, c["heads"]) @ w["self_attn.o_proj"].T
        y = norm(x, f"model.layers.{i}.post_attention_layernorm.weight")
        gate = y @ w["mlp.gate_proj"].T
        x = x + (gate / (1 + np.exp(-gate)) * (y @ w["mlp.up_proj"].T)) @ w["mlp.down_proj"].T
    head = weights["model.embed_tokens.weight" if c["tied"] else "lm_head.weight"]
    return norm(x, "model.norm.weight") @ head.T


def gpt2_scores(c, weights, tokens):
    def norm(x, name):
        centred = x - x.mean(-1, keepdims=True)
        deviation = np.sqrt((centred * centred).mean(-1, keepdims=True) + c["epsilon"])
        return centred / deviation * weights[name + ".weight"] + weights[name + ".bias"]

    def linear(x, name):
        return x @ weights[name + ".weight"] + weights[name + ".bias"]

    x = weights["wte.weight"][tokens] + weights["wpe.weight"][:len(tokens)]
    for i in range(c["layers"]):
        size = c["width"] // c["heads"]
        qkv = linear(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn")
        q, k, v = (part.reshape(len(x), -1, size) for part in np.split(qkv, 3, -1))
        x = x + linear(attention(q, k, v, c["heads"]), f"h.{i}.attn.c_proj")
        y = linear(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc")
        y = 0.5 * y * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y ** 3)))
        x = x + linear(y, f"h.{i}.mlp.c_proj")
    return norm(x, "ln_f") @ weights["wte.weight"].T


def write_safetensors(path, drawn):
    header, data = {}, b""
    for name, (kind, shape, _, content) in drawn.items():
        end = len(data) + len(content)
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [len(data), end]}
        data += content
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_hugging_face(folder, config, drawn, shards=1):
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer_json()))
    if shards == 1:
        return write_safetensors(folder / "model.safetensors", drawn)
    places = {}
    for shard in range(shards):
        name = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        part = dict(list(drawn.items())[shard::shards])
        write_safetensors(folder / name, part)
        places |= {tensor: name for tensor in part}
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": places}))


GGUF_NAMES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
              "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q",
              "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
              "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm",
              "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}


def gguf_name(name):
    parts = name.removesuffix(".weight")
    if not parts.startswith("model.layers."):
        return GGUF_NAMES[parts] + ".weight"
    _, _, layer, rest = parts.split(".", 3)
    return f"blk.{layer}.{GGUF_NAMES[rest]}.weight"


def unturned(values, heads):
    """The rows of llama.cpp's order in that of Hugging Face: its converter's permute(), undone."""
    rows = values.reshape(heads, len(values) // heads // 2, 2, -1)
    return rows.swapaxes(1, 2).reshape(values.shape)


def write_gguf(path, c, drawn):
    def text(value):
        data = value.encode()
        return struct.pack("<Q", len(data)) + data

    def entry(key, kind, value):
        return text(key) + struct.pack("<I", kind) + value

    def array(kind, values):
        return struct.pack("<IQ", kind, len(values)) + b"".join(values)

    whole = {"block_count": c["layers"], "context_length": c["context"],
             "embedding_length": c["width"], "feed_forward_length": c["inner"],
             "attention.head_count": c["heads"], "attention.head_count_kv": c["kv_heads"]}
    real = {"attention.layer_norm_rms_epsilon": c["epsilon"], "rope.freq_base": c["theta"]}
    kinds = [struct.pack("<i", 3 if i >= 256 else 1) for i in range(VOCAB)]
    entries = [entry("general.architecture", 8, text("llama")),
               *(entry("llama." + k, 4, struct.pack("<I", v)) for k, v in whole.items()),
               *(entry("llama." + k, 6, struct.pack("<f", v)) for k, v in real.items()),
               entry("tokenizer.ggml.model", 8, text("gpt2")),
               entry("tokenizer.ggml.pre", 8, text("gpt-2")),
               entry("tokenizer.ggml.tokens", 9, array(8, [text(n) for n in byte_names()])),
               entry("tokenizer.ggml.token_type", 9, array(5, kinds)),
               entry("tokenizer.ggml.merges", 9, array(8, []))]
    infos, data = b"", b""
    for name, (kind, shape, _, content) in drawn.items():
        number = QUANTISED[kind][0] if kind in QUANTISED else FLOATS[kind]
        infos += text(gguf_name(name)) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape[::-1])
        infos += struct.pack("<IQ", number, len(data))
        data += content + bytes(-len(content) % 32)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(drawn), len(entries)) + b"".join(entries) + infos
    path.write_bytes(head + bytes(-len(head) % 32) + data)
