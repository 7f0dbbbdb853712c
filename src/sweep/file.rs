//! A sweep as a user writes it, in the language of scenarios.

use crate::compare::Metric;
use crate::schema::range::is_plain_name;
use crate::schema::{Kind, Names, Written, choice, record, section};

/// Characters of a point's name at most: names stand in tables.
const LONGEST_NAME: usize = 40;

/// The name of a point.
const POINT_NAME: Kind = Kind::Text(Names::Form {
    noun: "name of a point",
    form: "1 to 40 letters, digits, `.`, `_` or `-`, starting with a letter or digit",
    accepts: |text| is_plain_name(text, LONGEST_NAME),
});

section! {
    /// A sweep: trainings of one scenario that differ in some of its fields.
    pub struct SweepFile {
        /// Name of the sweep and of its folder; the file's name if left out.
        name: String, RUN_NAME;
        /// Scenario that every trial starts from, relative to this file; the built-in quickstart if left out.
        scenario: String;
        /// Fields that all trials set.
        set: Vec<Setting>;
        /// Fields in which trials differ.
        axes: Vec<Axis>;
        /// Combinations of the axes that are tried.
        draw: Drawing = Drawing::Grid;
        /// Named groups of settings. Every combination of the axes is tried with each group.
        points: Vec<NamedPoint>;
        /// Number of trainings per point. Their seeds are run.seed and the numbers after it, the same for all points.
        replicates: u32 = 1, integer(1, 10_000);
        /// Resources that a sweep may use on a machine.
        budget: Budget;
        /// Rule that gives up trials before their last round. None: every trial plays all rounds.
        early_stop: Option<SuccessiveHalving>;
        /// Evaluation of the controller that each training produced. None: the training's last rounds are its score.
        evaluation: Option<Evaluation>;
        /// Comparison of the points after all of them are played. None: only `compare` compares them.
        judge: Option<Judge>;
        /// Words by which all trials can be found.
        tags: Vec<String>;
    }
}

record! {
    /// A field of the scenario and its value.
    #[derive(Eq)]
    pub struct Setting {
        /// Dotted path, e.g. "run.rounds".
        path: String;
        /// Value, written as in a scenario.
        value: Written;
    }
}

record! {
    /// A named group of settings.
    #[derive(Eq)]
    pub struct NamedPoint {
        /// Name of the group in tables and for the judge.
        name: String, POINT_NAME;
        /// Fields that the point sets. Empty: the scenario stays as it is.
        set: Vec<Setting>;
    }
}

record! {
    /// A field and the values that trials give it.
    pub struct Axis {
        /// Dotted path, e.g. "policy.controller".
        path: String;
        /// Values of the axis.
        values: AxisValues;
    }
}

choice! {
    /// The values of an axis.
    pub enum AxisValues {
        /// these values
        List(Vec<Written>),
        /// any number in a range, all equally likely
        Uniform {
            /// Smallest value.
            low: f64;
            /// Largest value.
            high: f64;
        },
        /// any number in a range, all orders of magnitude equally likely
        LogUniform {
            /// Smallest value.
            low: f64, POSITIVE;
            /// Largest value.
            high: f64, POSITIVE;
        },
        /// any whole number in a range
        Integer {
            /// Smallest value.
            low: i64;
            /// Largest value.
            high: i64;
        },
    }
}

choice! {
    /// Combinations of the axes that are tried.
    #[derive(Copy, Eq)]
    pub enum Drawing {
        /// all combinations; every axis must be a list
        Grid,
        /// N points, with each axis drawn independently
        Random {
            /// Number of points.
            points: u32, integer(1, 1_000_000);
            /// Seed of the draws.
            seed: u64;
        },
    }
}

section! {
    /// Resources that a sweep may use on a machine.
    #[derive(Copy, Eq)]
    pub struct Budget {
        /// Trials that are played at once on one machine.
        parallel: usize = 1, integer(1, 1024);
        /// Worker threads of a trial. None: the trials that are played at once share all cores.
        threads: Option<usize>, integer(1, 1024);
        /// Number of times that a failed trial is tried again.
        retries: u32 = 1, integer(0, 100);
        /// Memory of one trial, which fails if it uses more. None: the machine's memory.
        #[unit = "MiB"]
        memory_mib: Option<u64>, integer(1, 1 << 40);
        /// Time of all attempts of one trial, which fails if they take longer. None: no limit.
        #[unit = "s"]
        time_limit_s: Option<u64>, integer(1, 1 << 40);
        /// Time without a sign of life after which a worker loses its trial to the next worker that asks.
        #[unit = "s"]
        lease_s: u64 = 60, integer(5, 86_400);
    }
}

record! {
    /// Trials are compared at rungs, rounds after which only the best continue (Jamieson and Talwalkar 2016). A rung is judged
    /// once every trial has reached it or failed, so neither the order nor an interruption changes which ones continue.
    #[derive(Copy, Eq)]
    pub struct SuccessiveHalving {
        /// Rounds of the first rung.
        first_rounds: u32, at_least(1);
        /// One in `factor` points continues. The next rung follows after `factor` times the rounds.
        factor: u32, integer(2, 100);
    }
}

record! {
    /// Evaluation of a trained controller, unchanged, on episodes that it wasn't trained in.
    pub struct Evaluation {
        /// Episodes for each seed, rounded up to whole rounds.
        episodes: u32, at_least(1);
        /// Seeds of the episodes. All trials play the same episodes.
        seeds: Vec<u64>;
        /// Choice of actions by a learned policy.
        mode: EvaluationMode;
    }
}

choice! {
    /// Choice of actions by a learned policy.
    #[derive(Copy, Eq)]
    pub enum EvaluationMode {
        /// the likeliest action
        Greedy,
        /// an action drawn by its probability
        Sample,
    }
}

section! {
    /// Criterion by which points are compared, declared before any result is seen.
    pub struct Judge {
        /// Metric that decides. Rewards have different scales and are never compared.
        metric: Metric = Metric::TestAccuracy;
        /// Point that every other one is compared with. None: all pairs are compared.
        control: Option<String>;
    }
}
