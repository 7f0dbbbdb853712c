//! A network is grown within a budget, next to other uses of the compute, and the chosen one is written whole.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::sync::LazyLock;

use serde_json::Value;
use simic_engine::extend::HostDesign;
use simic_engine::internals::scenario::{ResnetSpec, Shortcut, Stem, VggSpec};
use simic_engine::internals::torch::encode_tensors;
use simic_engine::prelude::{Backend, Domain, HostPlan, RunRng, Tensor};

use crate::init::photos;
use crate::program::{
    assert_has, command, copy_of, each, ends_with, engine, engine_at, folder, json, played, read, refused, succeeds,
    write,
};
use crate::report::section_table;
use crate::resume::{signal, wait_until};

/// Short rows of one try on the embedded digits.
fn grow(place: &Path, more: &str) -> std::process::Output {
    let scenario = r#"(task: preset("digits_baseline", (batches_per_step: count(4))))"#;
    write(&place.join("digits.ron"), scenario);
    let line = "grow --scenario digits.ron -o grown --steps 10 --tries 1 --seed 3";
    engine_at(place, &format!("{line} {more}"))
}

/// A folder with a network that was grown, in the file `given.safetensors`.
fn given() -> tempfile::TempDir {
    static GIVEN: LazyLock<Vec<u8>> = LazyLock::new(|| {
        played(|place| {
            succeeds(&grow(place, "--budget 2x"));
            let kept = place.join("grown/kept.safetensors");
            fs::rename(kept, place.join("given.safetensors")).expect("moved");
        })
    });
    copy_of(&GIVEN)
}

fn growth(place: &Path) -> Value {
    json(&read(&place.join("grown/grow.json")))
}

fn number(row: &Value, name: &str) -> f64 {
    row[name].as_f64().expect("a number")
}

#[test]
#[ignore = "long tier"]
fn rows_are_compared_at_equal_compute_and_the_chosen_network_is_written_with_its_reason() {
    let place = folder();
    let printed = succeeds(&grow(place.path(), "--budget 3x --rates 0.01,0.05,1e9"));

    let folder = place.path().join("grown");
    let growth = growth(place.path());
    let ways = ["trained", "widened", "from_scratch", "grown"];
    assert_eq!(each(&growth["rows"], "way"), ways);
    let rows = growth["rows"].as_array().expect("rows");
    let grown = &rows[3];
    for row in &rows[..3] {
        let share = number(row, "gmacs") / number(grown, "gmacs");
        // In whole steps.
        assert!((0.8..1.25).contains(&share), "{share} of the grown compute: {row}");
        assert_eq!(row["note"].is_null(), (0.95..=1.05).contains(&share), "{row}");
        assert_eq!(row["tried"], grown["tried"]);
    }
    // Several plantings at three rates.
    assert!(number(grown, "tried") > 3.0);
    let diverged = ["at rate 1000000000 ", " networks diverged and were rolled back"];
    assert_has(&growth["notes"].to_string(), &diverged);
    assert!(number(&rows[1], "parameters") >= number(grown, "parameters"));
    assert_eq!(rows[2]["parameters"], grown["parameters"]);
    assert!(number(grown, "parameters") <= 3.0 * number(&rows[0], "parameters"));
    let why = growth["choice"]["why"].as_str().expect("a sentence");
    assert_has(&read(&folder.join("card.md")), &[why]);
    assert_has(&printed, &["grown"]);
    let shown = section_table(&read(&folder.join("report.html")), "better").into_iter();
    let shown: Vec<_> = shown.map(|row| [row[0].clone(), row[3].clone()]).collect();
    let expected = rows.iter().map(|row| {
        let name = row["name"].as_str().expect("a name").to_owned();
        [name, format!("{:.2}", number(&row["test"], "mean"))]
    });
    assert_eq!(shown, expected.collect::<Vec<_>>());
    // It can be played again.
    succeeds(&engine(&format!("validate '{}/scenario.ron'", folder.display())));
}

/// Weights of a small residual network with a stem for large images, except for layers whose names begin with `without`.
fn write_weights(place: &Path, classes: i64, without: &str) {
    let spec = ResnetSpec {
        in_channels: 1,
        base_channels: 4,
        blocks: vec![1, 1],
        stem: Stem::Large,
        input_hw: 8,
        ..ResnetSpec::default()
    };
    let given = encode_tensors(&drawn(&spec.plan(classes), without)).expect("it is a file");
    write(&place.join("w.safetensors"), given);
}

/// Fresh weights of a host, except for layers whose names begin with `without`.
fn drawn(plan: &HostPlan, without: &str) -> Vec<(String, Tensor)> {
    let mut rng = RunRng::new(0, Domain::HostInit, &[]);
    let host = plan.build(&mut rng, Backend::CPU).expect("a host");
    let given = host.params().all().filter(|param| !param.name.starts_with(without));
    let given = given.map(|param| (param.name.clone(), param.tensor.shallow_clone()));
    given.collect()
}

/// Names of layers of `resnet18` and `vgg11_bn`: the host's, and torchvision's.
#[rustfmt::skip]
const TORCHVISION: [(&str, &str); 29] = [
    ("head", "fc"), ("stem.conv", "conv1"), ("stem.norm", "bn1"), ("first.conv", "conv1"), ("first.norm", "bn1"), ("second.conv", "conv2"),
    ("second.norm", "bn2"), ("shortcut.conv", "downsample.0"), ("shortcut.norm", "downsample.1"), ("stage0.block", "layer1."),
    ("stage1.block", "layer2."), ("stage2.block", "layer3."), ("stage3.block", "layer4."), ("stage0.conv0.conv", "features.0"),
    ("stage0.conv0.norm", "features.1"), ("stage1.conv0.conv", "features.4"), ("stage1.conv0.norm", "features.5"),
    ("stage2.conv0.conv", "features.8"), ("stage2.conv0.norm", "features.9"), ("stage2.conv1.conv", "features.11"),
    ("stage2.conv1.norm", "features.12"), ("stage3.conv0.conv", "features.15"), ("stage3.conv0.norm", "features.16"),
    ("stage3.conv1.conv", "features.18"), ("stage3.conv1.norm", "features.19"), ("stage4.conv0.conv", "features.22"),
    ("stage4.conv0.norm", "features.23"), ("stage4.conv1.conv", "features.25"), ("stage4.conv1.norm", "features.26"),
];

/// One with its head, which is for other classes, and one without.
#[test]
#[ignore = "long tier"]
fn networks_of_torchvision_are_recognised_and_grow() {
    let place = folder();
    photos(&place.path().join("photos"), ["one", "two", "three"]);
    let resnet18 = ResnetSpec {
        base_channels: 64,
        blocks: vec![2; 4],
        shortcut: Shortcut::Projection,
        stem: Stem::Large,
        ..ResnetSpec::default()
    };
    // As torchvision's documentation says; the second less those of its classifier.
    for (plan, without, parameters) in [
        (resnet18.plan(1000), "no layer", 11_689_512),
        (VggSpec::default().plan(3), "head", 9_225_984),
    ] {
        let given = drawn(&plan, without);
        let trained = given.iter().filter(|(own, _)| !own.contains("running"));
        assert_eq!(trained.map(|(_, tensor)| tensor.numel()).sum::<usize>(), parameters);
        let renamed = |name: String, (own, theirs): &(&str, &str)| name.replace(own, theirs);
        let theirs = |own: &String| TORCHVISION.iter().fold(own.clone(), renamed);
        let named = given.iter().map(|(own, tensor)| (theirs(own), tensor.shallow_clone()));
        let file = encode_tensors(&named.collect::<Vec<_>>()).expect("it is a file");
        write(&place.path().join("w.safetensors"), file);

        let line = "grow --data photos --weights w.safetensors --normalise imagenet --budget 1.5x --steps 10 --tries 1 \
                    --keep=grown --set task.data.size=40 --set lifecycle.slots=[\"r2c0\"] -o grown --force";
        succeeds(&engine_at(place.path(), line));

        let ways = ["trained", "head", "widened", "from_scratch", "grown"];
        assert_eq!(each(&growth(place.path())["rows"], "way"), ways);
        assert!(place.path().join("grown/network.py").exists());
    }
}

#[test]
fn a_head_is_trained_alone_around_a_body_with_layers_without_parameters_and_drawn_where_it_is_for_other_classes() {
    let place = folder();
    let slots = r#"slots: ["r0c0", "r1c0"]"#;
    let scenario = format!(r#"(task: preset("digits_baseline", (batches_per_step: count(2), {slots})))"#);
    write(&place.path().join("stem.ron"), scenario);
    let host = "--host 'resnet((in_channels: 1, base_channels: 4, blocks: [1, 1], stem: large, input_hw: 8))'";
    let line = format!("grow --scenario stem.ron -o grown --steps 2 --tries 1 --seed 3 --budget 3x {host}");
    let grow = |more: &str| engine_at(place.path(), &format!("{line} --weights w.safetensors {more}"));
    let plain = "--normalise 0..1";
    let ways = || -> Vec<String> {
        let rows = growth(place.path());
        let ways = each(&rows["rows"], "way").into_iter();
        ways.map(|way| way.as_str().expect("a way").to_owned()).collect()
    };

    write_weights(place.path(), 10, "no layer");
    assert_has(&refused(&grow("")), &["needs --normalise", "imagenet; 0..1"]);
    succeeds(&grow(plain));
    assert_eq!(ways()[..3], ["given", "trained", "head"]);
    let rows = growth(place.path());
    let share = |row: usize| number(&rows["rows"][row], "gmacs") / number(&rows["rows"][1], "gmacs");
    // A frozen body takes no backward pass: its head has the more steps.
    assert!((0.8..1.25).contains(&share(2)), "{rows}");
    assert_eq!(
        (rows["rows"][0]["tried"].as_u64(), &rows["rows"][0]["note"]),
        (Some(1), &"not trained".into())
    );
    // In place of a head for other classes one is drawn, and trained around a body that stays.
    write_weights(place.path(), 12, "no layer");
    succeeds(&grow(&format!("{plain} --force")));
    assert_eq!(ways()[..2], ["trained", "head"]);
    assert_has(
        &growth(place.path())["notes"].to_string(),
        &["its head is for 12 classes, but the data have 10"],
    );
    // Around a body that is not given whole, nothing is adapted.
    write_weights(place.path(), 10, "stage1");
    let line = format!("adapt --scenario stem.ron --weights w.safetensors {plain} {host} -o adapted");
    let said = refused(&engine_at(place.path(), &line));
    assert_has(&said, &["don't contain stage1.block0.first.conv.weight"]);
}

/// A stop by Ctrl-C between attempts, another order in the folder, and the same one again.
#[test]
#[ignore = "long tier"]
fn an_interrupted_growth_continues_to_the_same_table() {
    let place = given();
    let at = |name: &str| place.path().join(name);
    let given = |more: &str| format!("--weights given.safetensors {more}");
    succeeds(&grow(place.path(), &given("--budget 3x --force")));
    let whole = growth(place.path());

    let mut process = command("grow --steps 10 --tries 1 --seed 3 --budget 3x --force");
    for (flag, name) in [
        ("--scenario", "digits.ron"),
        ("-o", "grown"),
        ("--weights", "given.safetensors"),
    ] {
        process.arg(flag).arg(at(name));
    }
    let child = process.stderr(Stdio::piped()).spawn().expect("it starts");
    wait_until(|| at("grown/attempt1.json").exists());
    signal(&child, "INT");
    let stopped = child.wait_with_output().expect("it ends");
    assert_has(
        &ends_with(130, &stopped),
        &["1/", "to continue, repeat the command without --force"],
    );
    let other = refused(&grow(place.path(), &given("--budget 4x")));
    assert_has(&other, &["--budget was 3 times", "now 4 times", "--force"]);
    let continued = grow(place.path(), &given("--budget 3x"));

    assert_has(&ends_with(0, &continued), &[", played before"]);
    let growth = growth(place.path());
    assert_eq!(each(&growth["rows"], "way"), ["given", "trained", "head", "grown"]);
    for name in ["test", "validation", "gmacs", "tried", "parameters", "steps"] {
        assert_eq!(each(&whole["rows"], name), each(&growth["rows"], name), "{name}");
    }
    assert_has(&growth["notes"].to_string(), &["--host"]);
    let again = refused(&grow(place.path(), &given("--budget 3x")));
    assert_has(&again, &["give another folder, or --force"]);
}

/// Named where it lies, or by a link that leads there.
#[test]
fn nothing_that_is_read_may_lie_in_the_folder_that_the_result_replaces() {
    let place = folder();
    let at = |name: &str| place.path().join(name);
    write(&at("grown/mine/file"), "years");
    write(&at("elsewhere/file"), "");
    std::os::unix::fs::symlink("grown/mine", at("linked")).expect("a link");
    for flags in [
        "--data",
        "--scenario",
        "--data elsewhere --labels",
        "--data elsewhere --weights",
        "--data elsewhere --policy",
        "--data elsewhere --weights elsewhere --old",
    ] {
        for input in ["grown/mine", "linked"] {
            let line = format!("grow {flags} {input} -o grown --force");
            let said = refused(&engine_at(place.path(), &line));
            assert_has(
                &said,
                &[&format!("/{input} is in "), "/grown, which the result replaces"],
            );
        }
    }
    for folder in ["grown", "grown/mine", "grown/new/one"] {
        let said = refused(&engine_at(
            place.path(),
            &format!("grow --data grown -o {folder} --force"),
        ));
        assert!(
            said.contains("which the result replaces") || said.contains("is in the data "),
            "{said}"
        );
    }
    let said = refused(&engine_at(place.path(), "grow --data linked -o grown/mine/new"));
    assert_has(
        &said,
        &["grown/mine/new is in the data ", "linked: give a folder outside"],
    );
    assert_eq!(read(&at("grown/mine/file")), "years");
}

/// From another folder, by a run, what looks into it, and the trials of a sweep.
#[test]
fn a_network_next_to_its_scenario_is_found_by_every_command() {
    let place = given();
    let scenario = r#"(
        task: preset("digits_baseline", (host: grown("given.safetensors"), batches_per_step: count(1))),
        run: (rounds: 2, n_envs: 1, max_steps: 2),
        policy: (controller: "wait"),
    )"#;
    write(&place.path().join("further.ron"), scenario);
    let sweep =
        r#"(name: "both", scenario: "further.ron", replicates: 2, budget: (parallel: 2, threads: 1, lease_s: 5))"#;
    write(&place.path().join("sweep.ron"), sweep);
    let done = |line: &str| succeeds(&engine_at(place.path(), line));

    done("run further.ron --id first --until 1 --progress none");
    done("check first");
    done("resume first --progress none");
    let table = done("sweep sweep.ron");

    assert_eq!(table.matches(" done ").count(), 2, "{table}");
}

/// With a policy for the slots and blueprints of the task, and what was known before measured again.
#[test]
#[ignore = "long tier"]
fn a_policy_may_decide_and_what_is_read_of_old_data_is_measured() {
    let place = given();
    let train = r#"(task: preset("digits_baseline", (batches_per_step: count(2))), policy: (controller: "actor_critic"),
        run: (rounds: 1, n_envs: 1, max_steps: 4))"#;
    write(&place.path().join("train.ron"), train);
    succeeds(&engine_at(place.path(), "run train.ron --id policy --progress none"));
    for (class, index) in (0..10).flat_map(|class| (0..10).map(move |index| (class, index))) {
        let pixels = (0..64).map(|pixel| ((pixel * (index + 3)) % 251) as u8).collect();
        let image = image::GrayImage::from_raw(8, 8, pixels).expect("64 pixels");
        let file = place.path().join(format!("old/{class}/{index}.png"));
        fs::create_dir_all(file.parent().expect("a folder")).expect("made");
        image.save(file).expect("written");
    }

    let policy = "--policy runs/policy/checkpoints/last/policy";
    let more = format!("--budget 4x --weights given.safetensors {policy} --old old --force");
    succeeds(&grow(place.path(), &more));

    let growth = growth(place.path());
    for old in each(&growth["rows"], "old") {
        assert!(old["mean"].is_number(), "{old}");
    }
    for name in each(&growth["tried"], "name") {
        assert_eq!(name, "what the policy grows");
    }
    let said = refused(&grow(place.path(), "--policy ."));
    assert_has(&said, &["policy.ron: there is no such file"]);
}

#[test]
#[ignore = "long tier"]
fn what_cannot_be_grown_is_refused_before_anything_is_played_and_nothing_is_written() {
    let place = folder();
    // One tensor of no known network: the length of the header, the header, its bytes.
    let header = r#"{"conv.weight":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    let weights = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &[0; 4]].concat();
    write(&place.path().join("mine.safetensors"), weights);
    let said = |more: &str| refused(&grow(place.path(), more));

    for (more, expected) in [
        ("--budget plenty", "valid: 2x"),
        ("--budget 1.0001x", "raise it"),
        ("--budget 0.5x", "must exceed 1x"),
        ("--rates 0.1,0", "valid: more than 0"),
        ("--normalise 1,2,3", "0..1"),
        ("--normalise 123.7,58.4", "at least -1, at most 1"),
        ("--normalise none/card.json", "there is no such file"),
        ("--host resnet21", "resnet20"),
        ("--weights missing.safetensors", "missing.safetensors"),
        ("--weights /dev/zero", "regular file"),
        ("--weights mine.safetensors", "resnet20"),
        ("--weights mine.safetensors", "name their host by --host"),
        ("--weights .", "kept.safetensors"),
    ] {
        assert_has(&said(more), &[expected]);
    }
    assert!(!place.path().join("grown").exists());
    write(&place.path().join("grown/thesis.tex"), "years");
    assert_has(&said(""), &["thesis.tex"]);
}
