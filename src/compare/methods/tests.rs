use serde_json::json;

use super::*;

fn trained(method: &str, seed: u64, accuracies: &[f64]) -> MethodTraining {
    let episodes = accuracies.iter().enumerate().map(|(env, accuracy)| {
        let outcome = json!({
            "seed": seed, "round": 9, "env": env, "accuracy": accuracy, "rent": 1.0, "reward": 0.0,
            "param_ratio": accuracy / 10.0, "rollbacks": 0,
        });
        serde_json::from_value(outcome).expect("an outcome")
    });
    MethodTraining {
        method: method.into(),
        record: TrainingRecord {
            run_id: format!("{method}-digits-{seed}"),
            scenario: "s".into(),
            task: "digits".into(),
            controller: method.into(),
            seed: BigInteger(seed),
            rounds: 10,
            is_complete: true,
            is_evaluated: true,
            episodes: episodes.collect(),
            ..TrainingRecord::default()
        },
    }
}

/// Six trainings of each method. `good` is ten points better in all of them.
fn trainings() -> Vec<MethodTraining> {
    let levels = [40.0, 42.0, 44.0, 47.0, 51.0, 56.0];
    let of = |method: &'static str, gain: f64| {
        let seeded = levels.iter().zip(1..);
        seeded.map(move |(level, seed)| trained(method, seed, &[level + gain - 1.0, level + gain + 1.0]))
    };
    of("good", 30.0).chain(of("bad", 0.0)).collect()
}

fn plan(metric: Metric) -> ComparisonPlan {
    ComparisonPlan {
        metric,
        criteria: Criteria {
            test: DecisionTest::MannWhitney,
            alpha: 0.05,
            min_effect: 0.5,
        },
        control: None,
        outstanding: 0,
        is_judged: false,
    }
}

fn compared(trainings: &[MethodTraining], metric: Metric) -> MethodComparison {
    MethodComparison::new(trainings, &plan(metric))
}

fn judged(trainings: &[MethodTraining]) -> MethodComparison {
    let mut plan = plan(Metric::AccuracyMinusRent);
    plan.is_judged = true;
    MethodComparison::new(trainings, &plan)
}

#[test]
fn the_better_method_is_named_where_the_test_and_the_interval_agree() {
    let comparison = compared(&trainings(), Metric::AccuracyMinusRent);

    let [difference] = &comparison.differences[..] else {
        panic!("one pair")
    };
    assert_eq!((difference.first.as_str(), difference.second.as_str()), ("good", "bad"));
    assert_eq!(difference.design, Design::Paired);
    assert!((difference.iqm.value - 30.0).abs() < 1e-9);
    // All six beat all six: 2 / C(12, 6).
    assert!((difference.mann_whitney_p.unwrap() - 2.0 / 924.0).abs() < 1e-12);
    assert_eq!(difference.sign_flip_p, Some(0.03125));
    assert_eq!(difference.verdict, Some(Verdict::Better(statistics::Arm::First)));
    assert_eq!(comparison.methods[0].scores.len(), 6);
    assert_eq!(comparison.methods[0].scores[0].score, 69.0);
}

#[test]
fn less_is_better_for_sizes() {
    let comparison = compared(&trainings(), Metric::ParamRatio);

    let difference = &comparison.differences[0];
    assert!((difference.iqm.value - 3.0).abs() < 1e-9);
    assert_eq!(difference.probability_of_improvement.as_ref().unwrap().value, 0.0);
    assert_eq!(difference.verdict, Some(Verdict::Better(statistics::Arm::Second)));
    let good = &comparison.methods[0];
    assert!((good.worst_tenth.value - 8.6).abs() < 1e-9, "the largest is the worst");
}

#[test]
fn nothing_is_concluded_while_trainings_are_outstanding_or_few() {
    let mut interim = plan(Metric::Accuracy);
    interim.outstanding = 1;
    let comparison = MethodComparison::new(&trainings(), &interim);
    assert!(comparison.interim);
    assert_eq!(comparison.differences[0].verdict, None);

    let mut few = trainings();
    few.retain(|training| training.record.seed.0 < 5);
    let comparison = compared(&few, Metric::Accuracy);
    assert_eq!(comparison.differences[0].verdict, Some(Verdict::InsufficientData));
}

#[test]
fn what_did_not_end_is_listed_and_left_out() {
    let mut trainings = trainings();
    trainings[2].record.is_complete = false;

    let comparison = compared(&trainings, Metric::Accuracy);

    assert_eq!(comparison.left_out.len(), 1);
    assert_eq!(comparison.left_out[0].reason, "it has played 0 of 10 rounds");
    assert_eq!(comparison.differences[0].trainings, [5, 6]);
    assert_eq!(comparison.differences[0].design, Design::Independent);
}

#[test]
fn several_tasks_are_compared_one_by_one_and_summed_up_without_a_verdict() {
    let mut both = [trainings(), trainings()].concat();
    for training in &mut both[12..] {
        training.record.task = "letters".into();
    }

    let comparison = compared(&both, Metric::Accuracy);

    let tasks: Vec<_> = comparison.differences.iter().map(|pair| pair.task.as_deref()).collect();
    assert_eq!(tasks, [Some("digits"), Some("letters"), None]);
    let overall = &comparison.differences[2];
    assert_eq!((overall.trainings, overall.verdict), ([12, 12], None));
    assert_eq!(overall.mann_whitney_p, None);
    assert_eq!(overall.probability_of_improvement.as_ref().unwrap().value, 1.0);
    // Holm over the two tests.
    assert!((comparison.differences[0].adjusted_p.unwrap() - 4.0 / 924.0).abs() < 1e-12);
}

#[test]
fn with_a_control_only_it_is_compared_with() {
    let mut three = [&trainings()[..], &trainings()[6..]].concat();
    for training in &mut three[12..] {
        training.method = "other".into();
    }
    let mut against = plan(Metric::Accuracy);
    against.control = Some("bad".into());

    let comparison = MethodComparison::new(&three, &against);

    let pairs = comparison.differences.iter().map(|pair| (&*pair.first, &*pair.second));
    assert_eq!(pairs.collect::<Vec<_>>(), [("good", "bad"), ("other", "bad")]);
}

#[test]
fn judged_methods_lose_a_whole_replicate_where_one_training_failed() {
    let mut trainings = trainings();
    trainings[0].record.is_complete = false;

    let comparison = judged(&trainings);

    let left_out = comparison.left_out.iter();
    let left_out = left_out.map(|left| format!("{}: {}\n", left.run_id, left.reason));
    let expected = "good-digits-1: it has played 0 of 10 rounds\n\
                    bad-digits-1: its replicate has no sound training of good\n";
    assert_eq!(left_out.collect::<String>(), expected);
    assert_eq!(comparison.differences[0].trainings, [5, 5]);
    assert_eq!(comparison.differences[0].design, Design::Paired);
}

#[test]
fn unequal_budgets_forbid_a_judge_s_verdict() {
    let mut trainings = trainings();
    trainings[2].record.updates = 4;
    trainings[3].record.updates = 5;

    let comparison = judged(&trainings);

    assert_eq!(comparison.objections, ["trainings differ in their updates: 4, 5"]);
    assert_eq!(comparison.differences[0].verdict, None);
    let unjudged = compared(&trainings, Metric::AccuracyMinusRent);
    assert!(unjudged.objections.is_empty() && unjudged.differences[0].verdict.is_some());
}

#[test]
fn loss_scales_of_their_own_are_stamped_by_the_judge_alone() {
    let mut trainings = trainings();
    trainings[0].record.scales_loss = true;
    let is_stamped = |comparison: MethodComparison| {
        let mut notes = comparison.notes.iter();
        notes.any(|note| note.starts_with("scaler_confound"))
    };

    assert!(is_stamped(judged(&trainings)));
    assert!(!is_stamped(compared(&trainings, Metric::AccuracyMinusRent)));
}
