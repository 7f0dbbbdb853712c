//! The scenario of a run and its manifest: what the run is.

use std::path::Path;

use serde_json::Value;

use super::Part;
use crate::files;
use crate::record::{MANIFEST_FILE, RESOLVED_FILE, SOURCE_FILE, scenario_folder};
use crate::scenario::{Catalog, Input, Scenario, load_beside};

/// What is known of the scenario.
pub(super) struct ScenarioFacts {
    pub part: Part,
    /// blake3 of `resolved.ron`.
    pub hash: Option<String>,
    /// The scenario as it was given is there.
    pub has_source: bool,
    /// `None` where this build cannot play it.
    pub scenario: Option<Scenario>,
}

pub(super) fn check(folder: &Path, catalog: &Catalog) -> ScenarioFacts {
    let mut part = Part::new("scenario");
    let text = files::read_text(&folder.join(RESOLVED_FILE))
        .inspect_err(|error| part.problem(RESOLVED_FILE, error.to_string()))
        .ok();
    let source = files::read_text(&folder.join(SOURCE_FILE));
    if let Err(error) = &source {
        part.problem(SOURCE_FILE, format!("{error}; a resume needs it"));
    }
    // What is wrong with a manifest that does not say it is told of the manifest.
    let beside = scenario_folder(&folder.join(RESOLVED_FILE)).ok().flatten();
    let scenario = text
        .as_ref()
        .and_then(|text| read(text, beside.as_deref(), catalog, &mut part));
    if let Some(scenario) = &scenario {
        let run = &scenario.run;
        part.seen = format!(
            "{}: {} rounds of {} envs, controller {}",
            scenario.name, run.rounds, run.n_envs, scenario.policy.controller
        );
    }
    ScenarioFacts {
        hash: text.map(|text| blake3::hash(text.as_bytes()).to_hex().to_string()),
        has_source: source.is_ok(),
        scenario,
        part,
    }
}

fn read(text: &str, folder: Option<&Path>, catalog: &Catalog, part: &mut Part) -> Option<Scenario> {
    let input = Input {
        label: RESOLVED_FILE,
        text,
        overrides: &[],
    };
    match load_beside(&input, folder, catalog) {
        Ok(loaded) => Some(loaded.scenario),
        Err(report) => {
            for row in report.rows() {
                let place = row.line.map_or(String::new(), |line| format!("line {line}: "));
                part.problem(
                    RESOLVED_FILE,
                    format!("this build cannot play it: {place}{}", row.message),
                );
            }
            None
        }
    }
}

/// What is known of the manifest.
pub(super) struct ManifestFacts {
    pub part: Part,
    pub is_readable: bool,
    /// An evaluation makes do without one, though not with half of one.
    pub is_readable_or_absent: bool,
}

pub(super) fn check_manifest(folder: &Path, hash: Option<&str>) -> ManifestFacts {
    let mut part = Part::new("manifest");
    let path = folder.join(MANIFEST_FILE);
    let text = files::read(&path).inspect_err(|error| part.problem(MANIFEST_FILE, error.to_string()));
    let manifest: Option<Value> = text.ok().and_then(|text| {
        serde_json::from_slice(&text)
            .inspect_err(|error| part.problem(MANIFEST_FILE, format!("it is no JSON: {error}")))
            .ok()
    });
    let data = manifest
        .as_ref()
        .and_then(|manifest| manifest["scenario_hash"].as_str());
    match (data, hash) {
        (None, _) if manifest.is_some() => part.problem(MANIFEST_FILE, "it names no scenario_hash"),
        (Some(data), Some(hash)) if data != hash => {
            part.problem(
                RESOLVED_FILE,
                format!("its blake3 is {hash}; the manifest names {data}"),
            );
        }
        (Some(data), _) => part.seen = format!("scenario {}", data.get(..16).unwrap_or(data)),
        _ => {}
    }
    let run_id = manifest.as_ref().and_then(|manifest| manifest["run_id"].as_str());
    let name = folder.canonicalize().ok();
    let name = name
        .as_deref()
        .unwrap_or(folder)
        .file_name()
        .unwrap_or_default()
        .to_string_lossy();
    if let Some(run_id) = run_id.filter(|run_id| **run_id != *name) {
        part.note(
            MANIFEST_FILE,
            format!("the run was begun as {run_id}; its folder has another name now"),
        );
    }
    ManifestFacts {
        is_readable: manifest.is_some(),
        is_readable_or_absent: manifest.is_some() || !path.exists(),
        part,
    }
}
