#!/usr/bin/env python3
"""Writes a tiny Llama with random weights, as engines read it: DIRECTORY/hub in the form of a model
hub (config.json, model.safetensors, tokenizer.json), and DIRECTORY/tiny.gguf where the package gguf
is found.

  write_model.py DIRECTORY [PATH_OF_GGUF]

Both hold the same numbers. Needs numpy, safetensors and tokenizers.
"""
import json
import pathlib
import sys

import numpy
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

LAYERS, WIDTH, HEADS, HIDDEN, CONTEXT = 2, 64, 2, 128, 2048
BEGIN, END = "<s>", "</s>"


def vocabulary():
    """Bytes as BPE of GPT-2 writes them, one merge, and the ends of a text."""
    tokens = sorted(pre_tokenizers.ByteLevel.alphabet()) + ["\u0120a", BEGIN, END]
    return {token: number for number, token in enumerate(tokens)}


def weights(vocab):
    random = numpy.random.default_rng(1)

    def draw(*shape):
        return (random.standard_normal(shape) / shape[-1] ** 0.5).astype(numpy.float32)

    tensors = {"model.embed_tokens.weight": draw(vocab, WIDTH), "lm_head.weight": draw(vocab, WIDTH),
               "model.norm.weight": numpy.ones(WIDTH, numpy.float32)}
    for layer in range(LAYERS):
        at = f"model.layers.{layer}."
        for name in ("q", "k", "v", "o"):
            tensors[f"{at}self_attn.{name}_proj.weight"] = draw(WIDTH, WIDTH)
        tensors[f"{at}mlp.gate_proj.weight"] = draw(HIDDEN, WIDTH)
        tensors[f"{at}mlp.up_proj.weight"] = draw(HIDDEN, WIDTH)
        tensors[f"{at}mlp.down_proj.weight"] = draw(WIDTH, HIDDEN)
        for name in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"{at}{name}.weight"] = numpy.ones(WIDTH, numpy.float32)
    return tensors


def write_hub(directory, vocab, tensors):
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
        "hidden_size": WIDTH, "intermediate_size": HIDDEN, "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS, "num_key_value_heads": HEADS, "head_dim": WIDTH // HEADS,
        "max_position_embeddings": CONTEXT, "vocab_size": len(vocab), "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0, "tie_word_embeddings": False, "dtype": "float32",
        "bos_token_id": vocab[BEGIN], "eos_token_id": vocab[END]}, indent=1))
    save_file(tensors, directory / "model.safetensors", {"format": "pt"})
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[("\u0120", "a")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([BEGIN, END])
    tokenizer.save(str(directory / "tokenizer.json"))
    (directory / "tokenizer_config.json").write_text(json.dumps({
        "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": BEGIN, "eos_token": END,
        "model_max_length": CONTEXT,
        "chat_template": "{% for m in messages %}{{ m['content'] }}\n{% endfor %}"}))


def gguf_rows(rows):
    """Rows of queries and keys in the order of GGUF: it rotates pairs that lie side by side."""
    return rows.reshape(HEADS, 2, WIDTH // HEADS // 2, WIDTH).swapaxes(1, 2).reshape(rows.shape)


def write_gguf(path, vocab, tensors):
    import gguf
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(vocab))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(list(vocab))
    writer.add_token_types([3 if token in (BEGIN, END) else 1 for token in vocab])
    writer.add_token_merges(["\u0120 a"])
    writer.add_bos_token_id(vocab[BEGIN])
    writer.add_eos_token_id(vocab[END])
    names = {"model.embed_tokens": "token_embd", "lm_head": "output", "model.norm": "output_norm"}
    for layer in range(LAYERS):
        for theirs, ours in (("self_attn.q_proj", "attn_q"), ("self_attn.k_proj", "attn_k"),
                             ("self_attn.v_proj", "attn_v"), ("self_attn.o_proj", "attn_output"),
                             ("mlp.gate_proj", "ffn_gate"), ("mlp.up_proj", "ffn_up"),
                             ("mlp.down_proj", "ffn_down"), ("input_layernorm", "attn_norm"),
                             ("post_attention_layernorm", "ffn_norm")):
            names[f"model.layers.{layer}.{theirs}"] = f"blk.{layer}.{ours}"
    for name, tensor in tensors.items():
        stem = name.removesuffix(".weight")
        rotated = stem.endswith(("q_proj", "k_proj"))
        writer.add_tensor(names[stem] + ".weight", gguf_rows(tensor) if rotated else tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    directory = pathlib.Path(sys.argv[1])
    vocab = vocabulary()
    tensors = weights(len(vocab))
    write_hub(directory / "hub", vocab, tensors)
    if len(sys.argv) > 2:
        sys.path.insert(0, sys.argv[2])
        write_gguf(directory / "tiny.gguf", vocab, tensors)


main()
