use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::*;
use crate::telemetry::{Earlier, LiveState, Num, WrittenRecord, examples};

fn started(folder: &Path, mode: TensorBoard) -> TensorBoardSink {
    let hparams = [
        ("learner.lr".into(), HParam::of_ron("3e-4")),
        ("policy.net".into(), HParam::of_ron("\"lstm\"")),
        ("run.deterministic".into(), HParam::of_ron("true")),
    ];
    let mut sink = TensorBoardSink::new(mode, hparams.into()).unwrap();
    sink.start(&RunInfo {
        run_id: "test".into(),
        directory: folder.into(),
        earlier: None,
    })
    .unwrap();
    sink
}

/// A round of two envs and two steps, and an update.
fn events() -> Vec<Arc<Event>> {
    numbered(events_of_a_round(), 0)
}

fn numbered(events: Vec<Event>, first: u64) -> Vec<Arc<Event>> {
    let numbered = events.into_iter().zip(first..);
    numbered.map(|(event, seq)| Arc::new(Event { seq, ..event })).collect()
}

fn events_of_a_round() -> Vec<Event> {
    let mut run = examples::run_started();
    run.max_steps = 2;
    let step = |env, step, accuracy| {
        let mut row = examples::env_step();
        row.val_accuracy = Num(accuracy);
        let context = examples::context_at(env, 3, step);
        Event::env(context, row)
    };
    vec![
        Event::run(run),
        step(0, 1, 40.0),
        step(1, 1, 50.0),
        step(0, 2, 60.0),
        step(1, 2, 80.0),
        Event::env(examples::context_at(1, 3, 2), examples::rollback()),
        Event::round(3, examples::learner_update()),
        Event::round(3, examples::round_finished()),
    ]
}

fn only_file(folder: &Path) -> PathBuf {
    let mut files = std::fs::read_dir(folder.join("tb")).unwrap();
    let file = files.next().unwrap().unwrap().path();
    assert!(files.next().is_none());
    file
}

/// Points by tag and step, from the bytes of a file in which no point lies at step 0.
fn points(file: &Path) -> BTreeMap<(String, u64), f32> {
    let bytes = std::fs::read(file).unwrap();
    let mut rest = &bytes[..];
    let mut points = BTreeMap::new();
    while !rest.is_empty() {
        let length = u64::from_le_bytes(rest[..8].try_into().unwrap()) as usize;
        let message = &rest[12..12 + length];
        rest = &rest[12 + length + 4..];
        // wall_time is 9 bytes; then comes either the version (field 3) or the step (field 2), here below 128.
        // What is no point has no step.
        if message[9] != 0x10 || message[10] == 0 {
            continue;
        }
        let step = u64::from(message[10]);
        // Keys and lengths of summary, value and tag: one byte each for short tags.
        let tag_length = usize::from(message[16]);
        let tag = String::from_utf8(message[17..17 + tag_length].to_vec()).unwrap();
        let value = f32::from_le_bytes(message[length - 4..].try_into().unwrap());
        points.insert((tag, step), value);
    }
    points
}

#[test]
fn rounds_and_updates_lie_over_the_round_and_steps_over_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let mut sink = started(folder.path(), TensorBoard::All);

    sink.write(&events()).unwrap();
    sink.finish(&examples::run_finished()).unwrap();

    let points = points(&only_file(folder.path()));
    let at = |tag: &str, step: u64| points.get(&(tag.into(), step)).copied();
    assert_eq!(at("detail/round/accuracy_mean", 4), Some(54.3));
    assert_eq!(at("detail/round/reward_mean", 4), Some(12.0));
    assert_eq!(at("detail/round/reward_terms_mean/pbrs", 4), Some(-0.5));
    assert_eq!(at("detail/round/perf/env_steps_per_s", 4), Some(6.4));
    assert_eq!(at("detail/policy/approx_kl", 4), Some(0.008));
    assert_eq!(at("detail/policy/head_entropy_avail/slot", 4), Some(0.72));
    assert_eq!(at("detail/policy/update_performed", 4), Some(1.0));
    assert_eq!(at("detail/policy/loss_scale", 4), None, "what is undefined is no point");
    assert_eq!(at("detail/seeds/rollbacks_total", 4), Some(1.0));
    assert_eq!(at("detail/env_mean/val_accuracy", 6), Some(45.0));
    assert_eq!(at("detail/env_mean/val_accuracy", 7), Some(70.0));
    assert!(at("detail/env_mean/train_loss", 6).unwrap().is_nan());
    assert_eq!(at("detail/env1/val_accuracy", 7), Some(80.0));
}

#[test]
fn totals_of_a_resumed_run_continue_where_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let mut live = LiveState::default();
    events().iter().for_each(|event| live.apply(event));
    let mut sink = TensorBoardSink::new(TensorBoard::All, BTreeMap::new()).unwrap();
    sink.start(&RunInfo {
        run_id: "test".into(),
        directory: folder.path().into(),
        earlier: Some(Earlier {
            live,
            next_seq: 8,
            written: WrittenRecord::default(),
        }),
    })
    .unwrap();
    let context = examples::context_at(0, 4, 1);
    let later = vec![
        Event::env(context, examples::germinated()),
        Event::env(context, examples::rollback()),
        Event::round(4, examples::round_finished()),
    ];

    sink.write(&numbered(later, 8)).unwrap();

    let points = points(&only_file(folder.path()));
    let at = |tag: &str| points.get(&(tag.into(), 5)).copied();
    assert_eq!(
        at("detail/seeds/germinated_total"),
        Some(4.0),
        "3 of the first round and one more"
    );
    assert_eq!(at("detail/seeds/committed_total"), Some(1.0));
    assert_eq!(at("detail/seeds/pruned_total"), Some(2.0));
    assert_eq!(at("detail/seeds/rollbacks_total"), Some(2.0));
}

#[test]
fn main_holds_a_dozen_curves_over_the_round_as_the_console_counts() {
    let folder = tempfile::tempdir().unwrap();
    let mut sink = started(folder.path(), TensorBoard::Main);
    let mut events = events_of_a_round();
    let round = events.pop().expect("the round's end");
    let episode = |env, accuracy| {
        let mut episode = examples::episode_finished();
        episode.test_accuracy = Some(Num(accuracy));
        Event::env(examples::context_at(env, 3, 2), episode)
    };
    events.extend([episode(0, 60.0), episode(1, 70.0), round]);

    sink.write(&numbered(events, 0)).unwrap();

    let points = points(&only_file(folder.path()));
    let at = |tag: &str| points.get(&(tag.into(), 4)).copied();
    assert_eq!(at("main/accuracy"), Some(54.3));
    assert_eq!(at("main/reward"), Some(12.0));
    assert_eq!(at("main/env_steps_per_s"), Some(6.4));
    assert_eq!(at("main/kl"), Some(0.008));
    assert_eq!(at("main/test_accuracy"), Some(65.0));
    assert!(
        points.keys().all(|(tag, step)| tag.starts_with("main/") && *step == 4),
        "{points:?}"
    );
    assert!(points.len() <= 12, "{points:?}");
}

#[test]
fn nothing_is_written_if_it_is_off() {
    assert!(TensorBoardSink::new(TensorBoard::Off, BTreeMap::new()).is_none());
}

#[test]
fn a_resumed_run_adds_a_file() {
    let folder = tempfile::tempdir().unwrap();

    drop(started(folder.path(), TensorBoard::Main));
    drop(started(folder.path(), TensorBoard::Main));

    assert_eq!(std::fs::read_dir(folder.path().join("tb")).unwrap().count(), 2);
}

const READER: &str = r"
import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.hparams import metadata
events = EventAccumulator(sys.argv[1])
events.Reload()
for tag in ('main/accuracy', 'main/kl', 'detail/env_mean/val_accuracy'):
    for point in events.Scalars(tag):
        print(tag, point.step, round(point.value, 4))
layout = layout_pb2.Layout.FromString(events.Tensors('custom_scalars__config__')[0].tensor_proto.string_val[0])
for category in layout.category:
    print(category.title, [len(chart.multiline.tag) for chart in category.chart])
content = events.SummaryMetadata('_hparams_/session_start_info').plugin_data.content
hparams = metadata.parse_session_start_info_plugin_data(content).hparams
for name in sorted(hparams):
    print(name, hparams[name].WhichOneof('kind'), getattr(hparams[name], hparams[name].WhichOneof('kind')))
";

/// Needs the Python package `tensorboard` (`PYTHONPATH` may name where it is); says so and passes without it.
#[test]
fn the_tensorboard_package_reads_what_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let has_package = Command::new("python3")
        .args(["-c", "import tensorboard.backend.event_processing.event_accumulator"])
        .output();
    if !has_package.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: the Python package `tensorboard` cannot be imported");
        return;
    }
    let mut sink = started(folder.path(), TensorBoard::All);
    sink.write(&events()).unwrap();
    sink.finish(&examples::run_finished()).unwrap();

    let output = Command::new("python3")
        .args(["-c", READER])
        .arg(folder.path().join("tb"))
        .output()
        .unwrap();

    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "main/accuracy 4 54.3\nmain/kl 4 0.008\n\
         detail/env_mean/val_accuracy 6 45.0\ndetail/env_mean/val_accuracy 7 70.0\n\
         run [4, 2, 3]\ndetail [1, 1, 1]\n\
         learner.lr number_value 0.0003\npolicy.net string_value lstm\nrun.deterministic bool_value True\n",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
