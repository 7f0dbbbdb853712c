//! The command line around scenarios: validate, list, explain, and what `run` accepts and refuses.

use crate::program::{engine, refused, repository, succeeds, text};

#[test]
fn all_shipped_scenarios_are_valid() {
    let root = repository();
    let in_folder = |folder: &'static str| {
        std::fs::read_dir(root.join(folder))
            .expect("the folder exists")
            .map(move |entry| format!("{folder}/{}", entry.expect("an entry").file_name().display()))
    };
    let mut files: Vec<String> = in_folder("scenarios")
        .chain(in_folder("src/prior_art/scenarios/cifar"))
        .filter(|name| name.ends_with(".ron"))
        .collect();
    files.sort();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();

    insta::assert_snapshot!(succeeds(&engine(&[&["validate", "--no-data"], &files[..]].concat())));
}

#[test]
fn the_scenario_of_the_readme_is_valid() {
    let readme = include_str!("../../README.md");
    let (_, rest) = readme.split_once("```ron\n").expect("an example scenario");
    let (scenario, _) = rest.split_once("```").expect("its end");
    let (_folder, file) = written("my-experiment.ron", scenario.as_bytes());

    assert!(succeeds(&engine(&["validate", &file])).contains("ok, digits_impaired with 8 envs, 3 rounds of 60 steps"));
}

#[test]
fn list_shows_what_the_build_knows() {
    let lists = [
        "tasks",
        "data",
        "hosts",
        "blueprints",
        "rewards",
        "controllers",
        "networks",
        "presets",
        "events",
        "plugins",
    ];
    insta::assert_snapshot!(lists.map(|what| succeeds(&engine(&["list", what]))).join("\n"));
}

#[test]
fn explain_shows_a_field_a_choice_a_section_and_all_sections() {
    let paths = [
        "run.n_envs",
        "training.amp",
        "policy.heuristic.rotation",
        "run",
        "task.preset",
        "task.host_opt",
    ];
    let texts: Vec<_> = paths.iter().map(|path| succeeds(&engine(&["explain", path]))).collect();
    insta::assert_snapshot!(texts.join("\n"));
    insta::assert_snapshot!(succeeds(&engine(&["explain"])));
}

#[test]
fn explain_knows_the_fields_of_a_sweep_file() {
    let paths = ["sweep", "sweep.budget.lease_s", "sweep.draw"];
    let texts: Vec<_> = paths.iter().map(|path| succeeds(&engine(&["explain", path]))).collect();
    insta::assert_snapshot!(texts.join("\n"));

    let refusals = ["axes", "sweep.budgt", "sweeps"].map(|path| refused(&engine(&["explain", path])));
    assert!(refusals[0].contains("did you mean `sweep.axes`?"), "{}", refusals[0]);
    assert!(
        refusals[1].starts_with("error: `sweep` has no field `budgt`"),
        "{}",
        refusals[1]
    );
    assert!(refusals[1].contains("did you mean `sweep.budget`?"), "{}", refusals[1]);
    assert!(
        refusals[2].starts_with("error: a scenario has no field `sweeps`"),
        "{}",
        refusals[2]
    );
}

/// Another host under the quickstart's task: what does not fit is the task's own, which the user never wrote.
#[test]
fn a_host_that_does_not_fit_is_told_with_the_fields_to_set() {
    let task = |host: &str| {
        let host = format!("task.host={host}");
        refused(&engine(&["run", "--dry-run", "--set", &host]))
    };

    let colours = task("named(\"resnet20\")");
    assert!(
        colours.contains("task.host: expected one mean per channel of the host (3) in task.normalise, found 1"),
        "{colours}"
    );
    assert!(colours.contains("help: write task.normalise: auto"), "{colours}");
    let smaller = task("cnn((in_channels: 1, base_channels: 4, n_blocks: 2, pool_layers: 2, input_hw: 8))");
    assert!(
        smaller.contains("the host has no slot r0c2; valid: r0c0, r0c1, r1c0, r1c1"),
        "{smaller}"
    );
    assert!(
        smaller.contains("help: write lifecycle.slots: [\"r0c0\", \"r0c1\", \"r1c0\", \"r1c1\"], or some of them"),
        "{smaller}"
    );
}

#[test]
fn explain_tells_a_number_s_range_and_default() {
    insta::assert_snapshot!(succeeds(&engine(&["explain", "run.rounds"])));
}

#[test]
fn help_names_commands_and_flags() {
    insta::assert_snapshot!(succeeds(&engine(&["--help"])));
    insta::assert_snapshot!(succeeds(&engine(&["run", "-h"])));
}

#[test]
fn programs_read_lists_explanations_and_verdicts_as_json() {
    let parsed = |arguments: &[&str]| -> serde_json::Value {
        serde_json::from_str(&succeeds(&engine(arguments))).expect("one JSON document")
    };
    assert_eq!(parsed(&["list", "tasks", "--json"])[1]["name"], "digits_impaired");
    assert_eq!(parsed(&["list", "hosts", "--json"])[0]["name"], "cnn");
    assert_eq!(parsed(&["list", "blueprints", "--json"])[0]["selectable"], false);
    assert_eq!(parsed(&["list", "controllers", "--json"])[0]["name"], "actor_critic");
    assert_eq!(parsed(&["list", "rewards", "--json"])[2]["name"], "loss()");
    assert_eq!(parsed(&["list", "presets", "--json"])[0]["field"], "preset");
    assert_eq!(parsed(&["list", "events", "--json"])[8]["level"], "full");
    assert_eq!(parsed(&["list", "plugins", "--json"])[6]["name"], "GovernorPlugin");
    assert_eq!(parsed(&["explain", "run.rounds", "--json"])["default"], "100");
    assert_eq!(
        parsed(&["validate", "--json", "scenarios/quickstart.ron"])[0]["is_valid"],
        true
    );
}

/// Files as a user might have written them.
fn written(name: &str, content: &[u8]) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    std::fs::write(&path, content).expect("a file");
    (folder, path.display().to_string())
}

const SEVERAL_MISTAKES: &str = r#"(
    task: preset("digits_impared"),
    run: (n_envs: 0, rounds: "ten", devices: ["gpu"]),
    trainng: (amp: off),
    lifecycle: (slots: ["r0c9"]),
)"#;

#[test]
fn validate_reports_every_mistake_and_the_other_files_too() {
    let (folder, bad) = written("mine.ron", SEVERAL_MISTAKES.as_bytes());

    let output = engine(&["validate", &bad, "scenarios/quickstart.ron"]);

    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stdout).starts_with("scenarios/quickstart.ron: ok"));
    let report = text(&output.stderr).replace(&format!("{}/", folder.path().display()), "");
    insta::assert_snapshot!(report);
}

#[test]
fn validate_tells_programs_where_each_mistake_is() {
    let (folder, bad) = written("mine.ron", SEVERAL_MISTAKES.as_bytes());

    let output = engine(&["validate", "--json", &bad]);

    assert_eq!(output.status.code(), Some(2));
    assert!(output.stderr.is_empty());
    insta::assert_snapshot!(text(&output.stdout).replace(&format!("{}/", folder.path().display()), ""));
}

#[test]
fn validate_finds_what_a_run_would_at_its_start_unless_told_not_to_look() {
    let no_data = r#"(task: preset("mnist_baseline", (data: idx_folder(path: "nowhere", scale: 255.0))))"#;
    let no_gpu = r#"(run: (devices: ["cuda:99"]))"#;

    for (scenario, what) in [
        (no_data, "'nowhere' was not found; looked at "),
        (no_gpu, "the run asks for `cuda:99`"),
    ] {
        let (_folder, file) = written("mine.ron", scenario.as_bytes());
        let [validated, played] = ["validate", "run"].map(|command| refused(&engine(&[command, &file])));
        assert!(validated.contains(&format!("{file}: ")), "{validated}");
        assert!(validated.contains(what), "{validated}");
        assert!(played.contains(what), "{played}");
        succeeds(&engine(&["validate", "--no-data", &file]));
    }
}

#[test]
fn a_dry_run_shows_a_task_in_full_and_can_be_played_as_it_is() {
    let short = ["--rounds", "1", "--envs", "1", "--steps", "2"];
    let shown = succeeds(&engine(
        &[&["run", "--dry-run", "--set", "task.batch_size=16"], &short[..]].concat(),
    ));
    let (_, task) = shown.split_once("    task: custom((").expect("a task in full");
    let (task, _) = task.split_once("    data: (").expect("the next section");
    insta::assert_snapshot!(task);

    let (_folder, file) = written("shown.ron", shown.as_bytes());
    let again = succeeds(&engine(&["run", "--dry-run", &file]));
    assert_eq!(again, shown);
}

#[test]
fn a_file_that_is_no_text_is_refused_where_the_text_ends() {
    let (_folder, bad) = written("mine.ron", b"(\n  name: \"\xff\",\n)");

    for command in ["validate", "run"] {
        let message = refused(&engine(&[command, &bad]));
        assert!(message.contains(&format!("{bad}:2:10 is not UTF-8 text")), "{message}");
    }
}

#[test]
fn explain_of_an_unknown_path_names_the_nearest() {
    insta::assert_snapshot!(refused(&engine(&["explain", "run.n_env"])));
    insta::assert_snapshot!(refused(&engine(&["explain", "min_prune_age"])));
}

#[test]
fn a_dry_run_of_the_built_in_quickstart_shows_its_digits_task() {
    let text = succeeds(&engine(&["run", "--dry-run", "--rounds", "1"]));
    assert!(text.contains("digits_impaired"), "{text}");
}

#[test]
fn a_dry_run_tells_how_much_memory_what_takes() {
    let text = succeeds(&engine(&["run", "--dry-run", "--envs", "4"]));
    assert!(text.contains("\n// memory of cpu, 4 envs: up to "), "{text}");
    assert!(text.contains(" hosts (smaller with run.n_envs, task.host)\n"), "{text}");

    let preview = succeeds(&engine(&["run", "--dry-run", "--json", "--envs", "4"]));
    let preview: serde_json::Value = serde_json::from_str(&preview).expect("JSON");
    let machine = &preview["memory"]["places"][0];
    assert_eq!(
        (machine["device"].as_str(), machine["envs"].as_u64()),
        (Some("cpu"), Some(4))
    );
    // Parameters, gradients and momentum of a host of 75 values.
    let needs = machine["needs"].as_array().expect("a list");
    let hosts = needs
        .iter()
        .find(|need| need["what"] == "hosts")
        .expect("hosts take memory");
    assert_eq!(hosts["per_env"].as_u64(), Some(75 * 3 * 4));
}

#[test]
fn a_run_that_does_not_fit_into_its_limit_of_memory_is_refused() {
    let told = refused(&engine(&["run", "--set", "run.memory_limit_gib=0.001"]));
    assert!(told.contains("run.memory_limit_gib allows 1.0 MiB"), "{told}");
}

#[test]
fn a_field_given_by_flag_and_by_set_is_refused() {
    insta::assert_snapshot!(refused(&engine(&[
        "run",
        "--dry-run",
        "--rounds",
        "2",
        "--set",
        "run.rounds=3"
    ])));
}

#[test]
fn a_flag_out_of_range_is_refused_like_a_field() {
    insta::assert_snapshot!(refused(&engine(&[
        "run",
        "--dry-run",
        "--envs",
        "0",
        "--steps",
        "many",
        "--level",
        "loud"
    ])));
}

#[test]
fn wrong_usage_is_refused() {
    assert!(refused(&engine(&["run", "--set", "rounds"])).contains("expected path=value"));
    assert!(refused(&engine(&["run", "nowhere.ron"])).contains("cannot read the scenario nowhere.ron"));
    assert!(refused(&engine(&["dance"])).contains("unrecognized subcommand"));
}

#[test]
fn a_refused_run_touches_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("runs");
    refused(&engine(&[
        "run",
        "--out",
        &out.to_string_lossy(),
        "--set",
        "run.rounds=0",
    ]));
    assert!(!out.exists());
}

#[test]
fn a_scenario_of_an_earlier_version_is_read_with_one_warning_of_its_names() {
    let output = engine(&["validate", "tests/goldens/scenarios/digits_rescue.ron"]);

    succeeds(&output);
    let warnings = text(&output.stderr);
    assert_eq!(warnings.matches("warning: ").count(), 1, "{warnings}");
    assert!(
        warnings.contains("`embargo_epochs` is now `embargo_steps`"),
        "{warnings}"
    );
    assert!(
        warnings.contains("names of an earlier version are still read"),
        "{warnings}"
    );
}
