#!/usr/bin/env python3
"""Plays short experiments and compares every number of theirs, to the bit, with what was recorded.

    python3 tests/goldens/goldens.py [--program target/release/simic-engine] [NAME ...]
    python3 tests/goldens/goldens.py --record [NAME ...]

`scenarios/` holds the experiments with every default written out, so that they stay what they are when defaults change.
A golden, `LEVEL/NAME.txt`, has a line per field of the events named below and per tensor of the last checkpoint: its name and
the hash of all its values in order, at one thread and at two. Libraries round by the vector instructions of the CPU, hence the
level; on a CPU without goldens of its level nothing is compared, and the last line says so. `renamed.txt` has words that have
others since, in names and values; `names.txt` has the rest of it and what was removed. A field that
goldens do not have is new, which is said and isn't a failure.
"""

import argparse
import concurrent.futures
import csv
import fnmatch
import hashlib
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
EVENTS = ("env_step", "decision", "episode_finished", "round_finished", "learner_update")
# Times, memory and what hangs on them, as `strip_volatile` of the engine has it.
MEASURED = ("_ms", "_s", "_per_s", "_per_hour", "_bytes", "dropped_events")
# Of a table of trials: times, the build, and names made of the hash of the scenario.
OF_A_PLAY = ("seconds", "run", "trial", "id", "engine", "commit")
LEVELS = {
    "amx": {"amx_tile", "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
    "avx512": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
    "avx2": {"avx2", "fma", "bmi1", "bmi2"},
    "plain": set(),
}


def level():
    """The widest vector instructions that this CPU has; with AMX, libraries multiply in another order than with AVX-512 alone."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    flags = next((set(line.split()) for line in lines if line.startswith("flags")), set())
    return next(name for name, needed in LEVELS.items() if needed <= flags)


def leaves(value, path):
    """Each number, text or truth value of a JSON tree under its path, in order."""
    if isinstance(value, dict):
        for key, item in value.items():
            if not key.endswith(MEASURED):
                yield from leaves(item, f"{path}.{key}")
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            for name, (place, leaf) in leaves(item, f"{path}[]"):
                yield name, ([index, *place], leaf)
    else:
        # A reason is a text, which may be a word that is a name elsewhere.
        is_name = isinstance(value, str) and not path.endswith(".reason")
        yield path, ([], FIRST.get(value, value) if is_name else value)


def events(run):
    """Of each field: the event, counted by its kind, and the value, one after the other."""
    count = dict.fromkeys(EVENTS, 0)
    for line in (run / "events.jsonl").open():
        event = json.loads(line)
        kind = event.get("type")
        if kind not in count:
            continue
        count[kind] += 1
        where = {key: event[key] for key in ("round", "env", "episode", "step") if key in event}
        for name, leaf in leaves(where | event["data"], kind):
            yield name, json.dumps([count[kind], leaf])


def tensors(run):
    """Of each tensor of the last checkpoint: its bytes."""
    checkpoint = sorted((run / "checkpoints").glob("round-*"))[-1]
    for file in sorted(checkpoint.rglob("*.safetensors")):
        content = file.read_bytes()
        (length,) = struct.unpack("<Q", content[:8])
        for name, tensor in json.loads(content[8 : 8 + length]).items():
            if name != "__metadata__":
                begin, end = (8 + length + offset for offset in tensor["data_offsets"])
                kind = json.dumps([tensor["dtype"], tensor["shape"]]).encode()
                yield f"{file.stem}: {name}", kind + content[begin:end]


def table(sweep):
    """Of each column of a table of trials: its cells."""
    with (sweep / "trials.csv").open() as file:
        for row in csv.DictReader(file):
            for column, cell in row.items():
                if column not in OF_A_PLAY and not column.endswith(MEASURED):
                    yield f"trials: {column}", cell


def play(program, scenario, threads):
    """The hash of everything that a play of `scenario` comes to, by name."""
    with tempfile.TemporaryDirectory() as folder:
        return hashes_of(program, scenario, threads, pathlib.Path(folder))


def hashes_of(program, scenario, threads, folder):
    if scenario.stem == "sweep":
        command = [program, "sweep", scenario, "--parallel", str(threads), "--out", folder]
        read = lambda: table(next(folder.glob("sweeps/*")))
    else:
        command = [program, "run", scenario, "--progress", "none", "--threads", str(threads), "--out", folder]
        read = lambda: [pair for part in (events, tensors) for pair in part(next(folder.glob("2*")))]
    played = subprocess.run(command, capture_output=True, text=True)
    if played.returncode != 0:
        sys.exit(f"{scenario.name} failed:\n{played.stderr[-2000:]}")
    hashes = {}
    for name, value in read():
        value = value if isinstance(value, bytes) else value.encode()
        hashes.setdefault(name, hashlib.sha256()).update(value + b"\n")
    return {name: whole.hexdigest()[:16] for name, whole in hashes.items()}


def pairs(path):
    lines = path.read_text().splitlines()
    lines = (line.partition("=") for line in lines if line.strip() and not line.startswith("#"))
    return [(old.strip(), new.strip()) for old, _, new in lines]


PRESENT = dict(pairs(HERE / "renamed.txt"))
FIRST = {new: old for old, new in PRESENT.items()}
# `[]` is part of a name and no pattern.
NAMES = [(old.replace("[", "[[]"), new) for old, new in pairs(HERE / "names.txt")]


def present(name):
    """The present name of what the goldens call so; empty where nothing is left of it."""
    name = next((to for old, to in NAMES if fnmatch.fnmatchcase(name, old)), name)
    return re.sub(r"\w+", lambda word: PRESENT.get(word[0], word[0]), name)


def compare(golden, played):
    """One line for each thing that is not as recorded."""
    known = set()
    for line in golden.read_text().splitlines():
        name, _, value = line.rpartition(" ")
        now = present(name)
        known.add(now)
        if now and now not in played:
            yield f"{name} is missing; if it was renamed or removed, {HERE / 'names.txt'} has to say so"
        elif now and played[now] != value:
            yield f"{name} has other values"
    new = sorted(set(played) - known)
    if new:
        print(f"  new: {', '.join(new[:8])}{' and more' if len(new) > 8 else ''}")


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--program", default="target/release/simic-engine")
    arguments.add_argument("--record", action="store_true", help="write what is played instead of comparing")
    arguments.add_argument("names", nargs="*", help="experiments (default: all)")
    chosen = arguments.parse_args()
    goldens = HERE / level()
    if not goldens.is_dir() and not chosen.record:
        print(f"goldens: nothing compared, there are none for {level()}")
        return
    goldens.mkdir(exist_ok=True)
    differences = 0
    scenarios = sorted((HERE / "scenarios").glob("*.ron"))
    unknown = set(chosen.names) - {path.stem for path in scenarios}
    if unknown:
        arguments.error(f"no such experiment: {', '.join(sorted(unknown))}")
    scenarios = [path for path in scenarios if not chosen.names or path.stem in chosen.names]

    def played_with(threads):
        # At one thread two at a time.
        with concurrent.futures.ThreadPoolExecutor(3 - threads) as plays:
            yield from plays.map(lambda scenario: play(chosen.program, scenario, threads), scenarios)

    for threads in (1, 2):
        for scenario, played in zip(scenarios, played_with(threads)):
            golden = goldens / f"{scenario.stem}.txt"
            if chosen.record and threads == 1:
                golden.write_text("".join(f"{name} {value}\n" for name, value in sorted(played.items())))
            found = list(compare(golden, played))
            differences += len(found)
            print(f"golden {scenario.stem}, threads {threads}: {len(played)} hashes, {len(found)} differ", flush=True)
            for line in found[:20]:
                print(f"  {line}")
    print(f"goldens ({level()}): {f'{differences} differences' if differences else 'all equal'}")
    sys.exit(differences > 0)


if __name__ == "__main__":
    main()
