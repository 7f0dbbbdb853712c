//! Kept state × interruption: a run that is interrupted and resumed ends with the same bits as one that was left alone.
//!
//! Rows are what a run keeps ([`KEPT`]), each in several forms; columns are how it is interrupted ([`Interruption::all`]), at
//! several moments. Every pair is played by the same means: whole; interrupted; resumed; compared ([`Stage`]). Ordinary tests play
//! every row and every column at least once, in pairs that the commit draws, so that they move. With
//! `SIMIC_ENGINE_TEST_TIER=long` all pairs are played with every form, and the smallest run meets a fault at every operation on its
//! files. A pair that has failed is played again, with every form and at every moment, by
//! `SIMIC_ENGINE_TEST_PAIR="ROW / COLUMN" cargo test --test engine interruptions::`.
//!
//! Slips that the matrix has to find are listed in `docs/reference/interruptions.md`.

mod application;
mod kept;
mod laws;
mod lives;
mod record;
#[path = "../../support/interruptions.rs"]
mod shared;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Mutex;
use std::time::Instant;

use simic_engine::internals::engine::{Extension, Prepared};
use simic_engine::internals::random::{ContentRng, Draw};

use crate::support::is_long;
use kept::KEPT;
use lives::{Interruption, Moment, Stage};
use shared::seed_of_commit;

/// Plays the pairs whose names begin with its value, in place of others.
const PAIR: &str = "SIMIC_ENGINE_TEST_PAIR";
/// Operations of the smallest run, and some more.
const MOST_OPERATIONS: u64 = 280;

/// Moments at which a row may be interrupted in this way.
const fn moments(row: usize, how: Interruption) -> u64 {
    match how {
        Interruption::Storage(_) if row == 0 => MOST_OPERATIONS,
        Interruption::Storage(_) => 12,
        Interruption::StopBetween => 3,
        _ => 6,
    }
}

/// A pair of the matrix, in one form and at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Case {
    /// A row, by its place.
    row: usize,
    form: usize,
    how: Interruption,
    when: Moment,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (row, how, Moment { part, of }) = (KEPT[self.row].name, self.how.name(), self.when);
        write!(f, "{row} / {how} / form {} / moment {part} of {of}", self.form)
    }
}

/// Every case there is, form by form.
fn grid() -> impl Iterator<Item = Case> {
    let rows = KEPT.iter().enumerate();
    let forms = rows.flat_map(|(row, kept)| (0..kept.forms()).map(move |form| (row, form)));
    forms.flat_map(|(row, form)| {
        Interruption::all().into_iter().flat_map(move |how| {
            let of = moments(row, how);
            let moments = (0..of).map(move |part| Moment { part, of });
            moments.map(move |when| Case { row, form, how, when })
        })
    })
}

/// Every pair with every form, at a moment that differs from form to form; of the smallest run all moments.
fn all() -> Vec<Case> {
    let columns = Interruption::all();
    let column = |how| columns.iter().position(|&known| known == how);
    let is_meant = |case: &Case| {
        let moment = 5 * case.form + 7 * column(case.how).unwrap_or_default() + case.row;
        case.row == 0 || case.when.part == moment as u64 % case.when.of
    };
    grid().filter(is_meant).collect()
}

/// Every row once; columns, each at least once, forms and moments as `seed` draws them.
fn drawn(seed: u64) -> Vec<Case> {
    let mut rng = ContentRng::from_seed(seed);
    let mut columns = Interruption::all();
    rng.shuffle(&mut columns);
    let of_row = |row: usize| {
        let of_pair = grid().filter(|case| (case.row, case.how) == (row, columns[row % columns.len()]));
        let of_pair: Vec<Case> = of_pair.collect();
        of_pair[rng.below(of_pair.len() as u64) as usize]
    };
    (0..KEPT.len()).map(of_row).collect()
}

/// Plays cases of one row and form, which is played whole once; returns all that is wrong.
fn play_form(cases: &[Case]) -> Vec<String> {
    let extension = Extension::new(application::register);
    let names = extension.names().expect("names are free");
    let kept = &KEPT[cases[0].row];
    let is_sound = |text: &str| Prepared::from_ron("drawn.ron", text, &[], &names.catalog).is_ok();
    let scenario = kept.scenario(cases[0].form, is_sound);
    let stage = Stage {
        scenario: &scenario,
        names,
        shows: kept.shows,
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let whole = match stage.whole(&folder.path().join("whole")) {
        Ok(whole) => whole,
        Err(failure) => return vec![format!("{}: {failure}\n{scenario}", cases[0])],
    };
    let failure = |case: &Case| {
        let home = tempfile::tempdir().expect("a temporary folder");
        let played = stage.interrupted(&whole, case.how, case.when, home.path());
        played.err().map(|failure| format!("{case}: {failure}"))
    };
    cases.iter().filter_map(failure).collect()
}

/// Plays cases, those of two forms at a time.
fn play(cases: &[Case]) {
    let begun = Instant::now();
    let forms = Mutex::new(cases.chunk_by(|one, other| (one.row, one.form) == (other.row, other.form)));
    let next = || forms.lock().expect("no thread panics here").next();
    let work = || std::iter::from_fn(next).flat_map(play_form).collect::<Vec<String>>();
    let failures = std::thread::scope(|scope| {
        let other = scope.spawn(work);
        let mut failures = work();
        failures.extend(other.join().expect("its failures are texts"));
        failures
    });
    println!("{} cases in {:.1} s", cases.len(), begun.elapsed().as_secs_f64());
    let again = format!("again: {PAIR}=\"ROW / COLUMN\" cargo test --test engine interruptions::");
    assert!(failures.is_empty(), "{}\n{again}", failures.join("\n"));
}

#[test]
fn what_is_kept_ends_with_the_same_bits_however_it_is_interrupted() {
    let cases: Vec<Case> = match std::env::var(PAIR) {
        Ok(name) => grid().filter(|case| case.to_string().starts_with(&name)).collect(),
        Err(_) if is_long() => all(),
        Err(_) => drawn(seed_of_commit()),
    };
    play(&cases);
}

#[test]
fn every_draw_has_every_row_and_every_column_and_another_draw_has_others() {
    let names = |cases: &[Case]| -> BTreeSet<String> { cases.iter().map(ToString::to_string).collect() };
    for seed in 0..8 {
        let cases = drawn(seed);
        assert!((0..KEPT.len()).all(|row| cases.iter().any(|case| case.row == row)));
        let mut columns = Interruption::all().into_iter();
        assert!(columns.all(|how| cases.iter().any(|case| case.how == how)));
        assert_ne!(names(&cases), names(&drawn(seed + 1)));
    }
}
