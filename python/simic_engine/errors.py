"""Errors of this package."""

from __future__ import annotations


class EngineError(RuntimeError):
    """The program is missing, refused the request, or failed.

    The message is the program's own. ``exit_code`` is that of the process, as ``simic-engine --help`` lists them; ``None``
    where no process was started.
    """

    def __init__(self, message: str, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code
