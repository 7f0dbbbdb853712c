//! `simic-engine serve-envs`: the program as a client meets it, frame by frame.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::Mutex;

use serde_json::{Value, json};
use simic_engine::extend::HeadIndices;
use simic_engine::internals::controller::Chosen;
use simic_engine::prelude::*;

use crate::program::{assert_has, command, engine, folder, refused, text, write};

/// Three envs under a governor that has to roll two of them back; the third episode of a round is over by that.
const SCENARIO: &str = r#"(
    name: "served",
    task: preset("digits_impaired", (batches_per_step: count(4))),
    run: (rounds: 2, n_envs: 3, max_steps: 9, seed: 7),
    policy: (controller: "random", masks: (action_space: (allowed_ops: None, alpha_target: None))),
    governor: (max_rollbacks_per_episode: 2),
    faults: [
        (env: 1, round: 0, step: 4, batch: 1, fault: nan_weight),
        (env: 2, round: 0, step: 3, batch: 1, fault: nan_weight),
        (env: 2, round: 0, step: 5, batch: 1, fault: nan_weight),
    ],
)"#;
const ENVS: usize = 3;
const STEPS: usize = 9;

/// A started program with the scenario's envs.
struct Served {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    _folder: tempfile::TempDir,
}

/// An answer of the program.
#[derive(Debug, PartialEq)]
struct Answer {
    header: Value,
    arrays: BTreeMap<String, Vec<u8>>,
}

impl Answer {
    fn f64s(&self, name: &str) -> Vec<f64> {
        let (words, _) = self.arrays[name].as_chunks();
        words.iter().map(|&word| f64::from_le_bytes(word)).collect()
    }

    /// The legal actions of an env, flat.
    fn legal(&self, env: usize) -> Vec<usize> {
        let mask = &self.arrays["action_mask"];
        let row = &mask[env * mask.len() / ENVS..(env + 1) * mask.len() / ENVS];
        (0..row.len()).filter(|&action| row[action] == 1).collect()
    }

    /// Its error message.
    fn error(&self, is_fatal: bool) -> &str {
        assert_eq!(self.header["kind"], "error", "{:?}", self.header);
        assert_eq!(self.header["fatal"], is_fatal, "{:?}", self.header);
        self.header["message"].as_str().expect("a text")
    }
}

impl Served {
    fn start() -> Self {
        let folder = folder();
        let scenario = folder.path().join("served.ron");
        // Whose controller is left to the program.
        write(&scenario, SCENARIO.replace("controller: \"random\", ", ""));
        let mut program = command("serve-envs --threads 2");
        let piped = program.arg(scenario).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.stderr(Stdio::piped()).spawn().expect("the engine starts");
        Self {
            input: child.stdin.take(),
            output: child.stdout.take().expect("a pipe"),
            child,
            _folder: folder,
        }
    }

    /// With the answer to its hello.
    fn greeted(actions: &str) -> (Self, Answer) {
        let mut served = Self::start();
        let hello = served.ask(&json!({"kind": "hello", "version": 1, "actions": actions}), &[]);
        assert_eq!(hello.header["kind"], "hello", "{:?}", hello.header);
        (served, hello)
    }

    fn write(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("it is open");
        input.write_all(bytes).expect("it is read");
    }

    fn send(&mut self, header: &[u8], body: &[u8]) {
        let (of_header, of_body) = (header.len() as u32, body.len() as u64);
        self.write(&of_header.to_le_bytes());
        self.write(&of_body.to_le_bytes());
        self.write(&[header, body].concat());
    }

    fn receive(&mut self) -> Answer {
        let mut lengths = [0; 12];
        self.output.read_exact(&mut lengths).expect("a frame");
        let (header, body) = lengths.split_at(4);
        let mut header = vec![0; u32::from_le_bytes(header.try_into().expect("4 bytes")) as usize];
        let mut body = vec![0; u64::from_le_bytes(body.try_into().expect("8 bytes")) as usize];
        self.output.read_exact(&mut header).expect("a header");
        self.output.read_exact(&mut body).expect("arrays");
        let header: Value = serde_json::from_slice(&header).expect("JSON");
        let mut arrays = BTreeMap::new();
        for array in header["arrays"].as_array().expect("arrays") {
            let shape = array["shape"].as_array().expect("a shape").iter();
            let count: u64 = shape.flat_map(Value::as_u64).product();
            let size = match array["dtype"].as_str() {
                Some("f64" | "i64") => 8,
                Some("f32") => 4,
                _ => 1,
            };
            let rest = body.split_off(count as usize * size);
            let name = array["name"].as_str().expect("a name").into();
            arrays.insert(name, std::mem::replace(&mut body, rest));
        }
        assert!(body.is_empty(), "the arrays are all that there is");
        Answer { header, arrays }
    }

    fn ask(&mut self, header: &Value, body: &[u8]) -> Answer {
        self.send(header.to_string().as_bytes(), body);
        self.receive()
    }

    fn reset(&mut self, seed: Option<u64>) -> Answer {
        self.ask(&json!({"kind": "reset", "seed": seed}), &[])
    }

    /// With the numbers of all actions, of the given shape.
    fn step(&mut self, actions: &[i64], shape: &[usize]) -> Answer {
        let array = json!({"name": "actions", "dtype": "i64", "shape": shape});
        let bytes: Vec<u8> = actions.iter().flat_map(|action| action.to_le_bytes()).collect();
        self.ask(&json!({"kind": "step", "arrays": [array]}), &bytes)
    }

    /// The exit code, and what was said on standard error.
    fn end(mut self) -> (Option<i32>, String) {
        drop(self.input.take());
        let output = self.child.wait_with_output().expect("it ends");
        (output.status.code(), text(&output.stderr))
    }
}

/// Course of an engine by itself, all envs in order.
#[derive(Default)]
struct Diary {
    /// Orders and rewards.
    steps: Vec<Vec<(Option<HeadIndices>, f64)>>,
    /// The end of each of them, as the program reports it.
    rounds: Vec<Vec<Value>>,
}

type DiarizedEnv<'a> = (
    &'a EnvId,
    &'a Chosen,
    &'a StepReward,
    &'a EpisodeReward,
    &'a EpisodeStats,
    &'a TestResult,
);

/// The scenario played by its own controller.
fn played_inside() -> Diary {
    let diary = Arc::new(Mutex::new(Diary::default()));
    let kept = diary.clone();
    let keep = move |envs: Query<DiarizedEnv>| {
        let mut diary = kept.lock().expect("no panic");
        let mut envs: Vec<_> = envs.iter().collect();
        envs.sort_by_key(|(id, ..)| id.index);
        let steps = envs.iter().map(|(_, chosen, reward, ..)| {
            let indices = chosen.0.as_ref().map(|decision| decision.indices);
            (indices, reward.0.map_or(0.0, |reward| reward.total()))
        });
        diary.steps.push(steps.collect());
        let endings = envs.iter().map(|(.., paid, stats, test)| {
            let (end, val) = (stats.end?, stats.last_val?);
            Some(json!({
                "final_accuracy": val.accuracy_percent,
                "test_accuracy": test.0.map(|(accuracy, _)| accuracy),
                "return": paid.total(),
                "length": end.step,
                "rollbacks": stats.rollbacks,
            }))
        });
        // Once all have ended.
        diary.rounds.extend(endings.collect::<Option<Vec<_>>>());
    };
    let mut engine = crate::support::engine(SCENARIO);
    engine
        .app_mut()
        .add_systems(StepEnd, keep.in_set(EngineSet::Record).after(Work::EvaluateTest));
    engine.run().expect("the run ends well");
    drop(engine);
    let diary = Arc::into_inner(diary).expect("the engine is gone");
    diary.into_inner().expect("no panic")
}

#[test]
fn the_same_actions_over_the_pipe_come_to_the_same_numbers_as_inside() {
    let inside = played_inside();
    assert_eq!((inside.steps.len(), inside.rounds.len()), (2 * STEPS, 2));
    let has_waited = |env: usize| {
        let steps = inside.steps[..STEPS].iter();
        steps.filter(|step| step[env].0.is_none()).count()
    };
    let out_of_it = [has_waited(0), has_waited(1), has_waited(2)];
    // One rollback, and one episode that ends with its second.
    assert_eq!(out_of_it, [0, 1, 6]);

    let (mut served, _) = Served::greeted("factored");
    let mut shown = served.reset(None);
    let mut rounds = inside.rounds.iter();
    for (index, pages) in inside.steps.iter().enumerate() {
        let decided: Vec<u8> = pages.iter().map(|(indices, _)| indices.is_some().into()).collect();
        assert_eq!(shown.arrays["decides"], decided, "step {index}");
        let wait = [0, 0, 2, 1, 2, 0, 0, 0];
        let action = |(indices, _): &(Option<HeadIndices>, f64)| indices.unwrap_or(wait).map(i64::from);

        shown = served.step(&pages.iter().flat_map(action).collect::<Vec<_>>(), &[ENVS, 8]);

        assert_eq!(shown.header["kind"], "step", "{:?}", shown.header);
        let rewards: Vec<f64> = pages.iter().map(|(_, reward)| *reward).collect();
        assert_eq!(shown.f64s("rewards"), rewards, "step {index}");
        let is_last = (index + 1).is_multiple_of(STEPS);
        assert_eq!(shown.header.get("episodes").is_some(), is_last, "step {index}");
        if !is_last {
            continue;
        }
        let endings = rounds.next().expect("two rounds");
        let episodes = shown.header["episodes"].as_array().expect("episodes");
        assert_eq!(episodes.len(), ENVS);
        for (episode, ending) in episodes.iter().zip(endings) {
            for (field, value) in ending.as_object().expect("fields") {
                assert_eq!(episode[field], *value, "{field}");
            }
        }
        // The next episodes have begun: the first step of the next round is due.
        assert_eq!(shown.header["step"], 1);
        assert_ne!(shown.arrays["final_observations"], shown.arrays["observations"]);
    }
    served.send(br#"{"kind":"close"}"#, &[]);
    assert_eq!(served.end(), (Some(0), String::new()));
}

/// The highest legal action of every env: in the flat list the growing, not the waiting.
fn highest(shown: &Answer) -> Vec<i64> {
    let highest = |env| *shown.legal(env).last().expect("an action") as i64;
    (0..ENVS).map(highest).collect()
}

/// The answers to a reset and to `count` steps of [`highest`].
fn steps(served: &mut Served, seed: Option<u64>, count: usize) -> Vec<Answer> {
    let mut answers = vec![served.reset(seed)];
    for _ in 0..count {
        let actions = highest(&answers[answers.len() - 1]);
        answers.push(served.step(&actions, &[ENVS]));
    }
    answers
}

#[test]
fn a_reset_with_a_seed_gives_the_same_bytes_every_time() {
    let (mut served, _) = Served::greeted("flat");

    let first = steps(&mut served, Some(3), 5);
    let again = steps(&mut served, Some(3), 5);
    let other = steps(&mut served, Some(4), 1);

    assert_eq!(first, again);
    assert_ne!(first[0].arrays["observations"], other[0].arrays["observations"]);
    let own = steps(&mut served, None, 1);
    assert_eq!(own, steps(&mut served, Some(7), 1), "without one it is the scenario's");
}

#[test]
fn what_is_refused_is_named_and_nothing_of_it_is_done() {
    let (mut served, hello) = Served::greeted("flat");
    let names = hello.header["actions"]["names"].as_array().expect("names");
    assert_eq!(names[0], "wait");
    let commit = names.iter().position(|name| name == "commit(r0c1)");
    let commit = commit.expect("a commit of the slot in the middle") as i64;

    // Env 2 is rolled back in step 3, whose decision is due after two steps.
    let shown = steps(&mut served, None, 2).pop().expect("three");
    assert_eq!(shown.arrays["decides"], [1, 1, 0]);
    assert_eq!(shown.legal(2), [0]);
    let said = format!(
        "env 2: action 1, {}, is masked: the env was rolled back in this step, and may only wait; nothing was done",
        names[1].as_str().expect("a name")
    );
    assert_eq!(served.step(&[0, 0, 1], &[ENVS]).error(false), said);

    let undisturbed = steps(&mut served, Some(5), 3);
    assert_eq!(served.reset(Some(5)), undisturbed[0]);
    let masked = format!("env 1: action {commit}, commit(r0c1), is masked: the slot is empty");
    let [beyond, below] = [99_999, -1].map(|action| {
        let count = names.len();
        format!("env 2: action {action} isn't one of the {count} actions")
    });
    let shape = "a step takes one array: actions, i64, [3], 24 bytes; this frame has";
    let refusals: [(&[i64], usize, &str); 5] = [
        // Env 0 could germinate; that it does not is what is tested.
        (&[1, commit, 0], ENVS, &masked),
        (&[0, 0, 99_999], ENVS, &beyond),
        (&[0, 0, -1], ENVS, &below),
        (&[0, 0], 2, shape),
        (&[0, 0], ENVS, shape),
    ];
    for (actions, width, begins) in refusals {
        let answer = served.step(actions, &[width]);
        let message = answer.error(false);
        assert!(message.starts_with(begins), "{message}");
    }
    let again = served.ask(&json!({"kind": "hello", "version": 1}), &[]);
    assert_has(again.error(false), &["hello may be sent only once"]);
    let unknown = served.ask(&json!({"kind": "jump"}), &[]);
    let expected = "a frame's header is not understood: unknown variant `jump`";
    assert_has(unknown.error(false), &[expected]);
    for pair in undisturbed.windows(2) {
        assert_eq!(served.step(&highest(&pair[0]), &[ENVS]), pair[1]);
    }
}

#[test]
fn a_client_of_another_version_reads_both_and_one_without_a_hello_a_line() {
    let mut served = Served::start();
    let answer = served.ask(&json!({"kind": "hello", "version": 2, "novelty": []}), &[]);

    let message = answer.error(true);
    assert_has(message, &["version 2", "version 1"]);
    assert_eq!(served.end(), (Some(2), format!("error: {message}\n")));

    let mut served = Served::start();
    let answer = served.reset(None);
    let first = "the first frame has to be a hello";
    assert!(answer.error(false).starts_with(first), "{:?}", answer.header);
    let unknown = served.ask(&json!({"kind": "x".repeat(1 << 19)}), &[]);
    assert!(unknown.error(false).len() < 1000);
    served.send(br#"{"kind": "close"}"#, &[]);
    assert_eq!(served.end().0, Some(0));
}

#[test]
fn the_program_ends_with_the_pipe_also_in_the_middle_of_a_frame() {
    let (mut served, _) = Served::greeted("flat");
    served.reset(None);
    assert_eq!(served.end().0, Some(143));

    let (mut served, _) = Served::greeted("flat");
    served.write(&[80, 0, 0]);
    assert_eq!(served.end().0, Some(143));

    let (mut served, _) = Served::greeted("flat");
    served.write(&[0xFF; 12]);
    assert_has(served.receive().error(true), &["announces 4294967295 bytes"]);
    assert_eq!(served.end().0, Some(2));
}

#[test]
fn a_scenario_that_cannot_be_served_is_refused_as_by_any_command() {
    let folder = folder();
    // Alone nothing orders anything.
    let alone = "run --set policy.controller=external --rounds 1";
    let alone = format!("{alone} --out '{}'", folder.path().display());

    let cases: [(&str, &str); 3] = [
        ("serve-envs -", "requests come from standard input"),
        ("serve-envs --set policy.controller=wait", "policy.controller"),
        (&alone, "serve-envs"),
    ];
    for (line, expected) in cases {
        assert_has(&refused(&engine(line)), &[expected]);
    }
}
