"""The command ``cvstats``: Ctrl-C ends it without a traceback, also while it is imported."""

import os
import signal


def main() -> int:
    """Import the command line and run it."""
    usual = signal.getsignal(signal.SIGINT)
    if usual is signal.default_int_handler:  # and not ignored, as in the background of a shell
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    from cvstats.cli import main as run

    signal.signal(signal.SIGINT, usual)
    return run()
