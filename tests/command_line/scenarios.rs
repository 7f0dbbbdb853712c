//! The command line around scenarios: validate, list, explain, and what `run` accepts and refuses.

use crate::program::{
    assert_has, each, ends_with, engine, engine_at, folder, json, names, refused, repository, succeeds, text, write,
};

#[test]
fn all_shipped_scenarios_are_valid() {
    let in_folder = |folder: &str| {
        let mut files = names(&repository().join(folder));
        files.retain(|name| name.ends_with(".ron"));
        files.iter().map(|name| format!(" {folder}/{name}")).collect::<String>()
    };
    let files = in_folder("scenarios") + &in_folder("src/prior_art/scenarios/cifar");

    insta::assert_snapshot!(succeeds(&engine(&format!("validate --no-data {files}"))));
}

#[test]
fn the_scenario_of_the_readme_is_valid() {
    let readme = include_str!("../../README.md");
    let (_, rest) = readme.split_once("```ron\n").expect("an example scenario");
    let (scenario, _) = rest.split_once("```").expect("its end");
    let folder = written(scenario);

    let valid = succeeds(&engine_at(folder.path(), "validate mine.ron"));

    let expected = "ok, digits_impaired with 8 envs, 3 rounds of 60 steps";
    assert_has(&valid, &[expected]);
}

/// Output of a command for each of these words.
fn printed(command: &str, words: &str) -> String {
    let text = |word| succeeds(&engine(&format!("{command} {word}")));
    words.split(' ').map(text).collect::<Vec<_>>().join("\n")
}

#[test]
fn list_shows_what_the_build_knows() {
    let lists = "tasks data hosts blueprints rewards controllers networks presets events plugins";
    insta::assert_snapshot!(printed("list", lists));
}

#[test]
fn explain_shows_a_field_a_choice_a_section_and_all_sections() {
    let paths = "run.n_envs training.amp policy.heuristic.rotation run task.preset task.host_opt";
    insta::assert_snapshot!(printed("explain", paths));
    insta::assert_snapshot!(succeeds(&engine("explain")));
}

#[test]
fn explain_knows_the_fields_of_a_sweep_file() {
    insta::assert_snapshot!(printed("explain", "sweep sweep.budget.lease_s sweep.draw"));

    for (path, expected) in [
        ("axes", "did you mean `sweep.axes`?"),
        ("sweep.budgt", "error: `sweep` has no field `budgt`"),
        ("sweep.budgt", "did you mean `sweep.budget`?"),
        ("sweeps", "error: a scenario has no field `sweeps`"),
    ] {
        assert_has(&refused(&engine(&format!("explain {path}"))), &[expected]);
    }
}

/// Another host under the quickstart's task: what does not fit is the task's own, which the user never wrote.
#[test]
fn a_host_that_does_not_fit_is_refused_with_the_fields_to_set() {
    let small = "cnn((in_channels: 1, base_channels: 4, n_blocks: 2, pool_layers: 2, input_hw: 8))";
    let colours = [
        "task.host: expected one mean per channel of the host (3) in task.normalise, found 1",
        "or write task.normalise: auto",
    ];
    let smaller = [
        "the host has no slot r0c2; valid: r0c0, r0c1, r1c0, r1c1",
        "help: write lifecycle.slots: [\"r0c0\", \"r0c1\", \"r1c0\", \"r1c1\"], or some of them",
    ];

    for (host, words) in [("named(\"resnet20\")", colours), (small, smaller)] {
        let message = refused(&engine(&format!("run --dry-run --set 'task.host={host}'")));
        assert_has(&message, &words);
    }
}

#[test]
fn explain_tells_a_number_s_range_and_default() {
    insta::assert_snapshot!(succeeds(&engine("explain run.rounds")));
}

#[test]
fn help_names_commands_and_flags() {
    insta::assert_snapshot!(succeeds(&engine("--help")));
    insta::assert_snapshot!(succeeds(&engine("run -h")));
}

#[test]
fn programs_read_lists_explanations_and_verdicts_as_json() {
    let answer = |line: &str| json(&succeeds(&engine(&format!("{line} --json"))));
    for (list, index, field, expected) in [
        ("tasks", 1, "name", "digits_impaired"),
        ("hosts", 0, "name", "cnn"),
        ("controllers", 0, "name", "actor_critic"),
        ("rewards", 2, "name", "loss()"),
        ("presets", 0, "field", "preset"),
        ("events", 8, "name", "decision"),
        ("plugins", 6, "name", "GovernorPlugin"),
    ] {
        let list = answer(&format!("list {list}"));
        assert_eq!(each(&list, field)[index], expected);
    }
    assert_eq!(answer("list blueprints")[0]["selectable"], false);
    assert_eq!(answer("explain run.rounds")["default"], "100");
    assert_eq!(answer("explain task")["default"], r#"preset("digits_impaired")"#);
    assert_eq!(answer("validate scenarios/quickstart.ron")[0]["is_valid"], true);
}

/// A folder with a scenario as a user might have written it, `mine.ron`.
fn written(scenario: impl AsRef<[u8]>) -> tempfile::TempDir {
    let folder = folder();
    write(&folder.path().join("mine.ron"), scenario);
    folder
}

const SEVERAL_MISTAKES: &str = r#"(
    task: preset("digits_impared"),
    run: (n_envs: 0, rounds: "ten", devices: ["gpu"]),
    trainng: (amp: off),
    lifecycle: (slots: ["r0c9"]),
)"#;

#[test]
fn validate_reports_every_mistake_and_the_other_files_too() {
    let folder = written(SEVERAL_MISTAKES);

    let output = engine_at(folder.path(), "validate mine.ron scenarios/quickstart.ron");

    let report = ends_with(2, &output);
    assert!(text(&output.stdout).starts_with("scenarios/quickstart.ron: ok"));
    let place = format!("{}/", folder.path().display());
    insta::assert_snapshot!(report.replace(&place, ""));
}

#[test]
fn validate_tells_programs_where_each_mistake_is() {
    let folder = written(SEVERAL_MISTAKES);

    let output = engine_at(folder.path(), "validate --json mine.ron");

    assert_eq!(ends_with(2, &output), "");
    let place = format!("{}/", folder.path().display());
    insta::assert_snapshot!(text(&output.stdout).replace(&place, ""));
}

#[test]
fn validate_finds_what_a_run_would_at_its_start_unless_asked_not_to_look() {
    let no_data = r#"(task: preset("mnist_baseline", (data: idx_folder(path: "nowhere", scale: 255.0))))"#;
    let no_gpu = r#"(run: (devices: ["cuda:99"]))"#;

    for (scenario, what) in [
        (no_data, "'nowhere' was not found; looked at "),
        (no_gpu, "the run asks for `cuda:99`"),
    ] {
        let folder = written(scenario);
        let validated = refused(&engine_at(folder.path(), "validate mine.ron"));
        assert_has(&validated, &["/mine.ron: ", what]);
        assert_has(&refused(&engine_at(folder.path(), "run mine.ron")), &[what]);
        succeeds(&engine_at(folder.path(), "validate --no-data mine.ron"));
    }
}

#[test]
fn a_dry_run_shows_a_task_in_full_and_can_be_played_unchanged() {
    let size = "--rounds 1 --envs 1 --steps 2";
    let shown = succeeds(&engine(&format!("run --dry-run --set task.batch_size=16 {size}")));
    let (_, task) = shown.split_once("    task: custom((").expect("a task in full");
    let (task, _) = task.split_once("    data: (").expect("the next section");
    insta::assert_snapshot!(task);

    let folder = written(&shown);
    let again = succeeds(&engine_at(folder.path(), "run --dry-run mine.ron"));
    assert_eq!(again, shown);
}

#[test]
fn a_file_that_is_not_text_is_refused_where_the_text_ends() {
    let folder = written(b"(\n  name: \"\xff\",\n)");

    for command in ["validate", "run"] {
        let message = refused(&engine_at(folder.path(), &format!("{command} mine.ron")));
        assert_has(&message, &["/mine.ron:2:10 is not UTF-8 text"]);
    }
}

#[test]
fn explain_of_an_unknown_path_names_the_nearest() {
    insta::assert_snapshot!(refused(&engine("explain run.n_env")));
    insta::assert_snapshot!(refused(&engine("explain min_prune_age")));
}

#[test]
fn a_dry_run_of_the_built_in_quickstart_shows_its_task_and_how_much_memory_it_takes() {
    let shown = succeeds(&engine("run --dry-run --envs 4"));
    let memory = "\n// memory of cpu, 4 envs: about 2";
    assert_has(&shown, &["digits_impaired", memory, "1→1 at 8x8 by direct sums"]);

    let preview = json(&succeeds(&engine("run --dry-run --json --envs 4")));
    let machine = &preview["memory"][0];
    assert_eq!(machine["device"], "cpu");
    assert_eq!(machine["envs"], 4);
    let bytes = machine["bytes"].as_u64().expect("a number");
    // The program takes most of it: 245 MiB were measured.
    assert!((208 << 20..282 << 20).contains(&bytes), "{bytes}");
}

#[test]
fn a_field_given_by_flag_and_by_set_is_refused() {
    insta::assert_snapshot!(refused(&engine("run --dry-run --rounds 2 --set run.rounds=3")));
}

#[test]
fn a_flag_out_of_range_is_refused_like_a_field() {
    insta::assert_snapshot!(refused(&engine("run --dry-run --envs 0 --steps many")));
}

#[test]
fn a_run_that_does_not_fit_into_its_limit_of_memory_is_refused() {
    let said = refused(&engine("run --set run.memory_limit_gib=0.001"));
    assert_has(&said, &["run.memory_limit_gib allows 1.0 MiB"]);
}

#[test]
fn a_refused_run_touches_nothing() {
    let root = folder();
    refused(&engine_at(root.path(), "run --set run.rounds=0"));
    assert!(names(root.path()).is_empty());
}
