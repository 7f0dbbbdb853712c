use std::collections::BTreeMap;

use super::*;
use crate::telemetry::payload::{Anomaly, AnomalyState, UpdateSkip};
use crate::telemetry::{EnvStep, EpisodeFinished, LearnerUpdate, Num, Payload, RoundFinished, SeedRow, examples};

const SLOT: SlotId = SlotId { row: 0, col: 0 };

/// The events of a run with an env, one after the other.
#[derive(Clone, Default)]
struct Course(Vec<Event>);

/// The course of a run in which nothing learns.
fn course() -> Course {
    Course::default()
}

impl Course {
    fn learning() -> Self {
        Self(vec![Event::run(examples::run_started())])
    }

    fn and(mut self, event: Event) -> Self {
        self.0.push(event);
        self
    }

    fn round(&self) -> u32 {
        let rounds = self.0.iter().filter(|event| event.payload.kind() == "round_finished");
        rounds.count() as u32
    }

    /// A step of a healthy env, except for the effect of `change`.
    fn step(self, change: impl FnOnce(&mut EnvStep)) -> Self {
        let number = self.0.len() as u32;
        let mut row = examples::env_step();
        (row.nonfinite_batches, row.skipped_updates, row.loss_scale) = (0, 0, None);
        row.seeds.clear();
        row.val_accuracy = Num(50.0 + f64::from(number));
        row.host_grad_norm = Some(Num(1.0));
        change(&mut row);
        let at = examples::context_at(0, self.round(), number);
        self.and(Event::env(at, row))
    }

    fn steps(self, count: u32, change: impl Fn(&mut EnvStep)) -> Self {
        (0..count).fold(self, |course, _| course.step(&change))
    }

    fn episode(self, change: impl FnOnce(&mut EpisodeFinished)) -> Self {
        let mut episode = examples::episode_finished();
        episode.rollbacks = 0;
        change(&mut episode);
        let at = examples::context_at(0, self.round(), 20);
        self.and(Event::env(at, episode))
    }

    /// A healthy round, except for the effect of `change`.
    fn ends(self, change: impl FnOnce(&mut RoundFinished)) -> Self {
        let (number, mut round) = (self.round(), examples::round_finished());
        round.accuracy_mean = Num(40.0 + f64::from(number));
        round.rolling_accuracy = Some(round.accuracy_mean);
        round.perf.env_steps_per_s = Num(10.0);
        change(&mut round);
        self.and(Event::round(number, round))
    }

    fn rounds(self, count: u32, change: impl Fn(&mut RoundFinished)) -> Self {
        (0..count).fold(self, |course, _| course.ends(&change))
    }

    fn paid_rounds(self, count: u32, reward: f64, committed: f64) -> Self {
        (0..count).fold(self, |course, _| {
            let course = course.episode(|episode| episode.committed_accuracy = Some(Num(committed)));
            course.ends(|round| {
                let paid = round.paid.as_mut().expect("the example's policy is paid");
                (paid.reward_mean, paid.reward_std) = (Num(reward), Num(1.0));
            })
        })
    }

    fn updates(self, count: u32, change: impl Fn(&mut LearnerUpdate)) -> Self {
        let (round, mut update) = (self.round(), LearnerUpdate::default());
        change(&mut update);
        (0..count).fold(self, |course, _| course.and(Event::round(round, update.clone())))
    }

    fn gates(self, count: u32, check: &str, passed: bool) -> Self {
        let mut gate = examples::gate_evaluated();
        gate.checks.truncate(1);
        gate.checks[0].name = check.into();
        (gate.checks[0].passed, gate.passed) = (passed, passed);
        let evaluated = Event::seed(examples::context_at(0, 0, 1), SLOT, "e0.r0c0.0", gate);
        (0..count).fold(self, |course, _| course.and(evaluated.clone()))
    }

    fn anomalies(&self) -> Vec<Event> {
        anomalies(&mut DetectorBank::new(&Detectors::default()), &self.0)
    }

    /// `+rule` for each onset and `-rule` for each end, in order.
    fn edges(&self) -> Vec<String> {
        self.anomalies().iter().map(edge).collect()
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

fn edge(event: &Event) -> String {
    let anomaly = anomaly(event);
    let is_onset = anomaly.state == AnomalyState::Onset;
    format!("{}{}", if is_onset { '+' } else { '-' }, anomaly.rule)
}

fn seed(change: impl Fn(&mut SeedRow)) -> impl Fn(&mut EnvStep) {
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
    let at = |accuracy: f64| move |round: &mut RoundFinished| round.rolling_accuracy = Some(Num(accuracy));
    let flat = |course: Course, count: u32| course.ends(at(70.0)).rounds(count, at(70.4));

    assert_eq!(flat(Course::learning(), 10).edges(), ["+plateau"]);
    assert_eq!(flat(Course::learning(), 9).edges(), [""; 0]);
    assert_eq!(Course::learning().rounds(20, |_| {}).edges(), [""; 0]);
    assert_eq!(flat(course(), 20).edges(), [""; 0], "nothing learns");
    let below = flat(Course::learning(), 12).rounds(9, |_| {});
    assert_eq!(below.edges(), ["+plateau"], "below the top isn't a rise");
}

#[test]
fn degradation_speaks_a_tenth_below_the_best_three_rounds() {
    let at = |accuracy: f64| move |round: &mut RoundFinished| round.accuracy_mean = Num(accuracy);
    let then = |count: u32, accuracy: f64| course().rounds(3, at(80.0)).rounds(count, at(accuracy));

    assert_eq!(then(3, 71.0).edges(), ["+degradation"]);
    assert_eq!(then(3, 73.0).edges(), [""; 0]);
    assert_eq!(then(40, 60.0).edges(), ["+degradation"], "the best is never forgotten");
    let recovered = then(3, 71.0).rounds(3, at(80.0));
    assert_eq!(recovered.edges(), ["+degradation", "-degradation"]);
}

#[test]
fn gradient_pathology_speaks_of_a_seed_in_the_third_step_of_a_row() {
    let sick = seed(|row| row.exploding = true);
    let three = course().steps(3, &sick);
    let interrupted = course().steps(2, &sick).steps(1, seed(|_| {})).steps(2, &sick);

    assert_eq!(three.edges(), ["+gradient_pathology"]);
    assert_eq!(interrupted.edges(), [""; 0]);
    let found = &three.anomalies()[0];
    assert_eq!((found.slot, found.env, found.round), (Some(SLOT), Some(0), Some(0)));
    let remedy = "leave it to the controller if few seeds do; else lower the rate of task.seed_opt";
    let message = format!("a seed's gradients vanish or explode: {remedy}");
    assert_eq!(found.message.as_deref(), Some(message.as_str()));
    let vanishing = |ratio: Option<f64>| {
        let steps = seed(move |row| (row.vanishing, row.gradient_ratio) = (true, ratio.map(Num)));
        course().steps(3, steps).edges()
    };
    assert_eq!(vanishing(Some(1e-4)), ["+gradient_pathology"]);
    assert_eq!(vanishing(Some(0.2)), [""; 0], "one tensor does not learn");
    assert_eq!(vanishing(None), [""; 0], "it is committed");
}

#[test]
fn gradient_spike_speaks_where_a_norm_is_a_hundred_times_its_average() {
    let edges = |norms: &[f64]| {
        let step = |course: Course, &norm: &f64| course.step(|step| step.host_grad_norm = Some(Num(norm)));
        norms.iter().fold(course(), step).edges()
    };

    assert_eq!(edges(&[1.0, 101.0]), ["+gradient_spike"]);
    assert_eq!(edges(&[1.0, 99.0]), [""; 0]);
    assert_eq!(edges(&[1e-6, 0.5]), [""; 0], "tiny norms aren't a scale");
    assert_eq!(edges(&[500.0]), [""; 0], "the first is compared with nothing");
    assert_eq!(edges(&[1.0, f64::INFINITY]), [""; 0], "no size");
}

#[test]
fn ratio_explosion_speaks_above_five_and_ratio_collapse_below_a_tenth() {
    let edges = |least: f64, largest: f64| {
        let ratios = (Some(Num(least)), Some(Num(largest)));
        let change = |update: &mut LearnerUpdate| (update.measured.ratio_min, update.measured.ratio_max) = ratios;
        course().updates(1, change).edges()
    };

    assert_eq!(edges(0.11, 5.1), ["+ratio_explosion"]);
    assert_eq!(edges(0.09, 4.9), ["+ratio_collapse"]);
    assert_eq!(edges(0.11, 4.9), [""; 0]);
}

#[test]
fn value_collapse_speaks_in_the_third_update_of_a_row_which_unmeasured_ones_neither_break_nor_extend() {
    let edges = |losses: &[Option<f64>]| {
        let losses = losses.iter().map(|loss| loss.map(Num));
        let update = |course: Course, loss| course.updates(1, |update| update.measured.loss_value = loss);
        losses.fold(course(), update).edges()
    };
    let (high, low) = (Some(6.0), Some(4.0));

    assert_eq!(edges(&[high; 3]), ["+value_collapse"]);
    assert_eq!(edges(&[high, high, low, high, high]), [""; 0]);
    let unmeasured = [high, high, None, None, Some(f64::NAN)];
    assert_eq!(edges(&unmeasured), [""; 0]);
    assert_eq!(edges(&[&unmeasured[..], &[high]].concat()), ["+value_collapse"]);
}

#[test]
fn idle_critic_speaks_in_the_tenth_update_that_explains_nothing() {
    let edges = |count: u32, share: f64| {
        let update = |update: &mut LearnerUpdate| {
            update.data.get_or_insert_default().explained_variance_free = Some(Num(share));
        };
        course().updates(count, update).edges()
    };

    assert_eq!(edges(10, -0.01), ["+idle_critic"]);
    assert_eq!([edges(10, 0.1), edges(9, -0.01)], [[""; 0]; 2]);
}

#[test]
fn blind_policy_speaks_after_ten_rounds_in_which_choices_differ_by_less_than_half_a_thousandth_of_a_nat() {
    let edges = |odd: f64| {
        let choice = |course: Course, first: f64| {
            let mut decision = examples::decision();
            decision.policy.as_mut().expect("a policy").op_probs = vec![Num(first), Num(1.0 - first)];
            course.and(Event::env(examples::context_at(0, 0, 1), decision))
        };
        let round = |course: Course, _: u32| [[0.3, odd]; 8].concat().into_iter().fold(course, choice).ends(|_| {});
        (0..10).fold(Course::learning(), round).edges()
    };

    assert_eq!(edges(0.3), ["+blind_policy"]);
    assert_eq!(edges(0.4), [""; 0], "0.0055 nats");
}

#[test]
fn entropy_collapse_speaks_of_a_head_below_its_own_floor() {
    let updates = |count: u32, head: &str, entropy: f64| {
        let entropies = BTreeMap::from([(head.to_owned(), Num(entropy)), ("style".to_owned(), Num(0.9))]);
        course().updates(count, |update| update.measured.head_entropy_avail = entropies.clone())
    };

    let slot = updates(3, "slot", 0.09);

    assert_eq!(slot.edges(), ["+entropy_collapse"]);
    let anomalies = slot.anomalies();
    let found = anomaly(&anomalies[0]);
    assert_eq!((found.head.as_deref(), found.threshold), (Some("slot"), Num(0.1)));
    assert_eq!(updates(3, "op", 0.09).edges(), [""; 0]);
    assert_eq!(updates(3, "op", 0.0).edges(), [""; 0], "no choice");
    assert_eq!(updates(2, "slot", 0.09).edges(), [""; 0]);
}

#[test]
fn numerical_instability_speaks_of_batches_updates_and_the_policy_but_not_of_scaled_losses() {
    let skip = |reason| course().updates(1, move |update| update.skip_reason = reason);
    let of_batches = course().step(|step| step.nonfinite_batches = 1);
    let of_updates = course().step(seed(|row| row.skipped_updates = 2));
    let scaled = course().step(|step| (step.skipped_updates, step.loss_scale) = (3, Some(Num(1024.0))));

    for course in [of_batches, of_updates, skip(UpdateSkip::Mismatch)] {
        assert_eq!(course.edges(), ["+numerical_instability"]);
    }
    for course in [scaled, skip(UpdateSkip::Kl)] {
        assert_eq!(course.edges(), [""; 0]);
    }
}

#[test]
fn memory_speaks_at_nine_tenths_of_the_limit() {
    let edges = |bytes: u64| {
        let used = (Some(bytes), Some(1000));
        let round = course().ends(|round| (round.perf.memory_bytes, round.perf.memory_limit_bytes) = used);
        round.edges()
    };

    assert_eq!(edges(900), ["+memory"]);
    assert_eq!(edges(899), [""; 0]);
}

#[test]
fn throughput_drop_speaks_in_the_third_round_at_less_than_half_the_usual_speed() {
    let edges = |usual: u32, now: f64| {
        let speed = |speed: f64| move |round: &mut RoundFinished| round.perf.env_steps_per_s = Num(speed);
        course().rounds(usual, speed(10.0)).rounds(3, speed(now)).edges()
    };

    assert_eq!(edges(6, 4.9), ["+throughput_drop"]);
    assert_eq!(edges(6, 5.1), [""; 0]);
    assert_eq!(edges(2, 1.0), [""; 0], "too few to know");
}

#[test]
fn reward_hacking_speaks_where_the_reward_rises_and_the_committed_accuracy_falls() {
    let edges = |reward, committed| {
        let before = Course::learning().paid_rounds(4, 10.0, 70.0);
        before.paid_rounds(4, reward, committed).edges()
    };

    assert_eq!(edges(12.0, 67.0), ["+reward_hacking"]);
    assert_eq!(edges(12.0, 69.0), [""; 0], "within two points");
    assert_eq!(edges(10.5, 67.0), [""; 0], "within the reward's deviation");
    assert_eq!(edges(8.0, 67.0), [""; 0], "both fall");
}

#[test]
fn dead_host_speaks_after_ten_steps_without_any_change_unless_nothing_is_wrong() {
    let edges = |count: u32, accuracy: f64| course().steps(count, |step| step.val_accuracy = Num(accuracy)).edges();

    assert_eq!(edges(11, 10.0), ["+dead_host"]);
    assert_eq!(edges(10, 10.0), [""; 0]);
    assert_eq!(edges(30, 100.0), [""; 0]);
}

#[test]
fn stuck_seed_speaks_of_the_tenth_refusal_of_a_seed_that_is_old_enough() {
    let refused = |course: Course, count| course.gates(count, "gradient_health", false);
    let another = Event::seed(examples::context_at(0, 0, 1), SLOT, "e0.r0c0.1", examples::germinated());

    let waiting = course().gates(30, "steps_in_stage", false);
    let of_two = refused(refused(course(), 9).and(another), 9);
    let passed = refused(course(), 10).gates(1, "gradient_health", true);

    assert_eq!(refused(course(), 10).edges(), ["+stuck_seed"]);
    assert_eq!(refused(course(), 9).edges(), [""; 0]);
    assert_eq!(waiting.edges(), [""; 0]);
    assert_eq!(of_two.edges(), [""; 0]);
    assert_eq!(passed.edges(), ["+stuck_seed", "-stuck_seed"]);
}

#[test]
fn rollback_storm_speaks_where_more_than_a_quarter_of_the_episodes_was_rolled_back() {
    let edges = |sick: usize, well: usize| {
        let rollbacks = [vec![1; sick], vec![0; well]].concat().into_iter();
        let episode = |course: Course, rollbacks| course.episode(|episode| episode.rollbacks = rollbacks);
        rollbacks.fold(course(), episode).ends(|_| {}).edges()
    };

    assert_eq!(edges(2, 4), ["+rollback_storm"]);
    assert_eq!(edges(2, 6), [""; 0]);
    assert_eq!(edges(1, 1), [""; 0], "one isn't a storm");
}

#[test]
fn the_end_of_an_episode_forgets_what_was_wrong_with_its_env() {
    let sick = |step: &mut EnvStep| step.nonfinite_batches = 1;

    let course = course().steps(2, sick).episode(|_| {}).ends(|_| {}).step(sick);

    assert_eq!(course.edges(), ["+numerical_instability"; 2]);
}

#[test]
fn a_bank_that_has_read_the_record_continues_as_if_it_had_never_stopped() {
    let at = |accuracy: f64| move |round: &mut RoundFinished| round.accuracy_mean = Num(accuracy);
    let course = Course::learning().rounds(3, at(80.0)).rounds(5, at(60.0));
    let course = course.steps(4, seed(|row| row.vanishing = true));
    let whole = course.edges();
    for cut in 0..course.0.len() {
        let (before, after) = course.0.split_at(cut);
        let first = anomalies(&mut DetectorBank::new(&Detectors::default()), before);
        // Events that are read again hold the anomalies too.
        let mut resumed = DetectorBank::new(&Detectors::default());
        anomalies(&mut resumed, &[before, &first].concat());

        let then = anomalies(&mut resumed, after);

        let all: Vec<_> = first.iter().chain(&then).map(edge).collect();
        assert_eq!(all, whole, "cut at {cut}");
    }
}

proptest::proptest! {
    /// Compares with a plain count: one onset for each streak of at least `window` hits, and one end where such a streak ends.
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

        let found: Vec<_> = anomalies(&mut DetectorBank::new(&detectors), &course.0).iter().map(edge).collect();

        let measured: Vec<u8> = values.iter().copied().filter(|&value| value < 2).collect();
        let rows = measured.split(|&value| value == 0);
        let long = rows.filter(|row| !row.is_empty() && row.len() >= window as usize).count();
        let is_open = found.last().is_some_and(|last| last == "+test");
        let alternates = found.iter().enumerate().all(|(index, edge)| edge.starts_with('+') == (index % 2 == 0));
        proptest::prop_assert!(alternates);
        proptest::prop_assert_eq!(found.iter().filter(|edge| edge.starts_with('+')).count(), long);
        proptest::prop_assert_eq!(found.len(), 2 * long - usize::from(is_open));
    }
}

#[test]
fn the_reference_lists_every_detector() {
    let page = include_str!("../../../../../docs/reference/telemetry-and-runs.md");
    for rule in &rules::BUILT_IN {
        let (name, detector) = (rule.name, rule.detector());
        let (comparison, threshold) = (detector.comparison.sign(), detector.threshold);
        let (window, severity) = (detector.window, detector.severity.name());
        let rest = format!("{severity} | {}: {}", rule.summary, detector.remedy);
        let row = format!("| `{name}` | {comparison} {threshold} | {window} | {rest} |");
        let found = page.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
        assert_eq!(found.map(without_value), Some(row));
    }
}

/// A row of the table without the cell that names the compared quantity.
fn without_value(row: &str) -> String {
    let cells: Vec<&str> = row.split(" | ").collect();
    [&cells[..1], &cells[2..]].concat().join(" | ")
}
