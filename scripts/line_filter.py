"""The lines that a change wrote, as clang-tidy's option --line-filter takes them."""
import re


def line_filter(diff, new):
    """`diff`: the rows of `git diff -U0`; `new`: paths of which all lines count, in the diff or not."""
    filters = {path: {"name": path} for path in new}
    path = None
    for row in diff:
        if row.startswith("+++ "):
            path = row[len("+++ b/"):]
        span = re.match(r"@@ \S+ \+(\d+)(?:,(\d+))? @@", row)
        if not span or path in new:
            continue
        first, last = int(span[1]), int(span[1]) + int(span[2] or 1) - 1
        if first <= last:
            filters.setdefault(path, {"name": path, "lines": []})["lines"].append([first, last])
    return list(filters.values())
