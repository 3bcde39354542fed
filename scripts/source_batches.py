"""Which C++ sources a compiler may read in one go (scripts/check, cmake/OrreryModule.cmake)."""
import os
import re

from cpp_outline import FREE_FUNCTIONS, TYPE_NAMES, VALUE_NAMES, blank_literals

BATCH_MAX = 10


def names_of_its_own(path, text):
    """What a source defines for itself, in its unnamed namespaces; a test all that it defines."""
    parts = re.findall(r"^namespace \{$(.*?)^\}  // namespace$", text, re.M | re.S)
    if path.endswith("_test.cpp"):
        parts = [re.sub(r"^namespace.*", "", text, flags=re.M)]
    return {name for part in parts for rule in (TYPE_NAMES, VALUE_NAMES)
            for name in rule.findall(blank_literals(part))}


def batches_of(sources, headers):
    """Paths of `sources`, (path, text) by path, in batches of a folder that a compiler may read in one
    go, for what each includes is then read once: no two of a batch have a name of their own in common,
    none has one that one of the headers has, too, and none has a function of its own that another, by
    the same name, has from a header."""
    shared = {name for header, text in headers
              for rule in (TYPE_NAMES, *([VALUE_NAMES] if header.endswith("_test.hpp") else []))
              for name in rule.findall(text)}
    functions = {name for _, text in headers for name in FREE_FUNCTIONS.findall(text)}
    done, open_batches = [], {}
    for path, text in sources:
        names = names_of_its_own(path, text)
        if names & shared:
            done.append([path])
            continue
        called = functions & set(re.findall(r"\b(\w+)\(", text))
        hidden = names & functions
        folder = open_batches.setdefault(os.path.dirname(path), [])
        fitting = (each for each in folder if len(each[0]) < BATCH_MAX and not names & each[1]
                   and not called & each[2] and not hidden & each[3])
        batch = next(fitting, None)
        if batch is None:
            folder.append(batch := ([], set(), set(), set()))
        batch[0].append(path)
        for known, more in zip(batch[1:], (names, hidden, called)):
            known.update(more)
    return done + [batch[0] for folder in open_batches.values() for batch in folder]
