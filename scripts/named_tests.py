"""The tests that docs/security.md names: each threat has one, and it exists."""
import fnmatch
import pathlib
import re

TEST_DEFINED = re.compile(r"\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)")
NAMED = re.compile(r"`([A-Z]\w*\*?(?:\.[\w*]+)?|\w+_test)`")


def unnamed_tests(texts):
    """Of (path, text) of the whole tree: (page, line, what is wrong) of each row that names no test, or
    one that is not there."""
    page = "docs/security.md"
    text = dict(texts).get(page)
    if text is None:
        return
    tests, suites, files = set(), set(), set()
    for path, source in texts:
        if path.endswith((".cpp", ".hpp")) and "_test" in path:
            files.add(pathlib.PurePath(path).stem)
            for suite, name in TEST_DEFINED.findall(source):
                suites.add(suite)
                tests.add(f"{suite}.{name}")
    table = False
    for number, line in enumerate(text.split("\n"), 1):
        table = line.startswith("|") and (table or "| test |" in line)
        if not table or "| test |" in line or line.startswith("|---"):
            continue
        named = NAMED.findall(line.rstrip("| ").split("|")[-1])
        if not named:
            yield page, number, "the row names no test"
        for name in named:
            known = files if name.endswith("_test") else tests if "." in name else suites
            if not fnmatch.filter(known, name):
                yield page, number, f"there is no test {name}"
