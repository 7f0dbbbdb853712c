//! Parts of a plugin are written like members of the choice that they belong to, and set one by one like any field.

use std::sync::LazyLock;

use simic_engine::internals::actions::Head;
use simic_engine::internals::controller::WaitController;
use simic_engine::internals::prior_art::PriorArtPlugin;
use simic_engine::internals::scenario::{Catalog, Explanation, Loaded, Override, Report, Scenario, explain};
use simic_engine::internals::schema::Settings;
use simic_engine::prelude::*;

use crate::recorded::{catalog, load};

section! {
    /// Settings of the parts of this test.
    pub struct Width {
        /// The width.
        width: u32 = 4, integer(1, 64);
    }
}

/// A network and controllers with settings; the network is never built.
fn register(app: &mut App) {
    app.add_plugins(PriorArtPlugin);
    let world = app.world_mut();
    let mut nets = world.resource_mut::<NetRegistry>();
    nets.register_with("wide", "a network", |_: Width| {
        Arc::new(|_| Err(PolicyError::NothingLeft { head: Head::Op }))
    });
    let mut controllers = world.resource_mut::<ControllerRegistry>();
    controllers.register_with("wide", "a controller", |_: Width| {
        Arc::new(|_| Ok(Box::new(WaitController)))
    });
}

static CATALOG: LazyLock<Catalog> = LazyLock::new(|| catalog(register));

fn read(text: &str, sets: &[&str]) -> Result<Loaded, Report> {
    let overrides = sets.iter().map(|set| Override::parse(set).expect("an assignment"));
    load("mine.ron", text, &overrides.collect::<Vec<_>>(), &CATALOG)
}

fn sound(text: &str, sets: &[&str]) -> Scenario {
    let loaded = read(text, sets).unwrap_or_else(|report| panic!("{report}"));
    loaded.scenario
}

/// The reward that is loaded, as it prints itself: with all defaults.
fn reward(text: &str, sets: &[&str]) -> String {
    format!("{:?}", sound(text, sets).reward)
}

#[test]
fn a_part_is_written_like_a_member_or_by_its_name() {
    let shaped = reward(
        r#"(reward: custom(name: "shaped", settings: (contribution_weight: 2.0)))"#,
        &[],
    );
    assert!(shaped.contains(r#"name: "shaped""#), "{shaped}");
    assert!(
        shaped.contains("contribution_weight: 2.0, growing_pay_steps: 0"),
        "{shaped}"
    );

    let written = "(reward: contribution(shaped((contribution_weight: 2.0))))";
    assert_eq!(reward(written, &[]), shaped);
    let basic = reward("(reward: contribution(basic()))", &[]);
    assert_eq!(reward(written, &["reward=contribution(basic())"]), basic);
}

#[test]
fn what_is_set_of_a_part_has_a_path() {
    let both = reward(
        "(reward: contribution(shaped((contribution_weight: 2.0, growing_pay_steps: Some(3)))))",
        &[],
    );
    let escrow = reward(
        "(reward: contribution(escrow((shaped: (contribution_weight: 2.0)))))",
        &[],
    );

    let written = "(reward: contribution(shaped((contribution_weight: 2.0))))";
    assert_eq!(reward(written, &["reward.settings.growing_pay_steps=Some(3)"]), both);
    assert_eq!(reward(written, &["reward.growing_pay_steps=Some(3)"]), both);
    let set = reward(
        "(reward: contribution(escrow()))",
        &["reward.shaped.contribution_weight=2"],
    );
    assert_eq!(set, escrow);

    // The part may be chosen after its settings.
    let sets = [
        "policy.net_settings.width=8",
        "policy.controller_settings.width=9",
        "policy.net=wide",
    ];
    let policy = sound(r#"(policy: (controller: "wide"))"#, &sets).policy;
    let width = |settings: &Settings| settings.read::<Width>().expect("it was checked").width;
    assert_eq!([&policy.net_settings, &policy.controller_settings].map(width), [8, 9]);
}

#[test]
fn mistakes_in_a_part_are_reported_where_they_stand() {
    let said = |text, sets: &[&str]| read(text, sets).expect_err("a mistake").to_string();

    insta::assert_snapshot!(
        [
            said("(reward: contribution(shaped((contribution_wieght: 1.0))))", &[]),
            said("(reward: contribution(shaped((contribution_weight: -1.0))))", &[]),
            said("(reward: contribution(shapd()))", &[]),
            said("(reward: shaped())", &[]),
            said(
                "(reward: contribution(shaped()))",
                &["reward.settings.contribution_wieght=1"]
            ),
            said("(reward: contribution(shaped()))", &["reward.contribution_weight=-1"]),
            said("()", &["reward.settings.contribution_weight=1"]),
            said("()", &["policy.net_settings.width=8"]),
        ]
        .join("\n")
    );
}

#[test]
fn a_part_is_explained_by_either_path() {
    let explained = |path| explain::<Scenario>("", path, &CATALOG).expect("it is declared");

    assert_eq!(
        explained("reward.contribution.shaped.contribution_weight"),
        Explanation {
            path: "reward.contribution.shaped.contribution_weight".into(),
            ..explained("reward.custom.settings.shaped.contribution_weight")
        }
    );
}
