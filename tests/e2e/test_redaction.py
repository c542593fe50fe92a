"""What is to be taken out reaches nobody: neither judge nor embedder, no destination, no page, no metric, no log."""

from __future__ import annotations

from pathlib import Path

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

from tests.openai_server import openai_server
from tests.otlp_sink import otlp_sink
from tests.running import FREE_PORTS, serving
from tests.sample_app import Asked, answer, provider

SECRETS = ("jane.doe@mail.example", "4111 1111 1111 1111", "+49 171 2345678", "ZX-0815")
ASKED = Asked(
    "Refund to 4111 1111 1111 1111 for jane.doe@mail.example, order ZX-0815?",
    "Done for jane.doe@mail.example. Questions: +49 171 2345678. Your order was ZX-0815.",
    ("Refunds go to the card, such as 4111 1111 1111 1111. Call +49 171 2345678 about ZX-0815.",),
)


def test_nobody_is_shown_what_the_patterns_find(tmp_path: Path) -> None:
    with openai_server() as judge, otlp_sink() as sink:
        settings = (
            f"{FREE_PORTS.rsplit('exporters', 1)[0]}"
            "exporters:\n"
            "  prometheus: {listen: '127.0.0.1:0'}\n"
            f"  otlp: {{endpoint: '{sink.http}', explanations: true}}\n"
            "assembly: {idle: 200ms}\n"
            "interactions: {tenant: [app.user]}\n"
            "redaction: {patterns: [email, card, phone], custom: {order: 'ZX-\\d+'}}\n"
            f"{judge.settings}"
        )
        with serving(tmp_path, settings) as service:
            app = provider(OTLPSpanExporter(endpoint=f"http://{service.addresses['http']}/v1/traces"))
            tracer = app.get_tracer("app")
            with tracer.start_as_current_span("session", attributes={"app.user": SECRETS[0]}):
                context = answer(tracer, ASKED)
            app.shutdown()
            service.wait_value(3, "tracescore_evaluations_total", outcome="scored")
            sent = sink.wait(spans=1, logs=3)
            page = service.get("page", f"/interactions/{context.trace_id:032x}")
            seen = {
                "judge": b"\n".join(request.raw for request in judge.requests).decode(),
                "sink": str(sent.spans) + str(sent.logs),
                "page": page + service.get("page", "/") + service.get("page", "/interactions"),
                "metrics": service.get("metrics", "/metrics"),
            }
            counted = {
                name: service.value("tracescore_redaction_replaced_total", pattern=name)
                for name in ("email", "card", "phone", "order")
            }
        seen["log"] = "\n".join(service.log)
    for where, text in seen.items():
        for secret in SECRETS:
            assert secret not in text, where
    for where in ("judge", "sink", "page"):
        assert "[email]" in seen[where]
    assert counted == {"email": 3, "card": 2, "phone": 2, "order": 3}
