//! README and guide as a reader follows them: every command runs, every scenario is valid, every link leads to something that is
//! there. Rust in them is compiled and run as documentation tests (the end of `src/lib.rs`).
//!
//! The words after a block's backticks say how it is tested:
//!
//! | block | what is done with it |
//! | --- | --- |
//! | `sh` | run line by line, in one folder a page; a line succeeds unless it ends in `# exit N` |
//! | `sh dry-run` | the same with `--dry-run`: what takes longer than ten seconds, or more than one machine |
//! | `ron` | with `// name.ron` as its first line a file, which is written and validated; otherwise fields of a scenario, validated |
//! | `rust` | a documentation test |
//! | `python` | run by `python/tests/test_guide.py`, a part of `.ci/python` |
//! | `text`, `json`, `yaml`, `toml` | shown |

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::init::photos;
use crate::program::{HEEDED, PROGRAM, ended, ends_with, folder, names, repository, write};

/// Commands that are not run, by how they begin, and why.
const NOT_RUN: [(&str, &str); 15] = [
    ("SIMIC_ENGINE_TEST_DEVICE=", "plays the tests on a GPU"),
    ("simic-engine watch", "needs a terminal; `watch.rs` plays it in one"),
    ("simic-engine report latest --http", "serves until it is stopped"),
    ("simic-engine report --http", "the same"),
    (
        "simic-engine grow --data photos/ --weights mine",
        "takes a network that somebody has trained",
    ),
    ("simic-engine adapt --weights", "the same"),
    ("make", "builds; `.ci/run` is made of it"),
    ("cargo", "builds a crate on the engine, as `.ci/crate` does"),
    (".ci/", "runs all tests, these among them"),
    ("proof/make", "takes hours"),
    ("python3 -m pip", "fetches packages"),
    ("pip install", "fetches packages"),
    ("source <(COMPLETE=", "for an interactive shell: `completions.rs`"),
    ("sbatch", "needs Slurm; `.ci/cluster` has it"),
    ("scripts/gpu-check.sh", "builds, and needs a GPU to say anything"),
];

/// Commands in whose place a shorter one with the same kind of result is run.
const SHORTER: [(&str, &str); 1] = [(
    "make run",
    "simic-engine run scenarios/quickstart.ron --rounds 1 --envs 2 --steps 20 --progress none",
)];

struct Block {
    /// The words after the backticks.
    kind: String,
    /// The number of the line after them, from 1.
    line: usize,
    lines: Vec<String>,
}

fn read(page: &str) -> String {
    crate::program::read(&repository().join(page))
}

/// The page's blocks, and its text without them.
fn parts(page: &str) -> (Vec<Block>, Vec<String>) {
    let (mut blocks, mut prose) = (Vec::new(), Vec::new());
    let mut open: Option<Block> = None;
    for (index, line) in read(page).lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(kind), None) => {
                open = Some(Block {
                    kind: kind.trim().to_owned(),
                    line: index + 2,
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

/// The folder in which a page is followed: it has a clone's files, and the reader's data.
fn prepared() -> tempfile::TempDir {
    let folder = folder();
    for shared in ["scenarios", "scripts", "proof", "README.md"] {
        symlink(repository().join(shared), folder.path().join(shared)).expect("a link");
    }
    photos(&folder.path().join("photos"), ["apple", "pear", "plum"]);
    let story = "the seed grows, the host learns, and the seed is committed. ".repeat(400);
    write(&folder.path().join("story.txt"), story);
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
            let end = command.find(" #").or_else(|| command.find(" -- "));
            command.insert_str(end.unwrap_or(command.len()), " --dry-run");
        }
        let code = line.rsplit_once("# exit ").map_or("0", |(_, code)| code.trim());
        let programs = Path::new(PROGRAM).parent().expect("a folder").display();
        let path = format!("{programs}:{}", std::env::var("PATH").unwrap_or_default());
        let mut shell = Command::new("sh");
        shell.args(["-c", &command]).current_dir(&at).env("PATH", path);
        for variable in HEEDED {
            shell.env_remove(variable);
        }
        let begun = Instant::now();
        let output = ended(&mut shell);
        println!("{place}: {:.1} s: {command}", begun.elapsed().as_secs_f64());
        ends_with(code.parse().expect("an exit code"), &output);
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
    write(&at.join(name), whole);
    let mut validate = Command::new(PROGRAM);
    validate.args(["validate", name]).current_dir(at);
    println!("{place}: {name}");
    if named.is_some() {
        ends_with(0, &ended(&mut validate));
    } else {
        // A file may rely on the data of its page; fields stand for a reader's own.
        ends_with(0, &ended(validate.arg("--no-data")));
        std::fs::remove_file(at.join(name)).expect("it was written");
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
    adapt_your_network: "docs/guide/src/adapt.md",
    grow_on_your_data: "docs/guide/src/grow.md",
    your_own_data: "docs/guide/src/your-data.md",
    bring_a_network: "docs/guide/src/bring_a_network.md",
    python: "docs/guide/src/python.md",
    take_it_away: "docs/guide/src/take_it_away.md",
    look_at_a_run: "docs/guide/src/look.md",
    when_something_fails: "docs/guide/src/failures.md",
    grow_your_first_network: "docs/guide/src/first-network.md",
    read_a_run: "docs/guide/src/read-a-run.md",
    your_own_host: "docs/guide/src/your-host.md",
    let_a_policy_learn: "docs/guide/src/policy.md",
    learn_from_recordings: "docs/guide/src/recordings.md",
    decide_from_python: "docs/guide/src/python_envs.md",
    judge_a_claim: "docs/guide/src/judge.md",
    many_trainings_many_machines: "docs/guide/src/many-machines.md",
    gpus: "docs/guide/src/gpus.md",
    write_an_extension: "docs/guide/src/extensions.md",
}

/// Targets of links, code left out.
fn links(prose: &[String]) -> Vec<String> {
    let without_code = prose.iter().flat_map(|line| line.split('`').step_by(2).chain(["\n"]));
    let without_code: String = without_code.collect();
    let targets = without_code.split("](").skip(1);
    let targets = targets.filter_map(|rest| rest.split_once(')').map(|(target, _)| target.to_owned()));
    targets.filter(|target| !target.contains("://")).collect()
}

/// Anchors of the headings.
fn anchors(page: &str) -> Vec<String> {
    let headings = parts(page).1.into_iter().filter(|line| line.starts_with('#'));
    let anchor = |heading: String| -> String {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let is_kept = |letter: &char| letter.is_alphanumeric() || " -_".contains(*letter);
        let kept = words.chars().filter(is_kept);
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
        "docs/README.md",
        "docs/SUMMARY.md",
        "proof/README.md",
        "proof/policy/README.md",
    ];
    let in_folders = ["docs/reference", "proof/claims"].into_iter().flat_map(|folder| {
        let pages = names(&repository().join(folder)).into_iter();
        let pages = pages.filter(|name| name.ends_with(".md"));
        pages.map(move |name| format!("{folder}/{name}"))
    });
    let mut broken = Vec::new();

    for page in PAGES.iter().chain(&others).map(ToString::to_string).chain(in_folders) {
        for link in links(&parts(&page).1) {
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let page_itself = PathBuf::from(&page);
            let target = match path {
                "" => page_itself,
                path => page_itself.with_file_name(path),
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
    let mut listed = links(&parts("docs/SUMMARY.md").1);
    let followed = PAGES.iter().filter_map(|page| page.strip_prefix("docs/"));
    let followed: Vec<&str> = followed.collect();
    assert_eq!(listed[1..=followed.len()], followed);

    let pages = ["", "guide/src/", "reference/"].into_iter().flat_map(|folder| {
        let files = names(&repository().join("docs").join(folder)).into_iter();
        files.map(move |name| format!("{folder}{name}"))
    });
    let mut pages: Vec<String> = pages.filter(|page| page.ends_with(".md")).collect();
    pages.retain(|page| page != "SUMMARY.md");
    listed.sort_unstable();
    pages.sort_unstable();
    assert_eq!(listed, pages);
}

#[test]
fn functions_that_the_guide_points_to_stand_in_the_files_that_it_links() {
    let page = "docs/guide/src/extensions.md";
    let mut pointed = 0;
    for row in parts(page).1 {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [_, function, file] = cells[..] else { continue };
        let name = function.strip_prefix('`').and_then(|rest| rest.split_once('`'));
        let mut code = links(&[file.to_owned()]);
        code.retain(|link| link.contains("/crates/"));
        let files = code.iter().map(|link| repository().join(page).with_file_name(link));
        let texts = files.filter_map(|file| std::fs::read_to_string(file).ok());
        let texts: Vec<String> = texts.collect();
        let (Some((name, _)), false) = (name, texts.is_empty()) else {
            continue;
        };
        pointed += 1;
        let begins = format!("fn {name}(");
        let is_there = texts.iter().any(|text| text.contains(&begins));
        assert!(is_there, "{name} is not in {file}");
    }
    assert!(pointed >= 6, "{pointed}");
}

#[test]
fn the_readme_is_short() {
    assert!(read("README.md").lines().count() <= 120);
}
