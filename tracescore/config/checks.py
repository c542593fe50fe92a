"""What only the whole configuration can tell: settings that contradict each other, and secrets that are not there."""

import difflib
import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pydantic import BaseModel

from tracescore.config import Config, ExportersConfig
from tracescore.config.access import TlsConfig
from tracescore.config.drift import DETECTORS
from tracescore.config.gold import GoldConfig, GoldTargetConfig, HttpTargetConfig, TraceTargetConfig
from tracescore.config.types import Secret, host_port, is_loopback, target_of
from tracescore.errors import UsageError
from tracescore.model import LIVE_MEASURES, MEASURES


class Conflict(NamedTuple):
    """A problem between settings: the path it is reported at, what is wrong, and the paths of all it comes from."""

    path: str
    what: str
    between: tuple[str, ...]


def listeners(config: Config) -> dict[str, str]:
    """Every address the service listens on, by the path of its setting."""
    return {
        "receiver.grpc.listen": config.receiver.grpc.listen,
        "receiver.http.listen": config.receiver.http.listen,
        "exporters.prometheus.listen": config.exporters.prometheus.listen,
        "web.listen": config.web.listen,
    }


def cross_checks(config: Config) -> list[Conflict]:
    """Problems between settings."""
    checks = (_judging, _measuring, _listening, _opening, _files, _holding, _gold_request, _sending_to_ourselves)
    return [conflict for check in checks for conflict in check(config)]


def _judging(config: Config) -> Iterator[Conflict]:
    if not config.measures:
        what = f"at least one of {', '.join(LIVE_MEASURES)} expected; got an empty list"
        yield Conflict("measures", what, ("measures",))
    if config.judge.kind == "embedded" and config.embedder.kind == "openai":
        what = "the embedded judge needs a model in this process; set kind: minilm"
        yield Conflict("embedder.kind", what, ("embedder.kind", "judge.kind"))
    if config.judge.kind == "openai" and config.judge.budget is not None:
        price = config.judge.price
        if price is None or price.input + price.output <= 0:
            what = "judge.price above 0 expected, or the cost is unknown"
            yield Conflict("judge.budget", what, ("judge.budget", "judge.price"))


def _measuring(config: Config) -> Iterator[Conflict]:
    """Names that are no measure where one is expected, and measures of one's own that cannot be scored."""
    own, path = config.evaluators.custom, "evaluators.custom"
    live = [*LIVE_MEASURES, *own]
    for name in config.measures:
        if name not in live:
            what = f"one of {', '.join(live)} expected; got {name[:60]!r}{_meant(name, live)}"
            yield Conflict("measures", what, ("measures", f"{path}.{name}"))
    for name, each in own.items():
        if name not in config.measures:
            what = "declared, but not listed in measures; list it there, or remove it"
            yield Conflict(f"{path}.{name}", what, ("measures", path))
        if each.kind == "rubric" and config.judge.kind == "embedded":
            what = "a rubric needs a language model, and the judge is the embedded one; set judge.kind: openai"
            yield Conflict(f"{path}.{name}", f"{what}, or use kind: python or pattern", (path, "judge"))
    known, drift = [*MEASURES, *own], config.drift
    for name in drift.targets:
        if name not in known:
            what = f"one of {', '.join(known)} expected{_meant(name, known)}"
            yield Conflict(f"drift.targets.{name}", what, ("drift.targets", f"{path}.{name}"))
    given = drift.references if isinstance(drift.references, dict) else {}
    for service, detectors in given.items():
        for name in detectors:
            if name not in (*DETECTORS, *own):
                what = f"one of {', '.join((*DETECTORS, *own))} expected{_meant(name, (*DETECTORS, *own))}"
                yield Conflict(f"drift.references.{service}.{name}", what, ("drift.references", f"{path}.{name}"))


def _meant(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _listening(config: Config) -> Iterator[Conflict]:
    taken: dict[int, str] = {}
    for path, address in listeners(config).items():
        _, port = host_port(address)
        if port and port in taken:
            what = f"port {port} is already used by {taken[port]}; choose another"
            yield Conflict(path, what, (path, taken[port]))
        taken[port] = path


def _opening(config: Config) -> Iterator[Conflict]:
    """Listeners that other machines reach although nothing asks who they are; metrics hold no user text."""
    for path, listener in (("receiver.grpc", config.receiver.grpc), ("receiver.http", config.receiver.http)):
        if listener.exposed and not listener.insecure:
            what = f"tokens or tls.client_ca required because it listens on {listener.listen}, not on loopback"
            yield Conflict(path, f"{what}; or insecure: true, where the network keeps others out", (path,))
    web = config.web
    unknown = [user.name for user in web.users if user.token is None]
    if unknown and web.trust_header is None:
        yield Conflict("web.users", f"{unknown[0]}: token required without web.trust_header", ("web",))
    if is_loopback(host_port(web.listen)[0]) or web.insecure or (web.tls is not None and web.tls.client_ca is not None):
        return
    if web.trust_header is not None:
        what = f"tls.client_ca required because anybody who reaches {web.listen} could send that header"
        yield Conflict("web.trust_header", f"{what}; or insecure: true, where the proxy alone does", ("web",))
    elif web.token is None and not web.users:
        what = f"required because the page listens on {web.listen}, not on loopback; or web.users, or web.tls.client_ca"
        yield Conflict("web.token", what, ("web.token", "web.listen"))


def _files(config: Config) -> Iterator[Conflict]:
    labels, gold = config.drift.labels, config.gold
    if labels is not None and config.spool.path is None:
        why = "labels must know the judge's epoch and the scores of the same days after a restart, too"
        yield Conflict("drift.labels", f"needs spool.path: {why}", ("drift.labels", "spool.path"))
    if config.spool.store == "none":
        keepers = {"drift.labels": labels, "drift.anchors": config.drift.anchors}
        for path in (path for path, keeps in keepers.items() if keeps is not None):
            what = "keeps what users wrote on the disk, which spool.store: none is to prevent; leave one of them out"
            yield Conflict(path, what, (path, "spool.store"))
    taken: dict[str, str] = {}
    for path, file in (
        ("spool.path", config.spool.path),
        ("drift.labels.path", labels.path if labels else None),
        ("gold.store", gold.store if gold else None),
    ):
        if file is not None and file in taken:
            yield Conflict(path, f"a file of its own expected; got the one of {taken[file]}", (path, taken[file]))
        elif file is not None:
            taken[file] = path


def _holding(config: Config) -> Iterator[Conflict]:
    forward = config.exporters.forward
    if forward is None:
        return
    attach, deadline = "exporters.forward.attach", "exporters.forward.deadline"
    if forward.attach != "hold":
        for name in sorted(forward.model_fields_set & {"deadline", "max_held"}):
            path = f"exporters.forward.{name}"
            yield Conflict(path, "needs attach: hold; nothing is kept back without it", (path, attach))
        return
    if config.spool.path is None:
        what = f"required by {attach}: hold, or a crash would lose spans"
        yield Conflict("spool.path", what, ("spool.path", attach))
    if config.spool.store == "none":
        what = f"all expected with {attach}: hold, or a crash would lose spans; got 'none'"
        yield Conflict("spool.store", what, ("spool.store", attach))
    idle = config.assembly.idle
    if forward.deadline <= idle:
        what = f"more than assembly.idle ({idle:g}s) and what the judge takes expected; got {forward.deadline:g}s"
        yield Conflict(deadline, f"{what}: no span would be scored in time", (deadline, "assembly.idle"))


def _gold_request(config: Config) -> Iterator[Conflict]:
    if config.gold is not None and not _holds_question(config.gold.target):
        what = "{question} expected in url or body, or every item would ask the same; got none"
        yield Conflict("gold.target", what, ("gold.target",))


def _sending_to_ourselves(config: Config) -> Iterator[Conflict]:
    ours = {path: host_port(address) for path, address in listeners(config).items()}
    for path, target, what in (*_destinations(config.exporters), *_gold_destination(config.gold)):
        hit = [each for each, listener in ours.items() if _reaches(target, listener)]
        if hit:
            yield Conflict(path, f"is a listener of this very service: {what} would come back", (path, *hit))


def _holds_question(target: GoldTargetConfig) -> bool:
    """Whether what is sent to the app depends on the question."""
    if not isinstance(target, HttpTargetConfig | TraceTargetConfig):
        return True
    sends_default = target.body is None and target.method != "GET"
    return sends_default or "{question}" in target.url or "{question}" in json.dumps(target.body)


def missing_secrets(settings: BaseModel, *path: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """The steps to every secret and certificate below `path` that cannot be read, and why."""
    for name, value in settings:
        nested = value.items() if isinstance(value, dict) else [("", value)]
        for key, each in nested:
            steps = (*path, name, key) if key else (*path, name)
            if isinstance(each, Secret | TlsConfig):
                where = ".".join(steps)
                try:
                    each.read(where) if isinstance(each, Secret) else each.context(where)
                except UsageError as error:
                    yield steps, str(error).removeprefix(f"{where}: ")
            elif isinstance(each, BaseModel):
                yield from missing_secrets(each, *steps)


def _destinations(exporters: ExportersConfig) -> Iterator[tuple[str, tuple[str, int], str]]:
    """What is sent to on the service's own account: the path of the setting, host and port, and what is sent."""
    if exporters.otlp is not None:
        yield "exporters.otlp.endpoint", exporters.otlp.target, "scores"
    if exporters.phoenix is not None:
        yield "exporters.phoenix.endpoint", target_of(exporters.phoenix.endpoint, 80), "scores"
    if exporters.forward is not None:
        for name, url, usual in (("http", exporters.forward.http, 80), ("grpc", exporters.forward.grpc, 4317)):
            if url is not None:
                yield f"exporters.forward.{name}", target_of(url, usual), "what is received"


def _gold_destination(gold: GoldConfig | None) -> Iterator[tuple[str, tuple[str, int], str]]:
    """Who is asked gold questions, likewise."""
    if gold is not None and isinstance(gold.target, HttpTargetConfig | TraceTargetConfig):
        yield "gold.target.url", target_of(gold.target.url, 80), "questions"


def _reaches(target: tuple[str, int], listener: tuple[str, int]) -> bool:
    """Whether a listener hears what is sent to `target`: it has that very name, or both are this machine's own."""
    both = (target[0], listener[0])
    here = all(is_loopback(host) or host in {"0.0.0.0", "::"} for host in both)  # noqa: S104 - compared, not bound
    return target[1] == listener[1] and (here or both[0] == both[1])
