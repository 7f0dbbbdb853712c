//! The page of a run: where, when and which seeds grew, their worth, why the rest was pruned, and whether it is better than
//! nothing; and the page that lists runs, each with a link to its own.

use maud::{Markup, html};

use super::page::{Page, table, tile};
use super::{growth, learning, network, timeline};
use crate::files::{counted, name_of};
use crate::record::RunEntry;
use crate::report::results;
use crate::report::state::{RunSource, ViewState};
use crate::report::words::number;
use crate::telemetry::{LiveState, Num, RoundResult, RunState, Severity};

/// The whole page of the events so far. With `is_served` it asks for newer content.
pub fn run_page(run: &RunSource, is_served: bool) -> String {
    let (state, version) = (&run.feed.state, is_served.then_some(run.version));
    let name = name_of(run.feed.folder());
    let mut page = Page::new(format!("{name}: simic-engine"));
    page.head = Some(head(run, &name));
    if state.live.is_offline() {
        page.section("policy", "Is the policy healthy?", learning::policy(state));
        page.section("faults", "What went wrong?", faults(state));
        page.section("again", "How do you run it again?", again(run));
        return page.render(version);
    }
    page.section("learning", "Does it learn?", learning::accuracy(state));
    let best = run.best.as_ref().map(Option::as_ref);
    let kept = best.ok().flatten().map(|best| &best.origin);
    let kept = kept.and_then(|origin| state.episodes.of(origin.round, origin.env));
    let shown = kept.or(state.episodes.best.as_ref());
    let body = timeline::section(state, shown, &mut page);
    page.section("growth", "What grew where, and when?", body);
    let body = match best {
        Ok(best) => best.map(|best| {
            let (round, env) = (best.origin.round + 1, best.origin.env);
            html! {
                p.note {
                    "The best network that was kept, of round " (round) ", env " (env)
                    "; contributes: accuracy lost without the seed. To export it: "
                    code { "simic-engine export " (name) " -o best" }
                }
                (network::network(best))
            }
        }),
        Err(error) => Some(html! { p.problem { "The networks that were kept cannot be listed: " (error) } }),
    };
    if let Some(body) = body {
        page.section("network", "What is the grown network?", body);
    }
    page.section("worth", "What is it worth?", growth::worth(state, shown));
    page.section("pruned", "Why was the rest pruned?", growth::pruned(state));
    page.section("size", "Is it worth its size?", learning::size(state));
    if state.live.rounds.iter().any(|round| round.data.paid.is_some()) {
        page.section("reward", "What is paid, and for what?", learning::rewards(state));
    }
    page.section("choices", "What is chosen where and when?", growth::choices(state));
    if state.updates.seen() > 0 {
        page.section("policy", "Is the policy healthy?", learning::policy(state));
    }
    page.section("speed", "How fast is it?", learning::speed(state));
    page.section("faults", "What went wrong?", faults(state));
    page.section("again", "How do you run it again?", again(run));
    page.render(version)
}

fn head(run: &RunSource, name: &str) -> Markup {
    let live = &run.feed.state.live;
    let started = live.started.as_ref();
    let standing = match &live.finished {
        Some(end) if end.status == RunState::Completed => "completed".to_owned(),
        Some(end) if end.status == RunState::Failed => {
            let why = end.error.as_deref();
            format!("failed: {}", why.unwrap_or("its events do not say why"))
        }
        Some(_) => "stopped before its end".to_owned(),
        None if started.is_none() => "it has not begun".to_owned(),
        None => "it has not ended".to_owned(),
    };
    html! {
        p.name { (name) }
        h1 { (verdict(&run.feed.state)) }
        @if live.baseline.is_some() && started.is_some_and(|run| run.policy_params.is_some() && run.n_envs > 0) {
            p.note {
                "A host that is too small gains from anything that is added. To see whether growth is the reason: "
                code { "simic-engine eval " (name) " --against widened,from_scratch" }
            }
        }
        p.note {
            @if let Some(started) = started {
                (started.task) ", " (started.controller) ", seed " (started.seed.0) ", "
                (live.rounds.len()) " of "
                @if live.is_offline() { (counted(started.n_rounds, "update")) "; " }
                @else { (counted(started.n_rounds, "round")) " of " (counted(started.n_envs, "env")) " and " (counted(started.max_steps, "step")) "; " }
            }
            (standing)
        }
        @if let Some(problem) = &run.problem { p.problem { (problem) "; the page shows the events before it" } }
        @if live.missing.events > 0 { p.problem { (counted(live.missing.events, "event")) " missing in the record" } }
        @for anomaly in run.feed.state.anomalies.active() { p.problem { (anomaly.data.rule) ": " (anomaly.message()) } }
        @for entry in live.confounders.entries() { p.problem { "caveat: " (entry) } }
        div.tiles { (tiles(&run.feed.state)) }
    }
}

/// Result of the run and of the host alone, in a sentence. Whether growth made it better, only networks of the same size can
/// show.
fn verdict(state: &ViewState) -> String {
    let live = &state.live;
    if live.is_offline() {
        return "A policy that learns from recordings: no env is played.".into();
    }
    let Some(average) = results::average(live) else {
        return "No episode has ended yet.".into();
    };
    let reached = format!("{} with committed seeds alone", average.words(1));
    let has_grown = live.best_episode().is_some_and(|best| best.has_committed());
    match never_grown(live) {
        _ if live.committed.is_empty() => "Nothing was committed, so no host has grown.".into(),
        _ if !has_grown => "No host was better with committed seeds than the best without any.".into(),
        None => format!("{reached}; hosts that never grew were not measured."),
        Some((still, hosts)) => format!("{reached}; {hosts} {still}."),
    }
}

/// Results of hosts that never grew, with their interval where there are several, and their source.
fn never_grown(live: &LiveState) -> Option<(String, String)> {
    let best = live.baseline.as_ref()?.val_accuracy.0;
    Some(match results::alone(live) {
        Some(alone) => (alone.words(1), format!("{} hosts that never grew have", alone.hosts)),
        None => (format!("{best:.1} %"), "the host that never grew has".into()),
    })
}

fn tiles(state: &ViewState) -> Markup {
    let live = &state.live;
    let average = results::average(live);
    let best = live.best_episode();
    let rounds = live.rounds.iter();
    let committed: f64 = rounds.map(|round| f64::from(round.data.growth.committed)).sum();
    let episodes = live.episodes_done.max(1) as f64;
    html! {
        @if let Some(average) = average {
            (tile(
                &average.words(1),
                &format!("mean of {}, last {}, 95 %", counted(average.hosts, "host"), counted(average.rounds, "round")),
            ))
        }
        @if let Some((still, _)) = never_grown(live) { (tile(&still, "hosts that never grew")) }
        @if let Some(best) = best {
            (tile(
                &format!("{:.1} %", best.committed_accuracy()),
                &format!("best host, at {:.2}x parameters", best.committed_ratio()),
            ))
            @if let Some(test) = best.data.test_accuracy { (tile(&format!("{:.1} %", test.0), "the same on the test part")) }
        }
        @if live.is_offline() { (tile(&live.updates().to_string(), "updates")) } @else {
            (tile(&format!("{:.1}", committed / episodes), "seeds committed an episode"))
        }
        @if let Some(speed) = live.env_steps_per_s().filter(|_| !live.is_offline()) { (tile(&format!("{speed:.0}"), "env-steps a second")) }
    }
}

fn faults(state: &ViewState) -> Markup {
    let live = &state.live;
    let sum = |of: fn(&RoundResult) -> u32| live.rounds.iter().map(|round| u64::from(of(round))).sum::<u64>();
    let rows = [
        (
            "losses that were not healthy",
            sum(|round| round.data.governor.anomalies),
        ),
        ("rollbacks", sum(|round| round.rollbacks)),
        ("envs that failed", sum(|round| round.data.episodes_failed)),
        ("policy updates that were due but not performed", live.skipped_updates),
        ("events missing in the record", live.missing.events),
    ];
    html! {
        (table(&["what"], &["times"], rows.map(|(what, times)| vec![what.to_owned(), times.to_string()])))
        (anomalies(state))
        @if !state.log.is_empty() {
            details {
                summary { "the newest events" }
                ol.log {
                    @for line in state.log.iter().rev() {
                        li class=(severity(line.severity)) { time { (line.t) } " " (line.text) }
                    }
                }
            }
        }
    }
}

/// Anomalies that a table lists.
const ANOMALIES: usize = 40;

fn anomalies(state: &ViewState) -> Markup {
    let found = &state.anomalies;
    if found.counts.is_empty() {
        return html! { p { "No detector has found anything." } };
    }
    let counts = found.counts.iter();
    let counts = counts.map(|(rule, count)| vec![rule.clone(), count.to_string()]);
    let rows = found.newest().take(ANOMALIES).map(|anomaly| {
        let (data, event) = (&anomaly.data, &anomaly.event);
        let of = [
            event.round.map(|round| format!("round {}", round + 1)),
            event.step.map(|step| format!("step {step}")),
            event.env.map(|env| format!("env {env}")),
            event.slot.map(|slot| slot.to_string()),
            data.head.as_ref().map(|head| format!("head {head}")),
        ];
        let of: Vec<String> = of.into_iter().flatten().collect();
        let standing = if anomaly.is_active { "holds" } else { "over" };
        vec![
            data.rule.clone(),
            format!("{:?}", event.severity).to_lowercase(),
            of.join(", "),
            standing.to_owned(),
            anomaly.message().to_owned(),
            format!("{:.3}", data.value.0),
            format!("{:.3}", data.threshold.0),
        ]
    });
    html! {
        h3 { "What detectors found" }
        (table(&["detector"], &["times"], counts))
        (table(&["detector", "severity", "where", "", "what is wrong, and what to do"], &["value", "threshold"], rows))
    }
}

const fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Debug | Severity::Info => "info",
        Severity::Warning => "warning",
        Severity::Error | Severity::Critical => "error",
    }
}

fn again(run: &RunSource) -> Markup {
    let started = run.feed.state.live.started.as_ref();
    html! {
        @if !run.command.is_empty() { p { "Started with " code { (run.command) } } }
        p {
            "To run it again, with every default written out: "
            code { "simic-engine run " (run.feed.folder().join("resolved.ron").display()) }
        }
        @if let Some(started) = started {
            (table(&["what", "which"], &[], [
                ("seed", started.seed.0.to_string()),
                ("scenario, blake3", started.scenario_hash.clone()),
                ("data", format!("{}, blake3 {}", started.dataset.name, started.dataset.hash)),
                ("devices", started.env_devices.join(", ")),
                ("precision", started.amp_dtype.clone().unwrap_or_else(|| "f32".into())),
                ("parameters of a host", started.host_params.to_string()),
                ("parameters of the policy", number(started.policy_params.map(|count| Num(count as f64)), 0)),
            ].map(|(what, which)| vec![what.to_owned(), which])))
        }
        @if !run.scenario.is_empty() { details { summary { "scenario" } pre { (run.scenario) } } }
    }
}

/// The runs, in the given order.
pub fn list_page(runs: &[RunEntry]) -> String {
    let mut page = Page::new("runs: simic-engine".into());
    page.head = Some(html! { h1 { (counted(runs.len(), "run")) } });
    let rows = runs.iter().map(|run| {
        vec![
            html! { a href={ "/runs/" (run.run_id) "/" } { (run.run_id) } },
            html! { (run.scenario.as_deref().unwrap_or_default()) },
            html! { (run.state.name()) },
            html! { (run.tags.join(", ")) },
            html! { (run.rounds.unwrap_or_default()) @if let Some(planned) = run.n_rounds { " of " (planned) } },
            html! { (number(run.best_accuracy, 1)) },
        ]
    });
    let body = table(&["run", "scenario", "state", "tags"], &["rounds", "best, %"], rows);
    page.section("runs", "Runs", body);
    page.render(None)
}
