use std::collections::BTreeMap;

use super::*;
use crate::telemetry::payload::{Anomaly, AnomalyState, GateCheckRow, RoundRewards, UpdateSkip};
use crate::telemetry::{EpisodeFinished, LearnerUpdate, Num, Payload, RoundFinished, SeedRow, examples};

const SLOT: SlotId = SlotId { row: 0, col: 0 };

/// The events of a run with an env, one after the other.
#[derive(Clone, Default)]
struct Course(Vec<Event>);

impl Course {
    fn learning() -> Self {
        let mut started = examples::run_started();
        started.policy_params = Some(1);
        Self(vec![Event::run(started)])
    }

    fn round(&self) -> u32 {
        let rounds = self
            .0
            .iter()
            .filter(|event| matches!(event.payload, Payload::RoundFinished(_)));
        rounds.count() as u32
    }

    /// A step of an env that is well, but for what `change` does.
    fn step(mut self, change: impl FnOnce(&mut crate::telemetry::EnvStep)) -> Self {
        let number = self.0.len() as u32;
        let mut row = examples::env_step();
        (row.nonfinite_batches, row.skipped_updates, row.loss_scale) = (0, 0, None);
        row.seeds.clear();
        row.val_accuracy = Num(50.0 + f64::from(number));
        row.host_grad_norm = Some(Num(1.0));
        change(&mut row);
        self.0
            .push(Event::env(examples::context_at(0, self.round(), number), row));
        self
    }

    fn steps(self, count: u32, change: impl Fn(&mut crate::telemetry::EnvStep)) -> Self {
        (0..count).fold(self, |course, _| course.step(&change))
    }

    fn episode(mut self, change: impl FnOnce(&mut EpisodeFinished)) -> Self {
        let mut episode = examples::episode_finished();
        episode.rollbacks = 0;
        change(&mut episode);
        self.0
            .push(Event::env(examples::context_at(0, self.round(), 20), episode));
        self
    }

    /// A round that is well, but for what `change` does.
    fn ends(mut self, change: impl FnOnce(&mut RoundFinished)) -> Self {
        let (number, mut round) = (self.round(), examples::round_finished());
        round.rolling_accuracy = Some(Num(40.0 + f64::from(number)));
        round.accuracy_mean = Num(40.0 + f64::from(number));
        round.perf.env_steps_per_s = Num(10.0);
        (round.perf.memory_bytes, round.perf.memory_limit_bytes) = (None, None);
        change(&mut round);
        self.0.push(Event::round(number, round));
        self
    }

    fn rounds(self, count: u32, change: impl Fn(&mut RoundFinished)) -> Self {
        (0..count).fold(self, |course, _| course.ends(&change))
    }

    fn paid_rounds(self, count: u32, reward: f64, committed: f64) -> Self {
        (0..count).fold(self, |course, _| {
            let course = course.episode(|episode| episode.committed_accuracy = Some(Num(committed)));
            course.ends(|round| {
                round.paid = Some(RoundRewards {
                    reward_mean: Num(reward),
                    reward_std: Num(1.0),
                    reward_terms_mean: BTreeMap::new(),
                });
            })
        })
    }

    fn updates(mut self, count: u32, change: impl Fn(&mut LearnerUpdate)) -> Self {
        for _ in 0..count {
            let mut update = LearnerUpdate::default();
            change(&mut update);
            self.0.push(Event::round(self.round(), update));
        }
        self
    }

    fn gates(mut self, count: u32, check: &str, passed: bool) -> Self {
        for _ in 0..count {
            let mut gate = examples::gate_evaluated();
            gate.passed = passed;
            gate.checks = vec![GateCheckRow {
                name: check.into(),
                passed,
                value: None,
                threshold: None,
            }];
            self.0
                .push(Event::seed(examples::context_at(0, 0, 1), SLOT, "e0.r0c0.0", gate));
        }
        self
    }

    fn germination(mut self) -> Self {
        let germinated = Event::seed(examples::context_at(0, 0, 1), SLOT, "e0.r0c0.1", examples::germinated());
        self.0.push(germinated);
        self
    }

    fn anomalies(&self) -> Vec<Event> {
        anomalies(&mut DetectorBank::new(&Detectors::default()), &self.0)
    }

    /// `+rule` for each onset and `-rule` for each end, in order.
    fn told(&self) -> Vec<String> {
        self.anomalies().iter().map(told).collect()
    }
}

fn anomalies(bank: &mut DetectorBank, events: &[Event]) -> Vec<Event> {
    events.iter().flat_map(|event| bank.fold(event)).collect()
}

fn anomaly(event: &Event) -> &Anomaly {
    match &event.payload {
        Payload::Anomaly(anomaly) => anomaly,
        other => panic!("{other:?}"),
    }
}

fn told(event: &Event) -> String {
    let anomaly = anomaly(event);
    let sign = match anomaly.state {
        AnomalyState::Onset => '+',
        AnomalyState::Cleared => '-',
    };
    format!("{sign}{}", anomaly.rule)
}

fn seed(change: impl Fn(&mut SeedRow)) -> impl Fn(&mut crate::telemetry::EnvStep) {
    move |step| {
        let mut row = examples::env_step().seeds.remove(0);
        (row.slot, row.vanishing, row.exploding, row.skipped_updates) = (SLOT, false, false, 0);
        row.gradient_ratio = Some(Num(0.0));
        change(&mut row);
        step.seeds = vec![row];
    }
}

#[test]
fn plateau_speaks_once_the_rolling_accuracy_has_not_risen_for_ten_rounds() {
    let flat = |round: &mut RoundFinished| round.rolling_accuracy = Some(Num(70.4));
    let begins = |course: Course| course.ends(|round| round.rolling_accuracy = Some(Num(70.0)));

    assert_eq!(begins(Course::learning()).rounds(10, flat).told(), ["+plateau"]);
    assert_eq!(begins(Course::learning()).rounds(9, flat).told(), [""; 0]);
    assert_eq!(Course::learning().rounds(20, |_| {}).told(), [""; 0]);
    assert_eq!(
        begins(Course::default()).rounds(20, flat).told(),
        [""; 0],
        "nothing learns"
    );
    assert_eq!(
        begins(Course::learning()).rounds(12, flat).rounds(9, |_| {}).told(),
        ["+plateau"],
        "below the top is no rise"
    );
}

#[test]
fn degradation_speaks_a_tenth_below_the_best_three_rounds() {
    let at = |accuracy: f64| move |round: &mut RoundFinished| round.accuracy_mean = Num(accuracy);
    let good = || Course::default().rounds(3, at(80.0));

    assert_eq!(good().rounds(3, at(71.0)).told(), ["+degradation"]);
    assert_eq!(good().rounds(3, at(73.0)).told(), [""; 0]);
    assert_eq!(
        good().rounds(3, at(71.0)).rounds(3, at(80.0)).told(),
        ["+degradation", "-degradation"]
    );
    assert_eq!(
        good().rounds(40, at(60.0)).told(),
        ["+degradation"],
        "the best is never forgotten"
    );
}

#[test]
fn gradient_pathology_speaks_of_a_seed_in_the_third_step_of_a_row() {
    let sick = seed(|row| row.exploding = true);
    let well = seed(|_| {});

    let course = Course::default().steps(3, &sick);
    let found = course.anomalies();

    assert_eq!(course.told(), ["+gradient_pathology"]);
    assert_eq!(
        (found[0].slot, found[0].env, found[0].round),
        (Some(SLOT), Some(0), Some(0))
    );
    assert_eq!(
        found[0].message.as_deref(),
        Some("a seed's gradients vanish or explode: change the seed's learning rate, or prune it")
    );
    assert_eq!(
        Course::default().steps(2, &sick).steps(1, &well).steps(2, &sick).told(),
        [""; 0]
    );
    let vanishing = |ratio: Option<f64>| {
        let steps = seed(move |row| (row.vanishing, row.gradient_ratio) = (true, ratio.map(Num)));
        Course::default().steps(3, steps).told()
    };
    assert_eq!(vanishing(Some(1e-4)), ["+gradient_pathology"]);
    assert_eq!(vanishing(Some(0.2)), [""; 0], "one tensor does not learn");
    assert_eq!(vanishing(None), [""; 0], "it is committed");
}

#[test]
fn gradient_spike_speaks_where_a_norm_is_a_hundred_times_its_average() {
    let norm = |norm: f64| move |step: &mut crate::telemetry::EnvStep| step.host_grad_norm = Some(Num(norm));

    assert_eq!(
        Course::default().step(norm(1.0)).step(norm(101.0)).told(),
        ["+gradient_spike"]
    );
    assert_eq!(Course::default().step(norm(1.0)).step(norm(99.0)).told(), [""; 0]);
    assert_eq!(
        Course::default().step(norm(1e-6)).step(norm(0.5)).told(),
        [""; 0],
        "tiny norms are no scale"
    );
    assert_eq!(
        Course::default().step(norm(500.0)).told(),
        [""; 0],
        "the first is compared with nothing"
    );
    assert_eq!(
        Course::default().step(norm(1.0)).step(norm(f64::INFINITY)).told(),
        [""; 0],
        "no size"
    );
}

#[test]
fn ratio_explosion_speaks_above_five() {
    let largest = |ratio: f64| move |update: &mut LearnerUpdate| update.measured.ratio_max = Some(Num(ratio));

    assert_eq!(Course::default().updates(1, largest(5.1)).told(), ["+ratio_explosion"]);
    assert_eq!(Course::default().updates(1, largest(4.9)).told(), [""; 0]);
}

#[test]
fn ratio_collapse_speaks_below_a_tenth() {
    let least = |ratio: f64| move |update: &mut LearnerUpdate| update.measured.ratio_min = Some(Num(ratio));

    assert_eq!(Course::default().updates(1, least(0.09)).told(), ["+ratio_collapse"]);
    assert_eq!(Course::default().updates(1, least(0.11)).told(), [""; 0]);
}

#[test]
fn value_collapse_speaks_in_the_third_update_of_a_row() {
    let loss = |loss: f64| move |update: &mut LearnerUpdate| update.measured.loss_value = Some(Num(loss));

    assert_eq!(Course::default().updates(3, loss(6.0)).told(), ["+value_collapse"]);
    assert_eq!(
        Course::default()
            .updates(2, loss(6.0))
            .updates(1, loss(4.0))
            .updates(2, loss(6.0))
            .told(),
        [""; 0]
    );
}

#[test]
fn entropy_collapse_speaks_of_a_head_below_its_own_floor() {
    let entropy = |head: &'static str, entropy: f64| {
        move |update: &mut LearnerUpdate| {
            update.measured.head_entropy_avail =
                BTreeMap::from([(head.into(), Num(entropy)), ("style".into(), Num(0.9))]);
        }
    };

    let found = Course::default().updates(3, entropy("slot", 0.09)).anomalies();

    let found = found.iter().map(anomaly).collect::<Vec<_>>();
    assert_eq!(
        (found.len(), found[0].head.as_deref(), found[0].threshold),
        (1, Some("slot"), Num(0.1))
    );
    assert_eq!(Course::default().updates(3, entropy("op", 0.09)).told(), [""; 0]);
    assert_eq!(
        Course::default().updates(3, entropy("op", 0.0)).told(),
        [""; 0],
        "no choice"
    );
    assert_eq!(Course::default().updates(2, entropy("slot", 0.09)).told(), [""; 0]);
}

#[test]
fn numerical_instability_speaks_of_batches_updates_and_the_policy_but_not_of_scaled_losses() {
    let skip = |reason| move |update: &mut LearnerUpdate| update.skip_reason = reason;

    assert_eq!(
        Course::default().step(|step| step.nonfinite_batches = 1).told(),
        ["+numerical_instability"]
    );
    assert_eq!(
        Course::default().step(seed(|row| row.skipped_updates = 2)).told(),
        ["+numerical_instability"]
    );
    assert_eq!(
        Course::default().updates(1, skip(UpdateSkip::Mismatch)).told(),
        ["+numerical_instability"]
    );
    let scaled = Course::default().step(|step| (step.skipped_updates, step.loss_scale) = (3, Some(Num(1024.0))));
    assert_eq!(scaled.told(), [""; 0]);
    assert_eq!(Course::default().updates(1, skip(UpdateSkip::Kl)).told(), [""; 0]);
}

#[test]
fn memory_speaks_at_nine_tenths_of_the_limit() {
    let uses = |bytes: u64| {
        move |round: &mut RoundFinished| {
            (round.perf.memory_bytes, round.perf.memory_limit_bytes) = (Some(bytes), Some(1000));
        }
    };

    assert_eq!(Course::default().ends(uses(900)).told(), ["+memory"]);
    assert_eq!(Course::default().ends(uses(899)).told(), [""; 0]);
}

#[test]
fn throughput_drop_speaks_in_the_third_round_at_less_than_half_the_usual_speed() {
    let speed = |speed: f64| move |round: &mut RoundFinished| round.perf.env_steps_per_s = Num(speed);

    assert_eq!(
        Course::default().rounds(6, speed(10.0)).rounds(3, speed(4.9)).told(),
        ["+throughput_drop"]
    );
    assert_eq!(
        Course::default().rounds(6, speed(10.0)).rounds(3, speed(5.1)).told(),
        [""; 0]
    );
    assert_eq!(
        Course::default().rounds(2, speed(10.0)).rounds(3, speed(1.0)).told(),
        [""; 0],
        "too few to know"
    );
}

#[test]
fn reward_hacking_speaks_where_the_reward_rises_and_the_committed_accuracy_falls() {
    let then = |reward, committed| {
        Course::learning()
            .paid_rounds(4, 10.0, 70.0)
            .paid_rounds(4, reward, committed)
    };

    assert_eq!(then(12.0, 67.0).told(), ["+reward_hacking"]);
    assert_eq!(then(12.0, 69.0).told(), [""; 0], "within two points");
    assert_eq!(then(10.5, 67.0).told(), [""; 0], "within the reward's deviation");
    assert_eq!(then(8.0, 67.0).told(), [""; 0], "both fall");
}

#[test]
fn dead_host_speaks_after_ten_steps_without_any_change_unless_nothing_is_wrong() {
    let at = |accuracy: f64| move |step: &mut crate::telemetry::EnvStep| step.val_accuracy = Num(accuracy);

    assert_eq!(Course::default().steps(11, at(10.0)).told(), ["+dead_host"]);
    assert_eq!(Course::default().steps(10, at(10.0)).told(), [""; 0]);
    assert_eq!(Course::default().steps(30, at(100.0)).told(), [""; 0]);
}

#[test]
fn stuck_seed_speaks_of_the_tenth_refusal_of_a_seed_that_is_old_enough() {
    let refused = |count| Course::default().gates(count, "gradient_health", false);

    assert_eq!(refused(10).told(), ["+stuck_seed"]);
    assert_eq!(refused(9).told(), [""; 0]);
    assert_eq!(
        Course::default().gates(30, "steps_in_stage", false).told(),
        [""; 0],
        "it waits"
    );
    assert_eq!(
        refused(9).germination().gates(9, "gradient_health", false).told(),
        [""; 0],
        "another seed"
    );
    assert_eq!(
        refused(10).gates(1, "gradient_health", true).told(),
        ["+stuck_seed", "-stuck_seed"]
    );
}

#[test]
fn rollback_storm_speaks_where_more_than_a_quarter_of_the_episodes_was_rolled_back() {
    let round = |sick: u32, well: u32| {
        let course = (0..sick).fold(Course::default(), |course, _| {
            course.episode(|episode| episode.rollbacks = 1)
        });
        (0..well).fold(course, |course, _| course.episode(|_| {})).ends(|_| {})
    };

    assert_eq!(round(2, 4).told(), ["+rollback_storm"]);
    assert_eq!(round(2, 6).told(), [""; 0]);
    assert_eq!(round(1, 1).told(), [""; 0], "one is no storm");
}

#[test]
fn what_is_not_measured_neither_breaks_nor_extends_a_row() {
    let loss = |loss: f64| move |update: &mut LearnerUpdate| update.measured.loss_value = Some(Num(loss));
    let skipped = |update: &mut LearnerUpdate| update.measured.loss_value = None;

    let course = Course::default()
        .updates(2, loss(6.0))
        .updates(5, skipped)
        .updates(1, loss(f64::NAN));

    assert_eq!(course.clone().told(), [""; 0]);
    assert_eq!(course.updates(1, loss(6.0)).told(), ["+value_collapse"]);
}

#[test]
fn the_end_of_an_episode_forgets_what_was_wrong_with_its_env() {
    let sick = |step: &mut crate::telemetry::EnvStep| step.nonfinite_batches = 1;

    let course = Course::default().steps(2, sick).episode(|_| {}).ends(|_| {}).step(sick);

    assert_eq!(course.told(), ["+numerical_instability"; 2]);
}

#[test]
fn a_bank_that_has_read_the_record_continues_as_if_it_had_never_stopped() {
    let at = |accuracy: f64| move |round: &mut RoundFinished| round.accuracy_mean = Num(accuracy);
    let course = Course::learning()
        .rounds(3, at(80.0))
        .rounds(5, at(60.0))
        .steps(4, seed(|row| row.vanishing = true));
    let whole = course.told();
    for cut in 0..course.0.len() {
        let (before, after) = course.0.split_at(cut);
        let mut bank = DetectorBank::new(&Detectors::default());
        let first = anomalies(&mut bank, before);
        // What is read again holds the anomalies as well.
        let mut resumed = DetectorBank::new(&Detectors::default());
        let mut record = before.to_vec();
        record.extend(first.clone());
        anomalies(&mut resumed, &record);

        let then = anomalies(&mut resumed, after);

        let all: Vec<_> = first.iter().chain(&then).map(told).collect();
        assert_eq!(all, whole, "cut at {cut}");
    }
}

proptest::proptest! {
    /// Against a plain count: one onset for each row of at least `window` hits, one end for each onset that is over.
    #[test]
    fn every_row_of_hits_has_one_onset_and_one_end(window in 0u32..5, values in proptest::collection::vec(0u8..3, 0..60)) {
        let mut detectors = Detectors(Registry::new("detector"));
        detectors.register("test", "a test", Arc::new(Detector {
            comparison: Comparison::AtLeast,
            threshold: 1.0,
            window,
            severity: Severity::Error,
            remedy: "wait".into(),
            read: Box::new(|event, _| match &event.payload {
                Payload::RoundFinished(round) => vec![Reading::of(round.accuracy_mean.0)],
                _ => Vec::new(),
            }),
        }));
        // 2: not measured.
        let of = |value: u8| if value == 2 { f64::NAN } else { f64::from(value) };
        let course = values.iter().fold(Course::default(), |course, &value| course.ends(|round| round.accuracy_mean = Num(of(value))));

        let found: Vec<_> = anomalies(&mut DetectorBank::new(&detectors), &course.0).iter().map(told).collect();

        let measured: Vec<u8> = values.iter().copied().filter(|&value| value < 2).collect();
        let rows = measured.split(|&value| value == 0);
        let long = rows.filter(|row| !row.is_empty() && row.len() >= window as usize).count();
        let is_open = found.last().is_some_and(|last| last == "+test");
        let alternates = found.iter().enumerate().all(|(index, told)| told.starts_with('+') == (index % 2 == 0));
        proptest::prop_assert!(alternates);
        proptest::prop_assert_eq!(found.iter().filter(|told| told.starts_with('+')).count(), long);
        proptest::prop_assert_eq!(found.len(), 2 * long - usize::from(is_open));
    }
}

#[test]
fn the_reference_lists_every_detector_as_it_is() {
    let page = include_str!("../../../../../docs/reference/telemetry-and-runs.md");
    for rule in &rules::BUILT_IN {
        let detector = rule.detector();
        let (comparison, threshold) = (detector.comparison.sign(), detector.threshold);
        let row = format!(
            "| `{}` | {comparison} {threshold} | {} | {} | {}: {} |",
            rule.name,
            detector.window,
            detector.severity.name(),
            rule.summary,
            detector.remedy
        );
        let found = page
            .lines()
            .find(|line| line.starts_with(&format!("| `{}` |", rule.name)));
        assert_eq!(found.map(without_value).as_deref(), Some(row.as_str()));
    }
}

/// A row of the table without the cell that says what is compared.
fn without_value(row: &str) -> String {
    let cells: Vec<&str> = row.split(" | ").collect();
    [&cells[..1], &cells[2..]].concat().join(" | ")
}
