#!/usr/bin/env python3
"""The products of a decoding step in PyTorch, one thread, for bench_decode.

  peer_decode.py LAYERS WIDTH VOCABULARY ROWS...

Prints the version, and for each number of rows the best milliseconds of the products of a GPT.
"""
import sys
import time

import torch

ROUNDS = 5


def best_ms(weights, rows):
    inputs = {weight.shape[1]: torch.rand(rows, weight.shape[1]) for weight in weights}
    best = float("inf")
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        for weight in weights:
            torch.nn.functional.linear(inputs[weight.shape[1]], weight)
        best = min(best, time.perf_counter() - begin)
    return 1e3 * best


def main():
    layers, width, vocabulary, *counts = map(int, sys.argv[1:])
    torch.set_num_threads(1)
    shapes = [(3 * width, width), (width, width), (4 * width, width), (width, 4 * width)] * layers
    weights = [torch.rand(shape) for shape in shapes + [(vocabulary, width)]]
    with torch.inference_mode():
        print(torch.__version__, *(best_ms(weights, rows) for rows in counts))


if __name__ == "__main__":
    main()
