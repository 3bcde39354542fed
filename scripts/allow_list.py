"""Findings, and the allow-list that excuses some of them.

A line of the list is `RULE PATH[#SYMBOL][:CEILING] -- REASON`. A finding about a figure (a count with
a limit) carries its value: it is excused up to the ceiling, and a line without one excuses none.
"""
import fnmatch
import re
from typing import NamedTuple

ALLOW_FILE = "scripts/check_allow.txt"
LINE = re.compile(r"([\w-]+) +([^#\s]+?)(?:#(.+?))?(?::(\d+))? +-- +(\S.*)")


class Problem(NamedTuple):
    path: str
    line: int
    rule: str
    message: str
    symbol: str = ""
    value: int = 0  # of a figure; 0: the finding is about none

    def __str__(self):
        return f"{self.path}:{self.line}: {self.message} [{self.rule}]"


class Allowance(NamedTuple):
    line: int
    rule: str
    path: str
    symbol: str
    ceiling: int = 0  # 0: the line states none

    def names(self, problem):
        return (self.rule == problem.rule and fnmatch.fnmatch(problem.path, self.path)
                and self.symbol in ("", problem.symbol))

    def excuses(self, problem):
        return self.names(problem) and problem.value <= self.ceiling


def read_allowances(text):
    """The allowances of an allow-list, and what is wrong with its lines."""
    allowances, problems = [], []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = LINE.fullmatch(line)
        if match is None:
            problems.append(Problem(ALLOW_FILE, number, "allow-list",
                                    "expected `RULE PATH[#SYMBOL][:CEILING] -- REASON`"))
        else:
            allowances.append(Allowance(number, match[1], match[2], match[3] or "",
                                        int(match[4] or 0)))
    return allowances, problems


def excuse(problems, allowances):
    """The findings that no allowance excuses, and the allowances that name a finding."""
    left, used = [], set()
    for problem in problems:
        naming = [each for each in allowances if each.names(problem)]
        used.update(naming)
        if any(each.excuses(problem) for each in naming):
            continue
        ceiling = max((each.ceiling for each in naming), default=0)
        if ceiling:
            problem = problem._replace(message=f"{problem.message}, and its ceiling is {ceiling:,}")
        left.append(problem)
    return left, used
