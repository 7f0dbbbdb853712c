//! Parts of a plugin are written like members of the choice that they belong to, and set one by one like any field.

use std::sync::LazyLock;

use simic_engine::internals::actions::Head;
use simic_engine::internals::controller::WaitController;
use simic_engine::internals::prior_art::PriorArtPlugin;
use simic_engine::internals::scenario::{
    self, Catalog, Explanation, Input, Loaded, Override, Report, Scenario, explain,
};
use simic_engine::internals::schema::Settings;
use simic_engine::prelude::*;

section! {
    /// What may be set of the parts of this test.
    pub struct Width {
        /// How wide it is.
        width: u32 = 4, integer(1, 64);
    }
}

section! {
    /// Called as fields of the engine were called in earlier versions.
    pub struct Age {
        /// Steps.
        age_epochs: u32 = 4, integer(1, 64);
    }
}

/// A network and controllers with settings; the network is never built.
fn register(app: &mut App) {
    let world = app.world_mut();
    world
        .resource_mut::<NetRegistry>()
        .register_with("wide", "a network", |_: Width| {
            Arc::new(|_| Err(PolicyError::NothingLeft { head: Head::Op }))
        });
    world
        .resource_mut::<ControllerRegistry>()
        .register_with("wide", "a controller", |_: Width| {
            Arc::new(|_| Ok(Box::new(WaitController)))
        });
    world
        .resource_mut::<ControllerRegistry>()
        .register_with("aged", "a controller", |_: Age| {
            Arc::new(|_| Ok(Box::new(WaitController)))
        });
}

static CATALOG: LazyLock<Catalog> = LazyLock::new(|| {
    let extension = Extension::new((PriorArtPlugin, register));
    extension.names().expect("the names are free").catalog.clone()
});

fn load(text: &str, sets: &[&str]) -> Result<Loaded, Report> {
    let overrides = sets.iter().map(|set| Override::parse(set).expect("an assignment"));
    let overrides = &overrides.collect::<Vec<_>>()[..];
    let label = "mine.ron";
    scenario::load(&Input { label, text, overrides }, &CATALOG)
}

/// The reward that is loaded, as it prints itself: with all defaults.
fn reward(text: &str, sets: &[&str]) -> String {
    let loaded = load(text, sets).unwrap_or_else(|report| panic!("{report}"));
    format!("{:?}", loaded.scenario.reward)
}

#[test]
fn a_part_is_written_like_a_member_or_by_its_name() {
    let shaped = reward(r#"(reward: custom(name: "shaped", settings: (max_rent: 2.0)))"#, &[]);
    assert!(
        shaped.contains(r#"RewardName("shaped")"#) && shaped.contains("rent_weight: 0.5, max_rent: 2.0"),
        "{shaped}"
    );

    let written = "(reward: contribution(shaped((max_rent: 2.0))))";
    assert_eq!(reward(written, &[]), shaped);
    assert_eq!(
        reward(written, &["reward=contribution(basic())"]),
        reward("(reward: contribution(basic()))", &[])
    );
}

#[test]
fn a_part_may_call_a_setting_what_the_engine_once_called_a_field() {
    let set = |text: &str, sets: &[&str]| {
        let loaded = load(text, sets).unwrap_or_else(|report| panic!("{report}"));
        format!("{:?}", loaded.scenario.policy.controller_settings)
    };

    let written = set(
        r#"(policy: (controller: "aged", controller_settings: (age_epochs: 7)))"#,
        &[],
    );
    assert!(written.contains("age_epochs: 7"), "{written}");
    let by_default = set(r#"(policy: (controller: "aged"))"#, &[]);
    assert!(by_default.contains("age_epochs: 4"), "{by_default}");
}

#[test]
fn what_is_set_of_a_part_has_a_path() {
    let written = "(reward: contribution(shaped((max_rent: 2.0))))";
    let both = reward(
        "(reward: contribution(shaped((max_rent: 2.0, rent_weight: 0.25))))",
        &[],
    );
    let escrow = reward("(reward: contribution(escrow((shaped: (max_rent: 2.0)))))", &[]);

    assert_eq!(reward(written, &["reward.settings.rent_weight=0.25"]), both);
    assert_eq!(reward(written, &["reward.rent_weight=0.25"]), both);
    assert_eq!(
        reward("(reward: contribution(escrow()))", &["reward.shaped.max_rent=2"]),
        escrow
    );

    // The part may be chosen behind what is set of it.
    let sets = [
        "policy.net_settings.width=8",
        "policy.controller_settings.width=9",
        "policy.net=wide",
    ];
    let policy = load(r#"(policy: (controller: "wide"))"#, &sets)
        .expect("sound")
        .scenario
        .policy;
    let width = |settings: &Settings| settings.read::<Width>().expect("it was checked").width;
    assert_eq!(width(&policy.net_settings), 8);
    assert_eq!(width(&policy.controller_settings), 9);
}

#[test]
fn mistakes_in_a_part_are_told_where_they_stand() {
    let told = |text, sets: &[&str]| load(text, sets).expect_err("a mistake").to_string();

    insta::assert_snapshot!(
        [
            told(
                "(reward: contribution(shaped((rent_wieght: 1.0, max_rent: -1.0))))",
                &[]
            ),
            told("(reward: contribution(shapd()))", &[]),
            told("(reward: shaped())", &[]),
            told("(reward: contribution(shaped()))", &["reward.settings.rent_wieght=1"]),
            told("(reward: contribution(shaped()))", &["reward.rent_weight=-1"]),
            told("()", &["reward.settings.rent_weight=1"]),
            told("()", &["policy.net_settings.width=8"]),
        ]
        .join("\n")
    );
}

#[test]
fn a_part_is_explained_by_either_path() {
    let explained = |path| explain::<Scenario>("", path, &CATALOG).expect("it is declared");

    assert_eq!(
        explained("reward.contribution.shaped.max_rent"),
        Explanation {
            path: "reward.contribution.shaped.max_rent".into(),
            ..explained("reward.custom.settings.shaped.max_rent")
        }
    );
}
