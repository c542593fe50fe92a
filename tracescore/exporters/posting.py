"""HTTP POSTs of exporters: one session per destination, and an answer instead of an exception."""

import io
from collections.abc import Mapping
from dataclasses import dataclass

import aiohttp

from tracescore.exporters.delivery import Answer
from tracescore.net.retry import retry_after
from tracescore.runtime import drop_tracebacks


@dataclass(frozen=True, slots=True)
class Posted:
    """A response; `retry_after` in seconds, None where it does not say."""

    status: int
    body: bytes
    retry_after: float | None


class Poster:
    """POSTs bodies with the same headers, within a timeout in seconds."""

    def __init__(self, headers: Mapping[str, str], timeout: float) -> None:
        self._headers, self._timeout = dict(headers), aiohttp.ClientTimeout(total=timeout)
        self._session: aiohttp.ClientSession | None = None

    async def post(self, url: str, body: bytes) -> Posted | Answer:
        """The response, or `again` when there was none.

        Redirects are not followed: they would take headers with secrets elsewhere.
        """
        if self._session is None:  # belongs to the event loop that runs now
            self._session = aiohttp.ClientSession(timeout=self._timeout, headers=self._headers)
        content = io.BytesIO(body)  # is written piece by piece, where bytes would be all at once
        try:
            async with self._session.post(url, data=content, allow_redirects=False) as response:
                return Posted(response.status, await response.read(), retry_after(response.headers))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            drop_tracebacks(error)
            return Answer("again", type(error).__name__)

    async def close(self) -> None:
        """Releases the connections."""
        if self._session is not None:
            await self._session.close()
