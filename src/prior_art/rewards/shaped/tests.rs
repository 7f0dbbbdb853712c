use super::*;
use crate::prior_art::rewards::fixtures::*;
use crate::reward::{EpisodeStatus, MeasuredContribution};

fn commit(n: u32) -> Step {
    Step::new(40)
        .accuracy(54.0)
        .delta(3.0)
        .slot(held(n, 3.0), committed_seed())
        .act(LifecycleOp::Commit, 0)
}

#[test]
fn a_blending_seed_earns_what_it_contributes_less_rent_and_shock() {
    let before = seed(SeedStage::Blending, 3).alpha(0.4).worth(2.0);
    let after = seed(SeedStage::Blending, 4).alpha(0.6);

    let paid = first(&shaped(), Step::new(40).delta(2.0).slot(before, after));

    assert_terms(
        &paid,
        &[
            (Term::Attribution, 2.0),
            (Term::Pbrs, 0.0834),
            (Term::ComputeRent, -0.03097070077009168),
            (Term::AlphaShock, -0.0007832),
        ],
    );
    assert_close(paid.total(), 2.0516460992299086);
}

#[test]
fn a_commit_earns_a_bonus_and_costs_upkeep() {
    let paid = first(&shaped(), commit(5));

    assert_terms(
        &paid,
        &[
            (Term::Attribution, 3.0),
            (Term::Pbrs, 0.006),
            (Term::CommitShaping, 0.8),
            (Term::CompletionBonus, 0.964538212594903),
            (Term::Intervention, -0.01),
            (Term::ComputeRent, -0.04942468202108452),
            (Term::CommittedRent, -0.002),
        ],
    );
    assert_close(paid.total(), 4.709113530573819);

    let early = first(&shaped(), commit(2));
    let bonus = early.get(Term::CommitShaping) + early.get(Term::CompletionBonus);
    assert_close(bonus, 0.4 * (0.8 + 0.964538212594903));
}

#[test]
fn pruning_a_good_seed_costs_what_it_was_worth() {
    let step = Step::new(40)
        .delta(2.0)
        .slot(held(6, 2.0), seed(SeedStage::Pruned, 1))
        .act(LifecycleOp::Prune, 0);

    let paid = first(&shaped(), step);

    assert_terms(
        &paid,
        &[
            (Term::Attribution, -2.0),
            (Term::Pbrs, -1.785),
            (Term::PruneShaping, -0.4),
            (Term::Intervention, -0.005),
            (Term::AlphaShock, -0.01958),
        ],
    );
    assert_close(paid.total(), -4.20958);
}

/// A harmful seed is charged without discounts, and its removal refunds nothing.
#[test]
fn attribution_discounts_credit_but_not_harm() {
    let attribution = |age, c, accuracy, delta| {
        let blending = seed(SeedStage::Blending, 2).age(age).worth(c);
        let step = Step::new(8)
            .accuracy(accuracy)
            .delta(delta)
            .slot(blending.clone(), blending);
        first(&shaped(), step).get(Term::Attribution)
    };
    assert_close(attribution(6, 30.0, 55.0, 30.0), 8.571428571428571);
    assert_close(attribution(6, -4.0, 55.0, -4.0), -4.0);
    assert_close(attribution(6, -40.0, 55.0, -4.0), -10.0);
    assert_close(attribution(6, 3.0, 49.0, 3.0), 0.0);

    let harmful = seed(SeedStage::Blending, 2).worth(-4.0);
    let pruned = Step::new(40).delta(-4.0).before([harmful]).act(LifecycleOp::Prune, 0);
    assert_eq!(first(&shaped(), pruned).get(Term::Attribution), 0.0);
}

/// Also on a prune.
#[test]
fn a_hostage_taker_is_fined_under_every_order() {
    for op in [LifecycleOp::Wait, LifecycleOp::Prune, LifecycleOp::SetAlphaTarget] {
        let step = Step::new(40)
            .accuracy(90.0)
            .delta(1.0)
            .before([held(3, 10.0)])
            .act(op, 0);
        assert_close(first(&shaped(), step).get(Term::RatioPenalty), -0.1);
    }
}

#[test]
fn holding_a_good_seed_is_warned_about_unless_it_is_decided() {
    let warning = |n, c, op| {
        let step = Step::new(40).delta(c).before([held(n, c)]).act(op, 0);
        first(&shaped(), step).get(Term::HoldingWarning)
    };
    for (n, expected) in (1..=7).zip([0.0, -0.1, -0.15, -0.2, -0.25, -0.3, -0.3]) {
        assert_close(warning(n, 2.0, LifecycleOp::Wait), expected);
        assert_close(warning(n, 2.0, LifecycleOp::SetAlphaTarget), expected);
        assert_eq!(warning(n, 2.0, LifecycleOp::Commit), 0.0);
        assert_eq!(warning(n, 2.0, LifecycleOp::Prune), 0.0);
        assert_eq!(warning(n, -2.0, LifecycleOp::Wait), 0.0);
    }
}

#[test]
fn blending_a_harmful_seed_is_warned_about() {
    let warning = |n, seed: SeedView| {
        let step = Step::new(40).before([SeedView {
            epochs_in_stage: n,
            ..seed
        }]);
        first(&shaped(), step).get(Term::BlendingWarning)
    };
    for (n, expected) in [(1, -0.15), (4, -0.3), (6, -0.4), (10, -0.4)] {
        assert_close(warning(n, seed(SeedStage::Blending, 1).worth(-1.0)), expected);
        assert_eq!(warning(n, seed(SeedStage::Blending, 1).worth(1.0)), 0.0);
        assert_eq!(warning(n, seed(SeedStage::Blending, 1)), 0.0);
    }
}

#[test]
fn a_refused_commit_is_rewarded_like_waiting() {
    let step = || Step::new(40).delta(2.0).slot(held(4, 2.0), held(5, 2.0));
    let refused = first(&shaped(), step().reject(LifecycleOp::Commit));
    assert_eq!(refused, first(&shaped(), step()));
}

/// Discounted attribution, warning, commit bonuses, intervention and, from the step after a commit, committed seed rent over
/// 100 steps with a = c = 2.
fn hold_or_commit(committed_attribution: CommittedAttribution, commits: bool) -> f64 {
    let config = shaped_with(|config| config.committed_attribution = committed_attribution);
    let counted = [
        Term::Attribution,
        Term::CommittedAttribution,
        Term::HoldingWarning,
        Term::CommitShaping,
        Term::CompletionBonus,
        Term::Intervention,
    ];
    let mut state = RewardState::default();
    let steps = (0..100).map(|k| {
        let step = Step::new(51 + k).delta(2.0);
        let step = match (commits, k) {
            (false, _) => step.slot(held(5 + k, 2.0), held(6 + k, 2.0)),
            (true, 0) => step.slot(held(5, 2.0), committed_seed()).act(LifecycleOp::Commit, 0),
            (true, _) => {
                let at = |n| seed(SeedStage::Committed, n).alpha(1.0);
                step.slot(at(k), at(k + 1))
            }
        };
        let paid = pay(&config, &step.build(), &mut state);
        let rent = if k > 0 { paid.get(Term::CommittedRent) } else { 0.0 };
        GAMMA.powi(k as i32) * (rent + counted.iter().map(|&term| paid.get(term)).sum::<f64>())
    });
    steps.sum()
}

#[test]
fn committing_is_worth_more_than_holding_for_ever() {
    assert_close(hold_or_commit(CommittedAttribution::Frozen, false), 134.08805159315233);
    assert_close(hold_or_commit(CommittedAttribution::Frozen, true), 159.19067179089987);
    assert_close(hold_or_commit(CommittedAttribution::None, true), 3.4988463871911963);
}

/// The least of the last three attributions, or nothing from a harmful coalition.
#[test]
fn a_committed_seed_earns_its_worst_recent_attribution() {
    let frozen = |last_delta: f64| {
        let mut state = RewardState::default();
        for (step, points) in [(40, 1.0), (41, 2.0), (42, 1.5)] {
            pay(
                &shaped(),
                &Step::new(step)
                    .delta(points)
                    .slot(held(step - 39, points), held(step - 38, 0.0))
                    .build(),
                &mut state,
            );
        }
        let commit = Step::new(43).delta(last_delta).slot(held(4, 2.5), committed_seed());
        pay(&shaped(), &commit.act(LifecycleOp::Commit, 0).build(), &mut state);
        let next = Step::new(44).slot(committed_seed(), seed(SeedStage::Committed, 2).alpha(1.0));
        pay(&shaped(), &next.build(), &mut state).get(Term::CommittedAttribution)
    };
    assert_close(frozen(2.5), 1.5);
    assert_close(frozen(-1.0), 0.0);
}

#[test]
fn a_coalition_that_holds_the_host_to_ransom_is_fined_at_commit() {
    let step = Step::new(40)
        .accuracy(90.0)
        .delta(-2.0)
        .slot(held(6, 8.0), committed_seed())
        .slot(held(6, 8.0), held(7, 8.0))
        .act(LifecycleOp::Commit, 0);

    let paid = first(&shaped(), step);

    assert_close(paid.get(Term::CommitShaping), -1.2);
    assert_eq!(paid.get(Term::CompletionBonus), 0.0);
    // The acted seed is paid nothing, the other one its discounted contribution.
    assert_close(paid.get(Term::Attribution), 8.0 * 2.0 / (1.0 + 6.0_f64.exp()));
}

#[test]
fn commits_without_evidence_or_worth_are_fined() {
    let shaping = |seed: SeedView, delta: Option<f64>| {
        let step = Step::new(40).before([seed]).act(LifecycleOp::Commit, 0);
        let mut inputs = step.build();
        inputs.delta_cf = delta;
        pay(&shaped(), &inputs, &mut RewardState::default()).get(Term::CommitShaping)
    };
    assert_close(shaping(held(5, 3.0), None), -1.0);
    assert_close(shaping(held(5, 0.5), Some(0.5)), -0.2);
    assert_close(shaping(seed(SeedStage::Holding, 5), Some(3.0)), -0.2);
    assert_close(shaping(held(5, 0.05), Some(-9.0)), -1.5);
}

/// The first rule that applies.
#[test]
fn prunes_are_judged_by_age_and_contribution() {
    let shaping = |seed: SeedView| {
        let step = Step::new(40).before([seed]).act(LifecycleOp::Prune, 0);
        first(&shaped(), step).get(Term::PruneShaping)
    };
    let blending = |age, points| seed(SeedStage::Blending, 2).age(age).worth(points);
    let training = |age| seed(SeedStage::Training, 2).age(age);

    assert_close(shaping(blending(3, -9.0)), -0.6);
    assert_eq!(shaping(training(5)), 0.0);
    assert_close(shaping(blending(9, -0.6)), 0.15);
    assert_close(shaping(blending(9, -0.5)), 0.1);
    assert_close(shaping(blending(9, 0.0)), -0.3);
    assert_close(shaping(blending(9, 2.0)), -0.4);
    assert_close(shaping(blending(9, 50.0)), -0.9);
}

#[test]
fn seeds_that_help_each_other_earn_a_little_more() {
    let synergy = |interaction, delta| {
        let step = Step::new(40)
            .delta(delta)
            .before([held(1, 2.0).interacting(interaction)]);
        first(&shaped(), step).get(Term::Synergy)
    };
    assert_close(synergy(2.0, 2.0), 0.07615941559557649);
    assert_eq!(synergy(-2.0, 2.0), 0.0);
    assert_eq!(synergy(2.0, -2.0), 0.0);
}

/// Boost 1.5, contribution 3, ten steps ago; then another helper of boost 4 in this very step.
#[test]
fn who_helped_a_committed_seed_is_credited_in_hindsight() {
    let credit = |now: Option<f64>| {
        let mut state = RewardState::default();
        let three = || [held(1, 1.0), held(1, 1.0), held(1, 1.0)];
        let earlier = Step::new(30)
            .before(three())
            .interaction((0, 1), 1.5)
            .interaction((0, 2), -3.0);
        let mut earlier = earlier.build();
        for slot in &mut earlier.slots {
            slot.after.clone_from(&slot.before);
        }
        pay(&shaped(), &earlier, &mut state);
        let commit = Step::new(40)
            .accuracy(90.0)
            .delta(3.0)
            .slot(held(6, 3.0), committed_seed())
            .slot(held(6, 1.0), held(7, 1.0))
            .slot(held(6, 1.0), held(7, 1.0))
            .act(LifecycleOp::Commit, 0);
        let commit = match now {
            Some(points) => commit.interaction((2, 0), points),
            None => commit,
        };
        pay(&shaped(), &commit.build(), &mut state).get(Term::Hindsight)
    };
    assert_close(credit(None), 0.04012724179267146);
    assert_close(credit(Some(4.0)), 0.123492702493887);
}

#[test]
fn a_helper_that_was_pruned_is_not_credited() {
    let mut state = RewardState::default();
    let pruned = Step::new(30)
        .slot(held(1, 1.0), held(2, 1.0))
        .slot(held(1, 1.0), seed(SeedStage::Pruned, 1))
        .interaction((0, 1), 1.5)
        .act(LifecycleOp::Prune, 1);
    pay(&shaped(), &pruned.build(), &mut state);

    let commit = Step::new(40).delta(3.0).slot(held(6, 3.0), committed_seed());
    let commit = commit.slot(None, None).act(LifecycleOp::Commit, 0);
    assert_eq!(pay(&shaped(), &commit.build(), &mut state).get(Term::Hindsight), 0.0);
}

#[test]
fn seeds_that_the_engine_removed_are_charged_once_each() {
    let paid = first(&shaped(), Step::new(40).auto_pruned(2));
    assert_terms(&paid, &[(Term::AutoPrune, -0.4)]);
}

#[test]
fn the_last_step_pays_for_accuracy() {
    let step = || Step::new(150).accuracy(80.0).last(EpisodeStatus::Truncated);
    assert_terms(&first(&shaped(), step()), &[(Term::TerminalAccuracy, 4.0)]);
    let without = shaped_with(|config| config.disable_terminal_reward = true);
    assert_terms(&first(&without, step()), &[]);
}

#[test]
fn a_terminated_episode_takes_its_potential_back() {
    let step = |status| {
        Step::new(150)
            .slot(seed(SeedStage::Training, 5), seed(SeedStage::Training, 6))
            .last(status)
    };
    let pbrs = |status| first(&shaped(), step(status)).get(Term::Pbrs);
    assert_close(pbrs(EpisodeStatus::Truncated), 0.039975);
    assert_close(pbrs(EpisodeStatus::Terminated), -0.96);
}

#[test]
fn contributions_are_reused_while_they_are_fresh_enough() {
    let config = shaped_with(|config| config.max_staleness = 1);
    let aged = |age| SeedView {
        contribution: Some(MeasuredContribution { points: 2.0, age }),
        ..seed(SeedStage::Blending, 3)
    };
    let attribution = |config: &Arc<dyn RewardMode>, age| {
        first(config, Step::new(40).slot(aged(age), aged(age))).get(Term::Attribution)
    };
    assert_close(attribution(&config, 1), 2.0);
    assert_eq!(attribution(&config, 2), 0.0);
    assert_eq!(attribution(&shaped(), 1), 0.0);
}

/// Otherwise holding is the best of all.
#[test]
fn a_growing_seed_is_not_paid_by_default() {
    let config = mode(ShapedReward::default());
    let step = |op| {
        Step::new(40)
            .accuracy(90.0)
            .delta(8.0)
            .slot(held(6, 8.0), held(7, 8.0))
            .act(op, 0)
    };
    assert_close(first(&config, step(LifecycleOp::Wait)).get(Term::Attribution), 0.0);
    assert_close(first(&config, step(LifecycleOp::Commit)).get(Term::Attribution), 0.8);

    let harmful = Step::new(40).slot(held(6, -8.0), held(7, -8.0));
    assert_close(first(&config, harmful).get(Term::Attribution), -0.8);
}

#[test]
fn a_seed_whose_time_is_up_costs_what_its_prune_costs() {
    let gone = |op| {
        Step::new(40)
            .delta(2.0)
            .slot(held(6, 2.0), seed(SeedStage::Pruned, 1))
            .act(op, 0)
    };
    let pruned = first(&shaped(), gone(LifecycleOp::Prune));
    let lost = first(&shaped(), gone(LifecycleOp::Wait));
    for term in [Term::Attribution, Term::PruneShaping] {
        assert!(pruned.get(term) < 0.0);
        assert_close(lost.get(term), pruned.get(term));
    }
}

/// Two seeds that are each worth much with the other are not paid twice.
#[test]
fn committed_seeds_are_paid_for_what_they_add_together() {
    let config = mode(ShapedReward::default());
    let step = Step::new(40).committed_gain(-2.0);
    let step = step
        .slot(committed_seed().worth(8.0), committed_seed())
        .slot(committed_seed().worth(8.0), committed_seed());
    assert_close(first(&config, step).get(Term::CommittedAttribution), -0.2);
}
