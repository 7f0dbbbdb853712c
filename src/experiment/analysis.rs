//! From raw values to statistics: pure, so that equal values give equal numbers bit for bit, whoever computes them.

use std::collections::BTreeSet;

use serde::Serialize;

use super::outcome::{ArmResult, Budget, Record, ReplicateResult};
use crate::compare::statistics::{
    Arm, Bootstrap, Criteria, Design as Pairing, Evidence, Magnitude, MannWhitney, Sample, SignFlip, Statistic,
    Training, Verdict, a12, cliffs_delta, difference, estimate, hedges_g, hodges_lehmann, holm, mann_whitney, mean,
    median, sd, sign_flip, verdict,
};
use crate::compare::{Estimate, TrainingRecord};
use crate::scenario::{DecisionTest, Metric};

/// What readers of the numbers must know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stamps {
    /// Some declared replicate has not ended: there is no verdict yet.
    pub interim: bool,
    /// All arms had equal budgets and equal data.
    pub comparison_valid: bool,
    /// Why it is not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub objections: Vec<String>,
    /// The primary metric is measured on the part that rewards are made of.
    pub same_split: bool,
    /// Arms trained in fp16, whose loss scale goes its own way in each.
    pub scaler_confound: bool,
}

/// A replicate that is in no statistic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// From 0.
    pub replicate: u32,
    /// Why.
    pub reason: String,
}

/// One arm under one metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArmSummary {
    /// Of the arm.
    pub id: String,
    /// Of each replicate that counts, in order.
    pub scores: Vec<f64>,
    /// Over replicates.
    pub mean: f64,
    /// Of a sample.
    pub sd: f64,
    /// Over replicates.
    pub median: f64,
    /// Interquartile mean over replicates.
    pub iqm: Estimate,
}

/// All arms under one metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricSummary {
    /// Which one.
    pub metric: Metric,
    /// In words, with the unit.
    pub words: &'static str,
    /// Part of the data that it is measured on; `None` of what no data is needed for.
    pub split: Option<&'static str>,
    /// In the order of the design.
    pub arms: Vec<ArmSummary>,
}

/// What may be concluded of a pair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// The arm of this id.
    Better(String),
    /// No difference that matters.
    Equivalent,
    /// Neither: more replicates might tell.
    Inconclusive,
    /// Too few replicates, whatever they show.
    InsufficientData,
}

/// Two arms under the primary metric; differences are of the first less the second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairSummary {
    /// Id of an arm.
    pub first: String,
    /// Id of another, the control if there is one.
    pub second: String,
    /// How the interval was drawn.
    pub pairing: Pairing,
    /// Of interquartile means, in the metric's unit.
    pub difference: Option<Estimate>,
    /// Of independent arms.
    pub mann_whitney: Option<MannWhitney>,
    /// Probability that a training of the first arm has the higher value.
    pub a12: f64,
    /// How much more often that is so than not.
    pub cliffs_delta: f64,
    /// The same in a word.
    pub magnitude: Option<Magnitude>,
    /// Median of all differences, in the metric's unit.
    pub hodges_lehmann: f64,
    /// Difference of means in pooled standard deviations.
    pub hedges_g: f64,
    /// Of paired replicates.
    pub sign_flip: Option<SignFlip>,
    /// Of the test that decides.
    pub p: f64,
    /// The same, corrected for all pairs.
    pub adjusted_p: f64,
    /// `None` before all replicates have ended, and of a comparison that is not valid.
    pub conclusion: Option<Conclusion>,
}

/// What each training of an arm was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ArmBudget {
    /// Of the arm.
    pub id: String,
    /// Whether its controller learns; one that does not makes no updates.
    pub learns: bool,
    /// `None` where its trainings differ, which is objected to, and before any has ended.
    pub budget: Option<Budget>,
}

/// All statistics of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Analysis {
    /// What readers must know.
    pub stamps: Stamps,
    /// Replicates that failed, or whose score nobody can tell.
    pub missing: Vec<Missing>,
    /// Of a training, arm by arm.
    pub budgets: Vec<ArmBudget>,
    /// What was declared to decide.
    pub primary: MetricSummary,
    /// All that are tested, by the names of their arms.
    pub pairs: Vec<PairSummary>,
    /// What nobody declared: for ideas, not for claims.
    pub exploratory: Vec<MetricSummary>,
}

impl Record {
    /// Computes everything from the raw values.
    pub fn analyse(&self) -> Analysis {
        let metric = self.design.primary_metric;
        let objections = self.objections();
        let counted = self.counted(metric);
        let ended = self.replicates.iter();
        let missing = ended.filter_map(|replicate| {
            let is_counted = counted.iter().any(|counted| counted.replicate == replicate.replicate);
            let unscored = || "an arm has no episode that was measured".to_owned();
            (!is_counted).then(|| Missing {
                replicate: replicate.replicate,
                reason: replicate.failure.clone().unwrap_or_else(unscored),
            })
        });
        let stamps = Stamps {
            interim: self.replicates.len() < self.design.replicates as usize,
            comparison_valid: objections.is_empty(),
            objections,
            same_split: metric.reads_validation_part(self.design.has_test_part),
            scaler_confound: self
                .replicates
                .iter()
                .any(|replicate| replicate.fingerprint["resolved"]["amp_dtype"] == "fp16"),
        };
        Analysis {
            missing: missing.collect(),
            budgets: self.budgets(),
            primary: self.summarize(metric, &counted),
            pairs: self.pairs(&counted, &stamps),
            exploratory: Metric::ALL
                .into_iter()
                .filter(|other| *other != metric)
                .map(|metric| self.summarize(metric, &self.counted(metric)))
                .collect(),
            stamps,
        }
    }

    /// Replicates in which every arm has a score: what was not measured of one is left out for all.
    fn counted(&self, metric: Metric) -> Vec<&ReplicateResult> {
        let has_score = |arm: &ArmResult| {
            let score = self.scored(arm, metric).score(metric);
            score.is_some_and(f64::is_finite)
        };
        let is_whole = |replicate: &&ReplicateResult| {
            replicate.failure.is_none() && replicate.arms.len() == self.design.arms.len()
        };
        let replicates = self.replicates.iter().filter(is_whole);
        replicates
            .filter(|replicate| replicate.arms.iter().all(has_score))
            .collect()
    }

    /// The training with the accuracy that the metric is to read.
    fn scored(&self, arm: &ArmResult, metric: Metric) -> TrainingRecord {
        let mut training = arm.training.clone();
        if metric == Metric::AccuracyMinusRent && self.design.has_test_part {
            for episode in &mut training.episodes {
                episode.accuracy = episode.test_accuracy;
            }
        }
        training
    }

    /// The trainings of an arm, by its place in the design.
    fn sample(&self, arm: usize, metric: Metric, counted: &[&ReplicateResult]) -> Sample {
        let scored = counted
            .iter()
            .map(|replicate| self.scored(&replicate.arms[arm], metric));
        let scored: Vec<TrainingRecord> = scored.collect();
        let trainings = scored.iter().map(|training| Training {
            by_seed: training.scores(metric),
        });
        Sample {
            tasks: vec![trainings.collect()],
            shares_hosts: TrainingRecord::share_hosts(scored.iter(), metric),
        }
    }

    fn bootstrap(&self) -> Bootstrap<crate::random::RunRng> {
        Bootstrap::seeded(self.design.seed.0)
    }

    fn split(&self, metric: Metric) -> Option<&'static str> {
        match metric {
            Metric::ParamRatio | Metric::Rollbacks => None,
            _ if metric.reads_validation_part(self.design.has_test_part) => Some("validation"),
            _ => Some("test"),
        }
    }

    fn words(&self, metric: Metric) -> &'static str {
        match (metric, self.split(metric)) {
            (Metric::AccuracyMinusRent, Some("test")) => "test accuracy with committed seeds alone minus rent, points",
            _ => metric.words(),
        }
    }

    fn summarize(&self, metric: Metric, counted: &[&ReplicateResult]) -> MetricSummary {
        let arms = self.design.arms.iter().enumerate().map(|(index, arm)| {
            let sample = self.sample(index, metric, counted);
            let scores = sample.scores();
            ArmSummary {
                id: arm.id.clone(),
                mean: mean(&scores),
                sd: sd(&scores),
                median: median(&scores),
                iqm: estimate(&sample, Statistic::Iqm, self.bootstrap()),
                scores,
            }
        });
        MetricSummary {
            metric,
            words: self.words(metric),
            split: self.split(metric),
            arms: arms.collect(),
        }
    }

    /// Places of the arms that are tested against each other, by their names: the order in which arms were written
    /// changes nothing.
    fn tested(&self) -> Vec<(usize, usize)> {
        let arms = &self.design.arms;
        let mut order: Vec<usize> = (0..arms.len()).collect();
        order.sort_by(|&a, &b| arms[a].id.cmp(&arms[b].id));
        let control = self.design.control.as_ref();
        if let Some(control) = control.and_then(|control| arms.iter().position(|arm| arm.id == *control)) {
            return order
                .into_iter()
                .filter(|&arm| arm != control)
                .map(|arm| (arm, control))
                .collect();
        }
        let place = |first: usize| order[first + 1..].iter().map(move |&second| (first, second));
        let pairs = (0..order.len()).flat_map(place);
        pairs.map(|(first, second)| (order[first], second)).collect()
    }

    fn pairs(&self, counted: &[&ReplicateResult], stamps: &Stamps) -> Vec<PairSummary> {
        let tested = self.tested();
        let mut pairs: Vec<PairSummary> = tested.iter().map(|&pair| self.pair(pair, counted)).collect();
        let p_values: Vec<f64> = pairs.iter().map(|pair| pair.p).collect();
        for (pair, adjusted) in pairs.iter_mut().zip(holm(&p_values)) {
            pair.adjusted_p = adjusted;
            if stamps.comparison_valid {
                pair.conclusion = self.conclude(pair, counted.len(), stamps.interim);
            }
        }
        pairs
    }

    fn pair(&self, (first, second): (usize, usize), counted: &[&ReplicateResult]) -> PairSummary {
        let design = &self.design;
        let [ours, theirs] = [first, second].map(|arm| self.sample(arm, design.primary_metric, counted));
        let (our, their) = (ours.scores(), theirs.scores());
        let pairing = if design.common_random_numbers {
            Pairing::Paired
        } else {
            Pairing::Independent
        };
        let differences: Vec<f64> = our.iter().zip(&their).map(|(our, their)| our - their).collect();
        let flipped = sign_flip(&differences, design.seed.0).filter(|_| pairing == Pairing::Paired);
        let ranks = mann_whitney(&our, &their);
        let p = match design.decision_test {
            DecisionTest::MannWhitney => ranks.map(|test| test.p),
            DecisionTest::PairedSignFlip => flipped.map(|test| test.p),
        };
        let delta = cliffs_delta(&our, &their);
        PairSummary {
            first: design.arms[first].id.clone(),
            second: design.arms[second].id.clone(),
            pairing,
            difference: difference(&ours, &theirs, Statistic::Iqm, pairing, self.bootstrap()),
            mann_whitney: ranks,
            a12: a12(&our, &their),
            cliffs_delta: delta,
            magnitude: Magnitude::of(delta),
            hodges_lehmann: hodges_lehmann(&our, &their),
            hedges_g: hedges_g(&our, &their),
            sign_flip: flipped,
            p: p.unwrap_or(f64::NAN),
            adjusted_p: f64::NAN,
            conclusion: None,
        }
    }

    fn conclude(&self, pair: &PairSummary, replicates: usize, interim: bool) -> Option<Conclusion> {
        let design = &self.design;
        let evidence = Evidence {
            trainings: [replicates; 2],
            interim,
            adjusted_p: pair.adjusted_p,
            difference: pair.difference.map_or(f64::NAN, |difference| difference.value),
            interval: pair.difference.and_then(|difference| difference.interval),
        };
        let criteria = Criteria {
            test: design.decision_test,
            alpha: design.alpha,
            min_effect: design.min_effect,
        };
        let is_gain = design.primary_metric.is_gain();
        Some(match verdict(&evidence, &criteria)? {
            // The arm with the higher value, which is the worse one of sizes and rollbacks.
            Verdict::Better(arm) if (arm == Arm::First) == is_gain => Conclusion::Better(pair.first.clone()),
            Verdict::Better(_) => Conclusion::Better(pair.second.clone()),
            Verdict::Equivalent => Conclusion::Equivalent,
            Verdict::Inconclusive => Conclusion::Inconclusive,
            Verdict::InsufficientData => Conclusion::InsufficientData,
        })
    }

    fn budgets(&self) -> Vec<ArmBudget> {
        let arms = self.design.arms.iter().enumerate();
        arms.map(|(index, arm)| {
            let trainings: Vec<&ArmResult> = self.replicates.iter().filter_map(|done| done.arms.get(index)).collect();
            let budgets: Vec<Budget> = trainings.iter().map(|training| training.budget).collect();
            ArmBudget {
                id: arm.id.clone(),
                learns: trainings.iter().any(|training| training.learns),
                budget: budgets
                    .first()
                    .copied()
                    .filter(|first| budgets.iter().all(|budget| budget == first)),
            }
        })
        .collect()
    }

    /// Why the arms cannot be compared with each other.
    fn objections(&self) -> Vec<String> {
        let trainings = || self.replicates.iter().flat_map(|replicate| &replicate.arms);
        let mut objections = Vec::new();
        let mut object = |what: &str, values: BTreeSet<String>| {
            if values.len() > 1 {
                let values: Vec<String> = values.into_iter().collect();
                objections.push(format!("trainings differ in their {what}: {}", values.join(", ")));
            }
        };
        let of = |value: fn(&ArmResult) -> String| trainings().map(value).collect();
        object("episodes", of(|arm| arm.budget.episodes.to_string()));
        object("env-steps", of(|arm| arm.budget.env_steps.to_string()));
        object("data", of(|arm| arm.data_hash.clone()));
        let learning = trainings().filter(|arm| arm.learns);
        object("updates", learning.map(|arm| arm.budget.updates.to_string()).collect());
        objections
    }
}

#[cfg(test)]
mod tests;
