use crate::scenario::{AmpMode, Catalog, ContributionMode, Input, Loaded, Override, RewardConfig, load, resolved_ron};

fn loaded(text: &str, overrides: &[Override]) -> Loaded {
    let input = Input {
        label: "ab.ron",
        text,
        overrides,
    };
    load(&input, &Catalog::default()).unwrap_or_else(|report| panic!("{report}"))
}

const TEXT: &str = r#"(
    run: (n_envs: 8),
    policy: (controller: "actor_critic", net_cfg: (hidden_dim: 64), floor: (op: 0.01)),
    reward: contribution(shaped((rent_weight: 0.25))),
    experiment: ab((
        envs_per_arm: 2,
        arms: [
            (id: "as-it-is"),
            (id: "waits", policy: (controller: "wait")),
            (id: "small", policy: (preset: "lstm_small"), reward: contribution(shaped((max_rent: 0.5)))),
            (id: "sparse", reward: contribution(sparse())),
        ],
    )),
)"#;

#[test]
fn an_arm_is_the_scenario_with_its_sections_laid_over() {
    let loaded = loaded(TEXT, &[]);

    let [as_it_is, waits, _, sparse] = [0, 1, 2, 3].map(|arm| &loaded.arms[arm].loaded.scenario);
    assert_eq!(as_it_is.policy, loaded.scenario.policy);
    assert_eq!(as_it_is.run.n_envs, 2);
    assert_eq!(as_it_is.experiment, None);
    assert_eq!(waits.policy.controller, "wait");
    assert_eq!(waits.policy.floor.op, 0.01, "what the arm leaves out stays");
    assert_eq!(sparse.reward.mode(), "sparse");
    assert_eq!(loaded.scenario.run.n_envs, 8);
}

#[test]
fn what_switches_mixed_precision_off_does_so_in_every_arm() {
    let text = TEXT
        .replace(
            "run: (n_envs: 8),",
            "run: (n_envs: 8), training: (amp: bf16), learner: (amp: fp16),",
        )
        .replace("(id: \"waits\",", "(id: \"waits\", learner: (amp: bf16),");
    let mut loaded = loaded(&text, &[]);
    let amp = |loaded: &Loaded| [loaded.scenario.training.amp, loaded.scenario.learner.amp];
    assert_eq!(amp(&loaded.arms[1].loaded), [AmpMode::Bf16; 2]);

    loaded.switch_mixed_precision_off("here");

    let all = || std::iter::once(&loaded).chain(loaded.arms.iter().map(|arm| &arm.loaded));
    assert!(all().all(|loaded| amp(loaded) == [AmpMode::Off; 2]));
    assert!(all().all(|loaded| loaded.mixed_precision_off.as_deref() == Some("here")));
}

#[test]
fn an_equal_choice_is_merged_and_a_preset_lies_under_the_file() {
    let loaded = loaded(TEXT, &[]);

    let small = &loaded.arms[2].loaded.scenario;
    assert_eq!(small.policy.preset.as_deref(), Some("lstm_small"));
    assert_eq!(small.policy.net_cfg.hidden_dim, 64, "the file says so");
    assert_eq!(small.policy.net_cfg.feature_dim, 128, "the preset says so");
    let RewardConfig::Contribution(ContributionMode::Shaped(shaped)) = &small.reward else {
        panic!("{:?}", small.reward)
    };
    assert_eq!((shaped.rent_weight, shaped.max_rent), (0.25, 0.5));
}

#[test]
fn arms_win_over_arguments_of_the_scenario_and_can_be_set_themselves() {
    let over = |path, value: &str| Override::flag("--set", path, value);
    let loaded = loaded(
        TEXT,
        &[
            over("policy.controller", "heuristic"),
            over("experiment.arms.3.policy", "(controller: \"random\")"),
        ],
    );

    let controllers: Vec<&str> = loaded
        .arms
        .iter()
        .map(|arm| arm.loaded.scenario.policy.controller.as_str())
        .collect();
    assert_eq!(controllers, ["heuristic", "wait", "heuristic", "random"]);
}

#[test]
fn the_resolved_scenario_has_the_same_arms() {
    let first = loaded(TEXT, &[]);
    let text = resolved_ron(&first.scenario).unwrap();

    let again = loaded(&text, &[]);

    assert_eq!(again.scenario, first.scenario);
    for (one, other) in first.arms.iter().zip(&again.arms) {
        assert_eq!(one.id, other.id);
        assert_eq!(one.loaded.scenario, other.loaded.scenario, "{}", one.id);
    }
}
