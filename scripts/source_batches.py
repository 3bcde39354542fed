"""Which C++ sources a compiler may read in one go (scripts/check, cmake/OrreryModule.cmake)."""
import collections
import functools
import pathlib
import re

from cpp_outline import FREE_FUNCTIONS, PROJECT_INCLUDE, TYPE_NAMES, VALUE_NAMES, blank_literals

BATCH_MAX = 16

# What decides whether two sources can be read in one go: the names that a source defines for itself,
# the names that it sees in headers, and the functions of headers that it calls and that it hides.
Names = collections.namedtuple("Names", "own seen called hidden")


def names_of_its_own(path, text):
    """What a source defines for itself, in its unnamed namespaces; a test all that it defines."""
    parts = re.findall(r"^namespace \{$(.*?)^\}  // namespace$", text, re.M | re.S)
    if path.endswith("_test.cpp"):
        parts = [re.sub(r"^namespace.*", "", text, flags=re.M)]
    return {name for part in parts for rule in (TYPE_NAMES, VALUE_NAMES)
            for name in rule.findall(blank_literals(part))}


class Headers:
    """The project's headers, (path, text), and the names that sources get from them."""

    def __init__(self, headers):
        self.texts = dict(headers)
        self.functions = {name for text in self.texts.values() for name in FREE_FUNCTIONS.findall(text)}

    @functools.cache
    def names_in(self, path):
        rules = (TYPE_NAMES, *([VALUE_NAMES] if path.endswith("_test.hpp") else []))
        return frozenset(name for rule in rules for name in rule.findall(self.texts[path]))

    @functools.cache
    def included_by(self, path):
        """Paths of the headers that a header includes, also through others, and its own."""
        found, left = set(), [path]
        while left:
            header = left.pop()
            if header not in found:
                found.add(header)
                left += self.opened_in(self.texts[header])
        return frozenset(found)

    def opened_in(self, text):
        places = ((f"src/{include}", include) for include in PROJECT_INCLUDE.findall(text))
        return [path for pair in places for path in pair if path in self.texts]

    def names_for(self, path, text):
        own = names_of_its_own(path, text)
        headers = {each for header in self.opened_in(text) for each in self.included_by(header)}
        return Names(own, {name for each in headers for name in self.names_in(each)},
                     self.functions & set(re.findall(r"\b(\w+)\(", text)), own & self.functions)


def fit(one, other):
    """Whether two sources mean the same names in one go as each alone."""
    return not (one.own & (other.own | other.seen) or other.own & one.seen
                or one.called & other.hidden or other.called & one.hidden)


def batches_of(sources, headers):
    """Paths of `sources`, (path, text) by path, in batches of a module that a compiler may read in one
    go, for what they include is then read once: no two of a batch have a name of their own in common,
    none has one that another gets from a header, and none has a function of its own that another, by
    the same name, calls from a header."""
    headers = Headers(headers)
    modules = {}
    for path, text in sources:
        names = headers.names_for(path, text)
        batches = modules.setdefault(pathlib.PurePath(path).parts[:2], [])
        fitting = (batch for batch in batches if len(batch) < BATCH_MAX
                   and all(fit(names, other) for _, other in batch))
        batch = next(fitting, None)
        if batch is None:
            batches.append(batch := [])
        batch.append((path, names))
    return [[path for path, _ in batch] for batches in modules.values() for batch in batches]
