//! The setting of each method, by cross-validation, and its training on all images.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use super::folds::FOLDS;
use super::methods::Method;
use super::play::{Trained, Trainer, Training};
use super::table::Outcome;
use crate::eval::Report;
use crate::grow::GrowError;

/// Folds, and the number of settings that remain after them. All settings are tried on the first fold.
const RUNGS: [(Range<usize>, usize); 3] = [(0..1, 3), (1..2, 2), (2..FOLDS, 1)];

/// The setting of a training besides its method.
#[derive(Clone, Copy, PartialEq)]
struct Setting {
    rate: f64,
    /// `true` if it begins where [`Method::StatisticsAndHead`] ends.
    follows_head: bool,
}

/// A method at the setting that cross-validation chooses.
pub struct Tuned {
    method: Method,
    setting: Setting,
    /// One entry an image, fold after fold: `true` if the network that hasn't learnt from it classifies it correctly.
    right: Vec<bool>,
    /// Numbers of the folds' trainings, and of the one on all images once it has been played.
    numbers: Vec<usize>,
    all: Vec<Trained>,
}

/// Tries all settings on the first fold, and fewer and better ones on the others (successive halving, Jamieson and Talwalkar 2016,
/// arXiv:1502.07943). `before` holds the methods that were tuned earlier.
pub fn tune(trainer: &mut Trainer, method: Method, before: &[Tuned], report: &mut Report) -> Result<Tuned, GrowError> {
    let is_of_seeds = |method: Method| matches!(method, Method::Seeds(_));
    let like = before
        .iter()
        .find(|tuned| is_of_seeds(tuned.method) && is_of_seeds(method));
    let mut settings = match like {
        Some(like) => vec![like.setting],
        None => settings(method, &trainer.order.rates),
    };
    let mut all: Vec<(Setting, Trained)> = Vec::new();
    let hits = |all: &[(Setting, Trained)], setting: &Setting| {
        let of_it = all.iter().filter(|(other, _)| other == setting);
        of_it
            .flat_map(|(_, trained)| &trained.right)
            .filter(|right| **right)
            .count()
    };
    for (folds, left) in RUNGS {
        let pairs = settings
            .iter()
            .flat_map(|&setting| folds.clone().map(move |fold| (setting, fold)));
        let pairs: Vec<(Setting, usize)> = pairs.collect();
        let trainings = pairs
            .iter()
            .map(|&(setting, fold)| training(method, setting, Some(fold), before));
        let trained = trainer.play(method.name(), &trainings.collect::<Vec<_>>(), report)?;
        all.extend(pairs.into_iter().map(|(setting, _)| setting).zip(trained));
        settings.sort_by_key(|setting| Reverse(hits(&all, setting)));
        settings.truncate(left);
    }
    let setting = settings[0];
    let of_best = || {
        all.iter()
            .filter(|(other, _)| *other == setting)
            .map(|(_, trained)| trained)
    };
    Ok(Tuned {
        method,
        setting,
        right: of_best().flat_map(|trained| trained.right.iter().copied()).collect(),
        numbers: of_best().map(|trained| trained.number).collect(),
        all: all.into_iter().map(|(_, trained)| trained).collect(),
    })
}

/// All settings of a method.
fn settings(method: Method, rates: &[f64]) -> Vec<Setting> {
    let starts: &[bool] = if method.may_follow_head() {
        &[false, true]
    } else {
        &[false]
    };
    let rates = &rates[..if method.learns() { rates.len() } else { 1 }];
    let each = starts
        .iter()
        .flat_map(|&follows_head| rates.iter().map(move |&rate| Setting { rate, follows_head }));
    each.collect()
}

/// Number of trainings of all methods.
pub fn trainings_of(methods: &[Method], rates: &[f64]) -> usize {
    let first_of_seeds = methods.iter().find(|method| matches!(method, Method::Seeds(_)));
    let each = methods.iter().map(|method| {
        let mut settings = match method {
            Method::Seeds(_) if Some(method) != first_of_seeds => 1,
            _ => settings(*method, rates).len(),
        };
        let trainings = RUNGS.map(|(folds, left)| {
            let tried = settings;
            settings = settings.min(left);
            folds.len() * tried
        });
        trainings.iter().sum::<usize>() + 1
    });
    each.sum()
}

/// A training on all images but those of `fold`, or on all.
fn training(method: Method, setting: Setting, fold: Option<usize>, before: &[Tuned]) -> Training {
    let head = before.iter().find(|tuned| tuned.method == Method::StatisticsAndHead);
    let numbers = head.filter(|_| setting.follows_head).map(|head| &head.numbers);
    Training {
        method,
        rate: setting.rate,
        fold,
        begins: numbers.and_then(|numbers| numbers.get(fold.unwrap_or(FOLDS)).copied()),
    }
}

/// Trains every method on all images at its setting.
pub fn refit(trainer: &mut Trainer, mut tuned: Vec<Tuned>, report: &mut Report) -> Result<Vec<Outcome>, GrowError> {
    let mut networks = BTreeMap::new();
    // Methods that others begin with come first.
    for follows in [false, true] {
        let of_turn: Vec<usize> = (0..tuned.len())
            .filter(|&place| tuned[place].setting.follows_head == follows)
            .collect();
        let trainings = of_turn
            .iter()
            .map(|&place| training(tuned[place].method, tuned[place].setting, None, &tuned));
        let trained = trainer.play("all images", &trainings.collect::<Vec<_>>(), report)?;
        for (place, mut trained) in of_turn.into_iter().zip(trained) {
            tuned[place].numbers.push(trained.number);
            networks.extend(trained.network.take().map(|network| (place, network)));
            tuned[place].all.push(trained);
        }
    }
    let outcomes = tuned.into_iter().enumerate().map(|(place, tuned)| {
        let stopped = || GrowError::Stopped(trainer.order.place.clone());
        Ok(Outcome {
            method: tuned.method,
            rate: tuned.setting.rate,
            follows_head: tuned.setting.follows_head,
            right: tuned.right,
            seconds: tuned.all.iter().map(|trained| trained.seconds).sum(),
            network: networks.remove(&place).ok_or_else(stopped)?,
        })
    });
    outcomes.collect()
}
