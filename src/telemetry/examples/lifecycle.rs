//! What happens to a seed, and what it is worth.

use super::*;

pub fn germinated() -> SeedGerminated {
    SeedGerminated {
        blueprint: "norm".into(),
        params: 266,
        gate_params: 0,
        style: GerminationStyle::SigmoidAdd,
        tempo: Tempo::Standard,
        tempo_epochs: 5,
        alpha_target: Num(1.0),
        alpha_curve: AlphaCurve::Sigmoid,
        accuracy: Num(48.5),
        rng_seed: "9876543210".into(),
        action_id: context().action_id(),
    }
}

pub fn stage_changed() -> SeedStageChanged {
    SeedStageChanged {
        from: SeedStage::Training,
        to: SeedStage::Blending,
        alpha: Num(0.0),
        epochs_in_stage: 3,
        accuracy_delta: Num(-0.5),
        curve: Some(AlphaCurve::Sigmoid),
        gradient_ratio: None,
        vanishing: None,
        exploding: None,
        cause: StageCause::Gate,
        action_id: None,
    }
}

pub fn alpha_retargeted() -> SeedAlphaRetargeted {
    SeedAlphaRetargeted {
        from: Num(1.0),
        to: Num(0.5),
        steps: 8,
        speed: AlphaSpeed::Slow,
        curve: AlphaCurve::Sigmoid,
        steepness: Some(Num(12.0)),
        operator_from: AlphaAlgorithm::Add,
        operator_to: AlphaAlgorithm::Multiply,
        initiator: Initiator::Policy,
        action_id: Some(context().action_id()),
    }
}

pub fn gate_evaluated() -> SeedGateEvaluated {
    let result = GateResult {
        level: GateLevel::G2,
        passed: false,
        score: 0.5,
        checks: [
            GateCheck {
                id: "improvement",
                value: Some(0.25),
                threshold: Some(0.5),
                passed: false,
            },
            GateCheck {
                id: "ready",
                value: None,
                threshold: None,
                passed: true,
            },
        ]
        .into_iter()
        .collect(),
    };
    SeedGateEvaluated::new(&result, SeedStage::Blending)
}

pub fn fossilized() -> SeedFossilized {
    SeedFossilized {
        blueprint: "norm".into(),
        params_added: 266,
        alpha: Num(1.0),
        age_epochs: 12,
        total_improvement: Num(3.5),
        blending_delta: Some(Num(1.25)),
        contribution: Some(Num(2.25)),
        contributing: true,
        action_id: context().action_id(),
    }
}

pub fn pruned() -> SeedPruned {
    SeedPruned {
        blueprint: Some("attention".into()),
        reason: PruneReason::SeedNonfinite,
        initiator: Initiator::Auto,
        stage: SeedStage::Training,
        age_epochs: 4,
        total_improvement: Num(-1.0),
        blending_delta: None,
        contribution: None,
        action_id: None,
    }
}

pub fn matrix() -> CounterfactualMatrix {
    let row = |mask, accuracy, discordant| CoalitionRow {
        mask: BigInteger(mask),
        accuracy: Num(accuracy),
        loss: Num(1.5),
        discordant,
    };
    CounterfactualMatrix {
        slots: vec![SLOT, OTHER_SLOT],
        seed_ids: vec!["e0.r0c0.0".into(), "e0.r0c1.0".into()],
        alphas: vec![Num(1.0), Num(0.5)],
        rows: vec![
            row(3, 57.0, None),
            row(2, 52.0, Some((6, 1))),
            row(1, 53.0, Some((5, 1))),
            row(0, 50.0, Some((9, 2))),
        ],
        samples: 100,
        coverage: Coverage::Full,
        dropped: vec![],
        total_ms: Num(12.5),
        val_flops: 3_000_000,
        val_flops_naive: 8_000_000,
    }
}

pub fn shapley() -> Shapley {
    let exactly = |mean| ShapleyValue {
        mean: Num(mean),
        std: Num(0.0),
        n: 1,
    };
    Shapley {
        slots: vec![SLOT, OTHER_SLOT],
        seed_ids: vec!["e0.r0c0.0".into(), "e0.r0c1.0".into()],
        values: vec![exactly(4.0), exactly(3.0)],
        method: ShapleyMethod::Exact,
        efficiency_gap: Num(0.0),
    }
}

pub fn interactions() -> Interactions {
    Interactions {
        pairs: vec![PairInteraction {
            a: SLOT,
            b: OTHER_SLOT,
            value: Num(2.0),
        }],
    }
}
