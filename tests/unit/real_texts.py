# ruff: noqa: RUF001 - people write Greek, Japanese and typographic quotes
"""Texts that people and models really write and that look like something else: code, JSON, tracebacks, logs, tables."""

from __future__ import annotations

import json

_TRACEBACK = """Traceback (most recent call last):
  File "app.py", line 12, in <module>
    main()
  File "app.py", line 8, in main
    print(settings["port"])
KeyError: 'port'"""
_LOG = """2026-03-01 12:00:01 INFO  worker[3] started id=17 queue='mail'
2026-03-01 12:00:02 ERROR worker[3] failed id=17 error=TimeoutError('no reply in 30 s')
2026-03-01 12:00:03 INFO  worker[3] retry=1 of=5"""
_TABLE = """| plan | price | seats |
|------|------:|------:|
| Solo | 9 EUR | 1 |
| Team | 29 EUR | 10 |"""
_PEM = "-----BEGIN CERTIFICATE-----\n" + "\n".join(
    ["MIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ"] * 8
)
_PEM += "\n-----END CERTIFICATE-----\nWhen does this certificate run out?"
_TOKEN = "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ" * 4
_LONG = "The fee is waived when all of this holds. " * 120 + "When is the fee waived?"

QUESTIONS: tuple[str, ...] = (
    "`Document(page_content='x', metadata={})`: why does it print this?",
    "Document(page_content='x', metadata={}) is what I see on the page instead of text. Why?",
    "What does <generator object stream at 0x7f3a2c> mean?",
    "I get [<Foo object at 0x10f>, <Foo object at 0x11a>] when I print my list. How do I fix it?",
    "Why does id='42' source='user' show up in my output?",
    f"Why does this fail?\n\n{_TRACEBACK}",
    f"{_TRACEBACK}\n\nWhat is wrong here?",
    f"Here is the log:\n{_LOG}\nWhich job failed?",
    f"{_TABLE}\n\nWhich plan is right for eight people?",
    _PEM,
    f"Decode this token for me: {_TOKEN}",
    _LONG,
    "What is aGVsbG8gd29ybGQ= in plain text?",
    "Decode data:text/plain;base64,SGVsbG8sIFdvcmxkIQ== please",
    "Is sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 the hash of an empty file?",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "SELECT name, count(*) FROM users WHERE city='Graz' GROUP BY name; why is it slow?",
    "SELECT * FROM orders WHERE note = 'x'",
    "print('hello')",
    "print(json.dumps({'a': 1}, indent=2))",
    "df.sort_values(by='a', ascending=False)",
    "def f(x): return x + 1\nf('a')",
    "x = [1, 2, 3]; x[5]",
    "a=1 b=2 c=3, what is a+b+c?",
    "lambda x: x['name']",
    '{"name": "Ada", "age": 36} is this valid JSON?',
    'Validate: {"a": [1, 2, {"b": null}]}',
    '{"port": 8080, "host": "localhost"}',
    '["a", "b"]',
    "[1, 2, 3]",
    "(1, 2)",
    "null",
    "None",
    "NULL or None, which is right?",
    "42",
    "3.14",
    "O(n log n)",
    "O(1)",
    "f(x) = 2x + 1",
    "[link](https://example.org/a?b=c&d=e)",
    "https://example.org/very/long/path?with=query&and=more#fragment",
    "<b>bold</b>: how do I write this in Markdown?",
    "<div class='x'><p>Why is this not centred?</p></div>",
    "<svg width='10' height='10'></svg>",
    "What is <tag> in XML, and how do I escape it?",
    "<task>mow</task> is what my script prints. Why not <task>mow the lawn</task>?",
    "```python\nfor i in range(3):\n    print(i)\n```\nWhat does it print?",
    "Current Task: finish the report. How do I word the opening?",
    "New task: what is the capital of Peru?",
    "Begin! Who said that, and where?",
    "Thought: is it not odd that nobody asked?",
    "Action: what does it mean in law?",
    "You must return the book by Friday, mustn't you?",
    "Observation: the light is off. What could it be?",
    "Final Answer: is that a game show?",
    "What do 'you MUST return the actual complete content' and 'Begin!' mean in my agent's log?",
    "Why is `[[ ## answer ## ]]` in my output?",
    "Is 'key=value' the same as \"key: value\" in YAML?",
    "server:\n  port: 8080\n  name: 'x'\nIs this valid YAML?",
    "[section]\nkey='value'\nother=2",
    "export PATH=$PATH:/usr/local/bin",
    "curl -s -X POST -H 'Content-Type: application/json' -d '{\"a\": 1}' http://localhost:8080/v1/x",
    "grep -rn \"foo(bar='x')\" . | wc -l",
    "git log --oneline | head -5",
    "rm -rf build/ && make -j4",
    "Γειά σου, τι ώρα ανοίγει;",
    "¿Cuánto cuesta el billete para niños?",
    "東京タワーは何時に閉まりますか？",
    "a" * 150,
    "ACGT" * 60,
    "MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQAPILSRVGDGTQDNLSGAEKAVQVKVKALPDAQFEVVHSLAKWKRQTLGQHDFSAGEGLYTHMKALRPDEDRLS",
    "0x7f3a2c",
    "C:\\Users\\ada\\Documents\\plan.docx, where is it?",
    "name,price\napple,1.20\npear,0.90\nWhich is dearer?",
    "Q: what? A: that.",
    '“Quoted”, ‘quoted’ and "quoted": which is right?',
    "It's \"quiet\" here, isn't it?",
    "Hi!",
    "?",
)

ANSWERS: tuple[str, ...] = (
    '{"port": 8080, "host": "localhost"}',
    '{"name": "Ada", "tags": ["x", "y"], "output": "kept", "n": 1}',
    '["first", "second"]',
    "[1, 2, 3]",
    '{"a": 1}',
    '```json\n{"a": 1}\n```',
    '```python\nclass Foo:\n    def __repr__(self):\n        return f"Foo(x={self.x!r})"\n```',
    "Foo(x=1, y='a')",
    "Dense(units=10, activation='relu')",
    "df.sort_values(by='a', ascending=False)",
    "print('hello')",
    "SELECT name FROM users WHERE id = 1;",
    _TRACEBACK,
    _LOG,
    _TABLE,
    "It prints `<generator object f at 0x7f3a2c>` because you never iterate over it.",
    "A `Document(page_content='...')` is an object; print its `page_content`.",
    "O(1)",
    "42",
    "(a) yes, (b) no",
    "[1] See the handbook, page 3. [2] See the price list.",
    "<p>It opens at <b>nine</b>.</p>",
    "Thought leaders disagree: some say yes.",
    "The action: press the red button.",
    "Answer: nine crowns.",
    "Current task: none. You are done.",
    "key='value'\nother='thing'",
    "name: x\nsteps:\n  - run: make\n",
    json.dumps({"results": [{"id": 1, "title": "x"}], "total": 1}),
    "data:image/gif;base64,R0lGODlhAQABAAAAACw= is a picture of one pixel.",
    "Sorry, I do not know.",
    'I cannot say; the handbook ends with "TERMINATED".',
)

PASSAGES: tuple[str, ...] = (
    "A Document(page_content=...) holds text and metadata; see chapter 2.",
    _TRACEBACK,
    _LOG,
    _TABLE,
    "def f():\n    yield 1\n\n# f() is <generator object f at 0x7f3a2c>",
    "Observation: the bridge is closed in winter.",
    "Current Task: every evening, close the dome. You MUST return the key.",
    "Final Answer: the name of a quiz that ran until 1999.",
    "Question: What is due? Answer: the fee.",
    "<p>Opening hours: 9 to 17.</p>",
)
