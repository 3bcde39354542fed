"""Finds the functions, the classes and the mutable globals of a C++ file without compiling it.

A declaration is read as a flat list of tokens up to its `;` or `{`, grouped by brackets, and judged
by its shape: a namespace, a class, an initializer or a function. Function bodies are skipped whole,
so lambdas and local classes count to the function around them. What it cannot tell: branches of
`#if` with unequal braces, and a variable `T x(y);`, which looks like a function taking a y.

A class counts the methods it declares (constructors, operators and static ones too, each overload
by itself; no friends, and none that is `= default`) and its fields (data members that are not
static). The members of an unnamed class count to the class around it.
"""
import functools
import re
from dataclasses import dataclass
from typing import NamedTuple


class Token(NamedTuple):
    text: str
    line: int


class Item(NamedTuple):
    """A token of a declaration, or a whole bracketed group named by its opening bracket."""
    text: str
    tokens: list

    @property
    def is_name(self):
        return bool(re.match(r"[A-Za-z_]", self.text))


class Function(NamedTuple):
    name: str
    line: int
    line_begin: int
    line_end: int  # 0: only declared
    parameters: list  # of token lists


@dataclass
class Class:
    """A class with its counts; the name has the classes around it (`A::B`), but no namespace."""
    name: str
    line: int
    methods: int = 0
    fields: int = 0


LITERALS = re.compile(
    r"""(?P<comment>//(?:[^\n\\]|\\.)*|/\*.*?\*/)"""
    r"""|(?P<raw>(?<!\w)(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)")"""
    r"""|(?P<number>(?<!\w)\d(?:'?[\w.])*)"""
    r"""|(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')""", re.S)
PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.)*", re.M | re.S)
TOKEN = re.compile(r"""[A-Za-z_]\w*|\d[\w.]*|"[^"]*"|'[^']*'|::|->|<=>|<=|>=|==|!=|&&|\|\||<<"""
                   r"""|\.\.\.|\S|\n""")
CLOSING = {"(": ")", "[": "]", "{": "}"}
NOT_A_FUNCTION = set(
    "requires noexcept alignas decltype explicit sizeof static_assert throw asm if while for "
    "switch return void bool int char float double auto unsigned signed long short const".split())
SPECIFIERS = set("inline static constexpr consteval constinit friend typedef export virtual "
                 "explicit mutable extern const thread_local".split())
BODY_FOLLOWS = set("( const noexcept override final & && try mutable".split())
CONST_WORDS = {"const", "constexpr", "consteval"}


def spaces(text):
    return re.sub(r"[^\n]", " ", text)


def blank_literals(text):
    """The same text, comments and the insides of literals replaced by spaces."""
    def replace(match):
        found = match.group(0)
        if match["comment"]:
            return spaces(found)
        if match["number"]:
            return found.replace("'", "_")
        quote = '"' if match["raw"] else found[0]
        return quote + spaces(found[1:-1]) + quote
    return LITERALS.sub(replace, text)


TYPE_NAMES = re.compile(r"^(?:template <.*> *\n)?(?:struct|class|enum class|enum|union|using) +(\w+)",
                        re.M)
# Functions of a header, outside of classes: a source's own by the same name hides it from the next
# source.
FREE_FUNCTIONS = re.compile(r"^(?:\[\[nodiscard\]\] |inline |constexpr |template <[^\n]*>\n)*"
                            r"[\w:<>,&* ]+?[ &*](\w+)\(", re.M)
VALUE_NAMES = re.compile(r"^[\w:][^(){};=\n]*?[ &*](\w+)(?:\[\w*\])? *[({=;]", re.M)
INCLUDE = re.compile(r'^#\s*include\s+["<](?:[^">]*/)?([^">]+)[">]', re.M)
PROJECT_INCLUDE = re.compile(r'^#\s*include\s+"([^"]+)"', re.M)


def code_words(text):
    """The words of a text without comments, contents of texts and folders of includes: what decides
    whether it compiles."""
    def word(match):
        return " " if match["comment"] else match.group(0) if match["number"] else ' "" '
    code = LITERALS.sub(word, INCLUDE.sub(r"include \1", text))
    return re.sub(r'(?:""\s*)+', '"" ', code).split()


def declared_in(text):
    """The names of types and free functions of a header."""
    return {name for rule in (TYPE_NAMES, FREE_FUNCTIONS) for name in rule.findall(text)}


def tokenize(code):
    code = PREPROCESSOR.sub(lambda match: spaces(match.group(0)), code)
    tokens, line = [], 1
    for text in TOKEN.findall(code):
        if text != "\n":
            tokens.append(Token(text, line))
        if text[0] in "\n\"'":
            line += text.count("\n")
    return tokens


def after_group(tokens, begin):
    """Index past the bracket that closes tokens[begin], or the end."""
    depth = 0
    for at in range(begin, len(tokens)):
        if tokens[at].text in CLOSING:
            depth += 1
        elif tokens[at].text in CLOSING.values():
            depth -= 1
            if depth == 0:
                return at + 1
    return len(tokens)


def after_angles(tokens, begin):
    """Index past the > of a template list, or None where < is an operator."""
    depth, at = 0, begin
    while at < len(tokens):
        text = tokens[at].text
        if text in CLOSING:
            at = after_group(tokens, at)
            continue
        depth += (text == "<") - (text == ">")
        if depth == 0:
            return at + 1
        at += 1
    return None


def group(tokens):
    """The declaration as a list of Items; brackets and template lists become one Item each."""
    items, at = [], 0
    while at < len(tokens):
        text, end = tokens[at].text, at + 1
        if text in CLOSING:
            end = after_group(tokens, at)
        elif text == "<" and items and items[-1].is_name and items[-1].text != "operator":
            end = after_angles(tokens, at) or end
        items.append(Item(text, tokens[at:end]))
        at = end
    while len(items) > 1 and items[0].text == "template" and items[1].text == "<":
        items = items[2:]
    return [item for item in items if not (item.text == "[" and len(item.tokens) > 1
                                           and item.tokens[1].text == "[")]


def has_initializer(items):
    return any(item.text == "=" and (i == 0 or items[i - 1].text != "operator")
               for i, item in enumerate(items))


def find_parameters(items):
    """Index of the Item that is the parameter list, or None if this declares no function."""
    for i, item in enumerate(items):
        if item.text == "=" and items[i - 1].text != "operator":
            return None
        if item.text != "(" or i == 0:
            continue
        before = items[i - 1]
        if before.text == "operator" and i + 1 < len(items) and items[i + 1].text == "(":
            continue  # operator() and then its parameters
        if any(earlier.text == "operator" for earlier in items[:i]):
            return i
        if before.text == "<" and i > 1:
            before = items[i - 2]
        pointer = len(item.tokens) > 1 and item.tokens[1].text in "*&"
        if before.is_name and before.text not in NOT_A_FUNCTION and not pointer:
            return i
    return None


def function_name(items, at):
    begin = at - 1
    operators = [i for i in range(at) if items[i].text == "operator"]
    if operators:
        begin = operators[-1]
    elif items[begin].text == "<":
        begin -= 1
    if begin > 0 and items[begin - 1].text == "~":
        begin -= 1
    while begin > 1 and items[begin - 1].text == "::":
        begin -= 2
    name = "".join(t.text for item in items[begin:at] for t in item.tokens)
    if is_macro(name):
        name += "".join(t.text for t in items[at].tokens).replace(",", ", ")
    return name


def is_macro(name):
    return re.fullmatch(r"(?:TEST|BENCHMARK|[A-Z][A-Z0-9]*_[A-Z0-9_]*)(?:\(.*)?", name) is not None


def split_parameters(tokens):
    """Token lists of the parameters between the brackets of `tokens`."""
    parameters, current, at = [], [], 1
    while at < len(tokens) - 1:
        text, end = tokens[at].text, at + 1
        if text in CLOSING:
            end = after_group(tokens, at)
        elif text == "<" and current and re.match(r"[A-Za-z_]", current[-1]):
            end = after_angles(tokens[:-1], at) or end
        if text == ",":
            parameters.append(current)
            current = []
        else:
            current.extend(t.text for t in tokens[at:end])
        at = end
    if current and current != ["void"]:
        parameters.append(current)
    return parameters


def class_name(items):
    """The name of a class that is being defined; "" where it has none."""
    words = [item.text for item in items]
    begin = next(i for i, word in enumerate(words) if word in ("class", "struct", "union")) + 1
    while words[begin:begin + 2] == ["alignas", "("]:
        begin += 2
    end = begin
    while end < len(words) and (items[end].is_name or words[end] == "::") and words[end] != "final":
        end += 1
    return "".join(words[begin:end])


class Outline:
    """The functions, the classes, and the variables that are global and can change, of one file."""

    def __init__(self, code):
        self.functions = []
        self.classes = []
        self.mutable_globals = []  # (line, name)
        self.around = []  # the classes that are being read, the innermost last
        self.tokens = tokenize(code)
        at = 0
        while at < len(self.tokens):
            at = self.scope(at, "namespace")
        del self.tokens  # an outline may be kept for each file of the tree

    def scope(self, at, kind):
        """Reads declarations up to the closing brace; returns the index past it."""
        head = []
        while at < len(self.tokens):
            token = self.tokens[at]
            if token.text == "}":
                return at + 1
            if token.text == ";":
                self.declaration(head, kind)
                head, at = [], at + 1
            elif token.text == ":" and head and head[-1].text in ("public", "private", "protected"):
                head, at = [], at + 1
            elif token.text == "{":
                head, at = self.brace(head, at)
            else:
                end = after_group(self.tokens, at) if token.text in "([" else at + 1
                head, at = head + self.tokens[at:end], end
        return at

    def brace(self, head, at):
        """What a brace after `head` opens; returns what is left of the head and where to go on."""
        items = group(head)
        meaning = self.meaning(items)
        if meaning == "namespace":
            return [], self.scope(at + 1, meaning)
        if meaning == "class":
            return [], self.read_class(class_name(items), at)
        end = after_group(self.tokens, at)
        if meaning == "function":
            self.add_function(head, items, self.tokens[at:end])
            self.count_member(items)
            return [], end
        return head + self.tokens[at:end], end

    def read_class(self, name, at):
        """Reads the class whose brace is at `at`; returns the index past it."""
        around = self.around[-1:]
        if name or not around:
            found = Class("::".join([*(each.name for each in around), name]), self.tokens[at].line)
            self.classes.append(found)
            around = [found]
        self.around += around
        end = self.scope(at + 1, "class")
        self.around.pop()
        return end

    def count_member(self, items):
        """Counts what a declaration adds to the class around it."""
        words = [item.text for item in items]
        if not self.around or not words or "friend" in words or words[-2:] == ["=", "default"]:
            return
        if words[0] in ("using", "typedef", "static_assert", "enum"):
            return
        only_named = words[0] in ("class", "struct", "union") and len(words) < 3
        if find_parameters(items) is not None:
            self.around[-1].methods += 1
        elif "static" not in words and not only_named:
            self.around[-1].fields += 1 + words.count(",")

    @staticmethod
    def meaning(items):
        words = [item.text for item in items]
        if "namespace" in words[:2] or (words[:1] == ["extern"] and len(words) == 2):
            return "namespace"
        lead = next((word for word in words if word not in SPECIFIERS | {"["}), "")
        parameters = find_parameters(items)
        if lead in ("class", "struct", "union") and parameters is None:
            return "class"
        if lead in ("enum", "using") or parameters is None or has_initializer(items):
            return "initializer"
        after = words[parameters + 1:]
        if ":" in after:  # a constructor's list: `name{value}` initializes, `) {` begins the body
            return "initializer" if items[-1].is_name or words[-1] == "<" else "function"
        if words[-1] == "requires" or words[-3:-1] in (["requires"] * 2, ["&&", "requires"]):
            return "initializer"
        plain = words[-1] in BODY_FOLLOWS
        return "function" if plain or "->" in after or "requires" in after else "initializer"

    def add_function(self, head, items, body):
        at = find_parameters(items)
        name = function_name(items, at)
        parameters = [] if is_macro(name) else split_parameters(items[at].tokens)
        line_end = body[-1].line if body else 0
        self.functions.append(Function(name, items[at].tokens[0].line, head[0].line, line_end,
                                       parameters))
        for i in [i for i, token in enumerate(body) if token.text == "static"]:
            following = {t.text for t in body[i + 1:i + 4]}
            if not following & CONST_WORDS:
                self.mutable_globals.append((body[i].line, f"static local in {name}"))

    def declaration(self, head, kind):
        items = group(head)
        self.count_member(items)
        words = [item.text for item in items]
        lead = next((word for word in words if word not in SPECIFIERS), "")
        if lead in ("using", "typedef", "static_assert", "namespace", "concept", "template"):
            return
        if "typedef" in words:
            return
        if find_parameters(items) is not None:
            self.add_function(head, items, [])
            return
        if lead in ("class", "struct", "union", "enum", "") or "friend" in words or len(items) < 2:
            return
        if kind == "class" and "static" not in words:
            return
        declared = words[:words.index("=")] if "=" in words else words
        stars = [i for i, word in enumerate(declared) if word == "*"]
        pointee_only = stars and not CONST_WORDS & set(declared[stars[-1]:])
        if "constexpr" not in declared and (pointee_only or not CONST_WORDS & set(declared)):
            names = [word for word in declared if re.match(r"[A-Za-z_]", word)]
            self.mutable_globals.append((head[0].line, names[-1] if names else "?"))


class Source(NamedTuple):
    """A C++ file as rules read it: the code has neither comments nor the insides of literals."""
    code: str
    outline: Outline


@functools.lru_cache(maxsize=None)
def outline_of(text):
    code = blank_literals(text)
    return Source(code, Outline(code))


def is_cpp(path):
    return path.startswith(("src/", "apps/", "bench/", "tests/")) and path.endswith(
        (".cpp", ".hpp"))
