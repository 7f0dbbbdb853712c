//! README and guide as a reader follows them: every command runs, every scenario is valid, every link leads to something that is
//! there. Rust in them is compiled and run as documentation tests (the end of `src/lib.rs`).
//!
//! What happens to a block is said by the words behind its backticks:
//!
//! | block | what is done with it |
//! | --- | --- |
//! | `sh` | run line by line, in one folder a page; a line succeeds unless it ends in `# exit N` |
//! | `sh dry-run` | the same with `--dry-run`: what takes longer than ten seconds, or more than one machine |
//! | `ron` | with `// name.ron` as its first line a file, which is written and validated; otherwise fields of a scenario, validated |
//! | `rust` | a documentation test |
//! | `python` | run by `python/tests/test_guide.py`, a part of `.ci/python` |
//! | `text`, `json`, `yaml`, `toml` | shown |

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::init::photos;
use crate::program::{HEEDED, ended, repository, text};

const PROGRAM: &str = env!("CARGO_BIN_EXE_simic-engine");

/// Commands that are not run, by how they begin, and why.
const NOT_RUN: [(&str, &str); 13] = [
    ("simic-engine watch", "needs a terminal; `watch.rs` plays it in one"),
    ("simic-engine report latest --http", "serves until it is stopped"),
    ("simic-engine report --http", "the same"),
    (
        "simic-engine grow --data photos/ --weights mine",
        "takes a network that somebody has trained",
    ),
    ("make", "builds; `.ci/run` is made of it"),
    (
        "cargo",
        "builds a crate that depends on the engine; `.ci/crate` does so",
    ),
    (".ci/", "runs all tests, these among them"),
    ("proof/make", "takes hours"),
    ("python3 -m pip", "fetches packages"),
    ("pip install", "fetches packages"),
    (
        "source <(COMPLETE=",
        "is for an interactive shell; see `completions.rs`",
    ),
    ("sbatch", "needs Slurm; `.ci/cluster` has it"),
    ("scripts/gpu-check.sh", "builds, and needs a GPU to say anything"),
];

/// Commands in whose place a shorter one with the same kind of result is run.
const SHORTER: [(&str, &str); 1] = [(
    "make run",
    "simic-engine run scenarios/quickstart.ron --rounds 1 --envs 2 --steps 20 --progress none",
)];

struct Block {
    /// The words behind the backticks.
    kind: String,
    /// Of the line behind them, from 1.
    line: usize,
    lines: Vec<String>,
}

fn read(page: &str) -> String {
    fs::read_to_string(repository().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

/// The page's blocks, and its text without them.
fn parts(page: &str) -> (Vec<Block>, Vec<String>) {
    let (mut blocks, mut prose) = (Vec::new(), Vec::new());
    let mut open: Option<Block> = None;
    for (index, line) in read(page).lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(kind), None) => {
                let (kind, line) = (kind.trim().to_owned(), index + 2);
                open = Some(Block {
                    kind,
                    line,
                    lines: Vec::new(),
                });
            }
            (None, Some(block)) => block.lines.push(line.to_owned()),
            (None, None) => prose.push(line.to_owned()),
        }
    }
    assert!(open.is_none(), "{page}: a block has no end");
    (blocks, prose)
}

/// Where a page is followed: what a clone has, and data of the reader's own.
fn prepared() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for shared in ["scenarios", "scripts", "proof", "README.md"] {
        symlink(repository().join(shared), folder.path().join(shared)).expect("a link");
    }
    photos(&folder.path().join("photos"), ["apple", "pear", "plum"]);
    let story = "the seed grows, the host learns, and the seed is committed. ".repeat(400);
    fs::write(folder.path().join("story.txt"), story).expect("a file");
    folder
}

/// Runs each command of a block and expects the exit code that it is said to have.
fn run_lines(place: &str, block: &Block, at: &mut PathBuf, is_dry: bool) {
    let whole = block.lines.join("\n").replace("\\\n", "");
    for line in whole.lines().map(str::trim) {
        let is_not_run = NOT_RUN.iter().any(|(begins, _)| line.starts_with(begins));
        let shorter = SHORTER.iter().find(|(long, _)| line.starts_with(long));
        if line.is_empty() || line.starts_with('#') || is_not_run && shorter.is_none() {
            continue;
        }
        if let Some(folder) = line.strip_prefix("cd ") {
            at.push(folder);
            continue;
        }
        let mut command = shorter.map_or(line, |(_, short)| short).to_owned();
        if is_dry {
            let can_be_dry = ["run ", "sweep "].map(|verb| format!("simic-engine {verb}"));
            assert!(
                can_be_dry.iter().any(|verb| command.starts_with(verb)),
                "{place}: no --dry-run for: {line}"
            );
            let end = command
                .find(" #")
                .or_else(|| command.find(" -- "))
                .unwrap_or(command.len());
            command.insert_str(end, " --dry-run");
        }
        let expected = line.rsplit_once("# exit ").map_or(0, |(_, code)| {
            code.trim()
                .parse()
                .unwrap_or_else(|_| panic!("{place}: no exit code: {line}"))
        });
        let programs = Path::new(PROGRAM).parent().expect("a folder");
        let mut path = OsString::from(programs);
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let mut shell = Command::new("sh");
        shell.args(["-c", &command]).current_dir(&at).env("PATH", path);
        for variable in HEEDED {
            shell.env_remove(variable);
        }
        let begun = Instant::now();
        let output = ended(&mut shell);
        println!("{place}: {:.1} s: {command}", begun.elapsed().as_secs_f64());
        assert_eq!(
            output.status.code(),
            Some(expected),
            "{place}: {command}\n{}{}",
            text(&output.stdout),
            text(&output.stderr)
        );
    }
}

/// Writes a file that a block shows, or fields as a file, and has it validated.
fn validate(place: &str, block: &Block, at: &Path) {
    let lines = block.lines.join("\n");
    let named = block.lines[0].strip_prefix("// ").filter(|name| name.ends_with(".ron"));
    let (name, whole) = match named {
        Some(name) => (name, lines),
        None => ("fields.ron", format!("(\n{lines}\n)")),
    };
    let file = at.join(name);
    fs::write(&file, whole).expect("a file");
    // A file may rely on the data of its page; fields stand for a reader's own.
    let arguments: &[&str] = if named.is_some() {
        &["validate", name]
    } else {
        &["validate", "--no-data", name]
    };
    let output = ended(Command::new(PROGRAM).args(arguments).current_dir(at));
    assert_eq!(output.status.code(), Some(0), "{place}: {}", text(&output.stderr));
    if named.is_none() {
        fs::remove_file(&file).expect("it was written");
    }
}

/// Does what a page says, from top to bottom.
fn follow(page: &str) {
    let folder = prepared();
    let mut at = folder.path().to_path_buf();
    for block in &parts(page).0 {
        let place = format!("{page}:{}", block.line);
        match block.kind.as_str() {
            "sh" => run_lines(&place, block, &mut at, false),
            "sh dry-run" => run_lines(&place, block, &mut at, true),
            "ron" => validate(&place, block, &at),
            "rust" | "rust,no_run" | "python" | "text" | "json" | "yaml" | "toml" => {}
            kind => panic!("{place}: nothing is done with `{kind}`"),
        }
    }
}

macro_rules! pages {
    ($($test:ident: $page:literal,)*) => {
        /// In the order of the guide's summary.
        const PAGES: &[&str] = &[$($page),*];
        $(
            #[test]
            #[ignore = "long tier"]
            fn $test() {
                follow($page);
            }
        )*
    };
}

pages! {
    the_readme: "README.md",
    contributing: "CONTRIBUTING.md",
    grow_your_first_network: "docs/guide/src/first-network.md",
    your_own_data: "docs/guide/src/your-data.md",
    your_own_host: "docs/guide/src/your-host.md",
    bring_a_network: "docs/guide/src/bring_a_network.md",
    read_a_run: "docs/guide/src/read-a-run.md",
    look_at_a_run: "docs/guide/src/look.md",
    take_it_away: "docs/guide/src/take_it_away.md",
    grow_on_your_data: "docs/guide/src/grow.md",
    let_a_policy_learn: "docs/guide/src/policy.md",
    learn_from_recordings: "docs/guide/src/recordings.md",
    decide_from_python: "docs/guide/src/python_envs.md",
    judge_a_claim: "docs/guide/src/judge.md",
    python: "docs/guide/src/python.md",
    many_trainings_many_machines: "docs/guide/src/many-machines.md",
    gpus: "docs/guide/src/gpus.md",
    write_an_extension: "docs/guide/src/extensions.md",
    when_something_fails: "docs/guide/src/failures.md",
}

/// Targets of links, code left out.
fn links(prose: &[String]) -> Vec<String> {
    let without_code: String = prose
        .iter()
        .flat_map(|line| line.split('`').step_by(2).chain(["\n"]))
        .collect();
    let targets = without_code.split("](").skip(1);
    let targets = targets.filter_map(|rest| rest.split_once(')').map(|(target, _)| target.to_owned()));
    targets.filter(|target| !target.contains("://")).collect()
}

/// What a heading is linked by.
fn anchors(page: &str) -> Vec<String> {
    let headings = parts(page).1.into_iter().filter(|line| line.starts_with('#'));
    let anchor = |heading: String| -> String {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = words
            .chars()
            .filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
        kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn every_link_leads_to_a_file_and_a_heading_that_are_there() {
    let others = [
        "CHANGELOG.md",
        "docs/architecture.md",
        "docs/glossary.md",
        "docs/guide/src/SUMMARY.md",
        "proof/README.md",
        "proof/policy/README.md",
    ];
    let reference = fs::read_dir(repository().join("docs/reference")).expect("a folder");
    let reference = reference
        .map(|entry| format!("docs/reference/{}", entry.expect("an entry").file_name().display()))
        .filter(|name| name.ends_with(".md"));
    let mut broken = Vec::new();

    for page in PAGES.iter().chain(&others).map(ToString::to_string).chain(reference) {
        for link in links(&parts(&page).1) {
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let folder = Path::new(&page).parent().expect("a page is in a folder");
            let target = if path.is_empty() {
                PathBuf::from(&page)
            } else {
                folder.join(path)
            };
            let is_there = repository().join(&target).exists();
            let target = target.to_string_lossy().into_owned();
            if !is_there || !anchor.is_empty() && !anchors(&target).iter().any(|there| there == anchor) {
                broken.push(format!("{page}: {link}"));
            }
        }
    }

    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn the_summary_lists_the_pages_that_there_are_and_each_is_followed() {
    let guide = PAGES.iter().filter_map(|page| page.strip_prefix("docs/guide/src/"));
    let guide: Vec<&str> = guide.collect();
    let folder = fs::read_dir(repository().join("docs/guide/src")).expect("a folder");
    let mut files: Vec<String> = folder
        .map(|entry| entry.expect("an entry").file_name().display().to_string())
        .filter(|name| name != "SUMMARY.md")
        .collect();
    files.sort();

    assert_eq!(links(&parts("docs/guide/src/SUMMARY.md").1), guide);
    let mut followed = guide;
    followed.sort_unstable();
    assert_eq!(files, followed);
}

#[test]
fn functions_that_the_guide_points_to_stand_in_the_files_that_it_links() {
    let page = "docs/guide/src/extensions.md";
    let mut pointed = 0;
    for row in parts(page).1 {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [_, function, file] = cells[..] else { continue };
        let name = function.strip_prefix('`').and_then(|rest| rest.split_once('`'));
        let code = links(&[file.to_owned()])
            .into_iter()
            .filter(|link| link.contains("/crates/"));
        let files = code.map(|link| repository().join(page).with_file_name(link));
        let files: Vec<PathBuf> = files.filter(|file| file.is_file()).collect();
        let (Some((name, _)), false) = (name, files.is_empty()) else {
            continue;
        };
        pointed += 1;
        let is_there =
            |file: &PathBuf| fs::read_to_string(file).is_ok_and(|text| text.contains(&format!("fn {name}(")));
        assert!(files.iter().any(is_there), "{name} is not in {file}");
    }
    assert!(pointed >= 6, "{pointed}");
}

#[test]
fn the_readme_is_short() {
    assert!(read("README.md").lines().count() <= 150);
}
