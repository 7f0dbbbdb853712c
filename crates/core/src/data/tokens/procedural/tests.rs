use super::*;
use crate::data::locate::tests::assert_refused;
use crate::data::synth::tests::fnv1a;

fn text(part: u64, index: usize) -> Vec<u8> {
    let params = SynthTokens::default();
    let mut tokens = vec![0; params.block + 1];
    write_text(&params, part, index, &mut tokens);
    tokens.into_iter().map(|token| token as u8).collect()
}

#[test]
fn successors_are_the_published_ones() {
    let params = SynthTokens::default();
    let successors = |topic, token| [0, 1, 2, 3].map(|choice| successor(&params, topic, token, choice));

    assert_eq!(successors(0, 0), [15, 36, 59, 56]);
    assert_eq!(successors(7, 62), [16, 56, 32, 25]);
}

#[test]
fn texts_are_the_published_ones() {
    let first = text(0, 0);

    let begins = [49, 0, 15, 34, 32, 24, 17, 28, 37, 24, 17, 9, 28, 37, 26, 17];
    assert_eq!(first[..16], begins);
    assert_eq!(fnv1a(&first), 0x21CA_9C90_8DED_E3B6);
    assert_eq!(fnv1a(&text(0, 1)), 0xFCE8_BFDD_01FB_9F4C);
    assert_eq!(fnv1a(&text(1, 0)), 0x22C8_27E6_6BE2_B202);
}

#[test]
fn frequencies_of_tokens_tell_next_to_nothing() {
    let set = load(&SynthTokens::default()).unwrap();
    let targets = |windows: std::ops::Range<usize>| {
        let set = &set;
        windows.flat_map(move |window| set.window(window).unwrap().1.into_iter().map(|token| token as usize))
    };

    // Add-one counts of the training targets, tried on the validation targets.
    let mut counts = [1.0_f64; 64];
    targets(set.train.clone()).for_each(|token| counts[token] += 1.0);
    let total: f64 = counts.iter().sum();
    assert_eq!(targets(set.val.clone()).count(), 32_768);
    let losses = targets(set.val.clone()).map(|token| -(counts[token] / total).ln());
    let mean = losses.sum::<f64>() / 32_768.0;
    assert!((mean - 4.1112).abs() < 1e-3, "{mean}");
}

#[test]
fn a_set_that_no_memory_holds_is_an_error() {
    let params = SynthTokens {
        train: usize::MAX,
        ..SynthTokens::default()
    };

    assert_refused(load(&params), "there is no memory for 18446744073709551615 texts of ");
}
