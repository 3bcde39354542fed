#!/usr/bin/env python3
"""Writes models of the shape of SmolLM2-135M with random weights, for bench_weights.

  write_gguf.py DIRECTORY FORMAT...

Writes DIRECTORY/FORMAT.gguf for each format of F32, BF16, Q8_0, Q4_1. The shape is that of
huggingface.co/HuggingFaceTB/SmolLM2-135M, config.json. Needs gguf (PyPI).
"""
import pathlib
import sys

import gguf
import numpy

LAYERS, WIDTH, HEADS, KV_HEADS, HIDDEN, VOCABULARY, CONTEXT = 30, 576, 9, 3, 1536, 49152, 8192
HEAD = WIDTH // HEADS
SHAPES = {"attn_q": (WIDTH, WIDTH), "attn_k": (KV_HEADS * HEAD, WIDTH),
          "attn_v": (KV_HEADS * HEAD, WIDTH), "attn_output": (WIDTH, WIDTH),
          "ffn_gate": (HIDDEN, WIDTH), "ffn_up": (HIDDEN, WIDTH), "ffn_down": (WIDTH, HIDDEN)}


def write(path, kind):
    random = numpy.random.default_rng(1)
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_dimension_count(HEAD)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(VOCABULARY)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([f"<{number}>" for number in range(VOCABULARY)])
    writer.add_token_types([1] * VOCABULARY)
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)

    def add_matrix(name, shape):
        matrix = (random.standard_normal(shape) / shape[1] ** 0.5).astype(numpy.float32)
        writer.add_tensor(name + ".weight", gguf.quants.quantize(matrix, kind), raw_dtype=kind)

    add_matrix("token_embd", (VOCABULARY, WIDTH))
    writer.add_tensor("output_norm.weight", numpy.ones(WIDTH, numpy.float32))
    for layer in range(LAYERS):
        for name, shape in SHAPES.items():
            add_matrix(f"blk.{layer}.{name}", shape)
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", numpy.ones(WIDTH, numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for word in sys.argv[2:]:
        path = directory / f"{word}.gguf"
        if not path.exists():
            write(path.with_suffix(".part"), gguf.GGMLQuantizationType[word])
            path.with_suffix(".part").rename(path)


main()
