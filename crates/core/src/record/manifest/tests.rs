use super::*;
use crate::record::directory::ManifestHead;
use crate::telemetry::examples;

fn manifest(root: &Path) -> (RunDirectory, Manifest) {
    let directory = RunDirectory::create(root, None, "quickstart", b"()", "()", Timestamp::now()).unwrap();
    let mut started = examples::run_started();
    started.seed = BigInteger(u64::MAX);
    let manifest = Manifest::new(&directory, &started);
    (directory, manifest)
}

#[test]
fn a_manifest_says_what_a_run_was_made_of_and_is_never_edited() {
    let root = tempfile::tempdir().unwrap();
    let (directory, manifest) = manifest(root.path());

    manifest.write(directory.path()).unwrap();

    let text = std::fs::read(directory.path().join("manifest.json")).unwrap();
    let read: serde_json::Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(read["run_id"], directory.run_id());
    assert_eq!(read["scenario_hash"], blake3::hash(b"()").to_hex().as_str());
    assert_eq!(read["seed"], "18446744073709551615");
    assert_eq!(read["libraries"]["libtorch"], "2.11.0");
    assert_eq!(read["dataset"]["train_n"], 3000);
    let machine = &read["machine"];
    assert!(machine["cores"].as_u64().unwrap() >= 1);
    assert!(machine["kernels"].is_string(), "{machine}");
    assert_eq!(machine.get("gpus"), None);
    assert!(!directory.path().join("manifest.json.tmp").exists());
    let head = ManifestHead::read(directory.path()).unwrap();
    assert_eq!((head.created, head.tags), (Some(manifest.created), vec![]));
    let error = manifest.write(directory.path()).unwrap_err();
    assert!(error.to_string().contains("manifest.json"), "{error}");
}

#[test]
fn only_allowed_variables_are_recorded() {
    let variables = [
        ("HOME", "/home/someone"),
        ("RUST_LOG", "debug"),
        ("SIMIC_ENGINE_RUNS", "/data"),
        ("TOKEN", "secret"),
    ];

    let recorded = recorded_environment(variables.into_iter().map(|(key, value)| (key.into(), value.into())));

    assert!(recorded.keys().eq(["RUST_LOG", "SIMIC_ENGINE_RUNS"]), "{recorded:?}");
}

#[test]
fn values_are_read_from_the_system_s_lists() {
    let text = "processor\t: 0\nmodel name\t: Fast CPU 3000\nmodel name\t: Other\n";

    assert_eq!(value_of(text, "model name", ':').as_deref(), Some("Fast CPU 3000"));
    assert_eq!(value_of(text, "bogomips", ':'), None);
}
