"""Who gets in at the listeners for OTLP, metrics and the page: TLS and tokens on real sockets."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import grpc
import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.trace.export import SpanExportResult
from prometheus_client import CollectorRegistry

from tests.certificates import Certificates
from tests.otlp import Collected, sdk_span, span, traces
from tracescore.config import PrometheusConfig, ReceiverConfig, TlsConfig
from tracescore.errors import UsageError
from tracescore.exporters.prometheus.exposition import Health, build_metrics
from tracescore.net.access import AccessMetrics
from tracescore.net.connections import ConnectionMetrics
from tracescore.net.listener import address_of, bind, serving
from tracescore.net.tls import ServerTls
from tracescore.receiver.intake import Intake
from tracescore.receiver.listening import Receiver

pytestmark = pytest.mark.anyio

TOKEN, NEXT = "a-token-of-the-shop-0", "a-token-of-the-shop-1"
BODY = traces([span(1)]).SerializeToString()
EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


class Receiving:
    def __init__(self, sink: Collected, registry: CollectorRegistry, grpc: str, http: str) -> None:
        self.sink, self.registry, self.grpc, self.http = sink, registry, grpc, http

    def refused(self, protocol: str, reason: str) -> float | None:
        labels = {"protocol": protocol, "reason": reason}
        return self.registry.get_sample_value("tracescore_receiver_refused_requests_total", labels)

    async def post(self, *headers: str, address: str = "", context: ssl.SSLContext | None = None) -> tuple[int, str]:
        """Status line and all else that a raw request gets; with TLS where there is a context."""
        more = ["content-type: application/x-protobuf", f"content-length: {len(BODY)}", "connection: close", *headers]
        head = "\r\n".join(["POST /v1/traces HTTP/1.1", "host: x", *more])
        return await ask(self.http, head, BODY, context)


async def ask(address: str, head: str, body: bytes = b"", context: ssl.SSLContext | None = None) -> tuple[int, str]:
    host, _, port = address.rpartition(":")
    stream = await anyio.connect_tcp(
        host, int(port), ssl_context=context, tls=context is not None, tls_standard_compatible=False
    )
    async with stream:
        await stream.send(f"{head}\r\n\r\n".encode() + body)
        got = b""
        with anyio.fail_after(10):
            try:
                while True:
                    got += await stream.receive()
            except anyio.EndOfStream:
                pass
    return int(got.split()[1]), got.decode()


@asynccontextmanager
async def receiving(**listener: Any) -> AsyncIterator[Receiving]:
    sink, registry = Collected(), CollectorRegistry()
    both = {"listen": "127.0.0.1:0", **listener}
    settings = ReceiverConfig.model_validate({"grpc": both, "http": both})
    intake = Intake(settings, sink, lambda _: True, registry)
    receiver = Receiver(settings, intake, ConnectionMetrics(registry), AccessMetrics(registry))
    bound = bind("127.0.0.1:0", "receiver.http.listen")
    async with receiver.serving(bound) as address:
        yield Receiving(sink, registry, address, address_of(bound))


@pytest.fixture
def certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Certificates:
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):  # requests would prefer it to what the exporter was told
        monkeypatch.delenv(name, raising=False)
    return Certificates(tmp_path)


@pytest.fixture
def tokens(tmp_path: Path) -> dict[str, dict[str, str]]:
    (tmp_path / "shop").write_text(f"{TOKEN}\n")
    return {"shop": {"file": str(tmp_path / "shop")}}


async def exported(exporter: Any) -> bool:
    result = await anyio.to_thread.run_sync(exporter.export, [sdk_span("asked")])
    await anyio.to_thread.run_sync(exporter.shutdown)
    return bool(result is SpanExportResult.SUCCESS)


def by_grpc(address: str, certificates: Certificates, client: tuple[str, str] | None, token: str) -> GrpcExporter:
    cert, key = (Path(file).read_bytes() for file in client) if client else (None, None)
    credentials = grpc.ssl_channel_credentials(Path(certificates.ca).read_bytes(), key, cert)
    headers = (("authorization", f"Bearer {token}"),)
    return GrpcExporter(endpoint=f"https://{address}", credentials=credentials, headers=headers, timeout=1)


def by_http(address: str, certificates: Certificates, client: tuple[str, str] | None, token: str) -> HttpExporter:
    cert, key = client or (None, None)
    return HttpExporter(
        endpoint=f"https://{address}/v1/traces", certificate_file=certificates.ca, client_certificate_file=cert,
        client_key_file=key, headers={"Authorization": f"Bearer {token}"}, timeout=1,
    )  # fmt: skip


EXPORTERS = pytest.mark.parametrize("exporter", [by_grpc, by_http])


@EXPORTERS
async def test_the_exporters_of_opentelemetry_get_in_with_certificate_and_token(
    exporter, certificates: Certificates, tokens
) -> None:
    async with receiving(tls=certificates.settings(clients=True), tokens=tokens) as running:
        address = running.grpc if exporter is by_grpc else running.http
        assert await exported(exporter(address, certificates, certificates.client, TOKEN))
        assert len(running.sink.spans) == 1
        assert not await exported(exporter(address, certificates, certificates.client, "another"))
        assert running.refused("grpc" if exporter is by_grpc else "http", "unauthenticated") == 1
        assert not await exported(exporter(address, certificates, None, TOKEN)), "without a certificate"
        assert running.sink.senders == {"shop"}
        assert len(running.sink.spans) == 1


@EXPORTERS
async def test_certificates_and_client_authorities_change_without_a_restart(
    exporter, certificates: Certificates
) -> None:
    async with receiving(tls=certificates.settings(clients=True)) as running:
        address = running.grpc if exporter is by_grpc else running.http
        former = certificates.client
        certificates.renew()
        new = certificates.trust_new_clients("another")
        assert await exported(exporter(address, certificates, new, ""))
        assert not await exported(exporter(address, certificates, former, ""))


async def test_a_renewed_certificate_is_the_one_shown_and_a_broken_one_leaves_the_former(
    certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    async with receiving(tls=certificates.settings()) as running:
        host, _, port = running.http.rpartition(":")

        def shown() -> int:
            from cryptography import x509

            pem = ssl.get_server_certificate((host, int(port)))
            return x509.load_pem_x509_certificate(pem.encode()).serial_number

        serial = certificates.renew()
        assert await anyio.to_thread.run_sync(shown) == serial
        certificates.damage()
        assert await anyio.to_thread.run_sync(shown) == serial
        assert await anyio.to_thread.run_sync(shown) == serial
        said = [record.getMessage() for record in caplog.records if "certificate_not_loaded" in record.getMessage()]
        assert len(said) == 1
        assert await anyio.to_thread.run_sync(shown) != certificates.renew()


async def test_wrong_tokens_are_told_to_wait_and_the_right_one_gets_in_all_the_same(
    tokens, caplog: pytest.LogCaptureFixture
) -> None:
    async with receiving(tokens=tokens) as running:
        assert (await running.post())[0] == 401
        for _ in range(5):
            status, told = await running.post("authorization: Bearer another-token-than-that")
            assert status == 401
            assert "www-authenticate: Bearer" in told
        status, told = await running.post("authorization: Bearer another-token-than-that")
        assert status == 429
        assert "retry-after: 60" in told
        assert (await running.post(f"Authorization: Bearer {TOKEN}"))[0] == 200
        denied = {
            reason: running.registry.get_sample_value(
                "tracescore_net_denied_requests_total", {"listener": "receiver", "reason": reason}
            )
            for reason in ("no_token", "wrong_token", "too_many")
        }
        assert denied == {"no_token": 1, "wrong_token": 5, "too_many": 1}
    lines = [record.getMessage() for record in caplog.records if "event=access_denied" in record.getMessage()]
    assert lines == [
        f"event=access_denied listener=receiver reason={reason} address=127.0.0.1"
        for reason in ("no_token", "wrong_token", "too_many")
    ]


async def test_grpc_without_the_token_is_unauthenticated_before_its_message_is_read(tokens) -> None:
    async with receiving(tokens=tokens) as running, grpc.aio.insecure_channel(running.grpc) as channel:
        for metadata in ((), (("authorization", f"Bearer {NEXT}"),)):
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await channel.unary_unary(EXPORT)(b"no message", metadata=metadata, timeout=5)
            assert raised.value.code() is grpc.StatusCode.UNAUTHENTICATED
        await channel.unary_unary(EXPORT)(BODY, metadata=(("authorization", f"Bearer {TOKEN}"),), timeout=5)
    assert running.sink.senders == {"shop"}


@pytest.mark.parametrize(("path", "status"), [("/metrics", 403), ("/-/healthy", 200), ("/-/ready", 503)])
async def test_health_is_told_without_a_certificate_and_metrics_are_not(
    certificates: Certificates, path: str, status: int
) -> None:
    settings = PrometheusConfig.model_validate({"tls": certificates.settings(clients=True)})
    registry, bound = CollectorRegistry(), bind("127.0.0.1:0", "exporters.prometheus.listen")
    assert settings.tls is not None
    tls = ServerTls(settings.tls, "exporters.prometheus.tls", optional=True)
    app = build_metrics(settings, registry, Health(), AccessMetrics(registry), lambda: 0.0)
    async with serving(app, bound, tls=tls):
        context = ssl.create_default_context(cafile=certificates.ca)
        head = f"GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close"
        address = f"localhost:{address_of(bound).rpartition(':')[2]}"
        assert (await ask(address, head, b"", context))[0] == status
        context.load_cert_chain(*certificates.client)
        assert (await ask(address, head, b"", context))[0] == (200 if status == 403 else status)


@pytest.mark.parametrize("missing", ["cert", "key", "client_ca"])
def test_files_that_cannot_be_used_are_an_error_at_the_start(certificates: Certificates, missing: str) -> None:
    settings = certificates.settings(clients=True)
    Path(settings[missing]).write_text("")
    with pytest.raises(UsageError, match=r"^receiver\.http\.tls: .*server\.pem.* cannot be used: "):
        ServerTls(TlsConfig.model_validate(settings), "receiver.http.tls")
