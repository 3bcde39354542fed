#!/usr/bin/env python3
"""Compares chat templates with Jinja as transformers runs it.

  compare_templates.py PROGRAM [--count N] [--seed S]

PROGRAM is build/dev/bin/template_lines. Needs PyPI's jinja2. Renders the templates of
chat_templates.py, each of its expressions and statements, and N random joins of them. What fails
there must fail here, and the other way round, but for what is refused as not supported.
"""
import argparse
import datetime
import json
import random
import subprocess
import sys

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

sys.dont_write_bytecode = True
import chat_templates as given  # noqa: E402

NOW = datetime.datetime(2024, 7, 26, 9, 5, 3)


class Generation(jinja2.ext.Extension):
    """The statement that marks what the assistant says, without the marks."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("write"), [], [], body).set_lineno(line)

    def write(self, caller):
        return caller()


def environment():
    made = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                          sort_keys=sort_keys)

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = NOW.strftime
    return made


def reference(made, case):
    try:
        return made.from_string(case["template"]).render(**case["variables"]), None
    except Exception as error:  # any failure of a template counts as one
        return None, f"{type(error).__name__}: {error}"


def cases(count, seed):
    for name, text in given.TEMPLATES.items():
        for messages in given.CONVERSATIONS:
            for tools in (None, [given.TOOL, given.TOOL]):
                for prompt in (True, False):
                    variables = {"messages": messages, "add_generation_prompt": prompt,
                                 "bos_token": "<s>", "eos_token": "</s>"}
                    if tools:
                        variables["tools"] = tools
                    yield {"template": text, "variables": variables, "name": name}
    pieces = [f"{{{{ {each} }}}}" for each in given.expressions()] + given.STATEMENTS
    good = []
    made = environment()
    for text in pieces:
        case = {"template": text, "variables": given.VARIABLES}
        yield case
        if reference(made, case)[1] is None and len(text) < 300:
            good.append(text)
    draw = random.Random(seed)
    joints = ["", " ", "\n", "  ", "\n  ", "{% if t %}", "{%- if x == 7 -%}", "{% endif %}",
              "{#- c #}", "{# c #}\n", "{% for i in [1, 2] %}", "{% endfor %}", "é", "\t"]
    for _ in range(count):
        parts = [draw.choice(joints) + draw.choice(good) for _ in range(draw.randrange(1, 6))]
        text = "".join(parts)
        for opened, closed in (("if", "endif"), ("for", "endfor")):
            lack = text.count("{% " + opened) + text.count("{%- " + opened) - text.count(closed)
            text += ("{% " + closed + " %}") * max(lack, 0)
        yield {"template": text, "variables": given.VARIABLES}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--all", action="store_true", help="print all differences")
    options = parser.parse_args()
    some = list(cases(options.count, options.seed))
    lines = "".join(json.dumps({k: each[k] for k in ("template", "variables")}) + "\n"
                    for each in some)
    done = subprocess.run([options.program], input=lines.encode(), capture_output=True)
    answers = [json.loads(line) for line in done.stdout.decode().splitlines()]
    made, counts = environment(), {"equal": 0, "both fail": 0, "not supported": 0, "different": 0}
    if len(answers) != len(some):
        print(f"{len(answers)} answers to {len(some)} templates, exit status {done.returncode}")
        return 1
    for case, answer in zip(some, answers):
        text, error = reference(made, case)
        if error is None and answer.get("text") == text:
            counts["equal"] += 1
        elif error is not None and "error" in answer:
            counts["both fail"] += 1
        elif "not supported" in answer.get("error", ""):
            counts["not supported"] += 1
        else:
            counts["different"] += 1
            if options.all or counts["different"] == 1:
                print(f"DIFFERENT {case.get('name', '')} {case['template'][-400:]!r}\n"
                      f"  expected {text!r} {error}\n  got      {answer}")
    print(f"{counts}, seed {options.seed}")
    return int(counts["different"] > 0)


if __name__ == "__main__":
    sys.exit(main())
