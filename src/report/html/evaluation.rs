//! The page of an evaluation: is the policy better than its opponents on the same episodes, by how much, and which seeds does it
//! grow? Its tables are those of the text.

use maud::{Markup, html};

use super::page::{Page, shown, table, tile};
use super::pictures::{Point, Spread, forest, scatter};
use crate::compare::statistics::{Arm, Verdict};
use crate::compare::{ControllerSummary, Difference};
use crate::eval::Evaluation;
use crate::files::counted;
use crate::report::comparison::verdict_words;
use crate::report::evaluation::{cost_table, difference_tables, in_words, legend, score_tables, seed_tables};

/// The whole page.
pub fn evaluation_page(evaluation: &Evaluation) -> String {
    let mut page = Page::new(format!("evaluation of {}: simic-engine", evaluation.scenario));
    page.head = Some(head(evaluation));
    let body = html! {
        (differences(&evaluation.comparison.differences))
        @for table in difference_tables(evaluation) { (shown(table)) }
    };
    page.section("differences", "Is the policy better?", body);
    let body = html! { @for table in score_tables(evaluation) { (shown(table)) } };
    page.section("players", "How good are they?", body);
    page.section("growth", "What is grown, and when?", growth(evaluation));
    page.section("costs", "What does it cost?", costs(evaluation));
    let body = html! { ul { @for line in legend(evaluation) { li { (line) } } } };
    page.section("reading", "How do you read this?", body);
    page.render(None)
}

fn head(evaluation: &Evaluation) -> Markup {
    let comparison = &evaluation.comparison;
    let policy = evaluation.subject.policy.display();
    let episodes = comparison.players.first().map_or(0, |player| player.episodes.len());
    html! {
        p.name { (policy) }
        h1 { (verdict(&comparison.differences)) }
        p.note {
            (evaluation.task) ", scenario " (evaluation.scenario) "; "
            @if let Some(checkpoint) = &evaluation.subject.checkpoint { "checkpoint " (checkpoint.from) ", after " (counted(checkpoint.rounds, "round")) "; " }
            "every player plays the same episodes of " (evaluation.steps) " steps, with the seeds"
            @for seed in &evaluation.seeds { " " (seed.0) }
        }
        @for note in &evaluation.notes { p.problem { (note) } }
        @if comparison.unmeasured > 0 { p.problem { (counted(comparison.unmeasured, "episode")) " left out: a network was rolled back before it was measured" } }
        div.tiles {
            (tile(&episodes.to_string(), "episodes of each player"))
            @for player in &comparison.players {
                (tile(&format!("{:.1} %", player.accuracy.mean.value), &player.name))
            }
        }
    }
}

/// Verdict on this policy by accuracy, in a sentence.
fn verdict(differences: &[Difference]) -> String {
    let of = |wanted: Verdict, words: &str| {
        let pairs = differences.iter().filter(|pair| pair.verdict == wanted);
        let pairs = pairs.map(|pair| format!("{} than {}", pair.policy, pair.baseline));
        let pairs: Vec<String> = pairs.collect();
        (!pairs.is_empty()).then(|| format!("{words}: {}.", pairs.join(", ")))
    };
    let said = [
        of(Verdict::Better(Arm::First), "Better"),
        of(Verdict::Better(Arm::Second), "Worse"),
    ];
    let said: Vec<String> = said.into_iter().flatten().collect();
    let is_short = differences.iter().all(|pair| pair.verdict == Verdict::InsufficientData);
    match () {
        () if differences.is_empty() => "There is nothing to compare it with.".into(),
        () if is_short => "Too few episodes to say whether it is better than any opponent.".into(),
        () if said.is_empty() => "These episodes do not show that it is better or worse than any opponent.".into(),
        () => said.join(" "),
    }
}

fn differences(differences: &[Difference]) -> Markup {
    let spreads = differences.iter().map(|pair| {
        let (policy, opponent, verdict) = (&pair.policy, &pair.baseline, verdict_words(Some(pair.verdict)));
        Spread {
            name: format!("{policy} - {opponent}: {verdict}"),
            estimate: pair.accuracy.difference.mean,
        }
    });
    let about = "Policy minus opponent, mean over the episodes, with 95 % intervals over episodes.";
    forest("Differences of accuracy.", about, "points of accuracy", spreads)
}

fn growth(evaluation: &Evaluation) -> Markup {
    html! {
        @for table in seed_tables(evaluation) { (shown(table)) }
        @for commits in &evaluation.commits {
            h3 { (commits.name) ": episodes with a commit of" }
            (table(&["slot", "blueprints"], &[], commits.slots.iter().map(|slot| vec![slot.slot.to_string(), in_words(slot)])))
        }
    }
}

fn costs(evaluation: &Evaluation) -> Markup {
    let players = &evaluation.comparison.players;
    let names: Vec<&str> = players.iter().map(|player| player.name.as_str()).collect();
    let points = |of: fn(&ControllerSummary) -> Option<f64>| {
        players.iter().filter_map(move |player| {
            Some(Point {
                group: &player.name,
                name: player.name.clone(),
                cost: of(player)?,
                accuracy: player.accuracy.mean.value,
            })
        })
    };
    let about = "Means over the episodes of a player.";
    html! {
        div.grid {
            (scatter("parameters over the host's", about, &names, points(|player| Some(player.param_ratio.mean.value))))
            (scatter("multiply-accumulates, billions", about, &names, points(|player| player.gmacs)))
        }
        @if let Some(costs) = cost_table(evaluation) { (shown(costs)) }
    }
}
