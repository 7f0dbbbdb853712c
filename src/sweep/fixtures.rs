//! Fixtures of the tests of sweeps: folders, and trials that are not run.

use tempfile::TempDir;

use super::{Plan, SweepFile, SweepFolder, Trial};
use crate::telemetry::BigInteger;

/// A sweep's folder under a temporary one, with places for leases and results.
pub fn folder() -> (TempDir, SweepFolder) {
    let root = tempfile::tempdir().unwrap();
    let folder = SweepFolder::of("work", Some(root.path()));
    std::fs::create_dir_all(folder.file("leases")).unwrap();
    std::fs::create_dir_all(folder.file("results")).unwrap();
    (root, folder)
}

/// The `replicate`-th training at a point, of two rounds, that changes nothing.
pub fn trial(id: impl Into<String>, point: usize, replicate: u32) -> Trial {
    let id = id.into();
    Trial {
        hash: id.clone(),
        id,
        point,
        replicate,
        seed: BigInteger(replicate.into()),
        rounds: 2,
        name: None,
        settings: Vec::new(),
        overrides: Vec::new(),
    }
}

/// A sweep called `name` of as many points, one training each, with ids as long as real ones.
pub fn plan(name: &str, points: usize, sweep: SweepFile) -> Plan {
    let trials = (0..points).map(|point| trial(format!("{point:016x}"), point, 0));
    Plan::of_trials(name, sweep, trials.collect())
}
