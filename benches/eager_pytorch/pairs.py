"""ResNet-20's train samples a second: the engine and the same network in eager PyTorch, in pairs.

    python3 benches/eager_pytorch/pairs.py --engine target/release/simic-engine --pairs 5

Both have two threads. The engine plays two trainings (resnet20.ron), PyTorch one with two threads and then two of one
thread, each in its better memory format (channels last, as measured by --layouts). Every other pair is played in the
opposite order. Start-up and the first step are left out. Needs PyTorch 2.11 with its libraries.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from datetime import datetime
from pathlib import Path

HERE = Path(__file__).resolve().parent
THREADS = 2
BATCH, BATCHES_PER_STEP, ENVS = 128, 16, 2


def engine(binary):
    """Samples a second from the end of the first step to the end of the last."""
    with tempfile.TemporaryDirectory() as folder:
        command = [binary, "--quiet", "--threads", str(THREADS), "run", HERE / "resnet20.ron", "--out", folder]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        (run,) = [path for path in Path(folder).iterdir() if path.is_dir() and not path.is_symlink()]
        events = map(json.loads, (run / "events.jsonl").read_text().splitlines())
        ends = {e["step"]: datetime.fromisoformat(e["t"]) for e in events if e["type"] == "env_step"}
    seconds = (ends[max(ends)] - ends[min(ends)]).total_seconds()
    return (max(ends) - min(ends)) * BATCHES_PER_STEP * BATCH * ENVS / seconds


def eager(processes, *arguments):
    """Samples a second of all processes together."""
    command = [sys.executable, HERE / "resnet20.py", "--batch", str(BATCH), "--threads", str(THREADS // processes)]
    started = [subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, text=True) for _ in range(processes)]
    printed = [process.communicate()[0].split() for process in started]
    if any(process.returncode for process in started):
        sys.exit("PyTorch's part failed")
    return sum(float(samples) for _, samples in printed)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", required=True, help="a release build")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--layouts", action="store_true", help="compare PyTorch's memory formats and stop")
    options = parser.parse_args()
    if options.layouts:
        print(f"NCHW {eager(1):.0f}, channels last {eager(1, '--channels-last'):.0f} samples/s")
        return
    players = {
        "engine, 2 envs": lambda: engine(options.engine),
        "eager, 2 threads": lambda: eager(1, "--channels-last"),
        "eager, 2 processes": lambda: eager(2, "--channels-last"),
    }
    reached = {name: [] for name in players}
    for pair in range(options.pairs):
        order = list(players) if pair % 2 == 0 else list(reversed(players))
        for name in order:
            reached[name].append(players[name]())
        print(pair, {name: round(samples[-1]) for name, samples in reached.items()}, file=sys.stderr, flush=True)
    own = reached.pop("engine, 2 envs")
    print(f"engine, 2 envs: {statistics.median(own):.0f} samples/s")
    for name, samples in reached.items():
        ratios = [mine / theirs for mine, theirs in zip(own, samples)]
        print(
            f"{name}: {statistics.median(samples):.0f} samples/s; ratio of the engine's to it: median"
            f" {statistics.median(ratios):.2f}, {min(ratios):.2f} ... {max(ratios):.2f} in {len(ratios)} pairs"
        )


if __name__ == "__main__":
    main()
