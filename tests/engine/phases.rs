//! The parts of a round's time, as its event reports them.

use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use simic_engine::internals::checkpoint::CheckpointName;
use simic_engine::prelude::*;

use crate::inside_rounds::{scenario, stopped_after};
use crate::recorded::{NOTHING, directory, events, play, resumed};

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

#[test]
fn the_phases_of_a_round_explain_its_time() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = directory(&play(&scenario(""), folder.path(), NOTHING));

    let (mut wall, mut explained) = (0.0, 0.0);
    for round in events(&run, "round_finished") {
        let perf = &round["data"]["perf"];
        let phases = perf["phases_ms"].as_object().expect("the phases");
        let used = [
            "reset", "train", "validate", "sync", "assess", "decide", "act", "record",
        ];
        for phase in used {
            assert!(number(&phases[phase]) > 0.0, "{phase} of {perf}");
        }
        assert!(number(&perf["copy_ms"]) > 0.0, "{perf}");
        wall += 1e3 * number(&perf["round_wall_s"]);
        explained += phases.values().map(number).sum::<f64>() - number(&phases["other"]);
    }
    assert!(wall > 0.0 && explained <= 1.0001 * wall, "{explained} of {wall} ms");
    assert!(explained >= 0.95 * wall, "{explained} of {wall} ms");
}

const DECIDES_FOR: Duration = Duration::from_millis(40);

fn deciding_slowly(app: &mut App) {
    app.add_systems(Decide, (|| sleep(DECIDES_FOR)).in_set(EngineSet::Decide));
}

#[test]
fn a_round_that_is_resumed_continues_its_phases() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = stopped_after(5, &scenario(""), deciding_slowly, folder.path());

    let mut engine = resumed(&run, CheckpointName::Last, NOTHING, 1).expect("the run can be resumed");
    directory(&engine.play());

    let perf = &events(&run, "round_finished")[1]["data"]["perf"];
    let decided = number(&perf["phases_ms"]["decide"]);
    assert!(decided >= 5.0 * DECIDES_FOR.as_secs_f64() * 1e3, "{perf}");
    assert!(1e3 * number(&perf["round_wall_s"]) > decided, "{perf}");
}
