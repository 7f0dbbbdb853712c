"""Shared code of the drivers: plays the free trials of a sweep in rounds, until none is left.

The state of a sweep is its folder. A driver asks `simic-engine sweep status` which trials are free, plays each of them
with `simic-engine sweep work SWEEP --trial ID --leave` somewhere, and asks again. By then, trials whose worker was lost are
free again, and so are those that have passed a rung.
"""

import argparse
import json
import subprocess
import sys
import time

# Rounds without progress after which the driver ends with an error.
IDLE_ROUNDS = 3
# Time between two looks at a sweep whose remaining trials others play.
PAUSE_S = 5


def read_arguments(address):
    """Arguments that the program passes on. `address` is the help of --address."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True, help="simic-engine, as every machine finds it")
    parser.add_argument("--sweep", required=True, help="folder of the sweep, as every machine finds it")
    parser.add_argument("--threads", type=int, default=1, help="CPUs of a trial")
    parser.add_argument("--gpus", type=int, default=0, help="GPUs of a trial")
    parser.add_argument("--memory-mib", type=int, help="memory of a trial")
    parser.add_argument("--workers", type=int, help="trials at once, at most")
    parser.add_argument("--address", help=address)
    return parser.parse_args()


def missing(package, version):
    sys.exit(
        f"error: {sys.executable} has no package `{package}`; install it: "
        f"{sys.executable} -m pip install {package}=={version}; nothing was submitted"
    )


def tell(text):
    print(text, file=sys.stderr, flush=True)


def work(options, trial):
    """The command that plays a trial."""
    return [
        options.program,
        "sweep",
        "work",
        options.sweep,
        "--trial",
        trial,
        "--leave",
        "--threads",
        str(options.threads),
    ]


def states(options):
    """The state of every trial, by its id."""
    asked = subprocess.run(
        [options.program, "sweep", "status", options.sweep, "--json"],
        stdout=subprocess.PIPE,
        text=True,
    )
    if asked.returncode != 0:
        sys.exit(f"error: {options.program} cannot print the state of the sweep (exit code {asked.returncode})")
    return {row["trial"]: row["state"] for row in json.loads(asked.stdout)["trials"]}


def play_all(options, play_round):
    """Plays the sweep and ends the process, with exit code 0 if every trial has ended. `play_round` plays a list of trials and
    yields the id and the reason of each that could not be played.
    """
    before = None
    idle_rounds = 0
    while True:
        now = states(options)
        waiting = [trial for trial, state in now.items() if state == "waiting"]
        playing = [trial for trial, state in now.items() if state == "playing"]
        if not waiting and not playing:
            sys.exit(0)
        if not waiting:
            time.sleep(PAUSE_S)
            continue
        idle_rounds = idle_rounds + 1 if now == before else 0
        if idle_rounds == IDLE_ROUNDS:
            tell(f"error: {len(waiting)} trials cannot be played; the reasons are above")
            sys.exit(1)
        before = now
        tell(f"{len(waiting)} trials are free, {len(playing)} are played by others, of {len(now)}")
        for trial, reason in play_round(waiting):
            tell(f"trial {trial}: {reason}")
