"""Plays the trials of a sweep with Ray. Each trial is one task, with the CPUs, GPUs and memory that it needs.

`simic-engine sweep FILE --on ray` runs this. You can run it by hand with the same arguments.
"""

import os
import sys

# Modules of Python come before files of the same names in the sweep's folder, which others may write.
FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [place for place in sys.path if os.path.abspath(place) != FOLDER] + [FOLDER]

import subprocess

import rounds

VERSION = "2.60.0"
# How often Ray restarts a task whose node, or whose worker process, has died.
RETRIES = 3
# Characters of a worker's output that are printed when it fails.
LAST_WORDS = 2000


def connect(ray, address):
    if address:
        ray.init(address=address, log_to_driver=False)
        return
    try:
        ray.init(address="auto", log_to_driver=False)
    except ConnectionError:
        rounds.tell("no Ray cluster runs here, so one is started on this machine for the sweep")
        ray.init(log_to_driver=False, include_dashboard=False)


def run(command):
    """Runs on the node. Returns the worker's exit code and its last output."""
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    return ended.returncode, ended.stderr[-LAST_WORDS:].strip()


def play_round(ray, options, trials):
    task = ray.remote(run)
    needs = {
        "num_cpus": options.threads,
        "num_gpus": options.gpus,
        "memory": options.memory_mib and options.memory_mib << 20,
        "max_retries": RETRIES,
    }
    to_submit = list(reversed(trials))
    at_once = options.workers or len(trials)
    submitted = {}
    while to_submit or submitted:
        while to_submit and len(submitted) < at_once:
            trial = to_submit.pop()
            submitted[task.options(name=trial, **needs).remote(rounds.work(options, trial))] = trial
        ended, _ = ray.wait(list(submitted))
        trial = submitted.pop(ended[0])
        try:
            code, words = ray.get(ended[0])
        except ray.exceptions.RayError as error:
            yield trial, f"Ray lost its task: {str(error).strip()}"
            continue
        if code != 0:
            yield trial, f"its worker ended with {code}: {words}"


def main():
    options = rounds.read_arguments("address of a Ray cluster; if left out, that of this machine, else a new one")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        rounds.missing("ray", VERSION)
    connect(ray, options.address)
    rounds.play_all(options, lambda trials: play_round(ray, options, trials))


if __name__ == "__main__":
    main()
