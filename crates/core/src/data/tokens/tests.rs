use super::*;
use crate::data::{DataRegistry, TaskData};
use crate::growth::Topology;
use crate::host::Features;
use crate::scenario::task_presets;

fn synth_tokens() -> TaskSpec {
    let mut tasks = task_presets().into_iter().map(|preset| preset.spec);
    tasks.find(|task| task.name == "synth_tokens").unwrap()
}

#[test]
fn a_vocabulary_that_the_task_does_not_have_is_refused() {
    let task = TaskSpec {
        classes: 65,
        ..synth_tokens()
    };

    assert!(matches!(
        load_tokens(&task, None),
        Err(DataError::Vocabulary {
            vocab: 64,
            classes: 65,
            ..
        })
    ));
}

#[test]
fn a_host_that_does_not_read_the_text_is_refused() {
    let data = TaskData::load(&synth_tokens(), None, &DataRegistry::default()).unwrap();
    let reads = |topology, channels, side| data.check_host(topology, Features { channels, side });

    assert!(reads(Topology::Tokens, 64, 64).is_ok());
    assert!(reads(Topology::Tokens, 64, 100).is_ok());
    for (refused, wrong) in [
        (reads(Topology::Tokens, 65, 64), "classes"),
        (reads(Topology::Tokens, 64, 63), "host.block"),
        (reads(Topology::Image, 64, 64), "host"),
    ] {
        assert!(
            matches!(refused, Err(DataError::TextMismatch { key, .. }) if key == wrong),
            "{wrong}"
        );
    }
}
