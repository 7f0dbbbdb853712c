//! The declarations, the serde types, the reader and the printer agree with each other.

pub mod catalog;

use std::ops::Bound;

use proptest::prelude::*;

use self::catalog::catalog;
use super::check::check;
use super::wording::choices;
use super::*;
use crate::files::ron_options;
use crate::schema::{Content, Field, Kind, Names};

/// Draws choices for random scenarios.
struct Draw(u64);

impl Draw {
    /// SplitMix64.
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }
}

/// A random valid value of `kind` as RON.
fn random_ron(kind: &'static Kind, catalog: &Catalog, draw: &mut Draw) -> String {
    match kind {
        Kind::Settings(_) => "()".into(),
        Kind::Bool => (draw.below(2) == 0).to_string(),
        Kind::Integer { min, max } => {
            let span = (max - min).min(1000) as u64;
            (min + i128::from(draw.below(span + 1))).to_string()
        }
        Kind::Float(range) => {
            let end = |bound, unbounded| match bound {
                Bound::Included(end) | Bound::Excluded(end) => end,
                Bound::Unbounded => unbounded,
            };
            let low = f64::max(end(range.0, -3.0), -3.0);
            let high = f64::min(end(range.1, low + 7.0), low + 7.0);
            let share = (1 + draw.below(998)) as f64 / 1000.0;
            format!("{:?}", low + (high - low) * share)
        }
        Kind::Text(names) => match (choices(*names, catalog), names) {
            (Some(choices), _) => format!("{:?}", choices[draw.below(choices.len() as u64) as usize]),
            (None, Names::Form { accepts, .. }) => {
                let samples = ["r1c2", "cuda:1", "a.b-c_1"];
                format!(
                    "{:?}",
                    samples.into_iter().find(|text| accepts(text)).expect("a sample")
                )
            }
            (None, _) => "\"a \\\"quoted\\\" \\\\ path\\n\"".into(),
        },
        Kind::Optional(_) if draw.below(3) == 0 => "None".into(),
        Kind::Optional(inner) if draw.below(2) == 0 => {
            format!("Some({})", random_ron(inner, catalog, draw))
        }
        Kind::Optional(inner) => random_ron(inner, catalog, draw),
        Kind::List(inner) => {
            let items: Vec<_> = (0..draw.below(3)).map(|_| random_ron(inner, catalog, draw)).collect();
            format!("[{}]", items.join(", "))
        }
        Kind::Pair(inner) => {
            let first = random_ron(inner, catalog, draw);
            format!("({first}, {})", random_ron(inner, catalog, draw))
        }
        Kind::Record(fields) => random_record(fields, catalog, draw),
        Kind::Written => "(a: [1, \"b\"])".into(),
        Kind::Choice(variants) => {
            let variant = &variants[draw.below(variants.len() as u64) as usize];
            match variant.content {
                Content::Nothing => variant.name.into(),
                Content::Fields(fields) => {
                    format!("{}{}", variant.name, random_record(fields, catalog, draw))
                }
                Content::Items(items) => {
                    let items: Vec<_> = items.iter().map(|item| random_ron(&item.kind, catalog, draw)).collect();
                    format!("{}({})", variant.name, items.join(", "))
                }
            }
        }
    }
}

fn random_record(fields: &'static [Field], catalog: &Catalog, draw: &mut Draw) -> String {
    let mut written = Vec::new();
    for field in fields {
        if field.must_be_written() || draw.below(2) == 0 {
            let value = random_ron(&field.kind, catalog, draw);
            written.push(format!("{}: {value}", field.name));
        }
    }
    format!("({})", written.join(", "))
}

fn scenario_of(text: &str, catalog: &Catalog) -> Scenario {
    let root = reader::read(text, 0).expect("reads").root;
    let checked = check(&SCENARIO, &root, catalog, &[text], &|_| false);
    assert_eq!(checked.problems, [], "in {text}");
    let clean = checked.clean.expect("nothing was removed").to_string();
    ron_options()
        .from_str(&clean)
        .unwrap_or_else(|error| panic!("{error} in {clean}"))
}

proptest! {
    /// The serde types read everything that the declarations allow; printing and reading it again changes nothing.
    #[test]
    fn a_random_scenario_is_read_and_survives_printing(seed: u64) {
        let mut catalog = catalog();
        catalog.rewards.push(Entry::new("own", "an application's"));
        catalog.data.push(Entry::new("own", "an application's"));
        let text = random_ron(&SCENARIO, &catalog, &mut Draw(seed));
        let scenario = scenario_of(&text, &catalog);
        let printed = resolved_ron(&scenario).expect("prints");
        prop_assert_eq!(scenario_of(&printed, &catalog), scenario);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC*") {
        let _ = reader::read(&text, 0);
    }

    #[test]
    fn no_text_of_ron_tokens_makes_loading_panic(text in r#"(\(|\)|\[|\]|,|:|run|task|preset|Some|"|'|0x|-|1e5|\.| |//|/\*|\n|r#|é|None|rounds: |custom)*"#) {
        let input = Input { label: "x.ron", text: &text, overrides: &[] };
        if let Err(report) = load(&input, &catalog()) {
            prop_assert!(!report.to_string().is_empty());
        }
    }

    #[test]
    fn no_override_makes_loading_panic(field in 0usize..150, value in "\\PC{0,12}") {
        let paths = field_paths::<Scenario>();
        let over = Override::flag("--set", &paths[field % paths.len()], value);
        let input = Input { label: "x.ron", text: "()", overrides: &[over] };
        if let Err(report) = load(&input, &catalog()) {
            prop_assert!(!report.to_string().is_empty());
        }
    }
}

/// Paths of all fields that serde writes, for a value whose choices have the given content.
fn written_fields(node: &tree::Node) -> Vec<String> {
    match &node.value {
        tree::Value::Record(_, fields) => fields.iter().map(|(key, _)| key.text.clone()).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn fields_are_described_in_the_order_in_which_they_are_written() {
    fn compare(kind: &Kind, node: &tree::Node, path: &str) {
        if let Kind::Record(fields) = kind {
            let names: Vec<_> = fields.iter().map(|field| field.name).collect();
            assert_eq!(written_fields(node), names, "at `{path}`");
            for field in fields.iter() {
                let below = node.field(field.name).expect("compared above");
                compare(&field.kind, below, &format!("{path}.{}", field.name));
            }
        }
    }
    let text = resolved_ron(&Scenario::default()).expect("prints");
    compare(&SCENARIO, &reader::read(&text, 0).expect("reads").root, "");
}

#[test]
fn every_field_is_explained() {
    let catalog = catalog();
    for path in field_paths::<Scenario>() {
        let found = paths::lookup(&SCENARIO, &path).expect("a listed path");
        assert!(found.doc.ends_with('.'), "`{path}` has no proper doc");
        assert_eq!(
            explain::<Scenario>("", &path, &catalog).expect("explains").doc,
            found.doc
        );
    }
}

#[test]
fn overrides_win_over_the_file_the_file_over_the_preset_the_preset_over_the_defaults() {
    let overrides = [Override::flag("--envs", "run.n_envs", "5")];
    let input = Input {
        label: "dir/my run.ron",
        text: "(preset: \"digits\", run: (rounds: 7))",
        overrides: &overrides,
    };
    let loaded = load(&input, &catalog()).expect("sound");
    let run = &loaded.scenario.run;
    assert_eq!((run.rounds, run.n_envs, run.max_steps, run.seed), (7, 5, Some(60), 42));
    assert_eq!(loaded.scenario.name, "my-run");
    let origin = |path: &str| loaded.origins.get(path).map(String::as_str);
    assert_eq!(origin("run.rounds"), Some("dir/my run.ron:1:34"));
    assert_eq!(origin("run.n_envs"), Some("--envs 5"));
    assert_eq!(origin("run.max_steps"), Some("preset digits"));
    assert_eq!(origin("run.seed"), None);
}

#[test]
fn a_task_takes_its_preset_s_values_unless_the_scenario_says_otherwise() {
    let overrides = [
        Override::parse("task.batch_size=32").expect("an assignment"),
        Override::parse("task.preset=Digits_Minimal").expect("an assignment"),
    ];
    let input = Input {
        label: "x.ron",
        text: "(lifecycle: (slots: [\"r0c2\", \"r0c0\"], max_seeds: 1))",
        overrides: &overrides,
    };
    let loaded = load(&input, &catalog()).expect("sound");
    let task = &loaded.task;
    assert_eq!(task.name, "digits_minimal");
    assert_eq!((task.batch_size, task.val_batch_size), (32, Some(128)));
    assert_eq!((task.max_steps, task.max_seeds), (100, 1));
    let slots: Vec<_> = loaded.slots.iter().map(|slot| slot.to_string()).collect();
    assert_eq!(slots, ["r0c0", "r0c2"]);
}

#[test]
fn attribution_that_cannot_be_evaluated_is_refused() {
    let report = |text: &str| {
        let input = Input {
            label: "x.ron",
            text,
            overrides: &[],
        };
        load(&input, &catalog()).err().map(|report| report.to_string())
    };
    let message = report("(attribution: (shapley_permutations: 7))").expect("refused");
    assert!(message.contains("7 is odd"), "{message}");
}

#[test]
fn a_slot_far_off_still_has_a_nearest_one() {
    let input = Input {
        label: "x.ron",
        text: "(lifecycle: (slots: [\"r65535c65535\"]))",
        overrides: &[],
    };
    let report = load(&input, &catalog()).expect_err("the host has no such slot");
    assert!(report.to_string().contains("did you mean"), "{report}");
}

#[test]
fn reward_fields_are_set_one_by_one_within_the_mode_that_is_chosen() {
    let load_with = |text: &str, sets: &[&str]| {
        let overrides: Vec<_> = sets
            .iter()
            .map(|set| Override::parse(set).expect("an assignment"))
            .collect();
        let input = Input {
            label: "x.ron",
            text,
            overrides: &overrides,
        };
        load(&input, &catalog()).map(|loaded| loaded.scenario)
    };

    let scenario = load_with("(reward: contribution(committed((loan: 0.5))))", &["reward.rent=0.25"]).expect("sound");
    let committed = CommittedReward {
        loan: 0.5,
        rent: 0.25,
        ..CommittedReward::default()
    };
    assert_eq!(
        scenario.reward,
        RewardConfig::Contribution(ContributionMode::Committed(committed))
    );

    let scenario = load_with("(reward: contribution(sparse()))", &["reward.param_budget=1000"]).expect("sound");
    let sparse = SparseReward {
        param_budget: 1000,
        ..SparseReward::default()
    };
    assert_eq!(
        scenario.reward,
        RewardConfig::Contribution(ContributionMode::Sparse(sparse))
    );

    assert!(load_with("(reward: loss(()))", &["reward.rent=0.25"]).is_err());
}

#[test]
fn every_reward_is_read_as_it_is_printed() {
    let rewards = [
        RewardConfig::Contribution(ContributionMode::Committed(CommittedReward::default())),
        RewardConfig::Contribution(ContributionMode::Sparse(SparseReward::default())),
        RewardConfig::Loss(LossReward::default()),
    ];
    for reward in rewards {
        let text = ron_options().to_string(&reward).expect("prints");
        let scenario = scenario_of(&format!("(reward: {text})"), &catalog());
        assert_eq!(scenario.reward, reward);
    }
}

#[test]
fn a_policy_preset_lies_under_the_file_and_over_a_training_preset_that_may_choose_it() {
    let widths = |text: &str, overrides: &[Override]| {
        let input = Input {
            label: "x.ron",
            text,
            overrides,
        };
        let policy = load(&input, &catalog()).expect("sound").scenario.policy;
        (policy.net_cfg.feature_dim, policy.net_cfg.hidden_dim)
    };
    assert_eq!(widths("(preset: \"digits\")", &[]), (128, 128));

    let small = [Override::flag("--set", "policy.preset", "lstm_small")];
    let text = "(preset: \"cifar_steady\", policy: (net_cfg: (hidden_dim: 64)))";
    assert_eq!((widths(text, &[]), widths(text, &small)), ((512, 64), (128, 64)));
}

fn help_of(text: &str, overrides: &[Override]) -> Option<String> {
    let input = Input {
        label: "x.ron",
        text,
        overrides,
    };
    let report = load(&input, &catalog()).expect_err("a mistake");
    report.problems[0].help.clone()
}

#[test]
fn a_hint_names_the_sibling_before_a_field_far_away_and_never_the_place_itself() {
    let sibling = explain::<Scenario>("", "run.round", &catalog()).expect_err("a slip");
    assert_eq!(sibling.suggestion.as_deref(), Some("run.rounds"));
    let mode = help_of("(reward: contribution(sparse((rent: 2.0))))", &[]);
    assert_eq!(mode.as_deref(), Some("`rent` belongs to `committed(..)`"));
    let inner = help_of("()", &[Override::flag("--reward", "reward", "sparse")]);
    assert_eq!(inner.as_deref(), Some("did you mean `contribution(sparse())`?"));
}

#[test]
fn members_of_choices_are_explained_with_their_own_fields_alone() {
    let catalog = catalog();
    let fields = |path| {
        let explanation = explain::<Scenario>("", path, &catalog).expect("a member");
        explanation
            .fields
            .iter()
            .map(|field| field.name.clone())
            .collect::<Vec<_>>()
    };

    assert!(fields("task.host.cnn").contains(&"n_blocks".into()));
    assert!(!fields("task.host.cnn").contains(&"heads".into()));
    assert_eq!(fields("reward.contribution.committed"), ["weight", "rent", "loan"]);
    let contribution = explain::<Scenario>("", "reward.contribution", &catalog).expect("a member");
    assert!(contribution.members.iter().any(|member| member.form == "committed(..)"));
}

#[test]
fn a_scenario_with_its_task_written_out_depends_on_no_preset() {
    let load_with = |text: &str, sets: &[&str], catalog: &Catalog| {
        let overrides: Vec<_> = sets
            .iter()
            .map(|set| Override::parse(set).expect("an assignment"))
            .collect();
        let input = Input {
            label: "x.ron",
            text,
            overrides: &overrides,
        };
        load(&input, catalog)
            .map_err(|report| report.to_string())
            .expect("sound")
    };
    let known = catalog();
    let written =
        "(task: preset(\"digits_baseline\", (batch_size: 16)), run: (max_steps: 7), lifecycle: (slots: [\"r0c1\"]))";
    let first = load_with(written, &[], &known);
    let resolved = resolved_ron(&first.scenario).expect("prints");

    let nothing = Catalog {
        tasks: Vec::new(),
        ..catalog()
    };
    let again = load_with(&resolved, &[], &nothing);
    assert_eq!((&again.task, &again.slots), (&first.task, &first.slots));
    assert_eq!(again.scenario, first.scenario);

    let changed = load_with(
        &resolved,
        &["task.batch_size=32", "task.host.base_channels=2"],
        &nothing,
    );
    assert_eq!(
        (changed.task.name.as_str(), changed.task.batch_size),
        ("digits_baseline", 32)
    );
    let other = load_with(&resolved, &["task.preset=digits_minimal"], &known);
    assert_eq!(
        (other.task.name.as_str(), other.task.batch_size),
        ("digits_minimal", 64)
    );
}
