"""The figures of the house: counts of the whole tree that say how well it is built.

  module-cycle    modules (folders of src/) in a cycle of includes
  class-methods   methods of a class, as cpp_outline.py counts them
  class-fields    fields of a class, as cpp_outline.py counts them
  class-sources   .cpp files that define member functions of a class; inline ones do not count
  folder-files    C++ files that lie directly in a folder of src/
  duplicates      pairs of places that share six or more lines of code in a row, letter for letter;
                  blank lines, comments, includes and lines of punctuation alone are no code
  document-words  words of the documents for users, as `wc -w` counts them
  test-share      lines of the tests beside a module over the lines of its sources

A definition `A::f` belongs to the class A of its own file, else to that of a header in its folder,
else to the only one in any header.
"""
import re
from collections import defaultdict
from dataclasses import dataclass

from allow_list import Problem
from cpp_outline import is_cpp, outline_of

RUN_LINES_MIN = 6
WORST = 10


@dataclass(frozen=True)
class Figure:
    rule: str
    title: str
    limit: int | None = None  # of one row; None: none is set


FIGURES = [
    Figure("module-cycle", "modules in a cycle", 0),
    Figure("class-methods", "classes with more than 30 methods", 30),
    Figure("class-fields", "classes with more than 12 fields", 12),
    Figure("class-sources", "classes defined in more than 2 sources", 2),
    Figure("folder-files", "folders with more than 25 files", 25),
    Figure("duplicates", "pairs of places with six equal lines", 0),
    Figure("document-words", "words of user documents", 36_000),
    Figure("test-share", "test lines over source lines, percent"),
]
LIMITS = {figure.rule: figure.limit for figure in FIGURES}
# The rules of which the table counts the rows beyond the limit, and those with one row for all.
COUNTED = ("class-methods", "class-fields", "class-sources", "folder-files")
OF_THE_TREE = ("duplicates", "document-words")


@dataclass(frozen=True)
class Row:
    """One thing measured: a class, a folder, a cycle, a module or the whole tree."""
    rule: str
    path: str
    value: int
    message: str
    symbol: str = ""
    line: int = 1

    @property
    def is_over(self):
        return LIMITS[self.rule] is not None and self.value > LIMITS[self.rule]

    @property
    def name(self):
        return f"{self.path}#{self.symbol}" if self.symbol else self.path

    def problem(self):
        return Problem(self.path, self.line, self.rule, self.message, self.symbol, self.value)


@dataclass(frozen=True)
class Place:
    path: str
    line: int

    def __str__(self):
        return f"{self.path}:{self.line}"


@dataclass(frozen=True)
class Duplicate:
    """Two places with the same lines of code; neither run can be made longer."""
    first: Place
    second: Place
    lines: int


# --- Modules ------------------------------------------------------------------------------------

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"(\w+)/([^"]+)"', re.M)


def module_includes(texts):
    """The first include that leads from one module to another: (from, to) -> (place, what)."""
    modules = {path.split("/")[1] for path, _ in texts if re.match(r"src/\w+/", path)}
    edges = {}
    for path, text in texts:
        if not path.startswith("src/"):
            continue
        source = path.split("/")[1]
        for match in INCLUDE.finditer(text):
            if match[1] in modules - {source} and (source, match[1]) not in edges:
                line = text.count("\n", 0, match.start()) + 1
                edges[source, match[1]] = (Place(path, line), f"{match[1]}/{match[2]}")
    return edges


def way(edges, begin, end):
    """The modules on a shortest way of one include or more, with both ends; [] if there is none."""
    ways = [[begin]]
    seen = set()
    for known in ways:
        for source, target in sorted(edges):
            if source != known[-1] or target in seen:
                continue
            if target == end:
                return [*known, end]
            seen.add(target)
            ways.append([*known, target])
    return []


def module_cycles(texts):
    edges = module_includes(texts)
    left = {module for module, _ in edges if way(edges, module, module)}
    while left:
        begin = min(left)
        cycle = {module for module in left
                 if way(edges, begin, module) and way(edges, module, begin)}
        shown = way(edges, begin, begin)
        steps = [edges[pair] for pair in zip(shown, shown[1:])]
        yield Row("module-cycle", steps[0][0].path, len(cycle),
                  f"modules {', '.join(sorted(cycle))} form a cycle: "
                  + "; ".join(f"{place} includes {what}" for place, what in steps),
                  line=steps[0][0].line)
        left -= cycle


# --- Classes and folders ------------------------------------------------------------------------

MEMBER = re.compile(r"((?:\w+::)*?\w+)::(?:operator.*|~?\w+)")


def home_of(owner, source, homes):
    """The file of the class that a source calls `owner`, and its name; None where none is known."""
    names = owner.split("::")
    for name in ("::".join(names[skipped:]) for skipped in range(len(names))):
        paths = homes.get(name, [])
        headers = [path for path in paths if path.endswith(".hpp")]
        beside = [path for path in headers if path.rpartition("/")[0] == source.rpartition("/")[0]]
        for choice in ([path for path in paths if path == source], beside,
                       headers if len(headers) == 1 else []):
            if choice:
                return choice[0], name
    return None


def defining_sources(outlines):
    """The .cpp files that define members of each class: (file of the class, name) -> files."""
    homes = defaultdict(list)
    for path, outline in outlines:
        for each in outline.classes:
            homes[each.name].append(path)
    sources = defaultdict(set)
    for path, outline in outlines:
        if path.endswith(".cpp"):
            members = (MEMBER.fullmatch(each.name) for each in outline.functions if each.line_end)
            for owner in {match[1] for match in members if match}:
                sources[home_of(owner, path, homes)].add(path)
    return sources


def class_rows(outlines):
    sources = defining_sources(outlines)
    for path, outline in outlines:
        for each in outline.classes:
            defined = len(sources.get((path, each.name), ()))
            for rule, value, message in (
                    ("class-methods", each.methods, f"{each.name} has {each.methods} methods"),
                    ("class-fields", each.fields, f"{each.name} has {each.fields} fields"),
                    ("class-sources", defined, f"{each.name} is defined in {defined} sources")):
                yield Row(rule, path, value, f"{message}; at most {LIMITS[rule]}", each.name,
                          each.line)


def folder_rows(paths):
    files = defaultdict(int)
    for path in paths:
        if path.startswith("src/"):
            files[path.rpartition("/")[0]] += 1
    return [Row("folder-files", folder, count, f"{count} files; at most {LIMITS['folder-files']}")
            for folder, count in files.items()]


# --- Duplicates ---------------------------------------------------------------------------------

WORD = re.compile(r"\w")


def code_lines(text, code):
    """(number, line) of the lines of code; `code` is the text without comments and literals."""
    for number, (line, bare) in enumerate(zip(text.split("\n"), code.split("\n")), 1):
        kept = line[:len(bare.rstrip())].strip()
        if WORD.search(kept) and not kept.startswith("#include"):
            yield number, kept


def duplicates(sources):
    """The pairs of places with equal code; `sources` are (path, text, code)."""
    files = [(path, list(code_lines(text, code))) for path, text, code in sources]
    lines = [[line for _, line in numbered] for _, numbered in files]
    places = defaultdict(list)
    for file, known in enumerate(lines):
        for at in range(len(known) - RUN_LINES_MIN + 1):
            places[tuple(known[at:at + RUN_LINES_MIN])].append((file, at))
    found = []
    for same in places.values():
        for index, first in enumerate(same):
            for second in same[index + 1:]:
                length = run_length(lines, first, second)
                if length:
                    found.append(Duplicate(*(Place(files[file][0], files[file][1][at][0])
                                             for file, at in (first, second)), length))
    return sorted(found, key=lambda each: (-each.lines, str(each.first), str(each.second)))


def run_length(lines, first, second):
    """The length of the run that begins at two places; 0 if it begins earlier or meets itself."""
    (file_a, a), (file_b, b) = first, second
    one, other = lines[file_a], lines[file_b]
    if a > 0 and b > 0 and one[a - 1] == other[b - 1]:
        return 0
    end = min(len(one) - a, len(other) - b, b - a if file_a == file_b else len(one))
    length = next((at for at in range(end) if one[a + at] != other[b + at]), end)
    return length if length >= RUN_LINES_MIN else 0


# --- Documents and tests ------------------------------------------------------------------------

def is_user_document(path):
    if not path.endswith(".md") or path.startswith("docs/design/") or path == "docs/campaigns.md":
        return False
    return path.startswith("docs/") or path in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")


def word_row(texts):
    words = sum(len(text.split()) for path, text in texts if is_user_document(path))
    return Row("document-words", "docs", words,
               f"{words:,} words of user documents; at most {LIMITS['document-words']:,}")


def test_rows(texts):
    """The tests beside each module of src/ and each program of apps/."""
    lines = defaultdict(lambda: [0, 0])
    for path, text in texts:
        if is_cpp(path) and re.match(r"(?:src|apps)/[^/]+/", path):
            is_test = "_test." in path
            lines["/".join(path.split("/")[:2])][is_test] += text.count("\n")
    return [Row("test-share", module, round(100 * test / max(source, 1)),
                f"{test:,} lines of tests, {source:,} of sources")
            for module, (source, test) in sorted(lines.items())]


# --- All of them --------------------------------------------------------------------------------

@dataclass(frozen=True)
class House:
    rows: list
    duplicates: list

    def problems(self):
        return [row.problem() for row in self.rows if row.is_over]


def measure(texts):
    """The figures of a whole tree, of (path, text) of each of its files."""
    cpp = [(path, text) for path, text in texts if is_cpp(path)]
    read = [(path, text, outline_of(text)) for path, text in cpp]
    same = duplicates([(path, text, each.code) for path, text, each in read])
    rows = [*module_cycles(cpp), *class_rows([(path, each.outline) for path, _, each in read]),
            *folder_rows([path for path, _ in cpp]), word_row(texts), *test_rows(texts),
            Row("duplicates", ".", len(same),
                f"{len(same):,} pairs of places share {RUN_LINES_MIN} or more lines of code; "
                "`scripts/check --figures FILE` lists those of a file")]
    return House(rows, same)


def ceiling_text(row, allowances):
    ceiling = max((each.ceiling for each in allowances if each.names(row.problem())), default=0)
    return f"{ceiling:,}" if ceiling and row.is_over else ""


def summary(house, allowances):
    """The lines of the table of all figures."""
    yield f"{'figure':<40}{'today':>8}{'limit':>8}{'allowed':>9}"
    for figure in FIGURES:
        rows = [row for row in house.rows if row.rule == figure.rule]
        allowed = ""
        if figure.rule in COUNTED:
            rows = [row for row in rows if row.is_over]
            today, limit = len(rows), "0"
            allowed = f"{sum(bool(ceiling_text(row, allowances)) for row in rows):,}"
        elif figure.limit is None:
            continue
        else:
            today, limit = sum(row.value for row in rows), f"{figure.limit:,}"
            allowed = "".join(ceiling_text(row, allowances) for row in rows)
        yield f"{figure.title:<40}{today:>8,}{limit:>8}{allowed:>9}".rstrip()


def report(house, allowances, files=()):
    """The lines that `scripts/check --figures` prints; of some files only, if any are named."""
    if not files:
        yield from summary(house, allowances)
    for figure in FIGURES:
        rows = [row for row in house.rows if row.rule == figure.rule
                and (row.path in files if files else row.is_over or figure.limit is None)]
        if figure.rule in OF_THE_TREE or not rows:
            continue
        rows.sort(key=lambda row: (-row.value, row.name))
        yield f"\n{figure.title}" if not files else f"\n{figure.rule}"
        for row in rows if files or figure.limit is None else rows[:WORST]:
            ceiling = ceiling_text(row, allowances)
            yield (f"{row.value:>8,}  {row.name}" + (f"  (ceiling {ceiling})" if ceiling else "")
                   + ("" if figure.limit else f"  {row.message}"))
    pairs = [each for each in house.duplicates
             if not files or {each.first.path, each.second.path} & set(files)]
    if pairs:
        yield "\nlines that two places share"
    for each in pairs if files else pairs[:WORST]:
        yield f"{each.lines:>8}  {each.first} = {each.second}"
