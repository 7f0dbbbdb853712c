//! Metrics that trainings are compared by.

use super::EpisodeOutcome;
use crate::schema::choice;

choice! {
    /// Metric by which trainings are compared.
    #[derive(Copy, Eq, clap::ValueEnum)]
    #[value(rename_all = "snake_case")]
    pub enum Metric {
        /// final accuracy minus the mean rent of a step, points
        AccuracyMinusRent,
        /// final validation accuracy, percent
        Accuracy,
        /// validation accuracy of the host with only its committed seeds, percent
        CommittedAccuracy,
        /// test accuracy of the host with only its committed seeds, percent
        TestAccuracy,
        /// final validation loss, nats
        Loss,
        /// test loss of the host with only its committed seeds, nats
        TestLoss,
        /// final size divided by the host's
        ParamRatio,
        /// multiply-accumulates per episode in training and validation, billions
        Gmacs,
        /// rollbacks per episode
        Rollbacks,
        /// mean final accuracy over all rounds of the training (the area under its learning curve), percent
        CurveArea,
    }
}

impl Metric {
    /// Returns whether it is measured on the validation part, the source of rewards. Sizes and rollbacks are measured on no part.
    pub const fn reads_validation_part(self) -> bool {
        matches!(
            self,
            Self::AccuracyMinusRent | Self::Accuracy | Self::CommittedAccuracy | Self::Loss | Self::CurveArea
        )
    }

    /// Returns whether it is measured on the test part, which not every task has.
    pub const fn reads_test_part(self) -> bool {
        matches!(self, Self::TestAccuracy | Self::TestLoss)
    }

    /// The metric in words, with the unit.
    pub const fn words(self) -> &'static str {
        match self {
            Self::AccuracyMinusRent => "final validation accuracy minus rent, points",
            Self::Accuracy => "final validation accuracy, %",
            Self::CommittedAccuracy => "validation accuracy with only committed seeds, %",
            Self::TestAccuracy => "test accuracy with only committed seeds, %",
            Self::Loss => "final validation loss, nats",
            Self::TestLoss => "test loss with only committed seeds, nats",
            Self::ParamRatio => "size divided by the host's",
            Self::Gmacs => "multiply-accumulates per episode, billions",
            Self::Rollbacks => "rollbacks per episode",
            Self::CurveArea => "mean final accuracy over all rounds, %",
        }
    }

    /// Returns whether more is better.
    pub const fn is_gain(self) -> bool {
        !matches!(
            self,
            Self::Loss | Self::TestLoss | Self::ParamRatio | Self::Gmacs | Self::Rollbacks
        )
    }

    /// Number of decimals that are shown.
    pub const fn decimals(self) -> usize {
        match self {
            Self::Loss | Self::TestLoss => 4,
            _ => 2,
        }
    }

    /// A difference that matters unless another is given: a hundredth of a nat, half of anything else.
    pub const fn usual_effect(self) -> f64 {
        match self {
            Self::Loss | Self::TestLoss => 0.01,
            _ => 0.5,
        }
    }

    /// The value of an episode, or `None` if it has no such value.
    pub(super) fn of_episode(self, outcome: &EpisodeOutcome) -> Option<f64> {
        match self {
            Self::AccuracyMinusRent => outcome.accuracy_minus_rent(),
            Self::Accuracy => outcome.accuracy,
            Self::CommittedAccuracy => outcome.committed_accuracy,
            Self::TestAccuracy => outcome.test_accuracy,
            Self::Loss => outcome.loss,
            Self::TestLoss => outcome.test_loss,
            Self::ParamRatio => Some(outcome.param_ratio),
            Self::Gmacs => outcome.gmacs(),
            Self::Rollbacks => Some(outcome.rollbacks.into()),
            Self::CurveArea => None,
        }
    }
}
