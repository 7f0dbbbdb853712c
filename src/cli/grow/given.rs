//! `--weights` and `--normalise`: a trained network, and how it reads pixels.

use std::io::BufReader;
use std::path::Path;

use serde::Deserialize;

use crate::cli::rejection::Rejection;
use crate::health::AtPath;
use crate::network::{DataCard, GrownNetwork};
use crate::scenario::{Normalise, ron_text};

/// Values of `--normalise`.
pub const NORMALISES: &str = "imagenet; 0..1 (pixels over 255, as they are); M,S or M1,M2,M3,S1,S2,S3 (mean and deviation of \
                              each channel, of pixels from 0 to 1); a card.json or a kept network, as it was trained";

/// A network that somebody has trained.
pub struct Given {
    pub path: String,
    /// One of this engine's files, which bring their architecture, and how images were normalised.
    pub kept: Option<GrownNetwork>,
}

impl Given {
    pub fn read(path: &Path) -> Result<Self, Rejection> {
        let place = path.canonicalize();
        let mut place = place.map_err(|error| format!("--weights {}: {error}", path.display()))?;
        if place.is_dir() {
            // That of an export.
            place.push("kept.safetensors");
        }
        Ok(Self {
            kept: GrownNetwork::load_any(&place)?.ok(),
            path: place.display().to_string(),
        })
    }

    /// `has_host`: it is said of which host they are.
    pub fn sets(&self, has_host: bool) -> Vec<(&'static str, String)> {
        let path = ron_text(&self.path);
        let mut sets = vec![match &self.kept {
            Some(_) if !has_host => ("task.host", format!("grown({path})")),
            _ => ("task.weights", format!("(path: {path})")),
        }];
        // A module that was brought along says nothing of what it was trained on.
        let trained = self.kept.iter().filter(|network| !network.data.hash.is_empty());
        let normalise = trained.filter_map(|network| constants(&network.data));
        sets.extend(normalise.map(|normalise| ("task.normalise", normalise)));
        sets
    }
}

/// The value of `--normalise`, as a scenario has it.
pub fn normalise(text: &str) -> Result<String, Rejection> {
    let numbers = text.split(',').map(|number| number.trim().parse());
    let numbers = numbers.collect::<Result<Vec<f64>, _>>();
    let (mean, std) = match (text, numbers) {
        ("0..1", _) => return Ok(ron_text(&Normalise::None)),
        ("imagenet", _) => (vec![0.485, 0.456, 0.406], vec![0.229, 0.224, 0.225]),
        (_, Ok(mut numbers)) if numbers.len().is_multiple_of(2) => {
            let std = numbers.split_off(numbers.len() / 2);
            (numbers, std)
        }
        (_, Err(_)) if Path::new(text).exists() => {
            let known = constants(&card(Path::new(text))?);
            return Ok(known.ok_or_else(|| format!("--normalise {text}: it has learnt from no images"))?);
        }
        (_, Err(_)) => return Err(format!("--normalise {text}: there is no such file; valid: {NORMALISES}").into()),
        _ => return Err(format!("--normalise {text}: valid: {NORMALISES}").into()),
    };
    Ok(ron_text(&Normalise::Constants { mean, std }))
}

/// The data card of an export or of a kept network.
fn card(path: &Path) -> Result<DataCard, Rejection> {
    #[derive(Deserialize)]
    struct Card {
        data: DataCard,
    }
    if path.extension().is_some_and(|ending| ending == "json") {
        let file = BufReader::new(crate::files::open(path).at(path)?);
        let card: Card = serde_json::from_reader(file).at(path)?;
        return Ok(card.data);
    }
    Ok(GrownNetwork::load(path)?.data)
}

/// Pixels p are read as p·scale + offset, which is (p/full - mean)/std. `None` of texts.
fn constants(card: &DataCard) -> Option<String> {
    let DataCard {
        scale, offset, full, ..
    } = card;
    let std: Vec<f64> = scale.iter().map(|&scale| 1.0 / (full * f64::from(scale))).collect();
    let pairs = offset.iter().zip(&std);
    let mean = pairs.map(|(&offset, std)| -f64::from(offset) * std).collect();
    (!scale.is_empty()).then(|| ron_text(&Normalise::Constants { mean, std }))
}
