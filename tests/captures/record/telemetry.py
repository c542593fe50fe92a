"""For recipes: providers that export to the sink, as an app's own set-up would. Runs inside the recipe's venv."""

from __future__ import annotations

from typing import Any


def tracer_provider() -> Any:
    """A tracer provider that exports to the sink, set as the global one; end with `force_flush()`."""
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    made = TracerProvider()
    made.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(made)
    return made


def logger_provider() -> Any:
    """The same for log records."""
    from opentelemetry._logs import set_logger_provider
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor

    made = LoggerProvider()
    made.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
    set_logger_provider(made)
    try:  # up to 1.38 events had a provider of their own
        from opentelemetry._events import set_event_logger_provider
        from opentelemetry.sdk._events import EventLoggerProvider
    except ImportError:
        return made
    set_event_logger_provider(EventLoggerProvider(made))
    return made
