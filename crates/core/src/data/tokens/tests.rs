use super::*;
use crate::data::dataset::tests::task;
use crate::data::locate::tests::assert_refused;
use crate::data::{DataRegistry, TaskData};
use crate::growth::Topology;
use crate::host::Features;

#[test]
fn a_vocabulary_that_the_task_does_not_have_is_refused() {
    let mut task = task("synth_tokens");
    task.classes = 65;

    assert_refused(
        load_tokens(&task, None),
        "has 64 different tokens, but task.classes is 65",
    );
}

#[test]
fn a_host_that_does_not_read_the_text_is_refused() {
    let data = TaskData::load(&task("synth_tokens"), None, &DataRegistry::default()).unwrap();
    let reads = |topology, channels, side| data.check_host(topology, Features { channels, side });

    assert!(reads(Topology::Tokens, 64, 64).is_ok());
    assert!(reads(Topology::Tokens, 64, 100).is_ok());
    for (refused, wrong) in [
        (reads(Topology::Tokens, 65, 64), "classes"),
        (reads(Topology::Tokens, 64, 63), "host.block"),
        (reads(Topology::Image, 64, 64), "host"),
    ] {
        assert_refused(refused, &format!("make task.{wrong} agree with the data"));
    }
}
