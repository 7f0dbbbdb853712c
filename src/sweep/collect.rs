//! Results of a sweep.

use std::collections::BTreeMap;

use clap::ValueEnum;
use serde::Serialize;

use super::folder::SweepFolder;
use super::outcome::{Results, TrialEnd, TrialResult, read_sound};
use super::plan::{Plan, Trial};
use crate::compare::statistics::{Criteria, DecisionTest};
use crate::compare::{ComparisonPlan, MethodComparison, MethodTraining, Metric, TrainingRecord};
use crate::health::FileError;

/// A trial and how it ended, if it has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CollectedTrial {
    /// The planned trial.
    #[serde(flatten)]
    pub trial: Trial,
    /// The result. `None` until it ends.
    pub result: Option<TrialResult>,
    /// Scores of its training, by metric name.
    pub scores: BTreeMap<&'static str, f64>,
}

/// All of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Collected {
    /// Name of the sweep.
    pub name: String,
    /// `true` if every trial has ended.
    pub is_complete: bool,
    /// In the order of the plan.
    pub trials: Vec<CollectedTrial>,
    /// Verdict of the sweep's judge: see [`Self::judged`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judgement: Option<MethodComparison>,
}

impl CollectedTrial {
    /// Its results; complete only if the trial was played to its end within its limits.
    pub fn training(&self) -> Option<TrainingRecord> {
        let result = self.result.as_ref()?;
        let mut training = result.training.clone()?;
        training.is_complete &= result.end == TrialEnd::Done && !result.timed_out;
        Some(training)
    }
}

impl Collected {
    /// Reads all results.
    ///
    /// # Errors
    /// A result that cannot be read.
    pub fn read(folder: &SweepFolder, plan: &Plan) -> Result<Self, FileError> {
        let results = Results::read(folder)?;
        let mut trials = Vec::with_capacity(plan.trials.len());
        for trial in &plan.trials {
            let end = results.end(&trial.id);
            let result = end.map(|end| read_sound(folder, &trial.id, end)).transpose()?.flatten();
            let training = result.as_ref().and_then(|result| result.training.as_ref());
            let score = |metric: &Metric| Some((metric.name(), training?.score(*metric)?));
            trials.push(CollectedTrial {
                trial: trial.clone(),
                scores: Metric::value_variants().iter().filter_map(score).collect(),
                result,
            });
        }
        Ok(Self {
            name: plan.name.clone(),
            is_complete: trials.iter().all(|trial| trial.result.is_some()),
            trials,
            judgement: None,
        })
    }

    /// The trainings that have results, each under the name of its point.
    pub fn trainings(&self) -> Vec<MethodTraining> {
        let trainings = self.trials.iter().filter_map(|trial| {
            let (method, record) = (trial.trial.label(), trial.training()?);
            Some(MethodTraining { method, record })
        });
        trainings.collect()
    }

    /// With the verdict of the plan's judge, if it has one.
    pub fn judged(mut self, plan: &Plan) -> Self {
        let judge = plan.sweep.judge.as_ref();
        self.judgement = judge.map(|judge| self.compared(judge.metric, judge.control.clone(), true));
        self
    }

    /// The points against each other, or all against `control`; `is_judged`: the sweep has declared it.
    pub fn compared(&self, metric: Metric, control: Option<String>, is_judged: bool) -> MethodComparison {
        let plan = ComparisonPlan {
            metric,
            criteria: Criteria {
                test: DecisionTest::MannWhitney,
                alpha: Criteria::ALPHA,
                min_effect: metric.usual_effect(),
            },
            control,
            outstanding: self.trials.iter().filter(|trial| trial.result.is_none()).count(),
            is_judged,
        };
        MethodComparison::new(&self.trainings(), &plan)
    }
}
