"""Runs for the tests of pages, played and reported by the program, and runs with names that mean harm."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("SIMIC_ENGINE") or str(REPOSITORY / "target/debug/simic-engine")
QUICKSTART = ["run", str(REPOSITORY / "scenarios/quickstart.ron"), "--envs", "3", "--steps", "20", "--progress", "none"]

# Two arms of two trainings, each of a second or two.
TINY = """(
    name: "tiny",
    task: preset("digits_minimal", (batches_per_step: count(2))),
    run: (rounds: 2, n_envs: 2, max_steps: 8, seed: 7),
)"""
PAIR = """(
    scenario: "tiny.ron",
    axes: [(path: "policy.controller", values: list(["heuristic", "wait"]))],
    replicates: 2,
)"""

ENDS_SCRIPT = "</script><script>alert(1)</script>"
LOADS_PICTURE = "\"><img src=x onerror=\"alert('loaded')\">"
TURNS_AROUND = "\u202eyako"
LONG = "n" * 10_000


def engine(*arguments, folder=None):
    """Output of the program."""
    ran = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False, cwd=folder)
    if ran.returncode != 0:
        raise AssertionError(f"{arguments}: {ran.stderr}")
    return ran.stdout


class Run:
    """A run that has ended, in a folder of its own, and its page."""

    def __init__(self, rounds=3):
        self.root = Path(tempfile.mkdtemp(prefix="simic-runs-"))
        engine(*QUICKSTART, "--rounds", rounds, "--out", self.root)
        self.folder = next(path for path in self.root.iterdir() if path.is_dir() and not path.is_symlink())
        self.page = self.report(self.folder, "page.html")

    def report(self, run, name):
        page = self.root / name
        engine("report", run, "--out", self.root, "-o", page)
        return page

    def events(self, kind):
        lines = (self.folder / "events.jsonl").read_text().splitlines()
        return [event for event in map(json.loads, lines) if event["type"] == kind]

    def shown(self):
        return json.loads(engine("show", self.folder, "--json"))

    def remove(self):
        shutil.rmtree(self.root, ignore_errors=True)

    def hostile(self):
        """The page of the same run, after every name in it was chosen by somebody who means harm."""
        folder = self.root / "harm<script>alert(2)<"
        shutil.copytree(self.folder, folder)
        events = folder / "events.jsonl"
        text = events.read_text()
        names = {
            "digits_impaired": ENDS_SCRIPT + TURNS_AROUND,
            "quickstart": LOADS_PICTURE,
            "digits": LONG,
            "conv_light": ENDS_SCRIPT,
            "conv_heavy": LONG,
            "depthwise": TURNS_AROUND,
            "norm": LOADS_PICTURE,
            "linear_rent": LOADS_PICTURE,
            "committed_change": TURNS_AROUND,
        }
        for name, harmful in names.items():
            text = text.replace(f'"{name}"', json.dumps(harmful))
        events.write_text(text)
        scenario = folder / "scenario.ron"
        scenario.write_text(f"// {ENDS_SCRIPT} {TURNS_AROUND}\n// {LONG}\n{scenario.read_text()}")
        return self.report(folder, "harm.html")


def sweep_page(folder):
    """The page of a small sweep that is played in this folder."""
    (folder / "tiny.ron").write_text(TINY)
    (folder / "pair.ron").write_text(PAIR)
    engine("sweep", "pair.ron", "-q", folder=folder)
    engine("report", "pair", "-o", "sweep.html", folder=folder)
    return folder / "sweep.html"
