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
        /// The scenario that every trial begins from, relative to this file; the built-in quickstart if left out.
        scenario: String;
        /// Fields that all trials set.
        set: Vec<Setting>;
        /// Fields that trials differ in.
        axes: Vec<Axis>;
        /// Which combinations of the axes are tried.
        draw: Drawing = Drawing::Grid;
        /// Settings that belong together; every combination of the axes is tried with each of these.
        points: Vec<NamedPoint>;
        /// Trainings of each point. Their seeds are run.seed and the numbers after it, the same for all points.
        replicates: u32 = 1, integer(1, 10_000);
        /// Resources of a machine that a sweep may use.
        budget: Budget;
        /// Which trials are given up before their last round. None: none.
        early_stop: Option<SuccessiveHalving>;
        /// Evaluation of the controller that each training produced. None: the last rounds of the training are its score.
        evaluation: Option<Evaluation>;
        /// How the points are compared once all of them are played. None: `compare` does.
        judge: Option<Judge>;
        /// Words that all trials can be found by.
        tags: Vec<String>;
    }
}

record! {
    /// A field of the scenario and its value.
    #[derive(Eq)]
    pub struct Setting {
        /// Dotted path, e.g. "run.rounds".
        path: String;
        /// As a scenario has it.
        value: Written;
    }
}

record! {
    /// Settings that belong together.
    #[derive(Eq)]
    pub struct NamedPoint {
        /// Names them in tables and for the judge.
        name: String, POINT_NAME;
        /// Fields that the point sets; empty: the scenario as it is.
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
        /// these
        List(Vec<Written>),
        /// any number between two, each as likely as any other
        Uniform {
            /// Smallest.
            low: f64;
            /// Largest.
            high: f64;
        },
        /// any number between two, each order of magnitude as likely as any other
        LogUniform {
            /// Smallest.
            low: f64, POSITIVE;
            /// Largest.
            high: f64, POSITIVE;
        },
        /// any whole number between two
        Integer {
            /// Smallest.
            low: i64;
            /// Largest.
            high: i64;
        },
    }
}

choice! {
    /// Which combinations of the axes are tried.
    #[derive(Copy, Eq)]
    pub enum Drawing {
        /// all; every axis is a list
        Grid,
        /// N points, each axis drawn for itself
        Random {
            /// How many.
            points: u32, integer(1, 1_000_000);
            /// Of the draws.
            seed: u64;
        },
    }
}

section! {
    /// Resources of a machine that a sweep may use.
    #[derive(Copy, Eq)]
    pub struct Budget {
        /// Trials that are played at once on one machine.
        parallel: usize = 1, integer(1, 1024);
        /// Worker threads of a trial. None: all cores, shared between the trials that are played at once.
        threads: Option<usize>, integer(1, 1024);
        /// How often a trial that failed is tried again.
        retries: u32 = 1, integer(0, 100);
        /// Memory of one trial; it fails beyond it. None: the machine's.
        #[unit = "MiB"]
        memory_mib: Option<u64>, integer(1, 1 << 40);
        /// Time of one trial, all attempts together; it fails beyond it. None: no limit.
        #[unit = "s"]
        time_limit_s: Option<u64>, integer(1, 1 << 40);
        /// A worker that has given no sign of life for so long has lost its trial to the next one that asks.
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
        /// One point in `factor` continues; the next rung is after `factor` times as many rounds.
        factor: u32, integer(2, 100);
    }
}

record! {
    /// The controller that came out of a training plays, unchanged, episodes that it was not trained in.
    pub struct Evaluation {
        /// Episodes under each seed, in whole rounds.
        episodes: u32, at_least(1);
        /// Seeds, the same for all trials, so that all play the same episodes.
        seeds: Vec<u64>;
        /// How a learned policy chooses.
        mode: EvaluationMode;
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

section! {
    /// How points are compared; all of it is declared before anything is seen.
    pub struct Judge {
        /// Metric that decides. Rewards have scales of their own and are never compared.
        metric: Metric = Metric::TestAccuracy;
        /// The point that every other one is compared with. None: all pairs.
        control: Option<String>;
    }
}
