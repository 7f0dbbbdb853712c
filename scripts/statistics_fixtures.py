"""Expected numbers for the tests of `src/compare/statistics/`, from scipy, statsmodels, rliable and plain numpy.

    python3 -m venv venv
    venv/bin/pip install numpy==2.4.6 scipy==1.17.1 statsmodels==0.15.0 rliable==1.2.0 arch==7.2.0 pandas==2.3.3
    venv/bin/python scripts/statistics_fixtures.py > src/compare/statistics/fixtures/reference.json

The same versions give the same file. Resamples are stored as the indices that were drawn, in the order in which the engine
draws them: the trainings of all tasks first, then for each drawn training its seeds, each followed by its episodes. For hosts
that trainings share, only the first drawn training of each task has indices. Where there is only one, no index is drawn.
"""

import json
from importlib.metadata import version

import numpy as np
from rliable import library, metrics
from scipy import stats
from statsmodels.stats.multitest import multipletests

RESAMPLES = 200
TAIL = [0.025, 0.975]
GENERATOR = np.random.default_rng(20_261)
# Later fixtures draw from their own generator, so the earlier ones don't change.
LATER = np.random.default_rng(20_263)
# Accuracies of `policy (greedy)` in proof/results/digits_impaired.csv: one row per training, one column per evaluation seed.
PROOF = [
    [70.023, 77.441, 74.343],
    [74.178, 77.793, 73.627],
    [76.045, 79.707, 77.054],
    [76.268, 76.901, 74.577],
    [75.927, 79.977, 77.43],
    [79.777, 84.014, 81.021],
    [75.258, 79.026, 74.636],
    [75.634, 78.169, 76.491],
    [70.141, 74.941, 71.62],
    [76.467, 77.653, 75.106],
]


def iqm(values):
    return stats.trim_mean(values, proportiontocut=0.25, axis=None)


def worst_tenth(values):
    ordered = np.sort(np.ravel(values))
    return np.mean(ordered[: int(np.ceil(len(ordered) / 10))])


STATISTICS = {"mean": np.mean, "median": np.median, "iqm": iqm, "worst_tenth": worst_tenth}


def normal(*shape, mean=60.0, sd=4.0):
    return np.round(GENERATOR.normal(mean, sd, shape), 3)


def summaries():
    cases = []
    for count in [1, 2, 3, 4, 5, 8, 11, 20, 37]:
        values = normal(count)
        case = {"values": values.tolist()}
        case |= {name: statistic(values) for name, statistic in STATISTICS.items()}
        quantiles = [0.0, 0.025, 0.1, 0.5, 0.8, 0.975, 1.0]
        case["percentiles"] = [[q, np.quantile(values, q)] for q in quantiles]
        cases.append(case)
    return cases


def ranks():
    samples = [
        ([71.2, 72.5, 70.8, 73.1, 71.9], [69.9, 70.4, 71.0, 70.1, 69.5]),
        (normal(1), normal(3)),
        (normal(5, mean=62), normal(5)),
        (normal(6), normal(11)),
        (normal(10, mean=63), normal(10)),
        (normal(20, mean=61), normal(20)),
        (normal(25, mean=61), normal(30)),
        ([1, 2, 2, 3], [2, 3, 4, 4]),
        (np.round(normal(12, mean=61)), np.round(normal(15))),
        ([5, 5, 5], [5, 5, 5, 5]),
    ]
    cases = []
    for first, second in samples:
        first, second = np.asarray(first, float), np.asarray(second, float)
        n, m = len(first), len(second)
        exact = None
        if len(np.unique(np.concatenate([first, second]))) == n + m:
            exact = stats.mannwhitneyu(first, second, method="exact").pvalue
        normal_test = stats.mannwhitneyu(first, second, method="asymptotic", use_continuity=True)
        cases.append(
            {
                "first": first.tolist(),
                "second": second.tolist(),
                "u": normal_test.statistic,
                "exact_p": exact,
                "normal_p": normal_test.pvalue,
            }
        )
    return cases


def sign_flips():
    first = np.array([71.2, 72.5, 70.8, 73.1, 71.9])
    samples = [first - [69.9, 70.4, 71.0, 70.1, 69.5], normal(2, mean=1), normal(6, mean=3), normal(8, mean=1)]
    samples += [normal(12, mean=2), normal(16, mean=1), np.round(normal(10, mean=1)), [1, -1, 2, -2], [0, 0, 0]]
    cases = []
    for differences in samples:
        differences = np.asarray(differences, float)
        test = stats.permutation_test(
            (differences,), np.mean, permutation_type="samples", n_resamples=np.inf, vectorized=True
        )
        cases.append({"differences": differences.tolist(), "mean": test.statistic, "p": test.pvalue})
    return cases


def holm():
    cases = [[0.01, 0.04, 0.03], [0.5], [0.2, 0.2, 0.2], [0.9, 0.001, 0.03, 0.6], GENERATOR.uniform(0, 0.2, 12).tolist()]
    return [{"raw": raw, "adjusted": multipletests(raw, method="holm")[1].tolist()} for raw in cases]


class Recorded(library.StratifiedBootstrap):
    """rliable's, with the indices kept: the trainings of each task one after another."""

    drawn: list

    def update_indices(self):
        indices = super().update_indices()
        self.drawn += indices[0].T.ravel().tolist()
        return indices


class RecordedPair(library.StratifiedIndependentBootstrap):
    drawn: list

    def update_indices(self):
        positions, names = super().update_indices()
        for indices in positions:
            self.drawn += indices[0].T.ravel().tolist()
        return positions, names


def interval(bootstrap, statistic):
    bootstrap.drawn = []
    ends = bootstrap.conf_int(statistic, reps=RESAMPLES, size=0.95, method="percentile")
    return {"interval": ends.T.tolist(), "indices": bootstrap.drawn}


def single_level():
    cases = []
    for name, shape in [("iqm", (10, 1)), ("mean", (6, 3)), ("median", (7, 2)), ("worst_tenth", (5, 4))]:
        scores = normal(*shape)
        statistic = STATISTICS[name]
        case = {"tasks": scores.T.tolist(), "statistic": name, "value": statistic(scores)}
        cases.append(case | interval(Recorded(scores), lambda scores: np.array([statistic(scores)])))
    return cases


def improvement():
    cases = []
    for first, second in [((8, 3), (6, 3)), ((5, 1), (9, 1))]:
        first, second = np.round(normal(*first, mean=61, sd=2)), np.round(normal(*second, sd=2))
        case = {"first": first.T.tolist(), "second": second.T.tolist()}
        case["value"] = metrics.probability_of_improvement(first, second)
        bootstrap = RecordedPair(first, second)
        cases.append(
            case | interval(bootstrap, lambda *scores: np.array([metrics.probability_of_improvement(*scores)]))
        )
    return cases


def pick(count, drawn, generator=GENERATOR):
    if count == 1:
        return 0
    index = int(generator.integers(count))
    drawn.append(index)
    return index


def pick_trainings(tasks, drawn, generator=GENERATOR):
    return [(task, pick(len(trainings), drawn, generator)) for task, trainings in enumerate(tasks) for _ in trainings]


def pick_episodes(training, drawn, generator=GENERATOR):
    """Places (seed, episode)."""
    places = []
    for _ in training:
        seed = pick(len(training), drawn, generator)
        places += [(seed, pick(len(training[seed]), drawn, generator)) for _ in training[seed]]
    return places


def score(training, places=None):
    if places is None:
        return np.mean(np.concatenate(training))
    return np.mean([training[seed][episode] for seed, episode in places])


def ragged(trainings, **distribution):
    """A task: trainings of unlike shapes."""
    task = []
    for _ in range(trainings):
        level = GENERATOR.normal(distribution.get("mean", 60.0), 3)
        counts = GENERATOR.integers(1, 5, GENERATOR.integers(1, 4))
        task.append([np.round(GENERATOR.normal(level, 2, count), 2).tolist() for count in counts])
    return task


def varied(tasks, shift, reshaped=()):
    """Another arm of equal shapes; those of `reshaped` (task, training) lose their last seed's last episode or gain one."""
    arm = []
    for task, trainings in enumerate(tasks):
        arm.append([])
        for index, training in enumerate(trainings):
            other = [[round(v + shift + GENERATOR.normal(0, 1), 2) for v in seed] for seed in training]
            if (task, index) in reshaped:
                other[-1].append(round(60 + shift, 2))
            arm[-1].append(other)
    return arm


def scores(tasks):
    return np.array([score(training) for trainings in tasks for training in trainings])


def two_levels():
    cases = []
    for name, tasks in [("iqm", [ragged(4), ragged(3, mean=80.0)]), ("mean", [ragged(5)])]:
        statistic = STATISTICS[name]
        drawn, resampled = [], []
        for _ in range(RESAMPLES):
            chosen = [tasks[task][index] for task, index in pick_trainings(tasks, drawn)]
            resampled.append(statistic([score(training, pick_episodes(training, drawn)) for training in chosen]))
        cases.append(
            {
                "tasks": tasks,
                "statistic": name,
                "value": statistic(scores(tasks)),
                "interval": [np.quantile(resampled, TAIL).tolist()],
                "indices": drawn,
            }
        )
    return cases


def differences():
    cases = []
    first = [ragged(3), ragged(2, mean=80.0)]
    for design, second in [
        ("paired", varied(first, -1.0)),
        ("paired", varied(first, -1.0, reshaped=[(0, 1), (1, 0)])),
        ("independent", [ragged(4), ragged(3, mean=78.0)]),
    ]:
        drawn, resampled = [], []
        for _ in range(RESAMPLES):
            if design == "paired":
                pairs = [(first[t][i], second[t][i]) for t, i in pick_trainings(first, drawn)]
                ours, theirs = [], []
                for our, their in pairs:
                    places = pick_episodes(our, drawn)
                    alike = [len(seed) for seed in our] == [len(seed) for seed in their]
                    ours.append(score(our, places))
                    theirs.append(score(their, places if alike else pick_episodes(their, drawn)))
            else:
                ours, theirs = (
                    [score(arm[t][i], pick_episodes(arm[t][i], drawn)) for t, i in pick_trainings(arm, drawn)]
                    for arm in (first, second)
                )
            resampled.append(iqm(ours) - iqm(theirs))
        cases.append(
            {
                "first": first,
                "second": second,
                "design": design,
                "value": iqm(scores(first)) - iqm(scores(second)),
                "interval": [np.quantile(resampled, TAIL).tolist()],
                "indices": drawn,
            }
        )
    return cases


def on_shared_hosts(trainings, counts, mean):
    """A task: trainings on the same hosts, `counts[i]` of them under evaluation seed i."""
    hosts = [LATER.normal(0, 4) + LATER.normal(0, 5, count) for count in counts]
    levels = LATER.normal(mean, 2, trainings)
    noisy = lambda level, seed: np.round(level + seed + LATER.normal(0, 3, len(seed)), 2).tolist()
    return [[noisy(level, seed) for seed in hosts] for level in levels]


def crossed():
    """One arm, or the difference of two, with the hosts of a task drawn once for all of its trainings."""
    cases = []
    for name, first, is_pair in [
        ("iqm", [on_shared_hosts(6, [3, 3, 3], 60.0), on_shared_hosts(4, [2, 4], 75.0)], False),
        ("mean", [on_shared_hosts(11, [6] * 2, 60.0)], False),
        ("iqm", [on_shared_hosts(5, [4], 60.0), on_shared_hosts(3, [2, 2], 75.0)], True),
    ]:
        statistic = STATISTICS[name]
        second = [
            [[np.round(np.array(seed) - LATER.normal(1, 2, len(seed)), 2).tolist() for seed in training] for training in task]
            for task in first
        ]
        arms = [first, second] if is_pair else [first]
        less = lambda values: values[0] - (values[1] if is_pair else 0.0)
        drawn, resampled = [], []
        for _ in range(RESAMPLES):
            chosen = pick_trainings(first, drawn, LATER)
            places = [pick_episodes(task[chosen[index][1]], drawn, LATER) for task, index in first_of_each(first)]
            resampled.append(less([statistic([score(arm[t][i], places[t]) for t, i in chosen]) for arm in arms]))
        case = {"first": first, "statistic": name, "value": less([statistic(scores(arm)) for arm in arms])}
        if is_pair:
            case["second"] = second
        cases.append(case | {"interval": [np.quantile(resampled, TAIL).tolist()], "indices": drawn})
    return cases


def first_of_each(tasks):
    """Each task with the place of its first training among those of all."""
    sizes = [len(task) for task in tasks]
    return zip(tasks, np.cumsum([0, *sizes[:-1]]).tolist())


def mean_squares(table):
    """Mean squares of rows, of columns, and of the rest, each with its degrees of freedom."""
    n, m = table.shape
    rows, columns = table.mean(axis=1, keepdims=True), table.mean(axis=0, keepdims=True)
    rest = table - rows - columns + table.mean()
    return [
        (m * rows.var(ddof=1), n - 1),
        (n * columns.var(ddof=1), m - 1),
        ((rest**2).sum() / ((n - 1) * (m - 1)), (n - 1) * (m - 1)),
    ]


def student():
    """The t interval of a mean over trainings (rows) and hosts (columns), both at random."""
    tables = [
        PROOF,
        [[71.2], [72.5], [70.8], [73.1], [71.9]],
        np.round(LATER.normal(60, 2, (5, 1)) + LATER.normal(0, 3, (1, 3)) + LATER.normal(0, 1, (5, 3)), 2).tolist(),
        np.round(LATER.normal(60, 5, (6, 1)) + LATER.normal(0, 1, (6, 4)), 2).tolist(),
        np.round(60 + LATER.normal(0, 5, (1, 4)) + LATER.normal(0, 1, (7, 4)), 2).tolist(),
    ]
    cases = []
    for values in tables:
        table = np.array(values)
        n, m = table.shape
        if m == 1:
            ends = stats.t.interval(0.95, n - 1, loc=table.mean(), scale=stats.sem(table[:, 0]))
        else:
            (a, of_a), (b, of_b), (e, of_e) = mean_squares(table)
            variance, freedom = max((a, of_a), (b, of_b))
            if min(a, b) > e:
                variance = a + b - e
                freedom = variance**2 / (a**2 / of_a + b**2 / of_b + e**2 / of_e)
            ends = stats.t.interval(0.95, max(freedom, 1), loc=table.mean(), scale=np.sqrt(variance / (n * m)))
        cases.append({"table": values, "interval": list(ends)})
    return cases


def quantiles():
    return [[freedom, stats.t.ppf(0.975, freedom)] for freedom in [1, 1.5, 2, 2.7, 4, 9, 17.3, 60, 400]]


def main():
    np.random.seed(20_262)  # rliable draws from numpy's global generator.
    packages = ["numpy", "scipy", "statsmodels", "rliable"]
    print("{")
    parts = {
        "versions": {package: version(package) for package in packages},
        "resamples": RESAMPLES,
        "summaries": summaries(),
        "ranks": ranks(),
        "sign_flips": sign_flips(),
        "holm": holm(),
        "single_level": single_level(),
        "two_levels": two_levels(),
        "differences": differences(),
        "improvement": improvement(),
        "crossed": crossed(),
        "student": student(),
        "quantiles": quantiles(),
    }
    rows = [f'"{name}": {json.dumps(part, separators=(",", ":"), allow_nan=False)}' for name, part in parts.items()]
    print(",\n".join(rows))
    print("}")


if __name__ == "__main__":
    main()
