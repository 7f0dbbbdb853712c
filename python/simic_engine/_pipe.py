"""The program as another process, which answers frames: ``simic-engine serve-envs`` (``docs/reference/serve_envs.md``)."""

from __future__ import annotations

import json
import math
import os
import struct
import subprocess
import tempfile
import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np

from ._program import environment, program
from .errors import EngineError

VERSION = 1
_LENGTHS = struct.Struct("<IQ")
_DTYPES = {"f32": "<f4", "f64": "<f8", "i64": "<i8", "u8": "u1"}


class Pipe:
    """A running engine. It raises :class:`EngineError` for refusals and failures."""

    def __init__(self, arguments: list[str], actions: str) -> None:
        self._log = tempfile.TemporaryFile()
        weakref.finalize(self, self._log.close)
        # With its own session, the engine doesn't get this process's Ctrl-C. It ends when this process does.
        self._process = subprocess.Popen(
            [program(), "serve-envs", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment(),
            start_new_session=True,
        )
        # Runs when nothing refers to the pipe any longer, or when Python ends: a forgotten process would stay.
        self._finalizer = weakref.finalize(self, _end, self._process)
        try:
            self.spaces, _ = self.ask({"kind": "hello", "version": VERSION, "actions": actions})
            if self.spaces["version"] != VERSION:
                versions = f"the program speaks version {self.spaces['version']} of serve-envs, this package version {VERSION}"
                raise EngineError(f"{versions}; install a program and a package of the same release")
        except BaseException:
            self.kill()
            raise

    def ask(
        self, header: Mapping[str, Any], actions: np.ndarray | None = None
    ) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Sends a request, with actions as 64-bit integers, and returns the answer's header and arrays."""
        body = b""
        if actions is not None:
            body = actions.tobytes()
            header = {**header, "arrays": [{"name": "actions", "dtype": "i64", "shape": list(actions.shape)}]}
        text = json.dumps(header).encode()
        try:
            self._send(_LENGTHS.pack(len(text), len(body)) + text + body)
            return self._answer()
        except EngineError:
            raise
        except BaseException:
            # The rest of an answer after an interrupt would be taken for the answer to the next request.
            self.kill()
            raise

    def _send(self, frame: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(frame)
            self._process.stdin.flush()
        except (OSError, ValueError):
            # The engine has ended or was closed. If it sent the reason, that is read next.
            pass

    def _answer(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        header_length, body_length = _LENGTHS.unpack(self._read(_LENGTHS.size))
        header = json.loads(self._read(header_length))
        body = self._read(body_length)
        if header["kind"] == "error":
            if header["fatal"]:
                self.kill()
            raise EngineError(header["message"])
        arrays, start = {}, 0
        for array in header["arrays"]:
            dtype, count = np.dtype(_DTYPES[array["dtype"]]), math.prod(array["shape"])
            arrays[array["name"]] = np.frombuffer(body, dtype, count, start).reshape(array["shape"])
            start += count * dtype.itemsize
        return header, arrays

    def _read(self, length: int) -> bytearray:
        assert self._process.stdout is not None
        data = bytearray(length)
        view = memoryview(data)
        while view and not self._process.stdout.closed:
            read = self._process.stdout.readinto(view)  # type: ignore[attr-defined]
            if not read:
                break
            view = view[read:]
        if view:
            raise EngineError(self._death())
        return data

    def _death(self) -> str:
        status = self._process.wait()
        self._log.seek(max(0, os.fstat(self._log.fileno()).st_size - 4096))
        said = self._log.read().decode(errors="replace").strip()
        how = f"was killed by signal {-status}" if status < 0 else f"ended with exit code {status}"
        return f"the engine {how}" + (f":\n{said}" if said else ", and said nothing")

    @property
    def process_id(self) -> int:
        """Process id of the engine."""
        return self._process.pid

    def close(self) -> None:
        """Asks the engine to end. Does nothing once it has."""
        if self._process.poll() is None:
            try:
                text = b'{"kind":"close"}'
                self._process.stdin.write(_LENGTHS.pack(len(text), 0) + text)  # type: ignore[union-attr]
                self._process.stdin.close()  # type: ignore[union-attr]
                self._process.wait(timeout=10)
            except (OSError, subprocess.TimeoutExpired):
                pass
        self.kill()

    def kill(self) -> None:
        """Ends the engine at once, if it runs."""
        self._finalizer()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        try:
            if stream is not None:
                stream.close()
        except OSError:
            pass
