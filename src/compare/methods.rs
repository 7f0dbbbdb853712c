//! Methods against each other: trainings are grouped into methods, each is summed up over its trainings, and every pair is
//! compared on every task. The unit is the training throughout. Episodes only show how well each training is known.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::statistics::{
    self, Bootstrap, Criteria, DecisionTest, Design, Estimate, Interval, Sample, Statistic, Training, Verdict,
};
use super::{Metric, TrainingRecord};
use crate::files::counted;
use crate::telemetry::{BigInteger, Confounders};

/// Seed of all resampling: the same trainings give the same intervals.
const SEED: u64 = 1;

/// A training with the name of its method.
#[derive(Clone, Debug, PartialEq)]
pub struct MethodTraining {
    /// Name of the method.
    pub method: String,
    /// The training's results.
    pub record: TrainingRecord,
}

/// The settings of a comparison of methods.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparisonPlan {
    /// Metric that decides.
    pub metric: Metric,
    /// The criteria by which a difference counts.
    pub criteria: Criteria,
    /// The method that the others are compared with; all pairs if `None`.
    pub control: Option<String>,
    /// Trainings that are declared and have neither ended nor failed for good.
    pub outstanding: usize,
    /// `true` if a judge compares the points of a sweep, with a training of each under every seed. A seed that is left out of one
    /// point is left out of all, and unequal budgets forbid a verdict.
    pub is_judged: bool,
}

/// The score of one training.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScoredTraining {
    /// Name of its run.
    pub run_id: String,
    /// `run.seed`.
    pub seed: BigInteger,
    /// Mean over its episodes.
    pub score: f64,
}

/// A method on one task, or over all tasks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MethodSummary {
    /// Name of the method.
    pub method: String,
    /// `None`: over all tasks.
    pub task: Option<String>,
    /// All of them, by seed. Over all tasks the list is empty.
    pub scores: Vec<ScoredTraining>,
    /// Number of trainings.
    pub trainings: usize,
    /// Mean over trainings.
    pub mean: Estimate,
    /// Interquartile mean over trainings.
    pub iqm: Estimate,
    /// Mean of the worst tenth of trainings, at least one.
    pub worst_tenth: Estimate,
}

/// Two methods on one task, or over all tasks. Differences are the first method's score less the second's. A metric of
/// which less is better keeps its sign, and the tests take it into account.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MethodDifference {
    /// The first method.
    pub first: String,
    /// The second.
    pub second: String,
    /// `None`: over all tasks, without a test.
    pub task: Option<String>,
    /// Trainings of each.
    pub trainings: [usize; 2],
    /// The design, which says if trainings of equal seeds were compared with each other.
    pub design: Design,
    /// Difference of the interquartile means.
    pub iqm: Estimate,
    /// Two-sided p of the Mann-Whitney test. `None` where the test cannot be made.
    pub mann_whitney_p: Option<f64>,
    /// Two-sided p of the sign flips of pairs. `None` without pairs.
    pub sign_flip_p: Option<f64>,
    /// p of the deciding test, corrected for all differences by Holm's method.
    pub adjusted_p: Option<f64>,
    /// Probability that a training of the first method is better than one of the second.
    pub probability_of_improvement: Option<Estimate>,
    /// Conclusion; `None` over all tasks, and while trainings are outstanding.
    pub verdict: Option<Verdict>,
}

/// A training that is not compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Name of its run.
    pub run_id: String,
    /// Name of the method.
    pub method: String,
    /// The reason.
    pub reason: String,
}

/// Methods against each other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MethodComparison {
    /// Metric that decides.
    pub metric: Metric,
    /// The criteria by which a difference counts.
    pub criteria: Criteria,
    /// `true` if trainings are outstanding. There are no verdicts then.
    pub interim: bool,
    /// Methods in the order in which they came, by task, then over all tasks.
    pub methods: Vec<MethodSummary>,
    /// Differences, pair by pair.
    pub differences: Vec<MethodDifference>,
    /// Trainings that the numbers leave out.
    pub left_out: Vec<LeftOut>,
    /// Reasons that forbid a conclusion about judged methods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub objections: Vec<String>,
    /// Caveats for readers of the numbers.
    pub notes: Vec<String>,
}

impl MethodComparison {
    /// Compares the methods. Trainings that did not end, or have no score, are listed and left out.
    pub fn new(trainings: &[MethodTraining], plan: &ComparisonPlan) -> Self {
        let metric = plan.metric;
        let unsound: BTreeMap<u64, &str> = trainings
            .iter()
            .filter(|training| plan.is_judged && unfit(&training.record, metric).is_some())
            .map(|training| (training.record.seed.0, training.method.as_str()))
            .collect();
        let (mut sound, mut left_out) = (Vec::new(), Vec::new());
        for MethodTraining { method, record } in trainings {
            let partner = unsound.get(&record.seed.0);
            let partner = partner.map(|other| format!("its replicate has no sound training of {other}"));
            match unfit(record, metric).or(partner) {
                Some(reason) => left_out.push(LeftOut {
                    run_id: record.run_id.clone(),
                    method: method.clone(),
                    reason,
                }),
                None => sound.push((method.as_str(), record)),
            }
        }
        sound.sort_by_key(|(_, record)| record.seed.0);
        let tasks: BTreeSet<&str> = sound.iter().map(|(_, record)| record.task.as_str()).collect();
        let tasks: Vec<&str> = tasks.into_iter().collect();
        let arms = arms(trainings, &sound, &tasks, metric);
        let mut differences = differences(&arms, &tasks, plan);
        let objections = if plan.is_judged { objections(&arms) } else { Vec::new() };
        if plan.outstanding == 0 && objections.is_empty() {
            for difference in differences.iter_mut().filter(|difference| difference.task.is_some()) {
                difference.verdict = Some(conclude(difference, plan));
            }
        }
        Self {
            metric,
            criteria: plan.criteria,
            interim: plan.outstanding > 0,
            methods: summaries(&arms, &tasks, metric),
            differences,
            objections,
            notes: notes(&arms, plan, &left_out),
            left_out,
        }
    }
}

/// The reason why a training cannot be compared.
fn unfit(record: &TrainingRecord, metric: Metric) -> Option<String> {
    if !record.is_complete {
        let (played, rounds) = (record.curve.len(), record.rounds);
        return Some(format!("it has played {played} of {}", counted(rounds, "round")));
    }
    let has_score = record.score(metric).is_some_and(f64::is_finite);
    (!has_score).then(|| format!("it has no {}", metric.name()))
}

/// Budgets in which the trainings differ. A policy that does not learn has no updates to differ in.
fn objections(arms: &[Arm]) -> Vec<String> {
    let records = || arms.iter().flat_map(|arm| arm.tasks.iter().flatten());
    let env_steps: BTreeSet<u64> = records().map(|record| record.env_steps()).collect();
    let mut updates: BTreeSet<u64> = records().map(|record| record.updates).collect();
    updates.remove(&0);
    let budgets = [("env-steps", env_steps), ("updates", updates)];
    let unequal = budgets.into_iter().filter(|(_, counts)| counts.len() > 1);
    unequal
        .map(|(what, counts)| {
            let counts: Vec<String> = counts.iter().map(u64::to_string).collect();
            format!("trainings differ in their {what}: {}", counts.join(", "))
        })
        .collect()
}

/// A method and its trainings, by task.
struct Arm<'a> {
    name: &'a str,
    /// `true` if all trainings of all arms were evaluated on the hosts of their task.
    shares_hosts: bool,
    tasks: Vec<Vec<&'a TrainingRecord>>,
}

/// The arms that have a sound training, in the order in which methods came.
fn arms<'a>(
    trainings: &'a [MethodTraining],
    sound: &[(&str, &'a TrainingRecord)],
    tasks: &[&str],
    metric: Metric,
) -> Vec<Arm<'a>> {
    let shares_hosts = tasks.iter().all(|task| {
        let records = sound.iter().map(|(_, record)| *record);
        TrainingRecord::share_hosts(records.filter(|record| record.task == *task), metric)
    });
    let mut arms: Vec<Arm> = Vec::new();
    for MethodTraining { method: name, .. } in trainings {
        let own: Vec<_> = sound.iter().filter(|(method, _)| method == name).collect();
        if own.is_empty() || arms.iter().any(|arm| arm.name == name) {
            continue;
        }
        let of_task = |task: &&str| -> Vec<&'a TrainingRecord> {
            let records = own.iter().map(|(_, record)| *record);
            records.filter(|record| record.task == *task).collect()
        };
        arms.push(Arm {
            name,
            shares_hosts,
            tasks: tasks.iter().map(of_task).collect(),
        });
    }
    arms
}

impl Arm<'_> {
    /// The sample of one task, or of all. In it more is better.
    fn sample(&self, task: Option<usize>, metric: Metric) -> Sample {
        let training = |record: &&TrainingRecord| {
            let mut by_seed = record.scores(metric);
            if !metric.is_gain() {
                by_seed.iter_mut().flatten().for_each(|value| *value = -*value);
            }
            Training { by_seed }
        };
        let tasks = task.map_or(&self.tasks[..], |task| &self.tasks[task..=task]);
        Sample {
            tasks: tasks
                .iter()
                .map(|records| records.iter().map(training).collect())
                .collect(),
            shares_hosts: self.shares_hosts,
        }
    }

    fn seeds(&self, task: usize) -> Vec<u64> {
        self.tasks[task].iter().map(|record| record.seed.0).collect()
    }
}

/// The estimate with its own sign again, if less is better.
fn own_sign(estimate: Estimate, metric: Metric) -> Estimate {
    if metric.is_gain() {
        return estimate;
    }
    Estimate {
        // A difference from 0 isn't -0.
        value: 0.0 - estimate.value,
        interval: estimate.interval.map(|Interval { low, high }| Interval {
            low: 0.0 - high,
            high: 0.0 - low,
        }),
    }
}

/// Every task, then all of them where there are several.
fn scopes(tasks: &[&str]) -> Vec<Option<usize>> {
    let each = (0..tasks.len()).map(Some);
    each.chain((tasks.len() > 1).then_some(None)).collect()
}

fn summaries(arms: &[Arm], tasks: &[&str], metric: Metric) -> Vec<MethodSummary> {
    let mut summaries = Vec::new();
    for scope in scopes(tasks) {
        for arm in arms {
            let sample = arm.sample(scope, metric);
            let estimate = |statistic| {
                own_sign(
                    statistics::estimate(&sample, statistic, Bootstrap::seeded(SEED)),
                    metric,
                )
            };
            let scores = scope.map_or_else(Vec::new, |task| {
                let scored = arm.tasks[task].iter().map(|record| ScoredTraining {
                    run_id: record.run_id.clone(),
                    seed: record.seed,
                    score: record.score(metric).unwrap_or(f64::NAN),
                });
                scored.collect()
            });
            if sample.trainings() > 0 {
                summaries.push(MethodSummary {
                    method: arm.name.into(),
                    task: scope.map(|task| tasks[task].into()),
                    scores,
                    trainings: sample.trainings(),
                    mean: estimate(Statistic::Mean),
                    iqm: estimate(Statistic::Iqm),
                    worst_tenth: estimate(Statistic::WorstTenth),
                });
            }
        }
    }
    summaries
}

fn differences(arms: &[Arm], tasks: &[&str], plan: &ComparisonPlan) -> Vec<MethodDifference> {
    let mut pairs = Vec::new();
    for (index, first) in arms.iter().enumerate() {
        for second in &arms[index + 1..] {
            match plan.control.as_deref() {
                None => pairs.push((first, second)),
                Some(control) if control == second.name => pairs.push((first, second)),
                Some(control) if control == first.name => pairs.push((second, first)),
                Some(_) => {}
            }
        }
    }
    let mut differences: Vec<MethodDifference> = scopes(tasks)
        .into_iter()
        .flat_map(|scope| pairs.iter().map(move |(first, second)| (first, second, scope)))
        .filter_map(|(first, second, scope)| difference(first, second, scope, tasks, plan))
        .collect();
    let of_test = |difference: &MethodDifference| match plan.criteria.test {
        DecisionTest::MannWhitney => difference.mann_whitney_p,
        DecisionTest::PairedSignFlip => difference.sign_flip_p,
    };
    let raw: Vec<f64> = differences.iter().filter_map(of_test).collect();
    let decided = differences
        .iter_mut()
        .filter(|difference| of_test(difference).is_some());
    for (difference, p) in decided.zip(statistics::holm(&raw)) {
        difference.adjusted_p = Some(p);
    }
    differences
}

fn difference(
    first: &Arm,
    second: &Arm,
    scope: Option<usize>,
    tasks: &[&str],
    plan: &ComparisonPlan,
) -> Option<MethodDifference> {
    let metric = plan.metric;
    let (ours, theirs) = (first.sample(scope, metric), second.sample(scope, metric));
    let in_scope = |task: &usize| scope.is_none_or(|scope| scope == *task);
    let are_pairs = (0..tasks.len()).filter(in_scope).all(|task| {
        let seeds = first.seeds(task);
        seeds == second.seeds(task) && seeds.windows(2).all(|pair| pair[0] != pair[1])
    });
    let design = if are_pairs { Design::Paired } else { Design::Independent };
    let iqm = statistics::difference(&ours, &theirs, Statistic::Iqm, design, Bootstrap::seeded(SEED))?;
    if ours.trainings() == 0 || theirs.trainings() == 0 {
        return None;
    }
    let (a, b) = (ours.scores(), theirs.scores());
    let is_tested = scope.is_some();
    let pairs: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
    let flips = (is_tested && are_pairs)
        .then(|| statistics::sign_flip(&pairs, SEED))
        .flatten();
    Some(MethodDifference {
        first: first.name.into(),
        second: second.name.into(),
        task: scope.map(|task| tasks[task].into()),
        trainings: [ours.trainings(), theirs.trainings()],
        design,
        iqm: own_sign(iqm, metric),
        mann_whitney_p: is_tested.then(|| statistics::mann_whitney(&a, &b)).flatten(),
        sign_flip_p: flips,
        adjusted_p: None,
        probability_of_improvement: statistics::probability_of_improvement(&ours, &theirs, Bootstrap::seeded(SEED)),
        verdict: None,
    })
}

fn conclude(difference: &MethodDifference, plan: &ComparisonPlan) -> Verdict {
    // Signs as the tests see them: more is better.
    let seen = own_sign(difference.iqm, plan.metric);
    let adjusted_p = difference.adjusted_p.unwrap_or(1.0);
    statistics::verdict(difference.trainings, adjusted_p, seen, &plan.criteria)
}

fn notes(arms: &[Arm], plan: &ComparisonPlan, left_out: &[LeftOut]) -> Vec<String> {
    let mut notes = Vec::new();
    if plan.outstanding > 0 {
        notes.push(format!(
            "interim: {} to come, so nothing is concluded",
            counted(plan.outstanding, "training")
        ));
    }
    if !left_out.is_empty() {
        notes.push(format!("{} left out", counted(left_out.len(), "training")));
    }
    let records = || arms.iter().flat_map(|arm| arm.tasks.iter().flatten());
    if records().any(|record| !record.is_evaluated) {
        notes.push(
            "scores are of the last ten rounds of training; `evaluation` in a sweep plays episodes that nothing was \
             trained on"
                .into(),
        );
    }
    if records().any(|record| record.is_evaluated) && records().any(|record| !record.is_evaluated) {
        notes.push("some trainings were evaluated and others were not, so their scores differ in kind".into());
    }
    if plan.is_judged && records().any(|record| record.scales_loss) {
        notes.push(
            "scaler_confound: each training scaled its fp16 losses by its own factor, which differs between methods"
                .into(),
        );
    }
    // Rollbacks are a metric of their own.
    let changed =
        records().filter(|record| !(record.confounders.notes.is_empty() && record.confounders.devices.len() < 2));
    notes.extend(changed.map(|record| {
        let confounders = Confounders {
            rollbacks: 0,
            ..record.confounders.clone()
        };
        format!("{}: {}", record.run_id, confounders.entries().join("; "))
    }));
    if plan.metric.reads_validation_part() {
        let unseen = match plan.metric {
            Metric::Loss => Metric::TestLoss,
            _ => Metric::TestAccuracy,
        };
        notes.push(format!(
            "{} is measured on the validation part, which rewards depend on; {} isn't",
            plan.metric.name(),
            unseen.name()
        ));
    }
    notes
}

#[cfg(test)]
mod tests;
