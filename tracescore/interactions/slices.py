"""Dimensions of an interaction: service, release, environment and the bounded extra dimensions."""

from __future__ import annotations

from collections.abc import Iterator

from tracescore.config import InteractionsConfig
from tracescore.interactions import values
from tracescore.interactions.convention import FLOWS, Node
from tracescore.interactions.grouping import Group
from tracescore.model import Attributes

_DEFAULT_SERVICES = ("unknown_service", "langsmith", "llamaindex.opentelemetry")
_SERVICE = ("service.name", "openinference.project.name", "langsmith.trace.session_name")
_RELEASE = (
    "langfuse.release",
    "service.version",
    "langfuse.version",
    "gen_ai.agent.version",
    "traceloop.entity.version",
    "vcs.ref.head.revision",
)
_ENVIRONMENT = ("langfuse.environment", "deployment.environment.name", "deployment.environment")
_ROUTE = (
    "traceloop.workflow.name",
    "gen_ai.workflow.name",
    "langfuse.trace.name",
    "ai.telemetry.functionId",
    "gen_ai.agent.name",
)
_CONVERSATION = (
    "gen_ai.conversation.id",
    "session.id",
    "langfuse.session.id",
    "ai.telemetry.metadata.sessionId",
    "spring.ai.chat.client.conversation.id",
    "traceloop.association.properties.session_id",
    "traceloop.association.properties.chat_id",
    "traceloop.association.properties.thread_id",
    "langsmith.metadata.thread_id",
    "langsmith.metadata.session_id",
)
_SERVER = 2


_WANTED = frozenset((*_SERVICE, *_RELEASE, *_ENVIRONMENT, *_ROUTE, *_CONVERSATION))


class Dimensions:
    """What one group is counted by.

    A value on the outermost span comes before those above it and those inside it, any span's before any resource's.
    """

    def __init__(self, group: Group, settings: InteractionsConfig) -> None:
        self._root = group.root
        self._tenant = settings.tenant
        self._first: dict[str, list[str]] = {}
        wanted = _WANTED.union(settings.tenant) if settings.tenant else _WANTED
        nodes = list(dict.fromkeys((*group.root.upwards(), *group.nodes)))
        for attributes in (*(node.attributes for node in nodes), *_resources(nodes)):
            for key in wanted.intersection(attributes):
                self._first.setdefault(key, []).extend(_text(attributes[key]))
        self._model_call = bool(group.of_kind("llm"))
        self._flows = [*group.root.upwards(), *group.of_kind(*FLOWS)]

    def _value(self, keys: tuple[str, ...]) -> str | None:
        return next((self._first[key][0] for key in keys if self._first.get(key)), None)

    @property
    def service(self) -> str:
        """Service name; names that SDKs make up count as none."""
        found = (value for key in _SERVICE for value in self._first.get(key, ()))
        return next((value for value in found if not value.startswith(_DEFAULT_SERVICES)), "unknown")

    @property
    def release(self) -> str:
        """Version of the app."""
        return self._value(_RELEASE) or "unknown"

    @property
    def environment(self) -> str:
        """Deployment environment."""
        return self._value(_ENVIRONMENT) or "unknown"

    @property
    def conversation_id(self) -> str:
        """The conversation the interaction belongs to; empty when nothing says."""
        return self._value(_CONVERSATION) or ""

    def slices(self, *, later: bool) -> dict[str, str]:
        """Slices: `route`, `turn`, `model_call` where none was traced, `tenant` where a configured key is present."""
        found = {"route": self._route(), "turn": "later" if later else "first"}
        if not self._model_call:
            found["model_call"] = "no_model_call"
        tenant = self._value(self._tenant)
        return found if tenant is None else {**found, "tenant": tenant}

    def _route(self) -> str:
        """The HTTP route of the request around it (never the raw path), else the name of the flow."""
        for node in self._root.upwards():
            route = node.attributes.get("http.route")
            if node.span is not None and node.span.kind == _SERVER and isinstance(route, str) and route:
                return route
        known = (key for key in _ROUTE if key in self._first)
        named = (text for key in known for node in self._flows for text in _text(node.attributes.get(key)))
        return next(named, self._root.name or "unknown")


def _resources(nodes: list[Node]) -> list[Attributes]:
    """The distinct resources, in order."""
    return list({id(node.span.resource): node.span.resource for node in nodes if node.span is not None}.values())


def _text(value: object) -> Iterator[str]:
    plain = values.data(value) if isinstance(value, str) else value
    if isinstance(plain, (str, int, float)) and not isinstance(plain, bool) and str(plain).strip():
        yield str(plain).strip()
