//! The declarations, the serde types, the reader and the printer agree with each other.

pub mod catalog;

use std::ops::Bound;

use proptest::prelude::*;
use serde::Deserialize;

use self::catalog::catalog;
use super::check::check;
use super::wording::choices;
use super::*;
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
                let sample = ["r1c2", "cuda:1", "a.b-c_1"].into_iter().find(|text| accepts(text));
                format!("{:?}", sample.expect("a sample"))
            }
            (None, _) => "\"a \\\"quoted\\\" \\\\ path\\n\"".into(),
        },
        Kind::Optional(_) if draw.below(3) == 0 => "None".into(),
        Kind::Optional(inner) if draw.below(2) == 0 => format!("Some({})", random_ron(inner, catalog, draw)),
        Kind::Optional(inner) => random_ron(inner, catalog, draw),
        Kind::List(inner) => {
            let count = draw.below(3) as usize;
            format!("[{}]", random_items(std::iter::repeat_n(*inner, count), catalog, draw))
        }
        Kind::Record(fields) => random_record(fields, catalog, draw),
        Kind::Written => "(a: [1, \"b\"])".into(),
        Kind::Choice(variants) => {
            let variant = &variants[draw.below(variants.len() as u64) as usize];
            match variant.content {
                Content::Nothing => variant.name.into(),
                Content::Fields(fields) => format!("{}{}", variant.name, random_record(fields, catalog, draw)),
                Content::Items(items) => {
                    let items = random_items(items.iter().map(|item| &item.kind), catalog, draw);
                    format!("{}({items})", variant.name)
                }
            }
        }
    }
}

fn random_items(kinds: impl IntoIterator<Item = &'static Kind>, catalog: &Catalog, draw: &mut Draw) -> String {
    let items: Vec<_> = kinds.into_iter().map(|kind| random_ron(kind, catalog, draw)).collect();
    items.join(", ")
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

/// Loads a scenario with settings of the command line.
fn load_with(text: &str, sets: &[&str], catalog: &Catalog) -> Result<Loaded, Report> {
    let parse = |set: &&str| Override::parse(set).expect("an assignment");
    let overrides: Vec<_> = sets.iter().map(parse).collect();
    let input = Input {
        label: "x.ron",
        text,
        overrides: &overrides,
    };
    load(&input, catalog)
}

fn scenario_of(text: &str, catalog: &Catalog) -> Scenario {
    let root = reader::read(text, 0).expect("reads").root;
    let source = Source::new("text", text, SourceKind::File);
    let checked = check(&SCENARIO, root, catalog, &[source]);
    assert_eq!(checked.problems, [], "in {text}");
    let clean = checked.clean.expect("nothing was removed");
    Scenario::deserialize(&clean).unwrap_or_else(|error| panic!("{error} in {clean}"))
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
        if let Err(report) = load_with(&text, &[], &catalog()) {
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

#[test]
fn fields_are_described_in_the_order_in_which_they_are_written() {
    fn compare(kind: &Kind, node: &tree::Node, path: &str) {
        if let Kind::Record(fields) = kind {
            let written = match &node.value {
                tree::Value::Record(_, written) => written.as_slice(),
                _ => &[],
            };
            let written: Vec<_> = written.iter().map(|(key, _)| key.text.as_str()).collect();
            let names: Vec<_> = fields.iter().map(|field| field.name).collect();
            assert_eq!(written, names, "at `{path}`");
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
        let explanation = explain::<Scenario>("", &path, &catalog).expect("explains");
        assert_eq!(explanation.doc, found.doc);
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
    let text = "(lifecycle: (slots: [\"r0c2\", \"r0c0\"], max_seeds: 1))";
    let sets = ["task.batch_size=32", "task.preset=Digits_Minimal"];
    let loaded = load_with(text, &sets, &catalog()).expect("sound");
    let task = &loaded.task;
    assert_eq!(task.name, "digits_minimal");
    assert_eq!((task.batch_size, task.val_batch_size), (32, Some(128)));
    assert_eq!((task.max_steps, task.max_seeds), (100, 1));
    let slots: Vec<_> = loaded.slots.iter().map(|slot| slot.to_string()).collect();
    assert_eq!(slots, ["r0c0", "r0c2"]);
}

#[test]
fn what_cannot_be_is_refused_with_what_is_wrong_or_meant() {
    let text = "(lifecycle: (slots: [\"r65535c65535\"]))";
    let report = load_with(text, &[], &catalog()).expect_err(text).to_string();
    assert!(report.contains("did you mean"), "{report}");
}

#[test]
fn reward_fields_are_set_one_by_one_within_the_mode_that_is_chosen() {
    let reward = |text: &str, set| load_with(text, &[set], &catalog()).map(|loaded| loaded.scenario.reward);
    let committed = CommittedReward {
        weight: 0.5,
        rent: 0.25,
    };
    let sparse = SparseReward {
        sparse_reward_scale: 2.5,
    };

    let found = reward("(reward: contribution(committed((weight: 0.5))))", "reward.rent=0.25").expect("sound");
    let expected = RewardConfig::Contribution(ContributionMode::Committed(committed));
    assert_eq!(found, expected);
    let found = reward("(reward: contribution(sparse()))", "reward.sparse_reward_scale=2.5").expect("sound");
    assert_eq!(found, RewardConfig::Contribution(ContributionMode::Sparse(sparse)));
    assert!(reward("(reward: loss(()))", "reward.rent=0.25").is_err());
}

#[test]
fn a_preset_lies_under_the_file_and_the_command_line_may_choose_another() {
    let width = |text: &str, sets: &[&str]| {
        let policy = load_with(text, sets, &catalog()).expect("sound").scenario.policy;
        policy.net_cfg.hidden_dim
    };
    let text = "(preset: \"cifar_steady\")";
    assert_eq!(width(text, &[]), 512);
    assert_eq!(width(text, &["preset=digits"]), 128);
    let text = "(preset: \"cifar_steady\", policy: (net_cfg: (hidden_dim: 64)))";
    assert_eq!(width(text, &[]), 64);
}

#[test]
fn a_hint_names_the_sibling_before_a_field_far_away_and_never_the_place_itself() {
    let sibling = explain::<Scenario>("", "run.round", &catalog()).expect_err("a slip");
    assert_eq!(sibling.suggestion.as_deref(), Some("run.rounds"));
    for (text, set, hint) in [
        (
            "(reward: contribution(sparse((rent: 2.0))))",
            None,
            "`rent` belongs to `committed(..)`",
        ),
        ("()", Some("reward=sparse"), "did you mean `contribution(sparse())`?"),
        (
            "()",
            Some("telemetry.trajectories=true"),
            "did you mean `run.trajectories`?",
        ),
    ] {
        let report = load_with(text, set.as_slice(), &catalog()).expect_err("a mistake");
        assert_eq!(report.problems[0].help.as_deref(), Some(hint));
    }
}

#[test]
fn members_of_choices_are_explained_with_their_own_fields_alone() {
    let catalog = catalog();
    let explained = |path| explain::<Scenario>("", path, &catalog).expect("a member");
    let fields = |path| -> Vec<String> {
        let fields = explained(path).fields;
        fields.iter().map(|field| field.name.clone()).collect()
    };

    assert!(fields("task.host.cnn").contains(&"n_blocks".into()));
    assert!(!fields("task.host.cnn").contains(&"heads".into()));
    assert_eq!(fields("reward.contribution.committed"), ["weight", "rent"]);
    let members = explained("reward.contribution").members;
    assert!(members.iter().any(|member| member.form == "committed(..)"));
}

#[test]
fn a_scenario_with_its_task_written_out_depends_on_no_preset() {
    let known = catalog();
    let written =
        "(task: preset(\"digits_baseline\", (batch_size: 16)), run: (max_steps: 7), lifecycle: (slots: [\"r0c1\"]))";
    let first = load_with(written, &[], &known).expect("sound");
    let resolved = resolved_ron(&first.scenario).expect("prints");

    let nothing = Catalog {
        tasks: Vec::new(),
        ..catalog()
    };
    let again = load_with(&resolved, &[], &nothing).expect("sound");
    assert_eq!((&again.task, &again.slots), (&first.task, &first.slots));
    assert_eq!(again.scenario, first.scenario);

    let name_and_batch = |sets: &[&str], catalog| {
        let task = load_with(&resolved, sets, catalog).expect("sound").task;
        (task.name, task.batch_size)
    };
    let changed = name_and_batch(&["task.batch_size=32", "task.host.base_channels=2"], &nothing);
    assert_eq!(changed, ("digits_baseline".to_owned(), 32));
    let other = name_and_batch(&["task.preset=digits_minimal"], &known);
    assert_eq!(other, ("digits_minimal".to_owned(), 64));
}
