//! The words of `docs/glossary.md` that are not used, looked for in everything that people read: sources, messages,
//! documents, scenarios. Underscores count as spaces, so that names are looked at as well.

use std::fs;
use std::path::{Path, PathBuf};

const GLOSSARY: &str = include_str!("../../docs/glossary.md");

/// Files that must contain old words: lists of them, and records of the past.
const EXEMPT: [&str; 7] = [
    "CHANGELOG.md",
    "docs/glossary.md",
    "proof/data-sets/",
    "proof/policy/",
    "proof/registry.md",
    "proof/results/",
    "tests/goldens/",
];

/// Kinds of files that people read.
const READ: [&str; 13] = [
    "rs", "md", "ron", "txt", "snap", "cpp", "hpp", "h", "py", "sh", "toml", "jsonl", "Makefile",
];

/// The words of the table, in lower case, with what is used instead.
fn words() -> Vec<(String, &'static str)> {
    let (_, table) = GLOSSARY
        .split_once("| not | but |")
        .expect("the glossary has its table of words");
    let rows = table.lines().filter_map(|line| line.strip_prefix("| "));
    let rows = rows.filter_map(|row| row.split_once('|'));
    rows.flat_map(|(words, instead)| {
        let words = words.split('`').skip(1).step_by(2);
        words.map(move |word| (word.to_lowercase(), instead.trim_matches(['|', ' '])))
    })
    .collect()
}

/// Files of the repository, from its root.
pub fn files() -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(&folder)).expect("a folder") {
            let entry = entry.expect("an entry");
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_ours = !["target", "runs", "node_modules"].contains(&name.as_str());
            let is_seen = !name.starts_with('.') || name == ".ci";
            match entry.file_type().expect("a type") {
                kind if kind.is_dir() && is_ours && is_seen => folders.push(folder.join(name)),
                kind if kind.is_file() => files.push(folder.join(name)),
                _ => {}
            }
        }
    }
    files.sort_unstable();
    files
}

/// `line: word; use ..` for each use of one of `words` in `text`.
fn uses(text: &str, words: &[(String, &str)]) -> Vec<String> {
    let is_part = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let text = text.to_lowercase().replace('_', " ");
    let mut found = Vec::new();
    for (word, instead) in words {
        for (at, _) in text.match_indices(word.as_str()) {
            let (before, after) = (&text[..at], &text[at + word.len()..]);
            if !is_part(before.chars().next_back()) && !is_part(after.chars().next()) {
                let line = 1 + before.matches('\n').count();
                found.push(format!("{line}: `{word}`; use: {instead}"));
            }
        }
    }
    found
}

/// Lines of documentation that start with a relative clause or a question.
fn clauses(text: &str) -> impl Iterator<Item = String> {
    let is_clause = |line: &str| {
        let doc = line.strip_prefix("/// ").or_else(|| line.strip_prefix("//! "));
        let first = doc.and_then(|doc| doc.split_whitespace().next());
        first.is_some_and(|first| ["Of", "What", "That", "Who", "Where", "Whether", "How"].contains(&first))
    };
    let lines = (1..).zip(text.lines());
    lines
        .filter(move |(_, line)| is_clause(line.trim_start()))
        .map(|(number, line)| format!("{number}: {line}"))
}

#[test]
fn words_that_the_glossary_rules_out_are_nowhere_used() {
    let words = words();
    assert!(words.len() > 20, "{words:?}");
    let mut found = Vec::new();
    for file in files() {
        let name = file.to_string_lossy().replace('\\', "/");
        let kind = file.extension().unwrap_or(file.as_os_str());
        let is_read = READ.iter().any(|read| kind == *read);
        if is_read && !EXEMPT.iter().any(|exempt| name.starts_with(exempt)) {
            let text = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(&file)).expect("it is there");
            let text = String::from_utf8_lossy(&text);
            let places = uses(&text, &words).into_iter().chain(clauses(&text));
            found.extend(places.map(|place| format!("{name}:{place}")));
        }
    }
    assert!(found.is_empty(), "{} uses:\n{}", found.len(), found.join("\n"));
}

#[test]
fn a_word_is_found_as_a_whole_in_sentences_and_names() {
    let words = [("old hat".to_owned(), "known"), ("hat".to_owned(), "cap")];

    assert_eq!(uses("an Old hat.\nfn an_old_hat_is_read()", &words[..1]).len(), 2);
    assert!(uses("that, hats, chat, old hatch", &words).is_empty());
    assert_eq!(uses("his hat", &words), ["1: `hat`; use: cap"]);
    assert_eq!(clauses("/// The host.\n    /// That of a seed.\n// How").count(), 1);
}
