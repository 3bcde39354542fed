#!/usr/bin/env python3
"""Compares scores of models in other programs' formats with a computation in NumPy.

  compare.py PROGRAM [--seed S] [--gguf-package]

PROGRAM is build/dev/bin/model_scores. Writes small random models: Llamas and a GPT-2 as Hugging Face
directories, Llamas as GGUF files of each type of weights. Prints a line per model with the greatest
difference relative to the greatest score; the exit status is 1 if one is above 1e-4, and 77 without
NumPy. --gguf-package also compares the quantised weights with PyPI's gguf 0.19.0.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
try:
    import numpy as np
except ImportError:
    print("SKIPPED: NumPy is not there, so no scores are compared (Debian: python3-numpy)")
    sys.exit(77)
import model_files as files  # noqa: E402

DIFFERENCE_MAX = 1e-4
LLAMA = {"layers": 2, "width": 256, "heads": 8, "kv_heads": 2, "inner": 512, "context": 96,
         "epsilon": 1e-5, "theta": 10000.0, "tied": True}
SCALING = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
           "original_max_position_embeddings": 32}
GPT2 = {"layers": 2, "width": 64, "heads": 4, "inner": 256, "context": 96, "epsilon": 1e-5}


def llama_config(c):
    return {"architectures": ["LlamaForCausalLM"], "model_type": "llama",
            "hidden_size": c["width"], "intermediate_size": c["inner"],
            "num_hidden_layers": c["layers"], "num_attention_heads": c["heads"],
            "num_key_value_heads": c["kv_heads"], "head_dim": c["width"] // c["heads"],
            "vocab_size": files.VOCAB, "max_position_embeddings": c["context"],
            "rms_norm_eps": c["epsilon"], "rope_theta": c["theta"],
            "rope_scaling": c.get("scaling"), "tie_word_embeddings": c["tied"],
            "hidden_act": "silu"}


def gpt2_config(c):
    return {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": c["width"],
            "n_layer": c["layers"], "n_head": c["heads"], "n_positions": c["context"],
            "vocab_size": files.VOCAB, "layer_norm_epsilon": c["epsilon"],
            "activation_function": "gelu_new"}


class Comparison:
    def __init__(self, options, folder):
        self.program = options.program
        self.package = options.gguf_package
        self.folder = folder
        self.draw = np.random.default_rng(options.seed)
        self.failed = False

    def compare(self, name, path, expected, tokens):
        asked = [self.program, str(path), *map(str, tokens)]
        done = subprocess.run(asked, stdout=subprocess.PIPE, check=False)
        got = np.frombuffer(done.stdout, "<f4")
        if done.returncode != 0 or got.size != expected.size:
            print(f"{name}: FAILED, exit status {done.returncode}, {got.size} scores")
            self.failed = True
            return
        got = got.reshape(expected.shape)
        difference = np.abs(got - expected).max() / np.abs(expected).max()
        agree = (got.argmax(-1) == expected.argmax(-1)).mean()
        self.failed |= not difference <= DIFFERENCE_MAX
        print(f"{name}: greatest difference {difference:.1e} of the greatest score, "
              f"highest scores agree {agree:.1%}")

    def tokens(self, context):
        return self.draw.integers(0, files.VOCAB, context)

    def hugging_face(self, name, c, kind, shards=1):
        gpt = "theta" not in c
        shapes = files.gpt2_shapes(c) if gpt else files.llama_shapes(c)
        drawn = files.draw_weights(self.draw, shapes, kind)
        config = gpt2_config(c) if gpt else llama_config(c)
        files.write_hugging_face(self.folder / name, config, drawn, shards)
        weights = {tensor: each[2] for tensor, each in drawn.items()}
        tokens = self.tokens(c["context"])
        scores = files.gpt2_scores if gpt else files.llama_scores
        self.compare(name, self.folder / name, scores(c, weights, tokens), tokens)

    def gguf(self, name, c, kind):
        drawn = files.draw_weights(self.draw, files.llama_shapes(c), kind)
        path = self.folder / f"{name}.gguf"
        files.write_gguf(path, c, drawn)
        if self.package and kind in files.QUANTISED:
            self.compare_values(name, kind, drawn)
        weights = {}
        for tensor, (_, _, values, _) in drawn.items():
            heads = {"q_proj": c["heads"], "k_proj": c["kv_heads"]}.get(tensor.split(".")[-2])
            weights[tensor] = files.unturned(values, heads) if heads else values
        tokens = self.tokens(c["context"])
        self.compare(name, path, files.llama_scores(c, weights, tokens), tokens)

    def compare_values(self, name, kind, drawn):
        import gguf
        number = gguf.GGMLQuantizationType[kind]
        for tensor, (each, _, values, content) in drawn.items():
            if each != kind:
                continue
            read = gguf.quants.dequantize(np.frombuffer(content, "u1"), number)
            if not np.allclose(read, values.ravel(), rtol=1e-6, atol=1e-9):
                print(f"{name}: FAILED, {tensor} is another in PyPI's gguf")
                self.failed = True
        print(f"{name}: the weights are those of PyPI's gguf")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--gguf-package", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(options, pathlib.Path(folder))
        for kind in files.FLOATS:
            comparison.hugging_face(f"llama-tied-{kind}", LLAMA, kind)
        comparison.hugging_face("llama-shards", LLAMA | {"tied": False, "epsilon": 1e-6}, "F32", 3)
        comparison.hugging_face("llama-3-rope", LLAMA | {"scaling": SCALING, "theta": 5e5}, "BF16")
        comparison.hugging_face("gpt2", GPT2, "F32")
        for kind in [*files.FLOATS, *files.QUANTISED]:
            comparison.gguf(f"gguf-{kind}", LLAMA | {"tied": kind != "Q8_0"}, kind)
    return int(comparison.failed)


if __name__ == "__main__":
    sys.exit(main())
