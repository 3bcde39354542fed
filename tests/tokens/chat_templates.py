"""Chat templates in the manner of well-known model families, conversations, and expressions."""

CHATML = """{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system
You are a helpful assistant.<|im_end|>
' }}{% endif %}{{'<|im_start|>' + message['role'] + '
' + message['content'] + '<|im_end|>' + '
'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant
' }}{% endif %}"""

QWEN = """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0]['role'] == 'system' %}
        {{- messages[0]['content'] }}
    {%- else %}
        {{- 'You are Qwen.' }}
    {%- endif %}
    {{- "\\n\\n# Tools\\n\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools>\\n\\n{\\"name\\": <function-name>, \\"arguments\\": <args-json-object>}<|im_end|>\\n" }}
{%- elif messages[0]['role'] == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
{%- endif %}
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {%- set content = message.content %}
        {%- if '</think>' in content %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>' + message.role }}
        {%- if message.content %}
            {{- '\\n' + message.content }}
        {%- endif %}
        {%- for tool_call in message.tool_calls %}
            {%- if tool_call.function is defined %}
                {%- set tool_call = tool_call.function %}
            {%- endif %}
            {{- '\\n<tool_call>\\n{"name": "' }}
            {{- tool_call.name }}
            {{- '", "arguments": ' }}
            {{- tool_call.arguments | tojson }}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if (loop.index0 == 0) or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' }}
        {{- message.content }}
        {{- '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
"""

LLAMA3 = """{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date_string = "26 Jul 2024" %}
    {%- endif %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}

{#- This block extracts the system message. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{{- "Today Date: " + date_string + "\\n\\n" }}
{%- if tools is not none %}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
{%- endif %}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("This model only supports single tool-calls at once!") }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}
        {{- '{"name": "' + tool_call.name + '", ' }}
        {{- '"parameters": ' }}
        {{- tool_call.arguments | tojson }}
        {{- "}" }}
        {{- "<|eot_id|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""

MISTRAL = """{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token}}{% else %}{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}{% endfor %}"""

MISTRAL_TOOLS = """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[AVAILABLE_TOOLS] [" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}
                        {{- '"' + key + '": "' + val + '"' }}
                    {%- else %}
                        {{- '"' + key + '": ' + val|tojson }}
                    {%- endif %}
                    {%- if not loop.last %}
                        {{- ", " }}
                    {%- endif %}
                {%- endfor %}
                {{- "}}" }}
                {%- if not loop.last %}
                    {{- ", " }}
                {%- else %}
                    {{- "]" }}
                {%- endif %}
            {%- endfor %}
            {{- "[/AVAILABLE_TOOLS]" }}
            {%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message["role"] == "assistant" and message.content %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- endif %}
{%- endfor %}
"""

GEMMA = """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set first_user_prefix = messages[0]['content'] + '

' -%}
    {%- else -%}
        {%- set first_user_prefix = messages[0]['content'][0]['text'] + '

' -%}
    {%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'assistant') -%}
        {%- set role = "model" -%}
    {%- else -%}
        {%- set role = message['role'] -%}
    {%- endif -%}
    {{ '<start_of_turn>' + role + '
' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'image' -%}
                {{ '<start_of_image>' }}
            {%- elif item['type'] == 'text' -%}
                {{ item['text'] | trim }}
            {%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {{ raise_exception("Invalid content type") }}
    {%- endif -%}
    {{ '<end_of_turn>
' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<start_of_turn>model
'}}
{%- endif -%}
"""

ZEPHYR = """{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>
' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>
' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{% generation %}
{{ '<|assistant|>
'  + message['content'] + eos_token }}
{% endgeneration %}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}"""

DEEPSEEK = """{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}{% set ns = namespace(is_first=false, is_tool=false, is_output_first=true, system_prompt='') %}{%- for message in messages %}{%- if message['role'] == 'system' %}{% set ns.system_prompt = message['content'] %}{%- endif %}{%- endfor %}{{bos_token}}{{ns.system_prompt}}{%- for message in messages %}{%- if message['role'] == 'user' %}{%- set ns.is_tool = false -%}{{'<｜User｜>' + message['content']}}{%- endif %}{%- if message['role'] == 'assistant' and message['content'] is none %}{%- set ns.is_tool = false -%}{%- for tool in message['tool_calls']%}{%- if not ns.is_first %}{{'<｜Assistant｜><｜tool▁calls▁begin｜>' + tool['type'] + '\\n' + '```json' + '\\n' + tool['function']['arguments']|tojson + '\\n' + '```'}}{%- set ns.is_first = true -%}{%- else %}{{'\\n' + tool['type']}}{%- endif %}{%- endfor %}{%- endif %}{%- if message['role'] == 'assistant' and message['content'] is not none %}{% set content = message['content'] %}{% if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}{{'<｜Assistant｜>' + content + '<｜end▁of▁sentence｜>'}}{%- endif %}{%- if message['role'] == 'tool' %}{%- set ns.is_tool = true -%}{{'<｜tool▁output▁begin｜>' + message['content'] + '<｜tool▁output▁end｜>'}}{%- endif %}{%- endfor -%}{% if add_generation_prompt and not ns.is_tool %}{{'<｜Assistant｜>'}}{% endif %}"""

MACROS = """{%- macro render_type(spec, depth=0) -%}
  {%- if spec.type == "object" -%}
    { {%- for name, value in spec.properties | dictsort %}{{ name }}: {{ render_type(value, depth + 1) }}{{ ", " if not loop.last }}{% endfor -%} }
  {%- elif spec.type is string -%}
    {{- spec.type | upper }}{% if spec.enum %}({{ spec.enum | map('tojson') | join('|') }}){% endif %}
  {%- else -%}any{% endif -%}
{%- endmacro -%}
{%- macro box(title) %}[{{ title }}:{{ caller() | trim }}]{% endmacro -%}
{% set text %}
  {% for tool in tools or [] %}{{ tool.function.name }}({{ render_type(tool.function.parameters) }})
  {% endfor %}
{% endset %}
{{ text | trim | indent(2) }}
{% for m in messages if m.role != 'system' %}
{% if m.content is not string %}{% continue %}{% endif %}
{% call box(m.role) %} {{ m.content[:20] }} {% endcall %}
{% if loop.index == 3 %}{% break %}{% endif %}
{% else %}
nothing
{% endfor %}
{{ messages | map(attribute='role') | list }} {{ messages | rejectattr('role', 'in', ['user', 'tool']) | list | length }}
{%- filter upper %} done {{ loop is defined }}{% endfilter %}"""

TEMPLATES = {name: text for name, text in globals().copy().items() if name.isupper()
             and isinstance(text, str)}

TOOL = {"type": "function", "function": {
    "name": "get_weather", "description": "Say the \"weather\" <now> & then é",
    "parameters": {"type": "object", "properties": {
        "city": {"type": "string", "enum": ["Köln", "東京"]}, "days": {"type": "integer"},
        "x": {"type": ["string", "null"], "minimum": 0.5}}, "required": ["city"]}}}
CALL = {"role": "assistant", "content": None, "tool_calls": [
    {"type": "function", "id": "1", "function": {"name": "get_weather",
                                                 "arguments": {"city": "Köln", "days": 2}}}]}
USER = {"role": "user", "content": " How are\nyou? "}
CONVERSATIONS = [
    [USER], [{"role": "system", "content": "Be brief. "}, USER],
    [USER, {"role": "assistant", "content": "<think>\nhm\n</think>\n\nFine, thanks! "},
     {"role": "user", "content": "And {{ you }} {% now %}?"}],
    [{"role": "system", "content": "Sys"}, USER, CALL,
     {"role": "tool", "content": "{\"t\": 20}", "name": "get_weather"}, USER],
    [USER, dict(CALL, content="Wait"), {"role": "tool", "content": "a"},
     {"role": "tool", "content": "b"}],
    [{"role": "user", "content": [{"type": "text", "text": "Look "}, {"type": "image"}]}],
    [{"role": "assistant", "content": "I begin"}], [USER, USER], []]

# Expressions, in a template of their own each; x, s, l, d, n and u are the variables below.
VARIABLES = {"x": 7, "y": -3, "f": 2.5, "s": "Hello, World", "e": "", "w": " \t padded\n ",
             "l": [3, 1, 2, "b"], "k": [3, 1, 2], "m": [{"a": 1, "b": "Z"}, {"a": 2, "b": "y"}],
             "d": {"one": 1, "two": [1, 2], "items": "shadow", "n": None}, "n": None, "t": True,
             "u8": "naïve 日本 😀 ß"}
EXPRESSIONS = """x + y * 2|-x|x // 2|y // 2|x % 4|y % 4|-7 % 3|x / 2|x ** 2|f * 2|1e16|1.0|0.1 + 0.2|1e-5|100000000000000000000.0|x ~ s ~ n ~ t|s * 2|k * 2|k + [9]|(1, 2) + (3,)|(1,)|()|[]|{}|{'a': 1, 'b': [none, true]}|"it's"|['it\\'s', "a\\"b", 'é\\n']|s[0]|s[-1]|s[2:5]|s[::-1]|s[7:]|s[:-3]|k[::-1]|k[1:]|k[-2:]|k[5:]|k[3:0:-1]|u8[6:8]|u8 PIPE length|l[10]|l[10].x|d.one|d['one']|d.missing|d.missing.x|d.items|d['items']|d.keys()|d.values() PIPE list|d.items() PIPE list|d.get('one')|d.get('q')|d.get('q', 5)|n.x|undefined_name|undefined_name.x|undefined_name + 1|undefined_name is defined|undefined_name == undefined_name|'a' in s|'World' in s|1 in k|'1' in k|'one' in d|5 not in k|1 in s|1 in undefined_name|x == 7.0|t == 1|s == 'x'|1 < 2 < 3|1 < 2 > 3|x > 'a'|'a' < 'b'|[1, 2] < [1, 3]|not x|not e|x and e|e or s|e and x or 5|x if t|x if not t|x if not t else y|n is none|x is number|f is float|x is integer|t is number|t is boolean|s is string|d is mapping|k is iterable|s is iterable|x is iterable|k is sequence|d is sequence|x is odd|x is even|x is divisibleby 7|x is divisibleby(2)|x is eq 7|x is equalto 8|x is ne 7|x is gt 3|x is lt 3|x is in [7]|x is not in [7]|t is true|t is false|range is callable|s is upper|'AB' is upper|'ab' is lower|w PIPE trim|w.strip()|w.lstrip()|w.rstrip()|'xxaxx'.strip('x')|'xyaxy'.rstrip('xy')|s.split()|s.split(', ')|s.split('l')|s.split('l', 1)|' a  b '.split()|' a b c '.split(none, 1)|'a,b,c'.rsplit(',', 1)|s.startswith('Hell')|s.startswith(('x', 'H'))|s.endswith('d')|s.replace('l', 'L')|s.replace('l', 'L', 1)|'abc'.replace('', '-')|s.upper()|s.lower()|s.title()|"it's a dog-day".title()|s.capitalize()|s.find('World')|s.find('q')|s.count('l')|'-'.join(['a', 'b'])|'-'.join([1])|'a\\nb\\r\\nc'.splitlines()|'12'.isdigit()|'a1'.isalpha()|'prefix-a'.removeprefix('prefix-')|'a.b'.removesuffix('.b')|s PIPE upper|s PIPE lower|'hello wORLD-foo (bar'  PIPE title|'ABC def' PIPE capitalize|s PIPE replace('l', '1')|s PIPE replace('l', '1', 2)|k PIPE first|k PIPE last|[] PIPE first|s PIPE first|s PIPE last|k PIPE length|d PIPE length|undefined_name PIPE length|n PIPE length|x PIPE length|k PIPE join|k PIPE join(', ')|m PIPE join('-', attribute='a')|k PIPE sort|k PIPE sort(reverse=true)|['b', 'A', 'c'] PIPE sort|['b', 'A', 'c'] PIPE sort(case_sensitive=true)|l PIPE sort|m PIPE sort(attribute='b') PIPE map(attribute='b') PIPE list|m PIPE map(attribute='a') PIPE list|m PIPE map(attribute='q', default='none') PIPE list|k PIPE map('string') PIPE list|m PIPE selectattr('a', 'equalto', 2) PIPE list|m PIPE selectattr('b') PIPE list|m PIPE rejectattr('a', 'gt', 1) PIPE list|m PIPE selectattr('q', 'defined') PIPE list|k PIPE select('odd') PIPE list|k PIPE reject('odd') PIPE list|k PIPE select PIPE list|[1, 1, 2, 'a', 'A'] PIPE unique PIPE list|k PIPE reverse PIPE list|s PIPE reverse|k PIPE sum|m PIPE sum(attribute='a')|k PIPE min|k PIPE max|[] PIPE max|d PIPE dictsort|d PIPE items PIPE list|undefined_name PIPE items PIPE list|n PIPE items PIPE list|x PIPE string|'42' PIPE int|' 42.7 ' PIPE int|'q' PIPE int|'q' PIPE int(5)|f PIPE int|n PIPE int|'2.5' PIPE float|x PIPE float|y PIPE abs|2.567 PIPE round(2)|2.5 PIPE round|x PIPE round|2.1 PIPE round(method='ceil')|undefined_name PIPE default('q')|e PIPE default('q')|e PIPE default('q', true)|n PIPE d('q', true)|undefined_name PIPE d|d PIPE tojson|d PIPE tojson(indent=2)|[] PIPE tojson(indent=2)|k PIPE tojson(indent=1)|u8 PIPE tojson|u8 PIPE tojson(ensure_ascii=true)|'<a & \\'b\\'>\\u0001\\x7f\\t"' PIPE tojson|[1.0, 1e20, none, true] PIPE tojson|d PIPE tojson(separators=(',', ':'))|{'b': 1, 'a': 2} PIPE tojson(sort_keys=true)|{1: 2, none: 3, true: 4} PIPE tojson|(1, 2) PIPE tojson|undefined_name PIPE tojson|'a\\nb\\n\\nc' PIPE indent|'a\\nb\\n\\nc' PIPE indent(2, true)|'a\\nb\\n\\nc' PIPE indent(2, blank=true)|'a\\nb' PIPE indent('> ')|u8 PIPE upper|u8.title()|range(3) PIPE list|range(1, 10, 3) PIPE list|range(5, 0, -2) PIPE list|dict(a=1, b=2)|namespace(a=1).a|namespace(a=1).q|strftime_now('%d %B %Y %H:%M:%S %A %j')|strftime_now('%d %b %Y, %a %B %y %m %I %p %M %S %A %H %%')|raise_exception('no ' ~ x)|k.append(4)|d.update({})|d.pop('one')|s.nothing|s.nothing()|x()|x.y|x[0]|n[0]|'a' 'b'|1_000|-x PIPE abs|2 ** 3 ** 2|1 + 2 ~ 3 + 4|(x)(1)|s is defined and x|[x, y][0]|{'a': x}.a|{'a': x}['a']|'%s' % x|x is foo|x PIPE foo|x +|1 +* 2|k[0:1:0]|k.0|m.0.a|'\\x41\\u00e9\\q'|true and True|none == None|k == [3, 1, 2]|d == d|(1, 2) == [1, 2]|1.5 // 0.5|7.5 % 2|-7.5 % 2|1 / 0|1 // 0|1.0 / 0|'x' ~ undefined_name ~ 'y'|[undefined_name]|t + t|t ~ 1|9223372036854775807 + 0|s[x:]|s[none:3]|s['a']|x.__class__|s.__class__|e.join(k PIPE map('string'))|k.index(2)|k.index(9)|k.count(1)|s.format(1)|loop|caller|self|s PIPE safe|k PIPE tojson PIPE length|(k PIPE length) > 2|k PIPE length > 2 and x is defined|not x is defined|x is not defined|s is string and s PIPE length > 3|x if s is string else y"""


def expressions():
    return [each.replace("PIPE", "|") for each in EXPRESSIONS.split("|")]


STATEMENTS = [
    "a\n{% if x %}\n  b\n{% endif %}\nc\n", "  {% if x %}  y  {% endif %}  \n z",
    "a {%- if x -%}  b  {%- endif -%}  c", "a\n  {%+ if x %}b{% endif +%}\nc", "{# c #}\nx {#- d -#} y",
    "  {# c #}\n  x", "{% raw %}{{ x }} {% if %}{% endraw %}\nz", " {%- raw -%}  {{ a }}  {%- endraw -%} z",
    "{{ x -}}  \n y {{- x }}", "{{ x }}\n\n", "\n\n{{ x }}\n", "a\r\nb\rc\n",
    "{% for i in k %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.cycle('a', 'b') }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.depth }};{% endfor %}{{ loop }}",
    "{% for a, b in d.items() %}{{ a }}={{ b }};{% endfor %}", "{% for a, b in k %}{% endfor %}",
    "{% for c in 'ab' %}{{ c }}{% else %}none{% endfor %}{% for c in [] %}{% else %}none{% endfor %}",
    "{% for c in undefined_name %}x{% else %}none{% endfor %}", "{% for c in n %}x{% endfor %}",
    "{% for c in x %}{% endfor %}", "{% for i in range(10) if i is odd %}{{ loop.index }}:{{ i }} {% endfor %}",
    "{% set q = 1 %}{% for i in k %}{% set q = q + i %}{{ q }} {% endfor %}{{ q }}",
    "{% set ns = namespace(q=1) %}{% for i in k %}{% set ns.q = ns.q + i %}{% endfor %}{{ ns.q }}",
    "{% if t %}{% set q = 5 %}{% endif %}{{ q }}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set a = 1, 2 %}{{ a }}",
    "{% set q | upper | trim %} a{{ x }} {% endset %}[{{ q }}]", "{% set d.x = 1 %}", "{% set q.x = 1 %}",
    "{% macro f(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ f(1) }}{{ f(1, 3) }}{{ f(b=4, a=0) }}{{ f() }}",
    "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, 2) }}", "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(q=2) }}",
    "{% macro f(a) %}{{ a.x }}{% endmacro %}{{ f() }}", "{% macro f() %}{{ q }}{% endmacro %}{% set q = 3 %}{{ f() }}",
    "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }}",
    "{% macro f() %}[{{ caller(1) }}]{% endmacro %}{% call(v) f() %}{{ v }}{{ x }}{% endcall %}",
    "{% macro f() %}{{ caller is defined }}{% endmacro %}{{ f() }}", "{% macro f() %}a{% endmacro %}{% set v = f() %}{{ v }}{{ v is string }}{{ f }}"[:-7],
    "{% with a = 1, b = x %}{{ a }}{{ b }}{% endwith %}{{ a }}", "{% with %}{% set a = 1 %}{% endwith %}{{ a }}",
    "{% filter upper %}a{{ s }}{% endfilter %}", "{% generation %}{% set q = 1 %}a{% endgeneration %}{{ q }}",
    "{% for i in k %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% endfor %}",
    "{% for i in k %}{% if i == 1 %}{% break %}{% endif %}{{ i }}{% endfor %}", "{% break %}",
    "{% if x %}", "{% endif %}", "{% for x %}", "{{ x", "{% if x }}", "{{ (x }}", "{{ 'a }}", "{# a", "{% foo %}",
    "{{ x }} { { } } {a} %} }}", "{{ '}}' }}{{ '%}' }}", "{{ {'a': {'b': 1}}['a']['b'] }}", "{{- x -}}", "{%- set q = 1 -%}\n\n{{ q }}",
    "{% if x == 7 %}A{% elif x == 8 %}B{% else %}C{% endif %}", "{% if not x %}A{% elif x %}B{% endif %}",
    "{% for i in k %}{% for j in k %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}",
    "{% for i in k %}{% set l2 = loop %}{% for j in k %}{{ l2.index }}{% endfor %}{% endfor %}",
    "{% for m2 in m %}{{ m2.a }}{% if not loop.last %}, {% endif %}{% endfor %}", "\u00a0{% if x %}\u2003{% endif %}\n",
    "x  {%- if t %} y{% endif %}", "{% if t -%}\n\n y\n{%- endif %}\n\nz", "{%if t%}a{%endif%}", "{{x}}{{-y-}} z",
    "{{ x }}{% set q %}{% endset %}{{ q is string }}", "{% for i in range(200000) %}{% endfor %}",
    "{% set q = [] %}{% for i in k %}{% set q = q + [i] %}{% endfor %}{{ q }}",
    "{% set q = {'a': 1} %}{% for k2, v in q | items %}{{ k2 }}{{ v }}{% endfor %}", "{{ 1, 2 }}", "{{ }}", "{{ () }}",
]
