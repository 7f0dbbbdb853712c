"""Plays the trials of a sweep with HyperQueue. Each trial is one task, with the CPUs, GPUs and memory that it needs.

`simic-engine sweep FILE --on hyperqueue` runs this. You can run it by hand with the same arguments.
"""

import os
import sys

# Modules of Python come before files of the same names in the sweep's folder, which others may write.
FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [place for place in sys.path if os.path.abspath(place) != FOLDER] + [FOLDER]

import contextlib

import rounds

VERSION = "0.27.0"


@contextlib.contextmanager
def client(hyperqueue, options):
    """A client of the server whose directory was named, else of a server that runs as long as the sweep does."""
    if options.address:
        yield hyperqueue.Client(options.address)
        return
    cores = (options.workers or max(1, (os.cpu_count() or 1) // options.threads)) * options.threads
    with hyperqueue.LocalCluster(worker_config=hyperqueue.cluster.WorkerConfig(cores=cores)) as cluster:
        yield cluster.client()


def needs(options):
    from hyperqueue.ffi.protocol import ResourceRequest

    others = {}
    if options.address and options.gpus:
        others["gpus/nvidia"] = options.gpus
    if options.address and options.memory_mib:
        # In MiB, as HyperQueue's workers offer it. Workers of a local cluster offer only CPUs.
        others["mem"] = options.memory_mib
    return ResourceRequest(cpus=options.threads, resources=others)


def play_round(hyperqueue, client, options, trials):
    # A trial that fails must not cancel the others.
    job = hyperqueue.Job(name=os.path.basename(options.sweep), max_fails=None, default_workdir=options.sweep)

    def log(trial, stream):
        return os.path.join(options.sweep, "logs", f"hyperqueue-{trial}.{stream}")

    for trial in trials:
        job.program(
            rounds.work(options, trial),
            name=trial,
            stdout=log(trial, "out"),
            stderr=log(trial, "err"),
            resources=needs(options),
        )
    submitted = client.submit(job)
    if client.wait_for_jobs([submitted], raise_on_error=False):
        return
    for task, failed in client.get_failed_tasks(submitted).items():
        trial = trials[task]
        yield trial, f"{failed.error.strip()}; its output is in {log(trial, 'err')}"


def main():
    options = rounds.read_arguments("directory of a HyperQueue server; if left out, one is started for the sweep")
    if options.address and options.workers:
        raise SystemExit("error: the workers of a HyperQueue server decide how many trials play at once; leave out --workers")
    if not sys.stderr.isatty():
        # Its bar of progress is for terminals.
        os.environ.setdefault("TQDM_DISABLE", "1")
    try:
        import hyperqueue
        import hyperqueue.cluster
    except ImportError:
        rounds.missing("hyperqueue", VERSION)
    with client(hyperqueue, options) as connected:
        rounds.play_all(options, lambda trials: play_round(hyperqueue, connected, options, trials))


if __name__ == "__main__":
    main()
