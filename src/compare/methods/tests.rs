use super::*;
use crate::compare::EpisodeOutcome;

fn trained(method: &str, task: &str, seed: u64, accuracies: &[f64]) -> MethodTraining {
    let episodes = accuracies.iter().enumerate().map(|(env, &accuracy)| EpisodeOutcome {
        seed: BigInteger(seed),
        round: 9,
        env,
        accuracy: Some(accuracy),
        committed_accuracy: None,
        test_accuracy: None,
        loss: None,
        test_loss: None,
        rent: Some(1.0),
        reward: 0.0,
        param_ratio: accuracy / 10.0,
        rollbacks: 0,
        compute: None,
        decisions: None,
    });
    MethodTraining {
        method: method.into(),
        record: TrainingRecord {
            run_id: format!("{method}-{task}-{seed}"),
            scenario: "s".into(),
            task: task.into(),
            controller: method.into(),
            seed: BigInteger(seed),
            rounds: 10,
            is_complete: true,
            updates: 0,
            scales_loss: false,
            confounders: Confounders::default(),
            is_evaluated: true,
            episodes: episodes.collect(),
            curve: Vec::new(),
        },
    }
}

/// Six trainings of each: `good` is ten points better in all of them.
fn trainings() -> Vec<MethodTraining> {
    let levels = [40.0, 42.0, 44.0, 47.0, 51.0, 56.0];
    let of = |method: &'static str, gain: f64| {
        let seeded = levels.iter().zip(1..);
        seeded.map(move |(level, seed)| trained(method, "digits", seed, &[level + gain - 1.0, level + gain + 1.0]))
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

#[test]
fn the_better_method_is_named_where_the_test_and_the_interval_agree() {
    let comparison = MethodComparison::new(&trainings(), &plan(Metric::AccuracyMinusRent));

    let [difference] = &comparison.differences[..] else {
        panic!("one pair")
    };
    assert_eq!((difference.first.as_str(), difference.second.as_str()), ("good", "bad"));
    assert_eq!(difference.design, Design::Paired);
    assert!((difference.iqm.value - 30.0).abs() < 1e-9);
    // All of six beat all of six: 2 / C(12, 6).
    assert!((difference.mann_whitney_p.unwrap() - 2.0 / 924.0).abs() < 1e-12);
    assert_eq!(difference.sign_flip_p, Some(0.03125));
    assert_eq!(difference.verdict, Some(Verdict::Better(statistics::Arm::First)));
    assert_eq!(comparison.methods[0].scores.len(), 6);
    assert_eq!(comparison.methods[0].scores[0].score, 69.0);
}

#[test]
fn less_is_better_for_sizes() {
    let comparison = MethodComparison::new(&trainings(), &plan(Metric::ParamRatio));

    let difference = &comparison.differences[0];
    assert!((difference.iqm.value - 3.0).abs() < 1e-9);
    assert_eq!(difference.probability_of_improvement.as_ref().unwrap().value, 0.0);
    assert_eq!(difference.verdict, Some(Verdict::Better(statistics::Arm::Second)));
    let good = &comparison.methods[0];
    assert!((good.worst_tenth.value - 8.6).abs() < 1e-9, "the largest is the worst");
}

#[test]
fn nothing_is_concluded_while_trainings_are_outstanding_or_few() {
    let interim = ComparisonPlan {
        outstanding: 1,
        ..plan(Metric::Accuracy)
    };
    let comparison = MethodComparison::new(&trainings(), &interim);
    assert!(comparison.interim);
    assert_eq!(comparison.differences[0].verdict, None);

    let few: Vec<_> = trainings()
        .into_iter()
        .filter(|training| training.record.seed.0 < 5)
        .collect();
    let comparison = MethodComparison::new(&few, &plan(Metric::Accuracy));
    assert_eq!(comparison.differences[0].verdict, Some(Verdict::InsufficientData));
}

#[test]
fn what_did_not_end_is_listed_and_left_out() {
    let mut trainings = trainings();
    trainings[2].record.is_complete = false;

    let comparison = MethodComparison::new(&trainings, &plan(Metric::Accuracy));

    assert_eq!(comparison.left_out.len(), 1);
    assert_eq!(comparison.left_out[0].reason, "it has played 0 of 10 rounds");
    assert_eq!(comparison.differences[0].trainings, [5, 6]);
    assert_eq!(comparison.differences[0].design, Design::Independent);
}

#[test]
fn several_tasks_are_compared_one_by_one_and_summed_up_without_a_verdict() {
    let mut both = trainings();
    both.extend(trainings().into_iter().map(|mut training| {
        training.record.task = "letters".into();
        training
    }));

    let comparison = MethodComparison::new(&both, &plan(Metric::Accuracy));

    let tasks: Vec<Option<&str>> = comparison
        .differences
        .iter()
        .map(|difference| difference.task.as_deref())
        .collect();
    assert_eq!(tasks, [Some("digits"), Some("letters"), None]);
    let overall = &comparison.differences[2];
    assert_eq!(
        (overall.trainings, overall.verdict, overall.mann_whitney_p),
        ([12, 12], None, None)
    );
    assert_eq!(overall.probability_of_improvement.as_ref().unwrap().value, 1.0);
    // Holm over the two tests.
    assert!((comparison.differences[0].adjusted_p.unwrap() - 4.0 / 924.0).abs() < 1e-12);
}

#[test]
fn with_a_control_only_it_is_compared_with() {
    let mut three = trainings();
    three.extend(
        trainings()
            .into_iter()
            .filter(|training| training.method == "bad")
            .map(|mut training| {
                training.method = "other".into();
                training
            }),
    );
    let against = ComparisonPlan {
        control: Some("bad".into()),
        ..plan(Metric::Accuracy)
    };

    let comparison = MethodComparison::new(&three, &against);

    let pairs: Vec<(&str, &str)> = comparison
        .differences
        .iter()
        .map(|difference| (difference.first.as_str(), difference.second.as_str()))
        .collect();
    assert_eq!(pairs, [("good", "bad"), ("other", "bad")]);
}

fn judged() -> ComparisonPlan {
    ComparisonPlan {
        is_judged: true,
        ..plan(Metric::AccuracyMinusRent)
    }
}

#[test]
fn judged_methods_lose_a_whole_replicate_where_one_training_failed() {
    let mut trainings = trainings();
    trainings[0].record.is_complete = false;

    let comparison = MethodComparison::new(&trainings, &judged());

    let left_out: Vec<(&str, &str)> = comparison
        .left_out
        .iter()
        .map(|left| (left.run_id.as_str(), left.reason.as_str()))
        .collect();
    assert_eq!(
        left_out,
        [
            ("good-digits-1", "it has played 0 of 10 rounds"),
            ("bad-digits-1", "its replicate has no sound training of good")
        ]
    );
    assert_eq!(comparison.differences[0].trainings, [5, 5]);
    assert_eq!(comparison.differences[0].design, Design::Paired);
}

#[test]
fn unequal_budgets_forbid_a_judge_s_verdict() {
    let mut trainings = trainings();
    trainings[2].record.updates = 4;
    trainings[3].record.updates = 5;

    let comparison = MethodComparison::new(&trainings, &judged());

    assert_eq!(comparison.objections, ["trainings differ in their updates: 4, 5"]);
    assert_eq!(comparison.differences[0].verdict, None);
    let unjudged = MethodComparison::new(&trainings, &plan(Metric::AccuracyMinusRent));
    assert!(unjudged.objections.is_empty() && unjudged.differences[0].verdict.is_some());
}

#[test]
fn loss_scales_of_their_own_are_stamped_by_the_judge_alone() {
    let mut trainings = trainings();
    trainings[0].record.scales_loss = true;
    let is_stamped = |plan: &ComparisonPlan| {
        let comparison = MethodComparison::new(&trainings, plan);
        comparison.notes.iter().any(|note| note.starts_with("scaler_confound"))
    };

    assert!(is_stamped(&judged()));
    assert!(!is_stamped(&plan(Metric::AccuracyMinusRent)));
}
