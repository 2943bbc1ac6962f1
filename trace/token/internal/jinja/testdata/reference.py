"""Makes jinja.json: what Jinja2 gives for small templates, set up as transformers sets it up for chat templates.

    python3 reference.py > jinja.json    # Jinja2 3.1
"""
import datetime
import json
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

VARS = {
    "messages": [
        {"role": "system", "content": " Be brief.\n"},
        {"role": "user", "content": "Zürich, 東京 & <b>'x'</b>"},
        {"role": "assistant", "content": "a\nb", "tool_calls": [{"function": {"name": "f", "arguments": {"z": 1, "a": [1.0, True, None]}}}]},
        {"role": "tool", "content": "", "n": 3},
    ],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"z": {"type": "integer"}, "a": {}}}}}],
    "text": "Hello World", "empty": "", "n": 7, "f": 2.5, "yes": True, "nothing": None,
    "list": [3, 1, 2], "words": ["b", "A", "c", "b"], "d": {"z": 1, "a": "two", "m": None},
    "big": 12345678901234567890123, "tiny": 1e-7, "huge": 1e22,
}

TEMPLATES = r"""
{{ text }}
{{text}}|{{ empty }}|{{ missing }}|{{ nothing }}|{{ yes }}|{{ n }}|{{ f }}|{{ big }}|{{ tiny }}|{{ huge }}
{{ 1 + 2 * 3 }} {{ (1 + 2) * 3 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 10 }} {{ 7 % 4 }} {{ 1.5 + 1 }} {{ 3.0 }} {{ 6 / 2 }}
{{ -n }} {{ +n }} {{ - -n }} {{ -5 | abs }} {{ not yes }} {{ not not yes }}
{{ 'a' ~ 1 ~ none ~ true }} {{ 'a' + 'b' }} {{ 'ab' * 3 }} {{ [1] + [2] }}
{{ 'x' if yes else 'y' }} {{ 'x' if not yes else 'y' }} {{ 'x' if not yes }}| {{ ('a' if yes else 'b') + 'c' }} {{ 1 if 0 else 2 if 0 else 3 }}
{{ 1 == 1.0 }} {{ true == 1 }} {{ 'a' != 'b' }} {{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 'a' < 'b' }} {{ [1, 2] == [1, 2] }} {{ nothing == missing }}
{{ 'lo' in text }} {{ 'x' not in text }} {{ 3 in list }} {{ 'z' in d }} {{ 'q' in missing }} {{ not 'q' in text }}
{{ yes and text }} {{ empty or 'else' }} {{ empty and 1 }} {{ 0 or nothing }} {{ yes or 1 / 0 }}
{{ list[0] }} {{ list[-1] }} {{ list[1:] }} {{ list[:-1] }} {{ list[::-1] }} {{ list[::2] }} {{ list[5:] }} {{ list[-9:2] }} {{ text[0] }} {{ text[-3:] }} {{ text[::-1] }} {{ text[2:20:3] }} {{ messages[1].content[1] }} {{ messages[1]['content'][2:8] }}
{{ d.z }} {{ d['a'] }} {{ d.q }} {{ d['q'] }} {{ d.m }} {{ d.q is defined }} {{ d.m is none }} {{ d['items'] is callable }} {{ nothing.x }}
{{ d }} {{ list }} {{ [1.0, 'it\'s', "q\"", none, true, {'k': [ ]}] }} {{ ('a', 1) | list }}
{{ d.items() | list | tojson }} {{ d.keys() | list }} {{ d.values() | list }} {{ d.get('z') }} {{ d.get('q') }} {{ d.get('q', 5) }} {{ d | length }} {{ d | dictsort | tojson }}
{{ text.upper() }} {{ text.lower() }} {{ text.title() }} {{ 'hELLO wORLD' | title }} {{ 'hELLO' | capitalize }} {{ text.split() }} {{ text.split('o') }} {{ 'a,b,c'.split(',', 1) }} {{ 'a,b,c'.rsplit(',', 1) }} {{ ''.split(',') }}
[{{ messages[0].content.strip() }}] [{{ messages[0].content | trim }}] [{{ '--a--'.strip('-') }}] [{{ '--a--'.lstrip('-') }}] [{{ '--a--'.rstrip('-') }}] [{{ '\n\t x \x1c' | trim }}]
{{ text.startswith('He') }} {{ text.endswith(('ld', 'x')) }} {{ text.replace('o', '0') }} {{ text.replace('o', '0', 1) }} {{ text | replace('l', 'L') }} {{ text.find('W') }} {{ text.count('l') }} {{ '-'.join(['a', 'b']) }} {{ '42'.isdigit() }}
{{ list | join(',') }} {{ words | join }} {{ messages | map(attribute='role') | join(', ') }} {{ words | map('upper') | list }} {{ list | sort }} {{ words | sort }} {{ list | sort(reverse=true) }} {{ words | unique | list }} {{ list | first }} {{ list | last }} {{ [] | first }}| {{ list | reverse | list }}
{{ messages | selectattr('role', 'equalto', 'user') | list | length }} {{ messages | rejectattr('role', 'in', ['user', 'tool']) | map(attribute='role') | list }} {{ messages | selectattr('n') | list | length }} {{ messages | selectattr('tool_calls', 'defined') | list | length }} {{ list | select('odd') | list }} {{ list | reject('even') | list }} {{ none | selectattr('x') | list }}
{{ missing | default('d') }} {{ empty | default('d') }} {{ empty | default('d', true) }} {{ nothing | default('d', boolean=true) }} {{ missing | default }}|
{{ '12' | int }} {{ 'x' | int }} {{ 'x' | int(5) }} {{ 3.9 | int }} {{ '2.5' | float }} {{ n | string | length }} {{ text | length }} {{ messages[1].content | length }}
{{ '<a href="x">\'&' | escape }} {{ text | safe }}
{{ d | tojson }} {{ messages[1].content | tojson }} {{ messages[2].tool_calls | tojson }} {{ "a\"\\\n\t\x01\x7fé😀" | tojson }} {{ "é😀" | tojson(ensure_ascii=true) }} {{ big | tojson }} {{ tiny | tojson }} {{ 1e16 | tojson }} {{ 123456.0 | tojson }}
{{ tools | tojson(indent=4) }}
{{ tools | tojson(indent=2, sort_keys=true) }} {{ [] | tojson(indent=4) }} {{ {} | tojson }} {{ d | tojson(separators=(',', ':')) }} {{ [1, [2]] | tojson }}
{{ 'a\nb\n\nc' | indent }} {{ 'a\nb' | indent(2, true) }}
{% if yes %}yes{% else %}no{% endif %} {% if empty %}1{% elif n > 5 %}2{% else %}3{% endif %}
{% for m in messages %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.cycle('a', 'b') }}{{ loop.previtem.role if loop.previtem is defined }}{{ loop.nextitem.role if not loop.last }};{% endfor %}
{% for x in list if x > 1 %}{{ x }}/{{ loop.length }} {% else %}none{% endfor %}{% for x in [] %}x{% else %}none{% endfor %}{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for k in d %}{{ k }}{% endfor %}{% for c in 'é東' %}[{{ c }}]{% endfor %}{% for x in missing %}x{% endfor %}
{% for x in list %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% if x == 2 %}{% break %}{% endif %}{% endfor %}{% for x in list %}{% for y in list %}{% if y == 1 %}{% break %}{% endif %}{{ x }}{{ y }} {% endfor %}{{ loop.index }}{% endfor %}
{% set x = 1 %}{% for y in list %}{% set x = y %}{{ x }}{% endfor %}{{ x }}{% if yes %}{% set x = 5 %}{% endif %}{{ x }}{% set a, b = [1, 2] %}{{ a }}{{ b }}{% set t = 1, 2 %}{{ t | list }}{% set block %}in {{ n }} block{% endset %}{{ block }}
{% set ns = namespace(a=1, b='x') %}{% for y in list %}{% set ns.a = ns.a + y %}{% endfor %}{{ ns.a }}{{ ns.b }}{% set ns.c = 3 %}{{ ns.c }}{{ ns.q is defined }}
{% macro f(a, b=2, c=b) %}[{{ a }}{{ b }}{{ c }}{{ n }}]{% endmacro %}{{ f(1) }}{{ f(1, 3) }}{{ f(a=5, c=6) }}{{ f() }}
{% macro fact(i) %}{% if i > 0 %}{{ i }} {{ fact(i - 1) }}{% endif %}{% endmacro %}{{ fact(4) }}
{% for i in range(3) %}{{ i }}{% endfor %}{% for i in range(5, 0, -2) %}{{ i }}{% endfor %}{{ range(2, 4) | list }}{{ range(0) | list }}
{{ text is string }} {{ n is number }} {{ n is integer }} {{ f is float }} {{ d is mapping }} {{ d is iterable }} {{ text is iterable }} {{ list is sequence }} {{ n is iterable }} {{ nothing is none }} {{ missing is undefined }} {{ yes is boolean }} {{ yes is true }} {{ n is odd }} {{ n is not even }} {{ n is divisibleby 7 }} {{ n is divisibleby(2) }} {{ n is eq 7 }} {{ n is gt(3) }} {{ 1 is in list }} {{ yes is number }} {{ text is not none and n is defined }}
{{ {0: 'a', 512: 'b'}[512] }} {% for k, v in {512: 128, 0: 0} | dictsort %}{{ k }}={{ v }},{% endfor %} {{ {0: 0, 512: 128}.get(512) }} {{ {1: 2} }} {{ {1: 2} | tojson }} {{ 1 in {1: 2} }} {{ '1' in {1: 2} }} {{ {1: 2}['1'] is defined }} {% for k in {7: 1} %}{{ k + 1 }}{% endfor %}
{{ {'b': 2, 'A': 3, 'a': 1} | dictsort | map('first') | list }} {{ {'b': 2, 'a': 3} | dictsort(by='value') | map('first') | list }} {{ {'b': 2, 'a': 3} | dictsort(reverse=true) | map('first') | list }} {{ {'b': 1, 'A': 2} | dictsort(true) | map('last') | list }}
{{ list | select('>', 1) | list }} {{ messages | selectattr('role', '==', 'user') | list | length }} {{ list | select('<=', 2) | list }} {{ list | reject('greaterthan', 2) | list }} {{ list | select('!=', 2) | list }}
{{ '3.9' | int }} {{ '-3.9' | int }} {{ '1e3' | int }} {{ text.rfind('o') }} {{ text.find('o') }} {{ text.rfind('q') }}
{{ dict(a=1).a }} {{ dict(d, q=5).q }} {{ {'a': 1}['a'] }} {{ {'a': 1, 'a': 2} }} {{ {'output': text} | tojson }}
a{# comment #}b{#- strip -#} c {%- raw %}{{ x }}{% y %}{% endraw -%} d
{{ '{{' }} {{ "%}" }} {% set x = {'a': {'b': 1}} %}{{ x.a.b }}{{ {'a': {'b': 2}}.a.b }}
{{ 'a' 'b' }} {{ '\u00e9\x41\\' }} {{ "\q" }} {{ 1_000 }} {{ 1e3 }}
{{- text -}} x {{- n }} {{ n -}}

 y
{{ 1 / 0 }}
{{ missing.x }}
{{ missing() }}
{{ nothing | length }}
{{ 'a' + 1 }}
{{ 1 < 'a' }}
{% for x in nothing %}{% endfor %}
{% set d.x = 1 %}
{{ 1 in nothing }}
{{ messages | tojson }}
{{ f(1, 2, 3) if false }}{{ (1, 2)[0] }} {{ [1, 2,] }} {{ {'a': 1,} }}
{{ text | upper | lower | length }} {{ text|trim|length + 1 }} {{ (list | length) - 1 }} {{ list|length - 1 }} {{ -1 | abs }}
{{ n is not none }} {{ not n is none }} {{ n is defined and d.z == 1 or false }} {{ text == 'Hello World' and 'x' }}
{{ (1, 2) }} {{ (1,) }} {{ () }} {{ [(1, 'a')] }} {{ d.items() | list }} {{ d | dictsort }} {{ (d.items() | list)[0][1] }} {{ 1, 2 }} {{ (1,) + (2,) }} {{ (1, 2) == [1, 2] }} {{ (1, 2) == (1, 2) }} {{ (1, 2)[1:] }} {{ (1, 2) | tojson }}
{{ [1] + (2,) }}
{{ 'yes' if messages | selectattr('role', 'equalto', 'nobody') else 'no' }} {{ 'yes' if [] | map('upper') else 'no' }} {{ 'yes' if [] | select | list else 'no' }} {{ words | map('upper') is sequence }} {{ words | reverse is iterable }}
{% set it = words | map('upper') %}{{ it | list }}{{ it | list }}{% set it = messages | selectattr('role', 'equalto', 'user') %}{% for m in it %}{{ m.role }}{% endfor %}{% for m in it %}{{ m.role }}{% endfor %}
{{ messages | selectattr('role', 'equalto', 'user') | length }}
{{ messages | rejectattr('role', 'equalto', 'user') | last }}
{{ words | map('upper') | tojson }}
{{ d.items() | tojson }}
{{ dict(z=1, a=2, m=3) }} {{ dict({'q': 0}, z=1, a=2) }} {% set ns = namespace(z=1, a=2) %}{{ ns.z }}{{ ns.a }}
{% macro f(a, b=3) %}{{ a }}{{ b }}{% endmacro %}{{ f(*[1, 2]) }} {{ f(*[1]) }} {{ f(0, *[2]) }} {% set fs = [f] %}{{ fs[0](*[[7]][0]) }}
{% macro f(a) %}{{ a }}{% endmacro %}{{ f(b=2) }}
{% macro w(a) %}<{{ a }}{{ caller() }}>{% endmacro %}{% set n = 'n' %}{% call w('q') %}in {{ n }}{% endcall %}{% call w(a=2) %}{% for x in list %}{{ x }}{% endfor %}{% endcall %}
{% macro w(a) %}{{ caller is defined }}{% endmacro %}{{ w(1) }}{% call w(1) %}{% endcall %}
{{ yes + 1 }} {{ yes * 2 }} {{ -yes }} {{ 7 // yes }} {{ 'a' * yes }} {{ n is eq d.z + 6 }} {{ 2 ** 3 ** 2 }} {{ 2 ** 62 }} {{ 2.0 ** 3 }} {{ 2 ** -1 }} {{ 4 ** 0.5 }} {{ (-3) ** 3 }} {{ 0 ** 0 }} {{ 10 ** 18 }}
{{ 99999999999999999999 }} {{ big | int }} {{ big == 12345678901234567890123 }} {{ 'inf' | float }} {{ '1e400' | float }} {{ 'x' | float(1.5) }} {{ 'x' | float(default=2) }} {{ 'x' | float }}
{{ 1 is sameas 1 }} {{ 1 is sameas true }} {{ yes is sameas true }} {{ 1 is sameas 1.0 }} {{ nothing is sameas none }} {{ empty is sameas false }}
{{ ['a', 'A', 'b'] | unique | list }} {{ 'aBA' | unique | list }} {{ ['a', 'A', 'b'] | unique(true) | list }} {{ [1, 1.0, 2] | unique | list }}
{{ "it's" | title }} {{ "it's".title() }} {{ 'a-b_c d(e [f' | title }} {{ 'snake_case' | title }} {{ 'hELLO' | title }}
{{ '\101\7\0' | tojson }} {{ '\60' }} {{ 'a\nb\r\nc\rd\x0be\x85f\u2028g'.splitlines() }} {{ 'a\n\n'.splitlines() }} {{ 'a\nb' | indent('> ') }} {{ 'a\r\nb\n' | indent }}|
{% for x in list %}{% break %}{% else %}n{% endfor %}{% for x in list %}{% continue %}{% else %}m{% endfor %}{% for x in list %}{% if x == 1 %}{% break %}{% endif %}{% else %}k{% endfor %}
{{ 'yes' if true else (n | frobnicate) }}{% if false %}{{ n | frobnicate }}{% endif %}{% if false %}{{ n is frobnicated }}{% endif %}
{% set m = [[1, [2, 3]]] %}{{ m.0.1 }} {{ m.0.1.1 }} {{ 1.5 }}
{{ true }} {{ True }} {{ none }} {{ None }} {{ false }}
""".strip("\n").split("\n")

BLOCKS = [
    "{% if yes %}\n  yes\n{% endif %}\n",
    "  {% if yes %}\n    a\n  {% endif %}  \nb\n\n",
    "{%- for m in messages %}\n    {{- m.role }}\n    {%- if not loop.last %}\n, {% endif %}\n{%- endfor %}\n",
    "a\n   {%+ if yes %}\nb{% endif +%}\nc",
    "a\n   {# x #}\nb\n   {#- x #}\nc  {#- y -#}  \n d",
    "{% set x = 1 %}\n\n{{ x }}\n   {{ x }}\n   {{- x }}\n",
    "x {% if yes %} y {% endif %} z\n",
    "a\r\n{% if yes %}\r\nb\r\n{% endif %}c\r",
    "\n\n{{ n }}\n\n",
    "{% raw %}\n {{ a }} {% endraw %}\nb",
    "  {%- raw -%}  {{ a }}  {%- endraw -%}  b",
    "{% generation %}x{% endgeneration %}",
    "\t{% if yes %}a{% endif %}\n \t{% if yes -%}  b{% endif %}",
    "{{ n }}\n{% if yes %}x{% endif %}\n{{ n }}",
    "{% for m in messages -%}\n   {{ m.role }}\n{% endfor -%}\n\n end",
    "{%\nif yes\n%}a{%\nendif\n%}",
    "{% macro m() -%}\n  x\n{%- endmacro %}\n[{{ m() }}]",
]


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        lineno = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.Scope(body).set_lineno(lineno)


def main():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env.filters["tojson"] = tojson
    cases = []
    for source in TEMPLATES + BLOCKS:
        try:
            cases.append({"source": source, "want": env.from_string(source).render(**VARS)})
        except Exception as e:
            cases.append({"source": source, "fails": type(e).__name__})
    print(json.dumps({"vars": VARS, "cases": cases}, ensure_ascii=False, indent=1))


main()
