"""Everything tracescore raises on purpose, drawn as one tree.

TracescoreError
├── UsageError            wrong use or configuration: one line on stderr, exit status 2
│   ├── ConfigError       the configuration file, all problems at once, each with file:line
│   ├── ListenError       an address that cannot be listened on
│   └── MissingExtra      an optional package that the chosen settings need
├── DecodeError           a request body that is not what it says it is
│   └── TooMany           it holds more spans, traces or resources than it may (otlp/bounds.py)
├── Refused               a request that the receiver answers with an error (receiver/intake.py)
├── CallFailed            a call of a judge or embedder on the network; becomes an error of theirs (openai_endpoint.py)
├── SpoolError            what came cannot be written to disk now
├── JudgeError            the judge gave no usable answer; carries an Unscored reason
│   ├── JudgeUnreachable  no answer at all (or 429): try again later, nothing is wrong with the judge
│   └── JudgeUnfit        answered, but cannot do the work: refused at the start with what to change
│       └── Rejected      does not take such a request; another dialect may be what it takes (judge/chat.py)
├── TargetFailed          the app under a gold run gave no answer that can be read
└── EmbedderError         the embedder gave no usable vectors
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracescore.model import Reason


class TracescoreError(Exception):
    """Root of all errors that are part of the contract."""


class UsageError(TracescoreError):
    """Wrong use or configuration; the text says what was got and what to do."""


class ConfigError(UsageError):
    """All problems of one configuration file.

    `problems` holds one line each, already in the form `file:line: path: what is wrong; got ...`.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class ListenError(UsageError):
    """An address that cannot be listened on, usually because the port is taken."""


class MissingExtra(UsageError):
    """The settings need a package of an extra that is not installed."""


class DecodeError(TracescoreError):
    """A request body that is not what its content type says."""


class SpoolError(TracescoreError):
    """A change that cannot be written to the spool now; the text is safe to log."""


class JudgeError(TracescoreError):
    """The judge gave no usable answer.

    `reason` is the Unscored reason it becomes; `detail` is safe to log: sizes and field names, never text of
    a question, an answer or a document.
    """

    def __init__(self, reason: Reason, detail: str = "") -> None:
        self.reason: Reason = reason
        self.detail = detail
        super().__init__(f"{reason}: {detail}" if detail else reason)


class JudgeUnreachable(JudgeError):
    """No answer, or a request to come back later. The service goes on receiving and asks again."""


class JudgeUnfit(JudgeError):
    """The judge answered but cannot do the work; `detail` says what to change."""


class EmbedderError(TracescoreError):
    """The embedder gave no usable vectors; the text is safe to log."""


class TargetFailed(TracescoreError):
    """The app that a gold run asks gave no answer that can be read.

    `reason` is one of a closed list (gold/targets); `detail` says what came and what to change, without its texts.
    `again`: another attempt may go better, after `wait` seconds where the app said how long.
    """

    def __init__(self, reason: str, detail: str, *, again: bool = False, wait: float | None = None) -> None:
        self.reason, self.detail, self.again, self.wait = reason, detail, again, wait
        super().__init__(f"{reason}: {detail}")
