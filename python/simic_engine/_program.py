"""Finds the program, prepares its environment, and calls it."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import NoReturn, Sequence

from .errors import EngineError

#: Path of the program to start instead of the installed one.
VARIABLE = "SIMIC_ENGINE_PROGRAM"
#: Its name as the wheel installs it. ``simic-engine`` is the launcher.
NAME = "simic-engine-program"
#: The program is linked against libtorch of this version.
TORCH = "2.11"


def program() -> Path:
    """The program that ``SIMIC_ENGINE_PROGRAM`` names, else the one of the wheel, else the one on ``PATH``."""
    if named := os.environ.get(VARIABLE):
        if not Path(named).is_file():
            raise EngineError(f"{VARIABLE} names {named}, which isn't a file; set it to the program, or unset it")
        return Path(named).absolute()
    folders = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", f"{os.name}_user")]
    for folder in folders:
        if (path := Path(folder) / NAME).is_file():
            return path
    for name in (NAME, "simic-engine"):
        found = shutil.which(name)
        if found and not _is_script(found):
            return Path(found)
    raise EngineError(
        f"the program of simic-engine is neither next to {sys.executable} nor on PATH; "
        f"install it with `pip install ./python` in its repository, or name it in {VARIABLE}"
    )


def environment() -> dict[str, str]:
    """The program's environment: the variables of this process, and the folder of torch's libtorch."""
    advice = f"install it with `pip install 'torch=={TORCH}.*'`"
    try:
        torch = importlib.metadata.distribution("torch")
    except importlib.metadata.PackageNotFoundError:
        raise EngineError(f"torch isn't installed, but simic-engine needs libtorch {TORCH}; {advice}") from None
    if not torch.version.startswith(f"{TORCH}."):
        raise EngineError(f"torch {torch.version} is installed, but simic-engine needs torch {TORCH}; {advice}")
    library = Path(str(torch.locate_file("torch"))) / "lib"
    if not library.is_dir():
        raise EngineError(f"torch {torch.version} has no folder {library}; {advice}")
    variables = dict(os.environ)
    before = variables.get("LD_LIBRARY_PATH")
    variables["LD_LIBRARY_PATH"] = f"{library}:{before}" if before else str(library)
    return variables


def main() -> NoReturn:
    """The command ``simic-engine``: becomes the program."""
    try:
        path, variables = program(), environment()
        os.execve(path, [str(path), *sys.argv[1:]], variables)
    except (EngineError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


def call(arguments: Sequence[str], progress: bool = False) -> object:
    """Runs a command and returns the JSON document that it prints. The command ends when this process does.

    ``progress`` shows its standard error. An interrupt asks the program to stop, as Ctrl-C does.
    """
    path, variables = program(), environment()
    # Files, because full pipes would have to be emptied while the program runs.
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as logged:
        process = subprocess.Popen(
            [path, *arguments, "--json", "--ends-with-input"],
            stdin=subprocess.PIPE,
            stdout=printed,
            stderr=None if progress else logged,
            env=variables,
            # Ctrl-C would reach the program twice otherwise.
            start_new_session=True,
        )
        try:
            code = process.wait()
        except BaseException:
            process.send_signal(signal.SIGINT)
            process.wait()
            raise
        finally:
            if process.stdin:
                process.stdin.close()
        printed.seek(0)
        logged.seek(0)
        document, messages = printed.read().decode(), logged.read().decode()
    if code != 0:
        raise EngineError(_reason(document, messages) or f"{path} ended with exit code {code}", code)
    return json.loads(document)


def _reason(document: str, messages: str) -> str:
    """The reason for a failure: a document if there are problems, and standard error for everything else."""
    try:
        problems = json.loads(document)
        if isinstance(problems, list):
            return "\n".join(_problem(problem) for problem in problems)
    except (ValueError, KeyError, TypeError):
        pass
    return messages.strip()


def _problem(problem: dict[str, object]) -> str:
    place = [str(problem[key]) for key in ("source", "line", "column") if key in problem]
    return ": ".join([":".join(place), str(problem["message"])] if place else [str(problem["message"])])


def _is_script(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(2) == b"#!"
