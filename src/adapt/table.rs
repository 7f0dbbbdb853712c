//! The results of the rows of an adaptation, and the choice of one with its reason.

use std::cmp::Reverse;

use serde::Serialize;

use super::methods::Method;
use crate::grow::{Bounded, GrowError, paired, share};
use crate::keep::TestPart;
use crate::network::{GrownNetwork, Measured};

/// Images of a batch whose domain is recognised.
pub const RECOGNISED: i64 = 32;

/// A method at its best rate.
pub struct Outcome {
    pub method: Method,
    pub rate: f64,
    pub follows_head: bool,
    /// One entry an image, fold after fold: `true` if a network that hadn't learnt from it classified it correctly.
    pub right: Vec<bool>,
    /// The network of all images.
    pub network: GrownNetwork,
    pub seconds: f64,
}

/// A row of the table.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The part that learnt.
    pub name: String,
    /// `true` if the given network is still inside.
    pub keeps: bool,
    /// Values that are kept in addition to the given network.
    pub added: u64,
    /// The same in sizes of the given network.
    pub added_share: f64,
    /// Multiply-accumulates of a sample.
    pub macs: u64,
    /// Percent of the images, each classified by a network that hasn't learnt from it, with Wilson's interval.
    pub cross_validated: Bounded,
    /// Percent of the test part; `None` without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<Bounded>,
    /// The written row minus this one, in percentage points of the test part, or of the cross-validated images without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written_ahead: Option<Bounded>,
    /// Percent of the old data's test part, by the network that is kept for them: the given one where it is inside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<Bounded>,
    /// The learning rate.
    pub rate: f64,
    /// `true` if the head was trained before the rest.
    pub head_first: bool,
    /// Wall time of the trainings.
    pub seconds: f64,
}

/// The given network with one more domain, and the table.
#[derive(Serialize)]
pub struct Adapted {
    /// Name of the domain.
    pub domain: String,
    /// Name of the row that was written.
    pub written: String,
    /// The reason, in a sentence.
    pub why: String,
    /// Rows whose interval puts them ahead of it, a sentence each.
    pub better: Vec<String>,
    /// All rows: smaller additions first, then the copies.
    pub rows: Vec<Row>,
    /// Percent of batches of [`RECOGNISED`] images that statistics alone assign to the right domain: new ones, and old ones.
    /// `None` without old images, or a batch norm after the first layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recognised: Option<[f64; 2]>,
    /// The result.
    #[serde(skip)]
    pub network: GrownNetwork,
}

/// Compares the outcomes and adds the chosen one to `given` as a domain of this name. The budget is in sizes of `given`.
pub fn table(
    (domain, budget): (&str, f64),
    given: GrownNetwork,
    mut outcomes: Vec<Outcome>,
    test: Option<&TestPart>,
    old: Option<&TestPart>,
) -> Result<Adapted, GrowError> {
    let size = given.measures.parameters.max(1);
    let added = |outcome: &Outcome| match outcome.method.keeps() {
        true => outcome
            .network
            .own(&given)
            .map(|(_, tensor)| tensor.numel() as u64)
            .sum(),
        false => size,
    };
    outcomes.sort_by_key(|outcome| (!outcome.method.keeps(), added(outcome), outcome.method));
    let right = |part: Option<&TestPart>, network: &GrownNetwork| part.map(|part| part.right(network)).transpose();
    let tested = outcomes.iter().map(|outcome| right(test, &outcome.network));
    let tested = tested.collect::<Result<Vec<_>, _>>()?;
    let by_given = right(old, &given)?;
    let olds = outcomes.iter().map(|outcome| match outcome.method.keeps() {
        true => Ok(by_given.clone()),
        false => right(old, &outcome.network),
    });
    let olds = olds.collect::<Result<Vec<_>, _>>()?;
    let fits = |outcome: &Outcome| added(outcome) as f64 <= budget * size as f64;
    let kept = || {
        outcomes
            .iter()
            .enumerate()
            .filter(|(_, outcome)| outcome.method.keeps() && fits(outcome))
    };
    // Among equals the smaller one wins, which comes first.
    let best = kept().max_by_key(|(place, outcome)| (hits(outcome), Reverse(*place)));
    let Some((at_best, best)) = best else {
        return Err(GrowError::Refused(format!("nothing fits into a budget of {budget}x")));
    };
    // The smallest within one standard error (Breiman et al. 1984), or an image, of the best.
    let images = best.right.len().max(1) as f64;
    let p = hits(best) as f64 / images;
    let error = (100.0 * (p * (1.0 - p) / images).sqrt()).max(100.0 / images);
    let gap = |outcome: &Outcome| 100.0 * (hits(best) as f64 - hits(outcome) as f64) / images;
    let written = kept().find(|(_, outcome)| gap(outcome) <= error);
    let written = written.map_or(at_best, |(place, _)| place);
    let rows = outcomes.iter().enumerate().map(|(place, outcome)| {
        let ahead = match (&tested[written], &tested[place]) {
            (Some(one), Some(other)) => paired(one, other),
            _ => paired(&outcomes[written].right, &outcome.right),
        };
        Row {
            name: outcome.method.name().into(),
            keeps: outcome.method.keeps(),
            added: added(outcome),
            added_share: added(outcome) as f64 / size as f64,
            macs: outcome.network.measures.macs,
            cross_validated: share(&outcome.right),
            test: tested[place].as_deref().map(share),
            written_ahead: (place != written).then_some(ahead),
            old: olds[place].as_deref().map(share),
            rate: outcome.rate,
            head_first: outcome.follows_head,
            seconds: outcome.seconds,
        }
    });
    let rows: Vec<Row> = rows.collect();
    let why = why(&rows[written], best.method.name(), budget, error);
    let chosen = outcomes.swap_remove(written);
    let mut network = given;
    network.measures.test = network.measures.test.or(by_given.map(|right| Measured {
        accuracy: share(&right).mean,
        loss: None,
        samples: right.len() as u64,
    }));
    network.domains.insert(domain.into(), chosen.network);
    let share = |part: Option<&TestPart>, domain| {
        part.map(|part| part.recognised(&network, domain, RECOGNISED))
            .transpose()
    };
    let new = share(test, Some(domain))?.flatten();
    let recognised = new.zip(share(old, None)?.flatten()).map(|(new, old)| [new, old]);
    Ok(Adapted {
        domain: domain.into(),
        written: rows[written].name.clone(),
        why,
        better: rows.iter().filter_map(better).collect(),
        rows,
        recognised,
        network,
    })
}

fn hits(outcome: &Outcome) -> usize {
    outcome.right.iter().filter(|right| **right).count()
}

/// The rule that chose the row.
fn why(written: &Row, best: &str, budget: f64, error: f64) -> String {
    let Row { name, added_share, .. } = written;
    let rule = match name == best {
        true => {
            format!("the best by cross-validation of the rows that keep the given network and add at most {budget}x")
        }
        false => format!("the smallest addition within {error:.1} points of the best, {best}, by cross-validation"),
    };
    format!("the row `{name}` is written, which adds {added_share:.2}x of the given network: {rule}")
}

/// The lead of a row over the written one, if it has one.
fn better(row: &Row) -> Option<String> {
    let Bounded { mean, low, high } = row.written_ahead.filter(|ahead| ahead.high < 0.0)?;
    let (name, price) = (&row.name, row.added_share);
    let by = format!("{:.1} points, 95 % interval {:.1} to {:.1}", -mean, -high, -low);
    Some(format!("`{name}` is ahead of it by {by}, for {price:.2}x"))
}

#[cfg(test)]
mod tests;
