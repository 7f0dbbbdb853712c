//! `simic-engine serve-envs`: the program as a client meets it, frame by frame.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::Mutex;

use serde_json::{Value, json};
use simic_engine::extend::HeadIndices;
use simic_engine::internals::controller::Chosen;
use simic_engine::prelude::*;

use crate::program::{call, command, ended, engine, refused, text};

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

/// What the program answers.
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

    fn error(&self) -> (&str, bool) {
        assert_eq!(self.header["kind"], "error", "{:?}", self.header);
        (
            self.header["message"].as_str().expect("a text"),
            self.header["fatal"].as_bool().expect("a boolean"),
        )
    }
}

impl Served {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let scenario = folder.path().join("served.ron");
        // Whose controller is left to the program.
        std::fs::write(&scenario, SCENARIO.replace("controller: \"random\", ", "")).expect("it is written");
        let mut child = command(&["serve-envs", "--threads", "2"])
            .arg(scenario)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the engine starts");
        let input = child.stdin.take();
        let output = child.stdout.take().expect("a pipe");
        Self {
            child,
            input,
            output,
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

    fn send(&mut self, header: &[u8], body: &[u8]) {
        let input = self.input.as_mut().expect("it is open");
        let lengths = [
            &(header.len() as u32).to_le_bytes()[..],
            &(body.len() as u64).to_le_bytes(),
        ];
        input
            .write_all(&[&lengths.concat(), header, body].concat())
            .expect("it is read");
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
            let count: u64 = array["shape"]
                .as_array()
                .expect("a shape")
                .iter()
                .flat_map(Value::as_u64)
                .product();
            let size = match array["dtype"].as_str() {
                Some("f64" | "i64") => 8,
                Some("f32") => 4,
                _ => 1,
            };
            let rest = body.split_off(count as usize * size);
            arrays.insert(
                array["name"].as_str().expect("a name").into(),
                std::mem::replace(&mut body, rest),
            );
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

/// What an engine by itself did in a step of an env.
#[derive(Clone, Debug, PartialEq)]
struct Page {
    indices: Option<HeadIndices>,
    reward: f64,
}

#[derive(Clone, Debug, PartialEq)]
struct Ending {
    accuracy: f64,
    test: Option<f64>,
    total: f64,
    length: u32,
    rollbacks: u32,
}

#[derive(Default)]
struct Diary {
    /// All envs of a step, in order.
    steps: Vec<Vec<Page>>,
    /// All envs of a round.
    rounds: Vec<Vec<Ending>>,
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
        let page = |env: &<DiarizedEnv as bevy_ecs::query::QueryData>::Item<'_, '_>| Page {
            indices: env.1.0.as_ref().map(|decision| decision.indices),
            reward: env.2.0.map_or(0.0, |reward| reward.total()),
        };
        diary.steps.push(envs.iter().map(page).collect());
        if envs.iter().any(|env| env.4.end.is_none()) {
            return;
        }
        let ending = |env: &<DiarizedEnv as bevy_ecs::query::QueryData>::Item<'_, '_>| Ending {
            accuracy: env.4.last_val.expect("it was measured").accuracy_percent,
            test: env.5.0.map(|(accuracy, _)| accuracy),
            total: env.3.total(),
            length: env.4.end.expect("it has ended").step,
            rollbacks: env.4.rollbacks,
        };
        diary.rounds.push(envs.iter().map(ending).collect());
    };
    let mut engine = crate::support::engine(SCENARIO);
    engine
        .app_mut()
        .add_systems(StepEnd, keep.in_set(EngineSet::Record).after(Work::EvaluateTest));
    engine.run().expect("the run ends well");
    drop(engine);
    Arc::into_inner(diary)
        .expect("the engine is gone")
        .into_inner()
        .expect("no panic")
}

#[test]
fn the_same_actions_over_the_pipe_come_to_the_same_numbers_as_inside() {
    let inside = played_inside();
    assert_eq!((inside.steps.len(), inside.rounds.len()), (2 * STEPS, 2));
    let has_waited = |env: usize| {
        inside.steps[..STEPS]
            .iter()
            .filter(|step| step[env].indices.is_none())
            .count()
    };
    let out_of_it = [has_waited(0), has_waited(1), has_waited(2)];
    assert_eq!(
        out_of_it,
        [0, 1, 6],
        "one rollback, and one episode that ends with its second"
    );

    let (mut served, _) = Served::greeted("factored");
    let mut shown = served.reset(None);
    let mut rounds = inside.rounds.iter();
    for (index, pages) in inside.steps.iter().enumerate() {
        let decides: Vec<bool> = shown.arrays["decides"].iter().map(|&decides| decides == 1).collect();
        let decided: Vec<bool> = pages.iter().map(|page| page.indices.is_some()).collect();
        assert_eq!(decides, decided, "step {index}");
        let wait = [0, 0, 2, 1, 2, 0, 0, 0];
        let actions = pages
            .iter()
            .flat_map(|page| page.indices.unwrap_or(wait).map(i64::from));
        let actions: Vec<i64> = actions.collect();

        shown = served.step(&actions, &[ENVS, 8]);

        assert_eq!(shown.header["kind"], "step", "{:?}", shown.header);
        let rewards: Vec<f64> = pages.iter().map(|page| page.reward).collect();
        assert_eq!(shown.f64s("rewards"), rewards, "step {index}");
        let is_last = (index + 1).is_multiple_of(STEPS);
        assert_eq!(shown.header.get("episodes").is_some(), is_last, "step {index}");
        if !is_last {
            continue;
        }
        let told = shown.header["episodes"]
            .as_array()
            .expect("episodes")
            .iter()
            .map(|episode| Ending {
                accuracy: episode["final_accuracy"].as_f64().expect("a number"),
                test: episode["test_accuracy"].as_f64(),
                total: episode["return"].as_f64().expect("a number"),
                length: episode["length"].as_u64().expect("a count") as u32,
                rollbacks: episode["rollbacks"].as_u64().expect("a count") as u32,
            });
        assert_eq!(told.collect::<Vec<_>>(), *rounds.next().expect("two rounds"));
        // The next episodes have begun: the first step of the next round is due.
        assert_eq!(shown.header["step"], 1);
        assert_ne!(shown.arrays["final_observations"], shown.arrays["observations"]);
    }
    served.send(br#"{"kind":"close"}"#, &[]);
    let (code, said) = served.end();
    assert_eq!((code, said.as_str()), (Some(0), ""));
}

/// The highest legal action of every env: in the flat list the growing, not the waiting.
fn highest(shown: &Answer) -> Vec<i64> {
    (0..ENVS)
        .map(|env| *shown.legal(env).last().expect("an action") as i64)
        .collect()
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
fn an_env_that_was_rolled_back_may_only_wait() {
    let (mut served, hello) = Served::greeted("flat");
    let names = hello.header["actions"]["names"].as_array().expect("names");
    assert_eq!(names[0], "wait");

    // Env 2 is rolled back in step 3, whose decision is due behind two steps.
    let shown = steps(&mut served, None, 2).pop().expect("three");

    assert_eq!(shown.arrays["decides"], [1, 1, 0]);
    assert_eq!(shown.legal(2), [0]);
    let mut actions = vec![0; ENVS];
    actions[2] = 1;
    let answer = served.step(&actions, &[ENVS]);
    let said = format!(
        "env 2: action 1, {}, is masked: the env was rolled back in this step, and may only wait; nothing was done",
        names[1].as_str().expect("a name")
    );
    assert_eq!(answer.error(), (said.as_str(), false));
}

#[test]
fn what_is_refused_is_named_and_nothing_of_it_is_done() {
    let (mut served, hello) = Served::greeted("flat");
    let undisturbed = steps(&mut served, Some(5), 3);

    let answer = served.reset(Some(5));
    assert_eq!(answer, undisturbed[0]);
    let names = hello.header["actions"]["names"].as_array().expect("names");
    let commit = names
        .iter()
        .position(|name| name == "commit(r0c1)")
        .expect("a commit of the slot in the middle") as i64;
    let count = names.len();
    let refusals = [
        // Env 0 could germinate; that it does not is what is tested.
        (
            served.step(&[1, commit, 0], &[ENVS]),
            format!("env 1: action {commit}, commit(r0c1), is masked: the slot is empty"),
        ),
        (
            served.step(&[0, 0, 99_999], &[ENVS]),
            format!("env 2: action 99999 is none of the {count} that there are"),
        ),
        (
            served.step(&[0, 0, -1], &[ENVS]),
            format!("env 2: action -1 is none of the {count} that there are"),
        ),
        (
            served.step(&[0, 0], &[2]),
            "a step takes one array: actions, i64, [3], 24 bytes; this frame has".into(),
        ),
        (
            served.step(&[0, 0], &[ENVS]),
            "a step takes one array: actions, i64, [3], 24 bytes; this frame has".into(),
        ),
        (
            served.ask(&json!({"kind": "hello", "version": 1}), &[]),
            "hello is said once".into(),
        ),
        (
            served.ask(&json!({"kind": "jump"}), &[]),
            "a frame's header is not understood: unknown variant `jump`".into(),
        ),
    ];
    for (answer, begins) in &refusals {
        let (message, is_fatal) = answer.error();
        assert!(message.starts_with(begins.as_str()) && !is_fatal, "{message}");
    }
    for pair in undisturbed.windows(2) {
        assert_eq!(served.step(&highest(&pair[0]), &[ENVS]), pair[1]);
    }
}

#[test]
fn a_client_of_another_version_is_told_both() {
    let mut served = Served::start();
    let answer = served.ask(&json!({"kind": "hello", "version": 2, "novelty": []}), &[]);

    let (message, is_fatal) = answer.error();
    assert!(
        is_fatal && message.contains("version 2") && message.contains("version 1"),
        "{message}"
    );
    let message = message.to_owned();
    let (code, said) = served.end();
    assert_eq!((code, said), (Some(2), format!("error: {message}\n")));

    let mut served = Served::start();
    let answer = served.reset(None);
    assert!(answer.error().0.starts_with("the first frame has to be a hello"));
    assert_eq!(served.end().0, Some(2));
}

#[test]
fn the_program_ends_with_the_pipe_also_in_the_middle_of_a_frame() {
    let (mut served, _) = Served::greeted("flat");
    served.reset(None);
    assert_eq!(served.end().0, Some(143));

    let (mut served, _) = Served::greeted("flat");
    served
        .input
        .as_mut()
        .expect("it is open")
        .write_all(&[80, 0, 0])
        .expect("it is read");
    assert_eq!(served.end().0, Some(143));

    let (mut served, _) = Served::greeted("flat");
    served
        .input
        .as_mut()
        .expect("it is open")
        .write_all(&[0xFF; 12])
        .expect("it is read");
    let answer = served.receive();
    assert!(
        answer.error().1 && answer.error().0.contains("announces 4294967295 bytes"),
        "{:?}",
        answer.header
    );
    assert_eq!(served.end().0, Some(2));
}

#[test]
fn a_scenario_that_cannot_be_served_is_refused_as_by_any_command() {
    let standard_input = engine(&["serve-envs", "-"]);
    assert!(refused(&standard_input).contains("standard input is where requests come from"));
    let own = ["serve-envs", "--set", "policy.controller=wait"];
    assert!(refused(&engine(&own)).contains("policy.controller"));
    // Alone nothing orders anything.
    let alone = ["run", "--set", "policy.controller=external", "--rounds", "1"];
    let folder = tempfile::tempdir().expect("a folder");
    let run = ended(call(&alone).arg("--out").arg(folder.path()));
    assert!(refused(&run).contains("serve-envs"));
}
