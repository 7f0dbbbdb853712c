"""Compares two builds of the engine: the cost of a step in each, for workloads that both can read.

    python3 benches/side_by_side/pairs.py --against OTHER/simic-engine

Every play is a process, BINARY run SCENARIO, and its figures come from the events of its record, so you can compare builds of
any age. With --against, plays come in pairs in alternating order, and the ratio of a pair is judged, because other load on the
machine affects both. README.md says more.

Seeds are held at full amplitude in every measured step. They train with their own optimizers, and the validation pass evaluates
every coalition of them. A schedule germinates them in the first steps, which are not measured.
"""

import argparse
import csv
import json
import math
import os
import random
import subprocess
import sys
import tempfile
from datetime import datetime
from pathlib import Path
from statistics import median

BUILT = Path(__file__).resolve().parents[2] / "target/release/simic-engine"
NONE = math.nan

# A task as scenarios name it, and its validation samples.
DIGITS = 'preset("digits_baseline")', 355
IMPAIRED = 'preset("digits_impaired")', 355
CIFAR_SHAPED = (
    """preset("synth_baseline", (
        batch_size: 512, batches_per_step: count(2), val_batch_size: 512,
        data: synth_images((train: 1024, val: 512, test: 512)),
    ))""",
    512,
)
# Slots of all hosts above.
SLOTS = "r0c0", "r0c1", "r0c2"
# Words of today and those of older builds, the latest change first.
OLDER_WORDS = [("auto_forward: true", "auto_forward: (g1: true, g2: true, g3: true)")]
# Steps from the germination of a seed until it is held.
STEPS_OF_A_SEED = 5
# Steps from one germination to the next: a seed waits until the previous one is being blended in.
STEPS_BETWEEN_SEEDS = 2

# Small hosts that train on two batches a step, so deciding and the policy's update matter. Measured from the end of the first
# round to the end of the last.
POLICY_BOUND = """(
    name: "P",
    preset: "digits",
    task: preset("digits_impaired", (batches_per_step: count(2))),
    run: (rounds: 3, n_envs: 64, max_steps: 20),
    policy: (controller: "actor_critic"),
)"""
# Of the same, for a smoke test.
FEWEST_OF_A_POLICY = ["run.rounds=2", "run.max_steps=2", "run.n_envs=4"]


def scheduled(name, what, task, n_envs, blueprint, seeds, steps):
    """Live seeds of one blueprint, and `steps` steps with them. The steps after step `after` are measured."""
    entries = "".join(
        f'(step: {1 + STEPS_BETWEEN_SEEDS * index}, command: germinate(slot: "{slot}", blueprint: "{blueprint}",'
        ' style: "sigmoid_add", tempo: "fast", target: "full")), '
        for index, slot in enumerate(SLOTS[:seeds])
    )
    if seeds:
        controller = f'controller: "schedule", schedule: (entries: [{entries}])'
        after = 1 + STEPS_BETWEEN_SEEDS * (seeds - 1) + STEPS_OF_A_SEED
    else:
        controller, after = 'controller: "wait"', 2
    scenario = f"""(
    name: "{name}",
    task: {task[0]},
    run: (rounds: 1, n_envs: {n_envs}, max_steps: {after + steps}),
    policy: ({controller}),
    lifecycle: (
        max_holding_steps: None, auto_forward: true,
        gates: (min_training_steps: 1, min_blending_steps: 1),
    ),
)"""
    return {"name": name, "what": what, "scenario": scenario, "after": after, "seeds": seeds, "val": task[1]}


# In the order of the tables. `seeds`: live in every measured step; none where a policy decides.
WORKLOADS = [
    scheduled("T0", "8x8 digits, batch 64, 8 envs", DIGITS, 8, "", 0, 60),
    scheduled("T1", "T0 and 1 conv_light", DIGITS, 8, "conv_light", 1, 40),
    scheduled("T3", "T0 and 3 conv_light", DIGITS, 8, "conv_light", 3, 20),
    scheduled("T3S", "T0 and 3 conv_small", DIGITS, 8, "conv_small", 3, 20),
    scheduled("T3A", "T0 and 3 attention", DIGITS, 8, "attention", 3, 20),
    scheduled("I", "8x8 digits, the quickstart's host, 8 envs", IMPAIRED, 8, "", 0, 60),
    scheduled("C0", "32x32 images, batch 512, 4 envs", CIFAR_SHAPED, 4, "", 0, 8),
    scheduled("C1", "C0 and 1 conv_light", CIFAR_SHAPED, 4, "conv_light", 1, 6),
    scheduled("C3", "C0 and 3 conv_light", CIFAR_SHAPED, 4, "conv_light", 3, 5),
    {
        "name": "P",
        "what": "64 envs under a policy that learns, 2 batches a step",
        "scenario": POLICY_BOUND,
        "after": None,
        "seeds": None,
        "val": 355,
    },
    scheduled("N2", "T0 with 2 envs", DIGITS, 2, "", 0, 240),
    scheduled("N8", "T0 with 8 envs", DIGITS, 8, "", 0, 60),
    scheduled("N64", "T0 with 64 envs", DIGITS, 64, "", 0, 8),
]


def run(program, fields, scenario, folder, *arguments):
    """Plays a scenario. Returns the resources that the process used, and its error if it failed."""
    path = Path(folder) / "scenario.ron"
    path.write_text(scenario)
    settings = [part for field in fields for part in ("--set", field)]
    with tempfile.TemporaryFile() as errors:
        command = [program, "run", path, *arguments, *settings]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        failed = process.returncode and f"{program} ended with {process.returncode}:\n{errors.read().decode(errors='replace')}"
    return usage, failed


def written_for(program, fields, scenario, folder):
    """The scenario in the words that the program reads, today's if possible."""
    _, refused = run(program, fields, scenario, folder, "--dry-run")
    if not refused:
        return scenario
    for today, before in OLDER_WORDS:
        scenario = scenario.replace(today, before)
        if not run(program, fields, scenario, folder, "--dry-run")[1]:
            return scenario
    sys.exit(refused)


def play(program, fields, workload, scenario, folder):
    """The figures of the measured part of a play. A figure that it doesn't have is not a number."""
    with tempfile.TemporaryDirectory(dir=folder) as runs:
        usage, failed = run(program, fields, scenario, folder, "--progress", "none", "--out", runs)
        if failed:
            sys.exit(failed)
        (record,) = [path for path in Path(runs).iterdir() if path.is_dir() and not path.is_symlink()]
        with open(record / "events.jsonl") as lines:
            return figures(workload, map(json.loads, lines), usage)


def figures(workload, events, usage):
    name, after, seeds = workload["name"], workload["after"], workload["seeds"]
    began = ended = None
    env_steps = measured_steps = coalitions = updates = 0
    update_ms = 0.0
    samples_per_env_step = NONE
    for event in events:
        kind, data = event.get("type"), event.get("data", {})
        place = event.get("round" if after is None else "step")
        is_inside = place is not None and place > (after or 0)
        if kind == "round_finished" and "samples_per_s" in data["perf"]:
            samples_per_env_step = data["perf"]["samples_per_s"] / data["perf"]["env_steps_per_s"]
        if is_inside and kind == "env_step":
            env_steps += 1
        elif is_inside and kind == "counterfactual_matrix":
            measured_steps, coalitions = measured_steps + 1, coalitions + len(data["rows"])
        elif is_inside and kind == "learner_update":
            updates, update_ms = updates + 1, update_ms + data["update_ms"]
        if kind == ("round_finished" if after is None else "env_step"):
            # The last event before the measured part begins it, the last one inside ends it.
            at = datetime.fromisoformat(event["t"].replace("Z", "+00:00"))
            began, ended = (began, at) if is_inside else (at, ended)
    if began is None or ended is None:
        sys.exit(f"{name}: the record has no measured part")
    if seeds and coalitions != env_steps << seeds:
        sys.exit(f"{name}: {coalitions} coalitions instead of {env_steps << seeds}: not all seeds are live")
    wall = (ended - began).total_seconds()
    return {
        "wall_s": wall,
        "env_steps_per_s": env_steps / wall,
        # Of all envs; of validation, samples times coalitions.
        "train_samples_per_s": samples_per_env_step * env_steps / wall,
        "val_forwards_per_s": (coalitions + env_steps - measured_steps) * workload["val"] / wall,
        "ms_per_env_step": 1e3 * wall / env_steps,
        "update_ms": update_ms / updates if updates else NONE,
        # Of the whole process.
        "peak_rss_mib": usage.ru_maxrss / (1 << (20 if sys.platform == "darwin" else 10)),
        "cpu_s": usage.ru_utime + usage.ru_stime,
    }


# A heading for people, a name for programs, digits.
COLUMNS = [
    ("env-steps/s", "env_steps_per_s", 1),
    ("samples/s", "train_samples_per_s", 0),
    ("forwards/s", "val_forwards_per_s", 0),
    ("ms/env-step", "ms_per_env_step", 2),
    ("update ms", "update_ms", 0),
    ("peak MiB", "peak_rss_mib", 0),
    ("cpu s", "cpu_s", 1),
]


def costs(plays):
    """A row per workload and program: medians over its plays."""
    print("         " + "".join(f" {heading:>{max(10, len(heading))}}" for heading, *_ in COLUMNS))
    for name, sides in plays.items():
        for label, played in zip([name, "  against"], sides):
            cells = ""
            for heading, column, digits in COLUMNS:
                value = median(figures[column] for figures in played)
                cells += f" {'-' if math.isnan(value) else f'{value:.{digits}f}':>{max(10, len(heading))}}"
            print(f"{label:<9}{cells}")
    print("cpu s: of the whole process, start included\n")


def summary(ratios):
    """The median and, of five ratios or more, its 95 % interval: percentiles of the medians of 10,000 draws."""
    text = f"{median(ratios):.2f}"
    if len(ratios) < 5:
        return text
    draws = random.Random(0)
    medians = sorted(median(draws.choices(ratios, k=len(ratios))) for _ in range(10_000))
    return f"{text} [{medians[250]:.2f}, {medians[9749]:.2f}]"


def ratios(plays):
    """A row per workload: how many times faster the first program is, judged by pairs."""
    print(f"{'':<6} {'pairs':>5} {'env-steps/s, first/against':>28} {'cpu s, against/first':>26} {'peak MiB, f/a':>18}")
    for name, (first, against) in plays.items():
        speed, cpu, memory = (
            [one[column] / other[column] for one, other in zip(first, against)]
            for column in ("env_steps_per_s", "cpu_s", "peak_rss_mib")
        )
        cpu = summary([1 / ratio for ratio in cpu])
        print(f"{name:<6} {len(speed):>5} {summary(speed):>28} {cpu:>26} {median(memory):>18.2f}")
    print("median of the pairs' ratios [95 % bootstrap interval]; above 1 the first program is faster")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, default=BUILT, help="the program that is measured, a release build")
    parser.add_argument("--against", type=Path, metavar="BINARY", help="another build to compare with")
    parser.add_argument("--pairs", type=int, metavar="N", help="plays of each workload; fewer than 5 have no interval")
    parser.add_argument("--only", metavar="NAMES", help="only these workloads, e.g. T0,C1")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a field, for the first program alone")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the figures of every play here")
    parser.add_argument("--list", action="store_true", help="list the workloads and stop")
    parser.add_argument("--check", action="store_true", help="check that the programs can read the scenarios and stop")
    parser.add_argument("--smoke", action="store_true", help="one play of each workload with the fewest steps, for tests")
    options = parser.parse_args()
    only = options.only.split(",") if options.only else [workload["name"] for workload in WORKLOADS]
    workloads = [workload for workload in WORKLOADS if workload["name"] in only]
    if unknown := set(only) - {workload["name"] for workload in WORKLOADS}:
        parser.error(f"no such workload: {', '.join(sorted(unknown))}; --list lists them")
    if options.list:
        for workload in workloads:
            print(f"{workload['name']:<4} {workload['what']}")
        return
    sides = [(options.binary, options.set)] + ([(options.against, [])] if options.against else [])
    for program, _ in sides:
        if not program.is_file():
            parser.error(f"{program}: no such program; `cargo build --release` in its sources makes target/release/simic-engine")
    plays = {workload["name"]: [[] for _ in sides] for workload in workloads}
    with tempfile.TemporaryDirectory() as folder:
        scenarios = {
            (workload["name"], side): written_for(program, fields, workload["scenario"], folder)
            for workload in workloads
            for side, (program, fields) in enumerate(sides)
        }
        if options.check:
            print(f"{len(workloads)} scenarios are valid")
            return
        pairs = options.pairs or (5 if options.against else 1)
        for workload in workloads:
            fewest = FEWEST_OF_A_POLICY if workload["after"] is None else [f"run.max_steps={workload['after'] + 1}"]
            for pair in range(pairs):
                # Every other pair in the opposite order.
                for side in sorted(range(len(sides)), reverse=pair % 2 == 1):
                    program, fields = sides[side]
                    scenario = scenarios[workload["name"], side]
                    played = play(program, fields + fewest if options.smoke else fields, workload, scenario, folder)
                    plays[workload["name"]][side].append(played)
                    what = f"{workload['name']} pair {pair + 1} {['first', 'against'][side]}"
                    print(f"{what}: {played['env_steps_per_s']:.1f} env-steps/s", file=sys.stderr, flush=True)
    if options.csv:
        with open(options.csv, "w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["workload", "pair", "side", "wall_s"] + [column for _, column, _ in COLUMNS])
            for name, both in plays.items():
                for side, played in zip(["first", "against"], both):
                    for pair, figures in enumerate(played):
                        values = ["" if math.isnan(value) else value for value in figures.values()]
                        table.writerow([name, pair, side, *values])
    costs(plays)
    if options.against:
        ratios(plays)


if __name__ == "__main__":
    main()
