"""The program: `tracescore`, or `python -m tracescore`."""

import signal
from typing import NoReturn


def main() -> NoReturn:
    """Runs the command line and ends the process.

    Until there is something to be finished or put back, Ctrl-C ends it as it does any program, without a traceback.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from tracescore.cli import main as cli  # noqa: PLC0415 - the imports are most of what takes time at the start

    cli.main()


if __name__ == "__main__":
    main()
