use super::*;

fn manifest() -> Manifest {
    let (format, parts) = Manifest::format();
    Manifest {
        format,
        engine: "0.0.0".into(),
        scenario: "test".into(),
        scenario_sha256: "0".into(),
        task: "digits".into(),
        host: "cnn()".into(),
        controller: "wait".into(),
        seed: BigInteger(7),
        max_steps: 2,
        gamma: 0.99,
        reward: "contribution(committed())".into(),
        price: Some(1.0),
        observation: vec!["step".into()],
        slots: vec!["r0c0".into()],
        blueprints: vec!["noop".into()],
        operations: vec!["WAIT".into()],
        heads: vec![("op".into(), 6)],
        masks: 1,
        parts,
        shards: Vec::new(),
    }
}

/// One of two steps.
fn segment() -> Segment {
    Segment {
        round: vec![0],
        env: vec![0],
        policy_version: vec![0],
        finish: vec![2],
        final_observation: vec![0.0],
        final_blueprints: vec![-1],
        step: vec![1, 2],
        observation: vec![1.0, 2.0],
        blueprints: vec![-1, 0],
        actions: vec![0; 16],
        effective_op: vec![0, 0],
        log_probs: vec![0.0; 16],
        masks: vec![1, 1],
        flags: vec![1, 0],
        reward: vec![0.5, -0.5],
        parts: vec![0.0; 10],
    }
}

fn begun(folder: &Path, round: u32) -> TrajectorySet {
    TrajectorySet::begin(folder.join("a.traj"), manifest(), round).unwrap()
}

/// Checks that it was refused with a message that ends so.
#[track_caller]
fn assert_refused<T>(result: Result<T, TrajectoryError>, end: &str) {
    let why = result.err().expect("it is refused").to_string();
    assert!(why.ends_with(end), "{why}");
}

#[test]
fn a_set_is_read_unchanged_and_continues_after_the_rounds_that_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut set = begun(folder.path(), 0);
    for round in 0..3 {
        set.put(round, &[segment()]).unwrap();
    }

    let resumed = begun(folder.path(), 2);
    let read = TrajectorySet::open(&folder.path().join("a.traj")).unwrap();

    assert_eq!(read.manifest, resumed.manifest);
    let rounds: Vec<u32> = read.manifest.shards.iter().map(|shard| shard.round).collect();
    assert_eq!(rounds, [0, 1]);
    assert_eq!(read.read(&read.manifest.shards[1]).unwrap(), [segment()]);
}

#[test]
fn what_is_damaged_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut set = begun(folder.path(), 0);
    set.put(0, &[segment()]).unwrap();
    let shard = set.manifest.shards[0].clone();
    let path = folder.path().join("a.traj").join(&shard.file);
    let whole = std::fs::read(&path).unwrap();

    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    assert!(matches!(set.read(&shard), Err(TrajectoryError::Hash(_))));
    let mut renamed = shard.clone();
    renamed.segments = 2;
    std::fs::write(&path, &whole).unwrap();
    let count = "1 segment with 2 steps, but the manifest says 2 with 2";
    assert_refused(set.read(&renamed), count);
    let none = "isn't a set of trajectories: it has no manifest.json";
    assert_refused(TrajectorySet::open(folder.path()), none);
}

#[test]
fn a_set_of_another_form_is_not_continued_and_the_field_is_named() {
    let folder = tempfile::tempdir().unwrap();
    begun(folder.path(), 0);
    let mut other = manifest();
    other.slots = vec!["r0c1".into()];

    let refused = TrajectorySet::begin(folder.path().join("a.traj"), other, 1);

    let field = "in `slots` it has `r0c0` in place 1, expected `r0c1` in place 1";
    assert_refused(refused, field);
}
