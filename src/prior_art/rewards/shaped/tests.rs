use super::*;
use crate::prior_art::rewards::fixtures::*;
use crate::reward::EpisodeStatus;

/// Pay of the generous reward for a step without a past.
fn paid(step: Step) -> RewardBreakdown {
    first(&shaped(), step)
}

#[test]
fn a_blending_seed_earns_what_it_contributes_less_rent_and_shock() {
    let before = seed(SeedStage::Blending, 3).alpha(0.4).worth(2.0);
    let after = seed(SeedStage::Blending, 4).alpha(0.6);

    assert_terms(
        &paid(Step::new(40).delta(2.0).slot(before, after)),
        &[
            (Term::Attribution, 2.0),
            (Term::Pbrs, 0.0834),
            (Term::ComputeRent, -0.03097070077009168),
            (Term::AlphaShock, -0.0007832),
        ],
    );
}

#[test]
fn a_commit_earns_a_bonus_and_costs_upkeep() {
    let commit = |n| {
        let step = Step::new(40).accuracy(54.0).delta(3.0);
        paid(step.slot(held(n, 3.0), committed_seed()).act(LifecycleOp::Commit, 0))
    };

    assert_terms(
        &commit(5),
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
    let early = commit(2);
    let bonus = early.get(Term::CommitShaping) + early.get(Term::CompletionBonus);
    assert_close(bonus, 0.4 * (0.8 + 0.964538212594903));
}

/// Pruned or out of time, it costs the same.
#[test]
fn losing_a_good_seed_costs_what_it_was_worth() {
    let lost = |op| {
        let step = Step::new(40).delta(2.0).slot(held(6, 2.0), seed(SeedStage::Pruned, 1));
        paid(step.act(op, 0))
    };

    assert_terms(
        &lost(LifecycleOp::Prune),
        &[
            (Term::Attribution, -2.0),
            (Term::Pbrs, -1.785),
            (Term::PruneShaping, -0.4),
            (Term::Intervention, -0.005),
            (Term::AlphaShock, -0.01958),
        ],
    );
    let timed_out = lost(LifecycleOp::Wait);
    assert_close(timed_out.get(Term::Attribution), -2.0);
    assert_close(timed_out.get(Term::PruneShaping), -0.4);
}

/// A harmful seed is charged without discounts, and its removal refunds nothing.
#[test]
fn attribution_discounts_credit_but_not_harm() {
    for (points, accuracy, delta, expected) in [
        (30.0, 55.0, 30.0, 8.571428571428571),
        (-4.0, 55.0, -4.0, -4.0),
        (-40.0, 55.0, -4.0, -10.0),
        (3.0, 49.0, 3.0, 0.0),
    ] {
        let blending = seed(SeedStage::Blending, 2).age(6).worth(points);
        let step = Step::new(8).accuracy(accuracy).delta(delta);
        let paid = paid(step.slot(blending.clone(), blending));
        assert_close(paid.get(Term::Attribution), expected);
    }
    let harmful = seed(SeedStage::Blending, 2).worth(-4.0);
    let pruned = Step::new(40).delta(-4.0).before([harmful]).act(LifecycleOp::Prune, 0);
    assert_eq!(paid(pruned).get(Term::Attribution), 0.0);
}

/// Also on a prune.
#[test]
fn a_hostage_taker_is_fined_under_every_order() {
    for op in [LifecycleOp::Wait, LifecycleOp::Prune, LifecycleOp::SetAlphaTarget] {
        let step = Step::new(40).accuracy(90.0).delta(1.0).before([held(3, 10.0)]);
        assert_close(paid(step.act(op, 0)).get(Term::RatioPenalty), -0.1);
    }
}

#[test]
fn holding_a_good_seed_is_warned_about_unless_it_is_decided() {
    let warning = |n, points, op| {
        let step = Step::new(40).delta(points).before([held(n, points)]);
        paid(step.act(op, 0)).get(Term::HoldingWarning)
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
    let warning = |seed| paid(Step::new(40).before([seed])).get(Term::BlendingWarning);
    for (n, expected) in [(1, -0.15), (4, -0.3), (6, -0.4), (10, -0.4)] {
        let blending = seed(SeedStage::Blending, n);
        assert_close(warning(blending.clone().worth(-1.0)), expected);
        assert_eq!(warning(blending.clone().worth(1.0)), 0.0);
        assert_eq!(warning(blending), 0.0);
    }
}

/// The smallest of the last three attributions, or nothing from a harmful coalition.
#[test]
fn a_committed_seed_earns_its_worst_recent_attribution() {
    let earns = |attribution, last_delta: f64| {
        let config = shaped_with(|config| config.committed_attribution = attribution);
        let mut state = RewardState::default();
        for (n, points) in [(1, 1.0), (2, 2.0), (3, 1.5)] {
            let step = Step::new(39 + n).delta(points);
            pay(
                &config,
                &step.slot(held(n, points), held(n + 1, 0.0)).build(),
                &mut state,
            );
        }
        let commit = Step::new(43).delta(last_delta).slot(held(4, 2.5), committed_seed());
        pay(&config, &commit.act(LifecycleOp::Commit, 0).build(), &mut state);
        let next = Step::new(44).slot(committed_seed(), seed(SeedStage::Committed, 2).alpha(1.0));
        pay(&config, &next.build(), &mut state).get(Term::CommittedAttribution)
    };
    assert_close(earns(CommittedAttribution::Frozen, 2.5), 1.5);
    assert_close(earns(CommittedAttribution::Frozen, -1.0), 0.0);
    assert_close(earns(CommittedAttribution::None, 2.5), 0.0);
}

#[test]
fn a_coalition_that_holds_the_host_to_ransom_is_fined_at_commit() {
    let step = Step::new(40).accuracy(90.0).delta(-2.0);
    let step = step.slot(held(6, 8.0), committed_seed()).act(LifecycleOp::Commit, 0);

    let paid = paid(step.slot(held(6, 8.0), held(7, 8.0)));

    assert_close(paid.get(Term::CommitShaping), -1.2);
    assert_eq!(paid.get(Term::CompletionBonus), 0.0);
    // The acted seed is paid nothing, the other one its discounted contribution.
    assert_close(paid.get(Term::Attribution), 8.0 * 2.0 / (1.0 + 6.0_f64.exp()));
}

#[test]
fn commits_without_evidence_or_worth_are_fined() {
    for (seed, delta, expected) in [
        (held(5, 3.0), None, -1.0),
        (held(5, 0.5), Some(0.5), -0.2),
        (seed(SeedStage::Holding, 5), Some(3.0), -0.2),
        (held(5, 0.05), Some(-9.0), -1.5),
    ] {
        let step = Step::new(40).before([seed]).act(LifecycleOp::Commit, 0);
        let step = delta.into_iter().fold(step, Step::delta);
        assert_close(paid(step).get(Term::CommitShaping), expected);
    }
}

/// The first rule that applies.
#[test]
fn prunes_are_judged_by_age_and_contribution() {
    let blending = |age, points| seed(SeedStage::Blending, 2).age(age).worth(points);
    for (seed, expected) in [
        (blending(3, -9.0), -0.6),
        (seed(SeedStage::Training, 2).age(5), 0.0),
        (blending(9, -0.6), 0.15),
        (blending(9, -0.5), 0.1),
        (blending(9, 0.0), -0.3),
        (blending(9, 2.0), -0.4),
        (blending(9, 50.0), -0.9),
    ] {
        let step = Step::new(40).before([seed]).act(LifecycleOp::Prune, 0);
        assert_close(paid(step).get(Term::PruneShaping), expected);
    }
}

#[test]
fn seeds_that_help_each_other_earn_a_little_more() {
    for (interaction, delta, expected) in [(2.0, 2.0, 0.07615941559557649), (-2.0, 2.0, 0.0), (2.0, -2.0, 0.0)] {
        let helped = held(1, 2.0).interacting(interaction);
        let paid = paid(Step::new(40).delta(delta).before([helped]));
        assert_close(paid.get(Term::Synergy), expected);
    }
}

/// Boost 1.5, contribution 3, ten steps ago; then another helper of boost 4 in this very step.
#[test]
fn who_helped_a_committed_seed_is_credited_in_hindsight() {
    let credit = |now: Option<f64>| {
        let mut state = RewardState::default();
        let stays = |step: Step| step.slot(held(1, 1.0), held(1, 1.0));
        let earlier = stays(stays(stays(Step::new(30))));
        let earlier = earlier.interaction((0, 1), 1.5).interaction((0, 2), -3.0);
        pay(&shaped(), &earlier.build(), &mut state);
        let commit = Step::new(40).accuracy(90.0).delta(3.0).act(LifecycleOp::Commit, 0);
        let commit = stays(stays(commit.slot(held(6, 3.0), committed_seed())));
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
    let pruned = Step::new(30).interaction((0, 1), 1.5).act(LifecycleOp::Prune, 1);
    let pruned = pruned.slot(held(1, 1.0), held(2, 1.0));
    let pruned = pruned.slot(held(1, 1.0), seed(SeedStage::Pruned, 1));
    pay(&shaped(), &pruned.build(), &mut state);

    let commit = Step::new(40).delta(3.0).slot(held(6, 3.0), committed_seed());
    let commit = commit.slot(None, None).act(LifecycleOp::Commit, 0);
    assert_eq!(pay(&shaped(), &commit.build(), &mut state).get(Term::Hindsight), 0.0);
}

#[test]
fn seeds_that_the_engine_removed_are_charged_once_each() {
    assert_terms(&paid(Step::new(40).auto_pruned(2)), &[(Term::AutoPrune, -0.4)]);
}

#[test]
fn the_last_step_pays_for_accuracy() {
    let step = || Step::new(150).accuracy(80.0).last(EpisodeStatus::Truncated);
    assert_terms(&paid(step()), &[(Term::TerminalAccuracy, 4.0)]);
    let without = shaped_with(|config| config.disable_terminal_reward = true);
    assert_terms(&first(&without, step()), &[]);
}

#[test]
fn a_terminated_episode_takes_its_potential_back() {
    for (status, expected) in [(EpisodeStatus::Truncated, 0.039975), (EpisodeStatus::Terminated, -0.96)] {
        let step = Step::new(150).slot(seed(SeedStage::Training, 5), seed(SeedStage::Training, 6));
        assert_close(paid(step.last(status)).get(Term::Pbrs), expected);
    }
}

/// Neither the ratio's fine nor the shock of a vanishing seed.
#[test]
fn anti_gaming_can_be_left_out() {
    let fair = shaped_with(|config| config.disable_anti_gaming = true);
    let step = || {
        let step = Step::new(40).accuracy(90.0).delta(1.0);
        step.slot(held(3, 10.0), seed(SeedStage::Pruned, 1))
            .act(LifecycleOp::Prune, 0)
    };
    let fines = |reward: &Arc<dyn RewardMode>| {
        [Term::RatioPenalty, Term::AlphaShock].map(|term| first(reward, step()).get(term) < 0.0)
    };
    assert_eq!((fines(&shaped()), fines(&fair)), ([true; 2], [false; 2]));
}

/// Otherwise holding is the best of all.
#[test]
fn a_growing_seed_is_not_paid_by_default() {
    let config = mode(ShapedReward::default());
    for (points, op, expected) in [
        (8.0, LifecycleOp::Wait, 0.0),
        (8.0, LifecycleOp::Commit, 0.8),
        (-8.0, LifecycleOp::Wait, -0.8),
    ] {
        let step = Step::new(40).accuracy(90.0).delta(8.0).act(op, 0);
        let paid = first(&config, step.slot(held(6, points), held(7, points)));
        assert_close(paid.get(Term::Attribution), expected);
    }
}

/// Two seeds that are each worth much with the other are not paid twice.
#[test]
fn committed_seeds_are_paid_for_what_they_add_together() {
    let worth = || committed_seed().worth(8.0);
    let step = Step::new(40).committed_gain(-2.0);
    let step = step.slot(worth(), committed_seed()).slot(worth(), committed_seed());
    let paid = first(&mode(ShapedReward::default()), step);
    assert_close(paid.get(Term::CommittedAttribution), -0.2);
}
