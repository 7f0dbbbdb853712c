"""CPU time of an env-step with decisions from Python, relative to that of the engine's run with the same decisions, in pairs.

    PYTHONPATH=python python3 benches/vector_env/pairs.py --engine target/release/simic-engine --pairs 5

Both play the built-in quickstart with 8 envs that always wait: the engine by its controller `wait`, Python by the action
"wait" through `VectorEnv`. Start-up is left out, as the difference between thirteen rounds and one counts. Python's own
time is part of its side. Every other pair is played in the opposite order. Needs what the package needs.
"""

import argparse
import os
import resource
import statistics
import subprocess
import tempfile

import numpy as np

from simic_engine import VectorEnv

ENVS, STEPS, ROUNDS = 8, 20, 13
SETTINGS = {"run.n_envs": ENVS, "run.max_steps": STEPS}


def seconds():
    """CPU time of this process and its finished children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def engine(binary, rounds):
    settings = {**SETTINGS, "run.rounds": rounds, "policy.controller": '"wait"'}
    with tempfile.TemporaryDirectory() as folder:
        command = [binary, "--quiet", "--threads", "1", "run", "--out", folder]
        command += [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def python(_, rounds):
    with VectorEnv(set=SETTINGS, threads=1) as env:
        env.reset()
        wait = np.full(ENVS, env.action_names.index("wait"))
        for _ in range(rounds * STEPS):
            env.step(wait)


def step(play, binary):
    """Milliseconds of CPU time an env-step."""
    taken = []
    for rounds in (1, ROUNDS):
        before = seconds()
        play(binary, rounds)
        taken.append(seconds() - before)
    return 1e3 * (taken[1] - taken[0]) / ((ROUNDS - 1) * STEPS * ENVS)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", required=True, help="a release build")
    parser.add_argument("--pairs", type=int, default=5)
    options = parser.parse_args()
    os.environ["SIMIC_ENGINE_PROGRAM"] = options.engine
    ratios = []
    for pair in range(options.pairs):
        order = [engine, python] if pair % 2 == 0 else [python, engine]
        reached = {play: step(play, options.engine) for play in order}
        ratios.append(reached[python] / reached[engine])
        print(f"engine {reached[engine]:.2f} ms, VectorEnv {reached[python]:.2f} ms, ratio {ratios[-1]:.3f}", flush=True)
    print(f"median ratio {statistics.median(ratios):.3f}, from {min(ratios):.3f} to {max(ratios):.3f}")


if __name__ == "__main__":
    main()
