#!/usr/bin/env python3
"""Compares tokens and texts with the reference library on random texts.

  compare.py PROGRAM [--count N] [--seed S] [--family NAME] [--keep FOLDER]

PROGRAM is build/dev/bin/token_lines. Needs PyPI's tokenizers. Prints a line per family and
the first difference; the exit status is 1 if there is any. Characters that Unicode assigned after
version 14 are among the texts where the family has no normalizer, whose tables differ.
"""
import argparse
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
import families  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

SPACES = [chr(c) for c in (9, 10, 11, 12, 13, 32, 32, 32, 0x85, 0xA0, 0x1680, 0x2000, 0x200A,
                           0x200B, 0x2028, 0x202F, 0x205F, 0x3000, 0x180E, 0xFEFF)]
BITS = ["'s", "'S", "'ll", "'LL", "'re", "'ſ", "'", "''", "don't", "I'M", "  ", "   ", "\n", "\r\n",
        "\n\n", "\t", " \n", "123", "12345678", "½", "²", "Ⅷ", "٣", "é", "e\u0301", "Å", "ﬁ", "ſ",
        "İ", "ẞ", "가", "가", "各", "日本語", "你好", "привет", "العربية", "हिन्दी", "😀", "👩‍👩‍👧",
        "\u0300\u0301", "a\u0300b", "<unk>", "<s>", "</s>", "<0x0A>", "<0xE4>", "[INST]", "<mask>",
        "▁", "▁▁", "Ġ", "Ċ", "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|begin_of_text|>",
        "<|im_", "word", "sword", "wordy", "</think>", "<think>", "<start_of_turn>", "x ", "Tok en",
        "é́x", "<tail>", "\x00", "\x7f", "\ufffd", "\uffff", "#include <a.h>", "def f(x):\n    ",
        "http://a.b/c?d=e&f", "a_b-c==d", "(x)[y]{z}", "1,000.50"]


class Texts:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.files = [path.read_text(errors="ignore") for path in families.text_files()[:60]]

    def character(self):
        draw = self.random
        while True:
            kind = draw.random()
            code = (draw.randrange(0x20, 0x7F) if kind < .3 else draw.randrange(0x80, 0x3000)
                    if kind < .7 else draw.randrange(0x3000, 0x20000) if kind < .95
                    else draw.randrange(0x20000, 0x110000))
            if not 0xD800 <= code < 0xE000:
                return chr(code)

    def piece(self):
        draw = self.random
        kind = draw.random()
        if kind < .35:
            return draw.choice(BITS)
        if kind < .5:
            return "".join(draw.choice(SPACES) for _ in range(draw.randrange(1, 5)))
        if kind < .65:
            return "".join(self.character() for _ in range(draw.randrange(1, 6)))
        if kind < .75:
            return draw.choice("aexyABZ019'_ -.") * draw.randrange(1, 80 if kind < .66 else 6)
        text = draw.choice(self.files)
        begin = draw.randrange(max(1, len(text)))
        return text[begin:begin + draw.randrange(1, 30)]

    def text(self):
        return "".join(self.piece() for _ in range(self.random.randrange(0, 7)))


def run_program(program, path, texts):
    """Answers of the program: for each text, tokens, tokens with those around, two texts."""
    process = subprocess.Popen([program, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def feed():
        for text in texts:
            data = text.encode()
            process.stdin.write(struct.pack("<I", len(data)) + data)
        process.stdin.close()

    threading.Thread(target=feed, daemon=True).start()
    read = process.stdout.read

    def numbers():
        count, = struct.unpack("<I", read(4))
        return list(struct.unpack(f"<{count}i", read(4 * count)))

    def string():
        count, = struct.unpack("<I", read(4))
        return read(count).decode()

    for _ in texts:
        yield numbers(), numbers(), string(), string()
    process.wait()


def compare(program, family, path, count, seed):
    reference = Tokenizer.from_file(path)
    texts = Texts(seed)
    done = 0
    while done < count:
        some = [texts.text() for _ in range(min(5000, count - done))]
        plain = reference.encode_batch(some, add_special_tokens=False)
        framed = reference.encode_batch(some, add_special_tokens=True)
        ids = [each.ids for each in framed]
        hidden = reference.decode_batch(ids, skip_special_tokens=True)
        shown = reference.decode_batch(ids, skip_special_tokens=False)
        answers = run_program(program, path, some)
        for text, a, b, c, d, got in zip(some, plain, ids, hidden, shown, answers):
            if (a.ids, b, c, d) != got:
                print(f"{family}: DIFFERENT for {text!r} ({ascii(text)})")
                for name, want, have in zip(("tokens", "framed", "text", "shown"),
                                            (a.ids, b, c, d), got):
                    if want != have:
                        print(f"  {name}: expected {want!r}\n  {name}: got      {have!r}")
                print(f"  expected {[reference.id_to_token(i) for i in a.ids]}")
                print(f"  got      {[reference.id_to_token(i) for i in got[0]]}")
                return None
        done += len(some)
    print(f"{family}: {done} texts equal", flush=True)
    return done


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=80_000, help="texts per family")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--family", action="append")
    parser.add_argument("--keep", help="folder for the trained tokenizers, used again if there")
    options = parser.parse_args()
    total, failed = 0, False
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(options.keep or scratch)
        folder.mkdir(exist_ok=True)
        for make in families.FAMILIES:
            if options.family and make.__name__ not in options.family:
                continue
            path = folder / f"{make.__name__}.json"
            if not path.exists():
                make().save(str(path))
            done = compare(options.program, make.__name__, str(path), options.count, options.seed)
            failed |= done is None
            total += done or 0
    print(f"{total} texts, seed {options.seed}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
