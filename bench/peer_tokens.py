#!/usr/bin/env python3
"""The reference library (PyPI: tokenizers) beside bench_tokens.

  peer_tokens.py train FOLDER            trains the families of tests/tokens there, where missing
  peer_tokens.py encode FILE TEXT IDS    encodes TEXT in one thread and writes its tokens to IDS;
                                         prints the version, and the best seconds of a new
                                         tokenizer and of one that has encoded TEXT before
"""
import array
import os
import pathlib
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests" / "tokens"))
import families  # noqa: E402
import tokenizers  # noqa: E402

VOCABULARY = 32_000
ROUNDS = 5


def train(folder):
    families.SIZE_MAX = VOCABULARY
    small = families.train
    families.train = lambda tokenizer, size, special, **more: small(
        tokenizer, VOCABULARY, special, **more)
    folder.mkdir(parents=True, exist_ok=True)
    for make in families.FAMILIES:
        path = folder / f"{make.__name__}.json"
        if not path.exists():
            make().save(str(path))


def seconds(tokenizer, text):
    begin = time.perf_counter()
    found = tokenizer.encode_batch_fast([text], add_special_tokens=False)
    return time.perf_counter() - begin, found[0].ids


def encode(file, text_file, ids_file):
    text = pathlib.Path(text_file).read_text()
    first, again = [], []
    for _ in range(ROUNDS):
        tokenizer = tokenizers.Tokenizer.from_file(file)
        first.append(seconds(tokenizer, text)[0])
        again.append(seconds(tokenizer, text)[0])
    pathlib.Path(ids_file).write_bytes(array.array("i", seconds(tokenizer, text)[1]).tobytes())
    print(tokenizers.__version__, min(first), min(again))


if __name__ == "__main__":
    if sys.argv[1] == "train":
        train(pathlib.Path(sys.argv[2]))
    else:
        encode(*sys.argv[2:])
