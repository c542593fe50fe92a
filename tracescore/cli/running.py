"""How commands run: async functions, until a signal; and which of their errors are for the user."""

import logging
import signal
from collections.abc import Awaitable, Callable

import anyio

from tracescore.errors import TracescoreError


def run_async(main_function: Callable[[], Awaitable[None]]) -> None:
    """Runs an async function; Ctrl-C inside it is an exception, so that what it has begun is put right."""
    outside = signal.getsignal(signal.SIGINT)
    if outside is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        anyio.run(main_function, backend_options={"use_uvloop": True})
    finally:
        signal.signal(signal.SIGINT, outside)


async def until_signal(serve_until: Callable[[anyio.Event], Awaitable[None]]) -> None:
    """Runs an async function with a stop event that the first SIGTERM or SIGINT sets; a second one ends at once."""
    stop = anyio.Event()
    async with anyio.create_task_group() as tasks:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:

            async def listen() -> None:
                async for _ in signals:
                    if stop.is_set():
                        logging.getLogger("tracescore.service").warning("event=second_signal")
                        tasks.cancel_scope.cancel()
                    stop.set()

            tasks.start_soon(listen)
            await serve_until(stop)
            tasks.cancel_scope.cancel()


def error_of_ours(error: BaseException) -> TracescoreError | None:
    """The first TracescoreError of a group; None where the group holds other errors too."""
    while isinstance(error, BaseExceptionGroup):
        if error.split(TracescoreError)[1] is not None:
            return None
        error = error.exceptions[0]
    return error if isinstance(error, TracescoreError) else None
