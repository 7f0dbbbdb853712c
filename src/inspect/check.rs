//! Checks whether the folder of a run or a sweep is sound, and lists its remaining uses.
//!
//! It compares every recorded hash with its file, reads every file, and looks for missing ones. Nothing on disk is
//! changed: a run that is being played is checked as far as it is written, and content that its process has yet to write isn't
//! damage.

mod events;
mod run;
mod sweep;

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::record::ListedState;
use crate::scenario::{Catalog, visible};
use crate::sweep::SweepFolder;

/// The number of findings of a part that are listed one by one.
const LISTED: usize = 8;
/// Longest finding in characters.
const LONGEST: usize = 600;

/// The importance of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// Worth knowing; nothing is lost.
    Note,
    /// Something has changed, or is missing.
    Problem,
}

/// Something about a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Its importance.
    pub weight: Weight,
    /// Path inside the folder that was checked. Empty for the folder itself.
    pub file: String,
    /// Line, from 1. `None` where it is about the whole file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Offset of the beginning of that line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub byte: Option<u64>,
    /// The finding, and the expectation.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let (Some(line), Some(byte)) = (self.line, self.byte) {
            write!(f, ":{line} (byte {byte})")?;
        }
        if !self.file.is_empty() {
            f.write_str(": ")?;
        }
        f.write_str(&self.what)
    }
}

/// One part of a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Part {
    /// Name of the part, a word.
    pub name: String,
    /// Short summary of the checked content.
    pub seen: String,
    /// Findings, in the order in which they were found.
    pub findings: Vec<Finding>,
    /// Findings beyond those that are listed.
    pub omitted: usize,
}

impl Part {
    fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// The weight of the heaviest finding. `None` if all is well.
    pub fn weight(&self) -> Option<Weight> {
        self.findings.iter().map(|finding| finding.weight).max()
    }

    fn is_sound(&self) -> bool {
        self.weight() != Some(Weight::Problem)
    }

    fn problem(&mut self, file: impl Into<String>, what: impl Into<String>) {
        self.add(Weight::Problem, file.into(), None, what.into());
    }

    fn note(&mut self, file: impl Into<String>, what: impl Into<String>) {
        self.add(Weight::Note, file.into(), None, what.into());
    }

    /// One line at most: names in a damaged file may have any length.
    fn add(&mut self, weight: Weight, file: String, place: Option<(usize, u64)>, what: String) {
        if self.findings.len() >= LISTED {
            self.omitted += 1;
            return;
        }
        self.findings.push(Finding {
            weight,
            file,
            line: place.map(|(line, _)| line),
            byte: place.map(|(_, byte)| byte),
            what: visible(&what.replace('\n', " "), LONGEST),
        });
    }
}

/// Uses of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Use {
    /// `resume`.
    Resume,
    /// `sweep work`, which continues a sweep.
    Work,
    /// `eval`.
    Eval,
    /// `policy.replay.run` and `initial_topology` in another scenario.
    Replay,
    /// `compare`.
    Compare,
}

impl Use {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Resume => "resume",
            Self::Work => "sweep work",
            Self::Eval => "eval",
            Self::Replay => "replay",
            Self::Compare => "compare",
        }
    }
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckVerdict {
    /// Everything is as it should be.
    Sound,
    /// Something is damaged, but it can be resumed.
    Resumable,
    /// It cannot be resumed, but the rest can be used.
    Usable,
    /// It is unusable.
    Useless,
}

/// Findings of a folder's check.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// The folder.
    pub folder: PathBuf,
    /// The state of a run. `None` for anything else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<ListedState>,
    /// `true` if a process plays it now. Content that it has not written yet was not checked.
    pub is_played: bool,
    /// The result.
    pub verdict: CheckVerdict,
    /// Uses that remain.
    pub good_for: Vec<Use>,
    /// Parts, in order.
    pub parts: Vec<Part>,
}

impl Check {
    fn new(folder: &Path, parts: Vec<Part>, good_for: Vec<Use>, is_played: bool) -> Self {
        let is_sound = parts.iter().all(Part::is_sound);
        let is_resumable = good_for.iter().any(|good| matches!(good, Use::Resume | Use::Work));
        Self {
            folder: folder.into(),
            state: None,
            is_played,
            verdict: match (is_resumable || is_played, is_sound) {
                (true, true) => CheckVerdict::Sound,
                (true, false) if is_resumable => CheckVerdict::Resumable,
                _ if !good_for.is_empty() => CheckVerdict::Usable,
                _ => CheckVerdict::Useless,
            },
            good_for,
            parts,
        }
    }

    /// The same findings of a run that cannot be resumed because of something outside of the folder that its scenario names.
    #[must_use]
    pub fn not_resumable(mut self, why: &str) -> Self {
        let mut part = Part::new("inputs");
        part.problem("", why);
        self.parts.push(part);
        self.good_for.retain(|good| *good != Use::Resume);
        Self {
            state: self.state,
            ..Self::new(&self.folder, self.parts, self.good_for, self.is_played)
        }
    }

    /// The check of a folder that is neither a run nor a sweep.
    fn of_nothing(folder: &Path, why: &str) -> Self {
        let mut part = Part::new("folder");
        part.problem("", why);
        Self::new(folder, vec![part], Vec::new(), false)
    }
}

/// Looks through the run or the sweep in `folder`. `catalog` holds the names that its scenario may use.
pub fn check(folder: &Path, catalog: &Catalog) -> Check {
    if SweepFolder::is_at(folder) {
        return sweep::check(folder, catalog);
    }
    run::check(folder, catalog)
}
