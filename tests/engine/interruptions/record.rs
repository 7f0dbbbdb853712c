//! Invariants of the record of a run that is over.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};
use simic_engine::internals::growth::SeedStage;
use simic_engine::internals::inspect::{Finding, Weight, check};
use simic_engine::internals::scenario::Catalog;
use simic_engine::internals::seed::may_follow;

/// The rounding of sums, relative to the largest of their parts: of shares, and of rewards with the digits of an f32.
const ROUNDING: f64 = 1e-9;
const SHORT_ROUNDING: f64 = 1e-6;

/// The first problem that a look at the folder of a run finds. A seed module of an application that can't be built isn't one.
pub fn problem(run: &Path, catalog: &Catalog) -> Option<String> {
    let findings = check(run, catalog).parts.into_iter().flat_map(|part| part.findings);
    let is_problem = |found: &Finding| found.weight == Weight::Problem && !found.what.contains("of an application");
    let mut problems = findings.filter(is_problem);
    problems.next().map(|problem| format!("check: {problem}"))
}

/// The first law that the events of a run break.
pub fn broken_law(events: &[Value]) -> Option<String> {
    let mut stages = BTreeMap::new();
    let mut matrix = &Value::Null;
    for (number, event) in events.iter().enumerate() {
        let broken = match event["type"].as_str() {
            _ if event["seq"] != number => Some(format!("event {} where {number} was expected", event["seq"])),
            Some("seed_stage_changed") => broken_stage_law(event, &mut stages),
            Some("decision") => broken_decision_law(event),
            Some("counterfactual_matrix") => {
                matrix = event;
                None
            }
            Some("shapley") => broken_share_law(event, matrix),
            _ => None,
        };
        if broken.is_some() {
            return broken;
        }
    }
    None
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
        let change = format!("from {from} to {to}");
        return Some(format!("event {seq}: seed {seed}, which is {stood}, went {change}"));
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
    let (reward, sum) = (number(&data["reward"]), terms.clone().sum::<f64>());
    let scale = terms.map(f64::abs).fold(1.0, f64::max);
    let is_off = (reward - sum).abs() > SHORT_ROUNDING * scale;
    is_off.then(|| format!("event {seq}: reward {reward}, its terms come to {sum}"))
}

/// Efficiency: the shares of all add up to what they add together (Shapley 1953).
fn broken_share_law(event: &Value, matrix: &Value) -> Option<String> {
    let seq = &event["seq"];
    if ["round", "step", "env"]
        .iter()
        .any(|field| matrix[field] != event[field])
    {
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
    // A comparison with NaN is never off.
    let is_off = (gain - sum).abs() > ROUNDING * 100.0;
    is_off.then(|| format!("event {seq}: all seeds add {gain}, their shares come to {sum}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}
