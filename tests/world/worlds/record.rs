//! What must hold of the record of a run that is over.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;
use std::path::Path;

use serde_json::{Map, Value};
use simic_engine::internals::growth::SeedStage;
use simic_engine::internals::inspect::{Weight, check};
use simic_engine::internals::scenario::Catalog;
use simic_engine::internals::seed::may_follow;

/// Of shares, and of rewards with the digits of an f32: what sums may be off by, relative to the largest of their parts.
const ROUNDING: f64 = 1e-9;
const SHORT_ROUNDING: f64 = 1e-6;

/// What was seen of [`SIGHTS`], in their order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sights([usize; SIGHTS.len()]);

const SIGHTS: [&str; 8] = [
    "episodes",
    "germinations",
    "commits",
    "prunes",
    "refusals",
    "rollbacks",
    "shares",
    "updates",
];

impl Sights {
    /// Episodes of single envs.
    pub fn episodes(&self) -> usize {
        self.0[0]
    }

    /// What was never seen.
    pub fn missing(&self) -> Vec<&'static str> {
        let pairs = SIGHTS.iter().zip(self.0);
        pairs
            .filter_map(|(&sight, count)| (count == 0).then_some(sight))
            .collect()
    }
}

impl AddAssign for Sights {
    fn add_assign(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, count)| *sum += count);
    }
}

impl fmt::Display for Sights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = self
            .0
            .iter()
            .zip(SIGHTS)
            .map(|(count, sight)| format!("{count} {sight}"));
        f.write_str(&pairs.collect::<Vec<_>>().join(", "))
    }
}

/// A finished run's events.
pub struct Record {
    events: Vec<Value>,
}

impl Record {
    pub fn read(run: &Path) -> Result<Self, String> {
        let path = run.join("events.jsonl");
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let lines = text.lines().map(serde_json::from_str::<Value>);
        let lines = lines
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let events = lines.into_iter().filter(|line| line["type"] != "header");
        Ok(Self {
            events: events.collect(),
        })
    }

    /// How often there was what worlds are about.
    pub fn sights(&self) -> Sights {
        let of_kind = |kind: &str| self.events.iter().filter(|event| event["type"] == kind).count();
        let refused = self
            .events
            .iter()
            .filter(|event| event["data"].get("blocked").is_some())
            .count();
        Sights([
            of_kind("episode_finished"),
            of_kind("seed_germinated"),
            of_kind("seed_committed"),
            of_kind("seed_pruned"),
            refused,
            of_kind("governor_rollback"),
            of_kind("shapley"),
            of_kind("learner_update"),
        ])
    }

    /// Every law that the events break, with the number of the event.
    pub fn broken_laws(&self) -> Vec<String> {
        let mut broken = Vec::new();
        for (expected, event) in self.events.iter().enumerate() {
            if event["seq"] != expected {
                broken.push(format!("event {} where {expected} was expected", event["seq"]));
            }
        }
        let mut stages = BTreeMap::new();
        let mut matrix = &Value::Null;
        for event in &self.events {
            match event["type"].as_str() {
                Some("seed_stage_changed") => broken.extend(broken_stage_law(event, &mut stages)),
                Some("decision") => broken.extend(broken_decision_law(event)),
                Some("counterfactual_matrix") => matrix = event,
                Some("shapley") => broken.extend(broken_share_law(event, matrix)),
                _ => {}
            }
        }
        broken
    }
}

/// What a look at the folder finds wrong.
pub fn problems(run: &Path, catalog: &Catalog) -> Vec<String> {
    let parts = check(run, catalog).parts.into_iter();
    let findings = parts.flat_map(|part| part.findings);
    let problems = findings.filter(|finding| finding.weight == Weight::Problem);
    problems.map(|problem| format!("check: {problem}")).collect()
}

/// A seed goes from where it stands to where it may, and its alpha stays an amplitude.
fn broken_stage_law<'a>(event: &'a Value, stages: &mut BTreeMap<&'a str, &'a str>) -> Option<String> {
    let (seq, data) = (&event["seq"], &event["data"]);
    let seed = event["seed_id"].as_str()?;
    let (from, to) = (data["from"].as_str()?, data["to"].as_str()?);
    // Those of the initial topology are committed before the first step.
    let first = if event["step"] == 0 { "HOLDING" } else { "DORMANT" };
    let stood = stages.insert(seed, to).unwrap_or(first);
    let is_legal = stage(from)
        .zip(stage(to))
        .is_some_and(|(from, to)| may_follow(from, to));
    if stood != from || !is_legal {
        return Some(format!(
            "event {seq}: seed {seed}, which is {stood}, went from {from} to {to}"
        ));
    }
    let alpha = number(&data["alpha"]);
    (!(0.0..=1.0).contains(&alpha)).then(|| format!("event {seq}: seed {seed} has alpha {alpha}"))
}

/// By its name in events.
fn stage(name: &str) -> Option<SeedStage> {
    serde_json::from_value(name.into()).ok()
}

/// The terms of a reward add up to it.
fn broken_decision_law(event: &Value) -> Option<String> {
    let (seq, data) = (&event["seq"], &event["data"]);
    let terms = data["terms"].as_object().into_iter().flat_map(Map::values).map(number);
    let (reward, sum, scale) = (
        number(&data["reward"]),
        terms.clone().sum::<f64>(),
        terms.map(f64::abs).fold(1.0, f64::max),
    );
    ((reward - sum).abs() > SHORT_ROUNDING * scale)
        .then(|| format!("event {seq}: reward {reward}, its terms come to {sum}"))
}

/// Efficiency: the shares of all add up to what they add together (Shapley 1953).
fn broken_share_law(event: &Value, matrix: &Value) -> Option<String> {
    let seq = &event["seq"];
    let is_of_event = ["round", "step", "env"]
        .iter()
        .all(|field| matrix[field] == event[field]);
    if !is_of_event {
        return Some(format!("event {seq}: shares without a measurement"));
    }
    let rows = matrix["data"]["rows"].as_array()?;
    let players = matrix["data"]["seed_ids"].as_array()?.len();
    let accuracy = |mask: u64| {
        let row = rows.iter().find(|row| row[0] == mask)?;
        Some(100.0 * number(&row[1]) / number(&matrix["data"]["samples"]))
    };
    let gain = accuracy((1 << players) - 1)? - accuracy(0)?;
    let shares = event["data"]["values"].as_array()?.iter();
    let sum: f64 = shares.map(|share| number(&share["mean"])).sum();
    differ(gain, sum, 100.0).then(|| format!("event {seq}: all seeds add {gain}, their shares come to {sum}"))
}

/// Values that are none are equal to nothing, and compared with nothing.
fn differ(one: f64, other: f64, scale: f64) -> bool {
    (one - other).abs() > ROUNDING * scale
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}
