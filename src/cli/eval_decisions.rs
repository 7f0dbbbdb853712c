//! How the players of an evaluation decide: what became of their seeds and when, and what a policy commits where.

use std::cmp::Reverse;

use serde::Serialize;

use crate::compare::{ControllerSummary, DecisionSummary, SlotCommits};
use crate::growth::SlotId;
use crate::report::{ABSENT, Table, wrapped};

/// What the numbers of a slot begin after.
const INDENT: &str = "        ";

/// What became of the seeds of an episode, player by player.
pub fn seed_table(players: &[ControllerSummary]) -> Table {
    let heads = ["germinated", "committed", "pruned", "lost", "no commit, %"];
    table("seeds of an episode", &heads, players, |decisions| {
        let counts = [
            decisions.germinated,
            decisions.fossilized,
            decisions.pruned,
            decisions.lost,
        ];
        let counts = counts.map(|count| format!("{count:.2}"));
        let share = format!("{:.1}", 100.0 * decisions.without_commit);
        counts.into_iter().chain([share]).collect()
    })
}

/// At which steps it came to that, player by player.
pub fn step_table(players: &[ControllerSummary]) -> Table {
    let heads = ["first seed", "first commit", "last commit"];
    table("at step", &heads, players, |decisions| {
        let steps = [
            decisions.first_germination,
            decisions.first_commit,
            decisions.last_commit,
        ];
        let cell = |step: Option<f64>| step.map_or_else(|| ABSENT.into(), |step| format!("{step:.1}"));
        steps.map(cell).into()
    })
}

fn table(
    title: &str,
    heads: &[&str],
    players: &[ControllerSummary],
    cells: fn(&DecisionSummary) -> Vec<String>,
) -> Table {
    let mut table = Table::new(&[title], heads);
    for player in players {
        let absent = || vec![ABSENT.into(); heads.len()];
        let cells = player.decisions.as_ref().map_or_else(absent, cells);
        table.push(std::iter::once(player.name.clone()).chain(cells).collect());
    }
    table
}

/// What a learned policy commits.
#[derive(Serialize)]
pub struct PolicyCommits {
    /// Of the player.
    name: String,
    /// In policy order.
    slots: Vec<SlotCommits>,
}

impl PolicyCommits {
    /// `None` for a player whose episodes do not tell.
    pub fn of(player: &ControllerSummary, slots: &[SlotId]) -> Option<Self> {
        Some(Self {
            name: player.name.clone(),
            slots: SlotCommits::by_slot(slots, &player.episodes)?,
        })
    }

    /// A head, and a line a slot, of at most `width` characters; what has no room goes on in the next line.
    pub fn to_text(&self, width: usize) -> String {
        let room = width.saturating_sub(INDENT.len());
        let lines = self.slots.iter().map(|commits| {
            let told = wrapped(&in_words(commits), room).replace('\n', &format!("\n{INDENT}"));
            format!("  {:<4}  {told}\n", commits.slot.to_string())
        });
        format!(
            "  {}: committed in so many episodes\n{}",
            self.name,
            lines.collect::<String>()
        )
    }
}

/// `conv_heavy 31, conv_light 9, nothing 8`: the most frequent first, equals by name.
fn in_words(commits: &SlotCommits) -> String {
    let mut blueprints: Vec<_> = commits.blueprints.iter().collect();
    blueprints.sort_by_key(|&(_, &episodes)| Reverse(episodes));
    let nothing = (commits.nothing > 0).then(|| format!("nothing {}", commits.nothing));
    let blueprints = blueprints
        .into_iter()
        .map(|(blueprint, episodes)| format!("{blueprint} {episodes}"));
    blueprints.chain(nothing).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
