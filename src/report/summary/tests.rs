use super::super::words::WIDTH;
use super::*;
use crate::growth::SlotId;
use crate::telemetry::{AnomalyState, EndReason, Event, Num, UpdateSkip, examples};
use crate::torch::DeviceMemory;

fn finished_run(n_rounds: u32) -> LiveState {
    let mut live = LiveState::default();
    live.apply(&Event::run(examples::run_started()));
    live.apply(&Event::run(examples::baseline()));
    for round in 0..n_rounds {
        let context = examples::context_at(0, round, 18);
        let seeds = [
            (0, "e0.r0c0.0", "norm"),
            (1, "e0.r0c1.0", "conv_light"),
            (1, "e1.r0c1.0", "depthwise"),
        ];
        for (column, seed_id, _) in seeds {
            let slot = SlotId::new(0, column);
            live.apply(&Event::seed(context, slot, seed_id, examples::germinated()));
        }
        live.apply(&Event::env(context, examples::matrix()));
        for (column, seed_id, blueprint) in seeds {
            let mut seed = examples::committed();
            seed.blueprint = blueprint.into();
            seed.contribution = seed.contribution.filter(|_| seed_id.starts_with("e0"));
            live.apply(&Event::seed(context, SlotId::new(0, column), seed_id, seed));
        }
        live.apply(&Event::env(context, examples::shapley()));
        live.apply(&Event::env(context, examples::episode_finished()));
        let mut result = examples::round_finished();
        result.accuracy_mean = Num(54.3 + f64::from(round));
        live.apply(&Event::round(round, result));
    }
    live.apply(&Event::run(examples::run_finished()));
    live
}

/// On a terminal of the usual width, into which it fits.
fn summary(live: &LiveState, directory: &str) -> String {
    let text = super::summary(live, Path::new(directory), WIDTH);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    text
}

#[test]
fn a_finished_run_is_summed_up_in_aligned_columns() {
    insta::assert_snapshot!(summary(&finished_run(2), "runs/20260101-000000-test-abcd"));
}

#[test]
fn programs_read_what_the_summary_tells() {
    insta::assert_json_snapshot!(results::run_results(&finished_run(2)));
}

#[test]
fn what_json_cannot_say_is_named_among_the_results() {
    let unsayable = std::collections::BTreeMap::from([(["a", "b"], 1)]);
    let merged = results::merged(serde_json::json!({ "round": 1 }), &unsayable);
    assert_eq!(merged.to_string(), r#"{"error":"key must be a string","round":1}"#);
}

#[test]
fn fallbacks_are_summed_up_over_rounds_where_there_are_any() {
    let mut live = finished_run(2);
    assert!(!summary(&live, "runs/test").contains("fallbacks"));

    for (round, kernel, autocast) in [(2, 3, 0), (3, 1, 2)] {
        let mut result = examples::round_finished();
        result.fallbacks = Some(Fallbacks {
            kernel,
            autocast,
            graph: autocast + 1,
        });
        live.apply(&Event::round(round, result));
    }

    let text = summary(&live, "runs/test");
    let line = "\nfallbacks      4 batches by libtorch's operators, 2 in f32, 4 not as CUDA graphs\n";
    assert!(text.contains(line), "{text}");
}

#[test]
fn the_most_memory_of_any_round_is_said_of_each_device_where_it_was_measured() {
    let mut live = finished_run(2);
    assert!(!summary(&live, "runs/test").contains("\nmemory"));

    for (round, process, peak) in [(2, 700, 2048), (3, 512, 1024)] {
        let mut result = examples::round_finished();
        result.perf.memory_bytes = Some(process << 20);
        let memory = DeviceMemory {
            allocated: 0,
            peak: peak << 20,
            reserved: 0,
        };
        result.perf.device_memory_bytes.insert("cuda:0".into(), memory);
        live.apply(&Event::round(round, result));
    }

    let text = summary(&live, "runs/test");
    let line = "\nmemory         process 700.0 MiB, cuda:0 2.0 GiB\n";
    assert!(text.contains(line), "{text}");
}

/// Names and errors may be of any length.
#[test]
fn long_names_and_errors_are_broken_or_cut() {
    let mut live = finished_run(1);
    for seed in &mut live.committed {
        seed.data.blueprint = "a_seed_module_of_somebody_s_own_making".into();
    }
    live.finished.as_mut().unwrap().error = Some("no memory is left ".repeat(10));

    let text = summary(&live, "runs/long");

    assert!(text.contains("a_seed_modul…"), "{text}");
    assert!(text.contains("\n               "), "{text}");
}

fn learning_run() -> LiveState {
    let mut live = LiveState::default();
    let mut started = examples::run_started();
    started.controller = "policy".into();
    live.apply(&Event::run(started));
    for round in 0..3 {
        live.apply(&Event::env(examples::context_at(0, round, 3), examples::rollback()));
        let mut update = examples::learner_update();
        update.updates = u64::from(round) + 1;
        live.apply(&Event::round(round, update));
        let mut result = examples::round_finished();
        let paid = result.paid.as_mut().expect("it is paid");
        paid.reward_mean = Num(3.25 + 4.0 * f64::from(round));
        let terms = [
            ("attribution", 8.0),
            ("compute_rent", -1.5),
            ("pbrs", 2.25),
            ("synergy", 0.5),
            ("intervention", -0.125),
            ("commit_legitimacy", 1.75),
            ("prune_penalty", -0.25),
            ("occupancy_rent", -0.375),
        ];
        paid.reward_terms_mean = terms.map(|(name, mean)| (name.into(), Num(mean))).into();
        live.apply(&Event::round(round, result));
    }
    live.apply(&Event::run(examples::run_finished()));
    live
}

#[test]
fn a_run_that_learnt_says_what_it_was_paid_for_and_how_the_policy_is() {
    insta::assert_snapshot!(summary(&learning_run(), "runs/learnt"));
}

#[test]
fn the_ends_of_a_longer_learning_curve_are_means_of_several_rounds() {
    let round = |round: u32| {
        let mut data = examples::round_finished();
        data.accuracy_mean = Num(20.0 + f64::from(round));
        data.paid = data.paid.filter(|_| round != 3);
        if let Some(paid) = &mut data.paid {
            paid.reward_mean = Num(10.0 * f64::from(round));
        }
        let rollbacks = 0;
        RoundResult { round, rollbacks, data }
    };
    let rounds: Vec<RoundResult> = (0..9).map(round).collect();

    assert!(learning_curve(&[]).is_empty());
    assert_eq!(learning_curve(&rounds[..3]), ["reward +0.00 -> +20.00"]);
    let expected = "first to last 2 rounds: reward +5.00 -> +75.00, accuracy 20.5 -> 27.5 %";
    assert_eq!(learning_curve(&rounds).join(", "), expected);
}

#[test]
fn an_update_that_was_not_performed_says_why_and_what_is_unknown() {
    let mut live = learning_run();
    let mut update = examples::learner_update();
    (update.update_performed, update.skip_reason) = (false, UpdateSkip::Mismatch);
    update.measured.approx_kl = None;
    live.apply(&Event::round(2, update));

    let text = summary(&live, "runs/learnt");

    for expected in [
        "3 updates (1 skipped)",
        "KL —",
        "not performed: rollout and update disagree",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn a_run_without_a_reward_has_no_reward_column() {
    let mut live = LiveState::default();
    let mut round = examples::round_finished();
    round.paid = None;
    live.apply(&Event::round(0, round));

    let text = summary(&live, "runs/unpaid");

    assert!(!text.contains("reward") && !text.contains("policy"), "{text}");
}

#[test]
fn a_long_run_shows_its_first_and_last_rounds_and_its_best_seeds() {
    let text = summary(&finished_run(50), "runs/long");

    // The accuracy is that of the last round.
    for expected in ["\n      …\n", "… of 150 in all", "103.30"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(text.lines().count() < 48);
}

#[test]
fn a_run_that_failed_at_once_still_says_why_and_where() {
    let mut live = LiveState::default();
    let mut finished = examples::run_finished();
    finished.error = Some("out of memory".into());
    live.apply(&Event::run(finished));

    let expected = "stopped by     out of memory\n\nrun directory  runs/short\n\nNo seed was committed.\n";
    assert_eq!(summary(&live, "runs/short"), expected);
}

fn finish(live: &mut LiveState, env: u32, accuracy: f64, committed_ratio: f64) {
    let mut episode = examples::episode_finished();
    episode.committed_accuracy = Some(Num(accuracy));
    episode.committed_ratio = Num(committed_ratio);
    live.apply(&Event::env(examples::context_at(env, 0, 5), episode));
}

/// Student's t of three degrees of freedom is 3.182.
#[test]
fn the_average_says_what_its_interval_is_of_and_leaves_out_envs_that_failed() {
    let mut live = LiveState::default();
    for (env, accuracy) in [60.0, 70.0, 70.0, 80.0].into_iter().enumerate() {
        finish(&mut live, env as u32, accuracy, 1.5);
    }
    let mut failed = examples::episode_finished();
    failed.end = EndReason::Failed;
    failed.committed_accuracy = Some(Num(1.0));
    live.apply(&Event::env(examples::context_at(4, 0, 5), failed));

    let expected = "result         70.00 ± 12.99 % without a committed seed, at 1.50x the host's parameters: validation, mean and its \
                95 % interval (t) over the last 4 hosts of this training; another seed may differ by more\n";
    assert_eq!(result(&live, 400).unwrap(), expected);
}

/// Student's t of two degrees of freedom is 4.303.
#[test]
fn where_nothing_was_committed_hosts_that_never_grew_are_still_shown_unless_they_are_the_result() {
    let mut live = LiveState::default();
    finish(&mut live, 0, 52.0, 1.0);
    live.apply(&Event::run(examples::baseline()));
    let result = "result         52.00 % without a committed seed: validation of a single host\n";
    assert_eq!(super::result(&live, 80).unwrap(), result);

    live.seed_ends.germinated = 1;

    let alone = "host alone     52.00 ± 4.97 %: 3 hosts trained for as long without seeds\n";
    assert_eq!(super::result(&live, 80).unwrap(), format!("{result}{alone}"));
}

/// Gradients of seeds in a dead host aren't a cause of their own.
#[test]
fn what_detectors_found_is_counted_by_cause() {
    let mut live = LiveState::default();
    let mut found = examples::anomaly();
    found.state = AnomalyState::Onset;
    for env in 0..3 {
        let mut step = examples::env_step();
        step.val_accuracy = Num(if env == 2 { 10.0 } else { 80.5 });
        live.apply(&Event::env(examples::context_at(env, 0, 1), step));
        for rule in ["gradient_pathology", "dead_host"] {
            found.rule = rule.into();
            live.apply(&Event::env(examples::context_at(env, 0, 11), found.clone()));
        }
    }
    (0..4).for_each(|env| finish(&mut live, env, 52.0, 1.0));

    let expected = "anomalies      dead_host 1x in 1 of 4 hosts, gradient_pathology 1x in 1 of 4 hosts, 2 of 4 hosts never learnt (dead \
                from the first step; 4 seeds in vain); `report` says where\n";
    assert_eq!(anomalies(&live, 400).unwrap(), expected);
}
