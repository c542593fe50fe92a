"""Configuration files: what is refused, in which words, and in which line."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import TypeAdapter, ValidationError

from tracescore.config import DEFAULT_MEASURES, Config, OtlpExporterConfig
from tracescore.config.file import load, parse
from tracescore.config.types import Secret, Section, host_port, is_loopback
from tracescore.errors import ConfigError, UsageError

A_LINK = "a URL that begins with http:// or https:// expected, such as http://jaeger/trace/{trace_id}"
LINK_HOST = "a URL with the name of its host expected; what is filled in stands after it"
FILLED_IN = "{trace_id}, {span_id}, {start}, {end}"
BRACES = "write other braces as %7B and %7D"

BAD: dict[str, tuple[str, list[str]]] = {
    "a value out of range": (
        "sampling:\n  ratio: 5\n",
        ["f.yaml:2: sampling.ratio: must be less than or equal to 1; got 5"],
    ),
    "a misspelt setting gets a hint": (
        "sampling:\n  min_ratoi: 0.1\n",
        ["f.yaml:2: sampling.min_ratoi: unknown setting; did you mean 'min_ratio'?"],
    ),
    "a misspelt section gets a hint": (
        "samplign: {}\n",
        ["f.yaml:1: samplign: unknown setting; did you mean 'sampling'?"],
    ),
    "a setting of one kind of judge gets a hint of that kind": (
        "judge:\n  kind: openai\n  model: m\n  prise: {input: 1, output: 2}\n",
        ["f.yaml:4: judge.prise: unknown setting; did you mean 'price'?"],
    ),
    "a missing setting is reported where its section stands": (
        "\njudge:\n  kind: openai\n",
        ["f.yaml:2: judge.model: required, but not set"],
    ),
    "a kind that does not exist": (
        "judge: {kind: foo}\n",
        ["f.yaml:1: judge: kind must be one of 'embedded', 'openai'; got 'foo'"],
    ),
    "a duration without unit": (
        "drift: {window: 1}\n",
        ["f.yaml:1: drift.window: a duration with its unit expected, such as 500ms, 30s, 5m, 1h or 7d; got 1"],
    ),
    "a size without unit": (
        "receiver: {max_request: 5}\n",
        ["f.yaml:1: receiver.max_request: a size with its unit expected, such as 512KiB, 16MiB or 1GiB; got 5"],
    ),
    "a size of nothing": (
        "receiver: {max_request: 0B}\n",
        ["f.yaml:1: receiver.max_request: a size above 0 expected; got '0B'"],
    ),
    "a request larger than gRPC can count": (
        "receiver: {max_request: 3GiB}\n",
        ["f.yaml:1: receiver.max_request: must be less than or equal to 2147483647; got '3GiB'"],
    ),
    "a duration longer than anybody means": (
        "drift: {window: 1000000d}\n",
        ["f.yaml:1: drift.window: a duration above 0 and of at most 366d expected; got '1000000d'"],
    ),
    "a number without end": (
        "sampling: {max_per_minute: 1e999}\n",
        ["f.yaml:1: sampling.max_per_minute: must be a finite number; got 1e999"],
    ),
    "a URL where an address belongs": (
        "web: {listen: 'http://localhost:1'}\n",
        ["f.yaml:1: web.listen: an address HOST:PORT expected, such as 127.0.0.1:4317; got 'http://localhost:1'"],
    ),
    "an address without port": (
        "web: {listen: 127.0.0.1}\n",
        ["f.yaml:1: web.listen: an address HOST:PORT expected, such as 127.0.0.1:4317; got '127.0.0.1'"],
    ),
    "a measure that does not exist": (
        "measures: [faithfullness]\n",
        [
            (
                "f.yaml:1: measures: one of answer_relevancy, completeness, faithfulness, context_precision expected; "
                "got 'faithfullness'; did you mean 'faithfulness'?"
            )
        ],
    ),
    "a gold set without a way to the app": (
        "gold:\n  set: faq.yaml\n",
        ["f.yaml:1: gold.target: required, but not set"],
    ),
    "a gold target of a kind that does not exist": (
        "gold: {set: faq.yaml, target: {kind: grpc}}\n",
        ["f.yaml:1: gold.target: kind must be one of 'http', 'openai', 'python', 'trace'; got 'grpc'"],
    ),
    "times that no clock shows": (
        (
            "gold:\n  set: faq.yaml\n  schedule: 0 25 * * *\n  timezone: Europe/Atlantis\n"
            "  target: {kind: python, callable: ask}\n"
        ),
        [
            (
                "f.yaml:3: gold.schedule: a cron expression expected, such as 0 3 * * * (daily at 3): Bad hour; "
                "got '0 25 * * *'"
            ),
            "f.yaml:4: gold.timezone: the name of a time zone expected, such as Europe/Berlin; got 'Europe/Atlantis'",
            "f.yaml:5: gold.target.callable: module:function expected, such as shop.rag:answer; got 'ask'",
        ],
    ),
    "a gold set that would be asked every second": (
        "gold:\n  set: f\n  schedule: '* * * * * *'\n  target: {kind: http, url: 'http://app'}\n",
        [
            (
                "f.yaml:3: gold.schedule: a cron expression expected, such as 0 3 * * * (daily at 3): "
                "five fields expected; got '* * * * * *'"
            )
        ],
    ),
    "a gold set that asks ourselves, and keeps its results in the spool": (
        (
            "spool: {path: /data/spool}\n"
            "gold: {set: f, store: /data/spool, target: {kind: http, url: 'http://localhost:4318/ask'}}\n"
        ),
        [
            "f.yaml:2: gold.store: a file of its own expected; got the one of spool.path",
            "f.yaml:2: gold.target.url: is a listener of this very service: questions would come back",
        ],
    ),
    "a path that is none, and a header by value": (
        (
            "gold:\n  set: faq.yaml\n  target:\n    kind: http\n    url: http://app\n    answer: data..reply\n"
            "    headers: {Authorization: Bearer x}\n"
        ),
        [
            (
                "f.yaml:6: gold.target.answer: a path into the JSON expected, such as choices.0.message.content; "
                "got 'data..reply'"
            ),
            (
                "f.yaml:7: gold.target.headers.Authorization: a secret is named, as {env: NAME} or {file: PATH}; "
                "got the value itself (not shown)"
            ),
        ],
    ),
    "no measure at all": (
        "measures: []\n",
        [
            (
                "f.yaml:1: measures: at least one of answer_relevancy, completeness, faithfulness, context_precision "
                "expected; got an empty list"
            )
        ],
    ),
    "passing on to ourselves": (
        "exporters:\n  forward: {grpc: 'http://localhost'}\n",
        ["f.yaml:2: exporters.forward.grpc: is a listener of this very service: what is received would come back"],
    ),
    "passing on to nowhere": (
        "exporters:\n  forward: {}\n",
        ["f.yaml:2: exporters.forward: at least one of http and grpc expected; got a mapping"],
    ),
    "holding spans back without a store": (
        "exporters:\n  forward: {http: 'http://elsewhere', attach: hold}\n",
        ["f.yaml:1: spool.path: required by exporters.forward.attach: hold, or a crash would lose spans"],
    ),
    "an expression that is none": (
        "redaction:\n  custom:\n    order: ok\n    ticket: '(T-'\n",
        ["f.yaml:4: redaction.custom.ticket: not an RE2 expression: missing ): (T-; got '(T-'"],
    ),
    "an expression that could be slow": (
        "redaction:\n  custom: {twice: '(a+)\\1'}\n",
        [r"f.yaml:2: redaction.custom.twice: not an RE2 expression: invalid escape sequence: \1; got '(a+)\\1'"],
    ),
    "a budget without a price": (
        "judge:\n  kind: openai\n  model: m\n  budget: {per_day: 5}\n",
        ["f.yaml:4: judge.budget: judge.price above 0 expected, or the cost is unknown"],
    ),
    "an expression that matches everywhere": (
        "redaction:\n  custom: {any: 'x*'}\n",
        ["f.yaml:2: redaction.custom.any: matches the empty text, so it would match everywhere; got 'x*'"],
    ),
    "a name that is taken": (
        "redaction:\n  custom: {email: x}\n",
        [
            (
                "f.yaml:1: redaction: custom: a name of small letters, digits and _ expected, "
                "not one of email, card, phone; got 'email'"
            )
        ],
    ),
    "annotations sent to our own page": (
        "exporters:\n  phoenix: {endpoint: 'http://127.0.0.1:9465'}\n",
        ["f.yaml:2: exporters.phoenix.endpoint: is a listener of this very service: scores would come back"],
    ),
    "a receiver that is open to other machines": (
        "receiver:\n  grpc: {listen: '0.0.0.0:4317'}\n  http: {listen: '0.0.0.0:4318', insecure: true}\n",
        [
            (
                "f.yaml:2: receiver.grpc: tokens or tls.client_ca required because it listens on 0.0.0.0:4317, not on "
                "loopback; or insecure: true, where the network keeps others out"
            )
        ],
    ),
    "TLS keeps nobody out without an authority of clients": (
        "receiver: {grpc: {listen: '0.0.0.0:4317', tls: {cert: a, key: b}}}\n",
        [
            (
                "f.yaml:1: receiver.grpc: tokens or tls.client_ca required because it listens on 0.0.0.0:4317, not on "
                "loopback; or insecure: true, where the network keeps others out"
            )
        ],
    ),
    "a header that anybody could send": (
        "web:\n  listen: '0.0.0.0:9465'\n  trust_header: X-Forwarded-User\n",
        [
            (
                "f.yaml:3: web.trust_header: tls.client_ca required because anybody who reaches 0.0.0.0:9465 could "
                "send that header; or insecure: true, where the proxy alone does"
            )
        ],
    ),
    "a link that is a script": (
        "web:\n  trace_links:\n    J: \"javascript:alert('{trace_id}')\"\n",
        [f"f.yaml:3: web.trace_links.J: {A_LINK}; got \"javascript:alert('{{trace_id}}')\""],
    ),
    "a link to nowhere": (
        'web:\n  trace_links:\n    J: "/trace/{trace_id}"\n',
        [f"f.yaml:3: web.trace_links.J: {A_LINK}; got '/trace/{{trace_id}}'"],
    ),
    "a link with a blank": (
        'web:\n  trace_links:\n    J: "https://j/{trace_id} x"\n',
        [f"f.yaml:3: web.trace_links.J: {A_LINK}; got 'https://j/{{trace_id}} x'"],
    ),
    "a link with an unknown part": (
        'web:\n  trace_links:\n    J: "https://j/{trace}"\n',
        [f"f.yaml:3: web.trace_links.J: {{trace}} is none of {FILLED_IN}; {BRACES}; got 'https://j/{{trace}}'"],
    ),
    "a link with half a brace": (
        'web:\n  trace_links:\n    J: "https://j/{trace_id"\n',
        [f"f.yaml:3: web.trace_links.J: {FILLED_IN} expected between braces; {BRACES}; got 'https://j/{{trace_id'"],
    ),
    "a link whose host is filled in": (
        'web:\n  trace_links:\n    J: "https://{trace_id}.example/"\n',
        [f"f.yaml:3: web.trace_links.J: {LINK_HOST}; got 'https://{{trace_id}}.example/'"],
    ),
    "a link without a host": (
        'web:\n  trace_links:\n    J: "https:///{trace_id}"\n',
        [f"f.yaml:3: web.trace_links.J: {LINK_HOST}; got 'https:///{{trace_id}}'"],
    ),
    "a user whom nobody could recognise": (
        "web:\n  users:\n    - {name: ann}\n",
        ["f.yaml:2: web.users: ann: token required without web.trust_header"],
    ),
    "a token by value": (
        "receiver: {http: {listen: '127.0.0.1:1', tokens: {shop: secret}}}\n",
        [
            (
                "f.yaml:1: receiver.http.tokens.shop: a secret is named, as {env: NAME} or {file: PATH}; "
                "got the value itself (not shown)"
            )
        ],
    ),
    "nothing of users on the disk, and files that hold it": (
        "spool: {path: /a, store: none}\ndrift:\n  labels: {path: /b}\n  anchors: c\n",
        [
            (
                "f.yaml:3: drift.labels: keeps what users wrote on the disk, which spool.store: none is to prevent; "
                "leave one of them out"
            ),
            (
                "f.yaml:4: drift.anchors: keeps what users wrote on the disk, which spool.store: none is to prevent; "
                "leave one of them out"
            ),
        ],
    ),
    "a key set twice": ("sampling: {}\nsampling: {}\n", ["f.yaml:2: sampling: set twice (first on line 1)"]),
    "a section without content": ("receiver:\n", ["f.yaml:1: receiver: a mapping of settings expected; got nothing"]),
    "YAML 1.1 booleans are text": (
        "sampling: {ratio: off}\n",
        ["f.yaml:1: sampling.ratio: must be a valid number; got 'off'"],
    ),
    "a ratio under the smallest": (
        "sampling: {ratio: 0.001}\n",
        ["f.yaml:1: sampling: ratio must not be under min_ratio (0.01); got 0.001"],
    ),
    "a rule that matches everything": (
        "sampling:\n  rules:\n    - {name: all, ratio: 1}\n",
        [
            (
                "f.yaml:3: sampling.rules[0]: a rule names what it matches: service, environment, route, tenant, "
                "status or attributes; got a mapping"
            )
        ],
    ),
    "two rules of one name": (
        "sampling:\n  rules:\n    - {name: a, ratio: 1, service: x}\n    - {name: a, ratio: 1, service: y}\n",
        ["f.yaml:1: sampling: rules: every name once, and not default; got a twice"],
    ),
    "weights that cannot be used": (
        "evaluators:\n  weights: [0, 0]\n",
        ["f.yaml:1: evaluators: weights: at least one must be above 0; got two zeros"],
    ),
    "not YAML": ("a: [\n", ["f.yaml:2: is not YAML: expected the node content, but found '<stream end>'"]),
    "not a mapping": ("- 1\n", ["f.yaml:1: a mapping of sections expected; got list"]),
    "scores sent to our own receiver": (
        "exporters:\n  otlp: {endpoint: 'http://localhost:4318'}\n",
        ["f.yaml:2: exporters.otlp.endpoint: is a listener of this very service: scores would come back"],
    ),
    "a URL whose port cannot be": (
        "exporters: {otlp: {endpoint: 'http://x:99999'}}\n",
        ["f.yaml:1: exporters.otlp.endpoint: a URL such as http://127.0.0.1:4318 expected; got 'http://x:99999'"],
    ),
    "labels without a spool": (
        "drift:\n  labels: {path: /var/lib/labels}\n",
        [
            (
                "f.yaml:2: drift.labels: needs spool.path: labels must know the judge's epoch and the scores of the "
                "same days after a restart, too"
            )
        ],
    ),
    "labels in the spool": (
        "spool: {path: /a}\ndrift:\n  labels: {path: /a}\n",
        ["f.yaml:3: drift.labels.path: a file of its own expected; got the one of spool.path"],
    ),
    "gold runs in the file of labels": (
        (
            "spool: {path: /a}\ndrift:\n  labels: {path: /b}\n"
            "gold: {set: f, store: /b, target: {kind: python, callable: 'm:f'}}\n"
        ),
        ["f.yaml:4: gold.store: a file of its own expected; got the one of drift.labels.path"],
    ),
    "a list where a section belongs": (
        "judge: [{api_key: sk-secret}]\n",
        ["f.yaml:1: judge: must be a valid dictionary or object to extract fields from; got a list"],
    ),
    "two listeners on one port": (
        "web: {listen: 127.0.0.1:4318}\n",
        ["f.yaml:1: web.listen: port 4318 is already used by receiver.http.listen; choose another"],
    ),
    "the embedded judge without a local model": (
        "embedder: {kind: openai, model: text-embedding-3-small}\n",
        ["f.yaml:1: embedder.kind: the embedded judge needs a model in this process; set kind: minilm"],
    ),
    "what only the whole can tell is told beside the rest": (
        "sampling:\n  ratio: 5\nweb:\n  listen: 127.0.0.1:4318\n  keep: 0\nmeasures: []\n",
        [
            "f.yaml:2: sampling.ratio: must be less than or equal to 1; got 5",
            "f.yaml:4: web.listen: port 4318 is already used by receiver.http.listen; choose another",
            "f.yaml:5: web.keep: must be greater than or equal to 1; got 0",
            (
                "f.yaml:6: measures: at least one of answer_relevancy, completeness, faithfulness, context_precision "
                "expected; got an empty list"
            ),
        ],
    ),
    "nothing is told that comes from a setting which is wrong itself": (
        "receiver:\n  http: {listen: 127.0.0.1:9465}\nweb:\n  listen: 9465\n",
        ["f.yaml:4: web.listen: an address HOST:PORT expected, such as 127.0.0.1:4317; got 9465"],
    ),
    "nothing is told of a section that cannot be built": (
        "judge: {kind: openai, timeout: 1}\nembedder: {kind: openai, model: m}\n",
        [
            "f.yaml:1: judge.model: required, but not set",
            "f.yaml:1: judge.timeout: a duration with its unit expected, such as 500ms, 30s, 5m, 1h or 7d; got 1",
        ],
    ),
    "a name that is a number": (
        "1: 2\nmeasures: []\n",
        ["f.yaml:1: [1]: Keys should be strings; got 2"],
    ),
    "a URL whose host can be none": (
        "judge: {kind: openai, model: m, base_url: 'http://256.256.1.1/v1'}\n",
        [
            (
                "f.yaml:1: judge.base_url: a URL that can be asked expected, such as http://127.0.0.1:4318: "
                "Invalid IPv4 address: '256.256.1.1'; got 'http://256.256.1.1/v1'"
            )
        ],
    ),
    "a URL without its scheme": (
        "exporters: {forward: {http: 'collector:4318'}}\n",
        ["f.yaml:1: exporters.forward.http: a URL such as http://127.0.0.1:4318 expected; got 'collector:4318'"],
    ),
    "a target for a measure that there is not": (
        "drift: {targets: {faithfulnes: 0.8}}\n",
        [
            (
                "f.yaml:1: drift.targets.faithfulnes: one of answer_relevancy, completeness, faithfulness, "
                "context_precision, context_recall, answer_correctness expected; did you mean 'faithfulness'?"
            )
        ],
    ),
    "a target taken away from a measure that there is not": (
        "drift: {targets: {faithfulnes: null}}\n",
        ["f.yaml:1: drift.targets.faithfulnes: must be a valid number; got null"],
    ),
    "targets of services that cannot be": (
        "drift: {targets: {completeness: {shop: 1.5, '*': half}, faithfulness: 2}}\n",
        [
            "f.yaml:1: drift.targets.completeness.*: must be a valid number; got 'half'",
            "f.yaml:1: drift.targets.completeness.shop: must be less than 1; got 1.5",
            "f.yaml:1: drift.targets.faithfulness: must be less than 1; got 2",
        ],
    ),
    "a setting of another kind": (
        "gold: {set: f, target: {kind: trace, url: 'http://app', answer: reply}}\n",
        ["f.yaml:1: gold.target.answer: no setting of kind: trace"],
    ),
    "a kind that is not named": (
        "gold: {set: f, target: {url: 'http://app'}}\n",
        ["f.yaml:1: gold.target: kind is required, one of http, openai, python, trace"],
    ),
    "a section that belongs into another": (
        "forward: {http: 'http://collector:4318'}\n",
        ["f.yaml:1: forward: unknown setting; did you mean 'exporters.forward'?"],
    ),
    "a gold target that asks every item the same": (
        "gold:\n  set: f\n  target: {kind: http, url: 'http://app', body: {message: hello}}\n",
        ["f.yaml:3: gold.target: {question} expected in url or body, or every item would ask the same; got none"],
    ),
    "a gold target that gets no body": (
        "gold:\n  set: f\n  target: {kind: trace, url: 'http://app', method: GET}\n",
        ["f.yaml:3: gold.target: {question} expected in url or body, or every item would ask the same; got none"],
    ),
    "spans that would go on before they can be scored": (
        (
            "spool: {path: /a}\nassembly: {idle: 10s}\n"
            "exporters: {forward: {http: 'http://c:4318', attach: hold, deadline: 5s}}\n"
        ),
        [
            (
                "f.yaml:3: exporters.forward.deadline: more than assembly.idle (10s) and what the judge takes expected"
                "; got 5s: no span would be scored in time"
            )
        ],
    ),
    "a deadline for spans that are not kept back": (
        "exporters:\n  forward:\n    http: http://c:4318\n    deadline: 5s\n",
        ["f.yaml:4: exporters.forward.deadline: needs attach: hold; nothing is kept back without it"],
    ),
    "all problems at once, by line": (
        "sampling:\n  ratio: 5\njudge:\n  kind: openai\n  timeout: 0s\n",
        [
            "f.yaml:2: sampling.ratio: must be less than or equal to 1; got 5",
            "f.yaml:3: judge.model: required, but not set",
            "f.yaml:5: judge.timeout: a duration above 0 and of at most 366d expected; got '0s'",
        ],
    ),
}


@pytest.mark.parametrize(("text", "problems"), BAD.values(), ids=BAD.keys())
def test_a_bad_file_is_refused_with_the_line_and_the_way_out(text: str, problems: list[str]) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(text, "f.yaml")
    assert list(refused.value.problems) == problems


@pytest.mark.parametrize(
    ("endpoint", "protocol"),
    [
        ("http://localhost:4318", "http"),
        ("http://LOCALHOST", "grpc"),
        ("http://127.0.0.1", "grpc"),
        ("http://127.8.9.1:4317/", "http"),
        ("http://[::1]:4317", "grpc"),
        ("http://[0:0:0:0:0:0:0:1]:9464", "http"),
        ("http://0.0.0.0:4318/v1/traces", "http"),
        ("https://user@localhost:4317", "grpc"),
    ],
)
def test_scores_are_never_sent_to_a_listener_of_our_own(endpoint: str, protocol: str) -> None:
    with pytest.raises(ConfigError, match=r"endpoint: is a listener of this very service: scores would come back$"):
        parse(f"exporters: {{otlp: {{endpoint: '{endpoint}', protocol: {protocol}}}}}\n", "f.yaml")


def test_a_listener_that_is_no_loopback_is_known_by_its_name() -> None:
    text = "receiver: {{http: {{listen: '192.0.2.7:4318', insecure: true}}}}\nexporters: {{otlp: {{endpoint: 'http://{}:4318'}}}}\n"
    with pytest.raises(ConfigError, match="is a listener of this very service"):
        parse(text.format("192.0.2.7"), "f.yaml")
    assert parse(text.format("192.0.2.8"), "f.yaml")


@pytest.mark.parametrize(
    ("endpoint", "protocol", "target"),
    [
        ("http://tempo.example", "grpc", ("tempo.example", 4317)),
        ("http://tempo.example", "http", ("tempo.example", 80)),
        ("https://Tempo.example/otlp", "grpc", ("tempo.example", 443)),
        ("https://key@[2001:db8::1]:4319", "http", ("2001:db8::1", 4319)),
    ],
)
def test_the_target_of_an_endpoint(endpoint: str, protocol: str, target: tuple[str, int]) -> None:
    assert OtlpExporterConfig.model_validate({"endpoint": endpoint, "protocol": protocol}).target == target


@pytest.mark.parametrize("listen", ["0.0.0.0:9465", "192.0.2.7:9465", "[::]:9465", "127.evil.example:9465", "a.b:80"])
def test_a_page_for_other_machines_needs_a_token(listen: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(f"web:\n  listen: '{listen}'\n", "f.yaml")
    assert str(refused.value) == (
        f"f.yaml:1: web.token: required because the page listens on {listen}, not on loopback; "
        "or web.users, or web.tls.client_ca"
    )
    assert parse(f"web: {{listen: '{listen}', token: {{env: TOKEN}}}}\n", "f.yaml").web.listen == listen


@pytest.mark.parametrize("listen", ["127.0.0.1:80", "127.0.0.2:80", "LOCALHOST:80", "[0:0:0:0:0:0:0:1]:80", "::1:80"])
def test_a_page_on_loopback_needs_no_token(listen: str) -> None:
    assert parse(f"web: {{listen: '{listen}'}}\n", "f.yaml").web.token is None


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("A.example:80", ("a.example", 80)),
        ("[::1]:0", ("::1", 0)),
        ("::1:65535", ("::1", 65535)),
        ("a.example:65536", None),
        ("a.example", None),
        ("[::1]", None),
        ("a.example:\u0661", None),
        ("a.example:-1", None),
        ("http://a.example:1", None),
        ("a.example/path:1", None),
        ("me@a.example:1", None),
        ("a b:1", None),
    ],
)
def test_the_parts_of_an_address(address: str, parts: tuple[str, int] | None) -> None:
    if parts is None:
        with pytest.raises(ValueError, match="HOST:PORT expected"):
            host_port(address)
    else:
        assert host_port(address) == parts


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.255.0.9", True),
        ("::1", True),
        ("0:0:0:0:0:0:0:1", True),
        ("127.evil.example", False),
        ("localhost.evil.example", False),
        ("0.0.0.0", False),
        ("", False),
    ],
)
def test_what_only_this_machine_can_reach(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


@pytest.mark.parametrize(
    "pasted",
    [
        "judge: {kind: openai, model: m, api_key: sk-verysecret}",
        "judge: {kind: openai, model: m, api_key: {env: sk-verysecret}}",
        "judge: {kind: openai, model: m, api_key: [sk-verysecret]}",
        "judge: {kind: openai, model: m, api_key: {sk-verysecret}}",
        "judge: {kind: openai, model: m, api_key: {value: sk-verysecret}}",
        "judge: {kind: openai, model: m, api_key: {file: [sk-verysecret]}}",
        "judge: [{kind: openai, model: m, api_key: sk-verysecret}]",
        "judge: {kind: openai, model: m, api_key: {env: A, file: sk-verysecret}}",
        "exporters: {otlp: {endpoint: 'http://x', headers: sk-verysecret}}",
        "exporters: {otlp: {endpoint: 'http://x', headers: [authorization, sk-verysecret]}}",
        "exporters: {otlp: {endpoint: 'http://x', headers: {authorization: Bearer sk-verysecret}}}",
        "exporters: {otlp: {endpoint: 'http://x', headers: {authorization: {env: Bearer sk-verysecret}}}}",
        "web: {token: {env: sk-verysecret}}",
    ],
)
def test_a_secret_given_by_value_is_refused_and_not_shown(pasted: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(f"{pasted}\n", "f.yaml")
    assert "sk-verysecret" not in str(refused.value)


def test_a_secret_given_by_value_is_told_how_it_is_named() -> None:
    with pytest.raises(ConfigError, match=r"\{env: NAME\} or \{file: PATH\}; got the value itself \(not shown\)$"):
        parse("web: {token: sk-verysecret}\n", "f.yaml")


def test_a_misspelt_key_of_a_secret_gets_a_hint() -> None:
    with pytest.raises(ConfigError, match=r"web\.token\.evn: unknown setting; did you mean 'env'"):
        parse("web: {token: {evn: TOKEN}}\n", "f.yaml")


def test_no_settings_are_the_defaults() -> None:
    assert parse("", "f.yaml") == parse("{}", "f.yaml") == Config()


def sections(model: type[Section] = Config) -> Iterator[type[Section]]:
    """A section and those below it."""
    yield model
    for name, hint in typing.get_type_hints(model, include_extras=True).items():
        if name in model.model_fields:
            for each in classes_in(hint):
                yield from sections(each)


def classes_in(hint: Any) -> Iterator[type[Section]]:
    if isinstance(hint, type) and issubclass(hint, Section):
        yield hint
    for each in typing.get_args(hint):
        yield from classes_in(each)


DEFAULTS = {
    f"{model.__name__}.{name}": (TypeAdapter(Annotated[field.annotation, field]), default)
    for model in sections()
    for name, field in model.model_fields.items()
    for default in [field.get_default(call_default_factory=True)]
    if isinstance(default, Section | dict) and default
}


@pytest.mark.parametrize("setting", DEFAULTS)
def test_a_partial_mapping_changes_only_what_it_names(setting: str) -> None:
    kind, default = DEFAULTS[setting]
    for part in [{key: value} for key, value in default.items()] if isinstance(default, dict) else [{}]:
        said: object
        try:
            said = kind.validate_python(part)
        except ValidationError as error:
            said = error.errors()[0]["type"]
        assert said in (default, "missing", "union_tag_not_found"), "what has no default of its own is asked for"


OPENAI = "judge: {kind: openai, model: m, base_url: 'http://127.0.0.1:1/v1'}\n"


@pytest.mark.parametrize(
    ("text", "tolerance", "faithfulness"),
    [
        ("", 0.01, 0.7),
        ("judge: {kind: embedded}\n", 0.01, 0.7),
        (OPENAI, 0.02, 0.8),
        ("drift: {tolerance: 0.03}\n", 0.03, 0.7),
        ("drift: {targets: {faithfulness: 0.9}}\n", 0.01, 0.9),
        ("drift: {targets: {faithfulness: null}}\n", 0.01, None),
        ("drift: {targets: {faithfulness: {shop: 0.9}}}\n", 0.01, {"*": 0.7, "shop": 0.9}),
        (OPENAI + "drift: {targets: {faithfulness: {shop: 0.9}}}\n", 0.02, {"*": 0.8, "shop": 0.9}),
    ],
)
def test_the_embedded_judge_brings_a_tolerance_and_a_target_that_suit_it(
    text: str, tolerance: float, faithfulness: object
) -> None:
    drift = parse(text, "f.yaml").drift
    assert (drift.tolerance, drift.targets.get("faithfulness")) == (tolerance, faithfulness)


def test_targets_that_are_not_named_stay_and_null_takes_one_away() -> None:
    config = parse("drift: {targets: {faithfulness: 0.9, completeness: null}}\n", "f.yaml")
    assert config.drift.targets == {"answer_relevancy": 0.5, "faithfulness": 0.9}
    targets = parse("drift: {targets: {answer_correctness: 0.7}}\n", "f.yaml").drift.targets
    assert targets.keys() == {*DEFAULT_MEASURES, "answer_correctness"}


@pytest.mark.parametrize(
    ("given", "of_shop", "of_others"),
    [
        ("0.6", 0.6, 0.6),
        ("{'*': 0.6, shop: 0.7}", 0.7, 0.6),
        ("{shop: 0.7}", 0.7, 0.5),
        ("{shop: 0.7, '*': null}", 0.7, None),
        ("null", None, None),
    ],
)
def test_a_service_has_its_own_target_or_that_of_all_others(
    given: str, of_shop: float | None, of_others: float | None
) -> None:
    drift = parse(f"drift: {{targets: {{completeness: {given}}}}}\n", "f.yaml").drift
    assert [drift.target("completeness", name) for name in ("shop", "bank", "*")] == [of_shop, of_others, of_others]


def test_units_are_read() -> None:
    config = parse("assembly: {idle: 500ms, max_wait: 1.5m, max_held: 64MiB}\n", "f.yaml")
    assert (config.assembly.idle, config.assembly.max_wait, config.assembly.max_held) == (0.5, 90.0, 64 * 2**20)


def test_a_number_with_a_leading_zero_is_decimal() -> None:
    assert parse("drift: {min_count: 010}\n", "f.yaml").drift.min_count == 10


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent.yaml: cannot be read: No such file or directory$"):
        load(tmp_path / "absent.yaml")


def test_a_secret_comes_from_the_environment_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text("from-file\n")
    monkeypatch.setenv("KEY_OF_TEST", "from-env")
    assert Secret(env="KEY_OF_TEST").read("judge.api_key") == "from-env"
    assert Secret(file=str(tmp_path / "key")).read("judge.api_key") == "from-file"


def test_a_secret_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KEY_OF_TEST", raising=False)
    with pytest.raises(UsageError, match=r"judge\.api_key: environment variable KEY_OF_TEST is not set or empty"):
        Secret(env="KEY_OF_TEST").read("judge.api_key")


def test_every_secret_that_is_not_there_is_told_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KEY_OF_TEST", raising=False)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    text = (
        "judge:\n  kind: openai\n  model: m\n  api_key: {env: KEY_OF_TEST}\n"
        "exporters:\n  otlp:\n    endpoint: http://x:1\n    headers:\n      x.key: {file: /nowhere}\n"
        f"web: {{token: {{file: {tmp_path}/binary}}}}\nsampling: {{ratio: 2}}\n"
    )
    with pytest.raises(ConfigError) as refused:
        parse(text, "f.yaml", secrets=True)
    assert list(refused.value.problems) == [
        "f.yaml:4: judge.api_key: environment variable KEY_OF_TEST is not set or empty",
        "f.yaml:9: exporters.otlp.headers.x.key: file /nowhere cannot be read: No such file or directory",
        f"f.yaml:10: web.token: file '{tmp_path}/binary' is not UTF-8 text",
        "f.yaml:11: sampling.ratio: must be less than or equal to 1; got 2",
    ]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("{name: ask}", "interactions.mappings[0]: at least one key expected, under question, answer, contexts or"),
        ("{kind: span, answer: [a]}", "interactions.mappings[0].kind: "),
        ("{span: ask, answer: [a]}", "interactions.mappings[0].span: "),
        ("{name: '', answer: [a]}", "interactions.mappings[0].name: "),
    ],
)
def test_a_mapping_that_could_read_nothing_is_refused_with_its_place(row: str, problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(f"interactions:\n  mappings:\n  - {row}\n", "f.yaml")
    (told,) = refused.value.problems
    assert told.startswith(f"f.yaml:3: {problem}")
