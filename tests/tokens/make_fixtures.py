#!/usr/bin/env python3
"""Writes fixtures/: small tokenizers and templates with what the reference libraries make of them,
for the unit tests of src/tokens. Needs PyPI's tokenizers and jinja2.
"""
import json
import pathlib
import sys

sys.dont_write_bytecode = True
import chat_templates  # noqa: E402
import compare  # noqa: E402
import compare_templates  # noqa: E402
import families  # noqa: E402

FOLDER = pathlib.Path(__file__).parent / "fixtures"
FEW = ["gpt2_spaced", "llama3", "qwen2", "deepseek", "smollm", "llama2", "mistral", "metaspace",
       "gemma", "unknown"]


def tokenizer_fixture(make):
    tokenizer = make()
    texts = compare.Texts(3)
    cases = []
    for text in ["", "Hello world", "  I'm 12345  you'll\n\n  x"] + [texts.text() for _ in range(60)]:
        ids = tokenizer.encode(text, add_special_tokens=True).ids
        cases.append({"text": text, "ids": tokenizer.encode(text, add_special_tokens=False).ids,
                      "framed": ids, "decoded": tokenizer.decode(ids),
                      "shown": tokenizer.decode(ids, skip_special_tokens=False)})
    return {"tokenizer": json.loads(tokenizer.to_str()), "cases": cases}


def template_fixture():
    """Templates by number, and for each set of variables what they render to, null if they fail."""
    made, texts, groups = compare_templates.environment(), {}, {}
    for case in compare_templates.cases(0, 1):
        number = texts.setdefault(case["template"], len(texts))
        text, _ = compare_templates.reference(made, case)
        groups.setdefault(json.dumps(case["variables"]), []).append([number, text])
    return {"templates": list(texts), "groups": [
        {"variables": json.loads(key), "cases": found} for key, found in groups.items()]}


def main():
    families.SIZE_MAX, families.ALPHABET_MAX = 420, 60
    FOLDER.mkdir(exist_ok=True)
    for make in families.FAMILIES:
        if make.__name__ in FEW:
            text = json.dumps(tokenizer_fixture(make), ensure_ascii=True, separators=(",", ":"))
            (FOLDER / f"{make.__name__}.json").write_text(text + "\n")
    text = json.dumps(template_fixture(), ensure_ascii=True, separators=(",", ":"))
    (FOLDER / "templates.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
