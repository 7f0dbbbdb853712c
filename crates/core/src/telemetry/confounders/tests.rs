use super::*;
use crate::telemetry::{Note, examples};

#[test]
fn what_changed_on_the_way_is_listed_and_resuming_alone_is_not() {
    let mut confounders = Confounders::default();
    let mut started = examples::run_started();
    confounders.apply(&Event::run(started.clone()));
    confounders.apply(&Event::run(started.clone()));
    assert_eq!(confounders.entries(), Vec::<String>::new());

    started.env_devices = vec!["cuda:1".into()];
    confounders.apply(&Event::run(started));
    let note = Note::of_engine("run.rounds: 8 instead of 4".into());
    let command = Some("pause".into());
    confounders.apply(&Event::run(note.clone()));
    confounders.apply(&Event::run(Note { command, ..note }));
    let mut episode = examples::episode_finished();
    episode.end = EndReason::EarlyStop;
    confounders.apply(&Event::env(examples::context_at(0, 0, 5), episode));

    let entries = confounders.entries();
    assert_eq!(entries[0], "episodes ended early: 1");
    assert!(entries[1].ends_with("to cuda:1"), "{entries:?}");
    assert_eq!(entries[2..], ["run.rounds: 8 instead of 4"]);
}
