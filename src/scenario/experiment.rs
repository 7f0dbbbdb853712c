//! Section `experiment`: arms that are trained side by side and compared.
//!
//! An arm is the scenario with some of its sections overlaid, by the rules by which a file is laid over the defaults. Each
//! arm is read from the same texts as the scenario and checked as a scenario of its own; here is only how it is written.

use super::{InitialTopology, LearnerConfig, PolicyConfig, RewardConfig};
use crate::schema::{Kind, Names, choice, record, section};

/// Characters of an arm's id at most: ids are names of folders and stand in tables.
pub const LONGEST_ARM_ID: usize = 20;

/// The id of an arm, which names the folder of its run.
const ARM_ID: Kind = Kind::Text(Names::Form {
    noun: "arm id",
    form: "1 to 20 letters, digits, `.`, `_` or `-`, starting with a letter or digit",
    accepts: |text| {
        let part = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        text.len() <= LONGEST_ARM_ID
            && text.chars().all(part)
            && text.chars().next().is_some_and(|c| c.is_ascii_alphanumeric())
    },
});

choice! {
    /// What is played instead of a single run.
    pub enum ExperimentConfig {
        /// arms that are trained side by side, replicate by replicate, and compared
        Ab(Box<AbConfig>),
    }
}

section! {
    /// Arms that differ in some sections, and how they are compared. All of it is declared before anything is seen.
    pub struct AbConfig {
        /// What is compared: at least two arms, each under an id of its own.
        arms: Vec<ArmConfig>;
        /// Envs of an arm. None: run.n_envs.
        envs_per_arm: Option<usize>, integer(1, 4096);
        /// Independent trainings of every arm.
        replicates: u32 = 10, integer(1, 1000);
        /// How arms take turns.
        interleave: Interleave = Interleave::Lockstep;
        /// Give all arms of a replicate the same seed, so that they share hosts, data order, augmentation and fresh weights.
        common_random_numbers: bool = true;
        /// Episodes under each evaluation seed, in whole rounds. None: 10 for every env.
        eval_episodes: Option<u32>, at_least(1);
        /// Seeds of the episodes that a trained arm is scored by, the same for all arms.
        eval_seeds: Vec<u64> = vec![10_007];
        /// How a learned policy chooses while it is scored.
        eval_mode: EvaluationMode = EvaluationMode::Sample;
        /// What arms are compared by; the others are exploratory. Rewards are on scales of their own and never compared.
        primary_metric: Metric = Metric::TestAccuracy;
        /// Which test decides.
        decision_test: DecisionTest = DecisionTest::MannWhitney;
        /// Probability of any false claim among all pairs that are tested.
        alpha: f64 = 0.05, OPEN_FRACTION;
        /// Least difference that matters, in the unit of the primary metric.
        min_effect: f64 = 0.5, NOT_NEGATIVE;
        /// The arm that every other one is compared with. None: all pairs.
        control: Option<String>;
        /// Score by the validation part although rewards are made of it; the report says so.
        allow_same_split: bool;
    }
}

record! {
    /// An arm. What is left out is the scenario's.
    pub struct ArmConfig {
        /// Names the arm in tables and its folder.
        id: String, ARM_ID;
        /// What the arm's policy is paid for.
        reward: Option<RewardConfig>;
        /// Who decides in the arm.
        policy: Option<PolicyConfig>;
        /// How the arm's policy is trained.
        learner: Option<LearnerConfig>;
        /// Seeds that the arm's episodes begin with.
        initial_topology: Option<InitialTopology>;
    }
}

choice! {
    /// How arms take turns; in which order is drawn anew for every round.
    #[derive(Copy, Eq)]
    pub enum Interleave {
        /// every arm plays a step before any plays the next one
        Lockstep,
        /// every arm plays a round before any plays the next one
        RandomizedRounds,
    }
}

choice! {
    /// How a learned policy chooses its actions.
    #[derive(Copy, Eq)]
    pub enum EvaluationMode {
        /// the likeliest
        Greedy,
        /// drawn by their probability
        Sample,
    }
}

choice! {
    /// The test that was declared to decide, before anything was seen.
    #[derive(Copy, Eq)]
    pub enum DecisionTest {
        /// do trainings of one arm tend to higher values than those of the other
        MannWhitney,
        /// do paired trainings differ; needs common_random_numbers
        PairedSignFlip,
    }
}

choice! {
    /// What trainings are compared by.
    #[derive(Copy, Eq, clap::ValueEnum)]
    #[value(rename_all = "snake_case")]
    pub enum Metric {
        /// final accuracy less the mean rent of a step, points
        AccuracyMinusRent,
        /// final validation accuracy, percent
        Accuracy,
        /// validation accuracy of the host with its committed seeds alone, percent
        CommittedAccuracy,
        /// test accuracy of the host with its committed seeds alone, percent
        TestAccuracy,
        /// final validation loss, nats
        Loss,
        /// test loss of the host with its committed seeds alone, nats
        TestLoss,
        /// final size over the host's
        ParamRatio,
        /// multiply-accumulates of an episode in training and validation, billions
        Gmacs,
        /// rollbacks of an episode
        Rollbacks,
        /// mean final accuracy over all rounds of the training, percent: the area under its learning curve
        CurveArea,
    }
}

impl Metric {
    /// Whether it is measured on the part that rewards are made of. Accuracy less rent is measured on the test part where
    /// there is one; sizes and rollbacks are measured on no part.
    pub const fn reads_validation_part(self, has_test_part: bool) -> bool {
        match self {
            Self::Accuracy | Self::CommittedAccuracy | Self::CurveArea | Self::Loss => true,
            Self::AccuracyMinusRent => !has_test_part,
            Self::TestAccuracy | Self::TestLoss | Self::ParamRatio | Self::Gmacs | Self::Rollbacks => false,
        }
    }
}
