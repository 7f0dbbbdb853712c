use proptest::prelude::*;

use super::*;

/// Ten classes.
const LN_10: f64 = std::f64::consts::LN_10;

/// A governor that has seen nothing but these losses. The collapse row is out of the way: guessing is far off.
fn after(history: impl IntoIterator<Item = f64>) -> LossMonitor {
    LossMonitor {
        history: history.into_iter().collect(),
        streak: 0,
    }
}

fn words(monitor: &mut LossMonitor, random_loss: f64, losses: &[f64]) -> Vec<&'static str> {
    let word = |&loss: &f64| match monitor.judge(loss, random_loss) {
        LossVerdict::Healthy => "healthy",
        LossVerdict::Suspect(_) => "suspect",
        LossVerdict::Panic(_) => "panic",
    };
    losses.iter().map(word).collect()
}

fn calm() -> LossMonitor {
    after([0.9, 1.1].repeat(10))
}

#[test]
fn a_loss_must_pass_all_three_limits_to_be_an_anomaly() {
    // Twice ln 10 is 4.60517.
    assert_eq!(words(&mut calm(), LN_10, &[4.6051]), ["healthy"]);
    assert_eq!(words(&mut calm(), LN_10, &[4.6052]), ["suspect"]);
    assert_eq!(words(&mut calm(), f64::from(257).ln(), &[11.0]), ["healthy"]);

    let spread = || after([5.0, 5.5, 6.0, 4.5, 5.0, 5.5, 6.0, 4.5, 5.0, 5.0]);
    assert_eq!(words(&mut spread(), LN_10, &[14.0]), ["healthy"]);
    // Three times the mean of 5.2 is 15.6.
    assert_eq!(words(&mut spread(), LN_10, &[15.7]), ["suspect"]);

    // Six deviations of 4 above the mean of 5.
    let wide = || after([1.0, 9.0].repeat(5));
    assert_eq!(words(&mut wide(), LN_10, &[28.9]), ["healthy"]);
    assert_eq!(words(&mut wide(), LN_10, &[29.1]), ["suspect"]);
}

#[test]
fn only_anomalies_in_a_row_make_a_panic_and_none_is_remembered() {
    let mut monitor = calm();

    let words = words(&mut monitor, LN_10, &[50.0, 50.0, 1.0, 50.0, 50.0, 50.0]);

    assert_eq!(words, ["suspect", "suspect", "healthy", "suspect", "suspect", "panic"]);
    assert_eq!(monitor.history.len(), 20);
    assert!(!monitor.history.contains(&50.0));
}

#[test]
fn an_early_spike_is_judged_by_the_median_and_never_remembered() {
    let mut nine = after([1.0; 9]);
    assert_eq!(words(&mut nine, LN_10, &[1e6; 3]), ["suspect", "suspect", "panic"]);
    assert_eq!(nine.history, [1.0; 9]);

    let mut two = after([1.0; 2]);
    assert_eq!(words(&mut two, LN_10, &[1e6]), ["healthy"]);
    assert_eq!(two.history, [1.0; 2]);

    let mut below_the_limit = after([1.0; 9]);
    assert_eq!(words(&mut below_the_limit, LN_10, &[4.6]), ["healthy"]);
    assert_eq!(below_the_limit.history.back(), Some(&4.6));

    let mut even = after([1.0, 5.0, 1.0, 5.0]);
    // Three times the median is 9.
    assert_eq!(words(&mut even, LN_10, &[9.5]), ["suspect"]);
}

#[test]
fn a_network_that_was_better_than_chance_and_guesses_again_panics_at_once() {
    assert_eq!(words(&mut after([0.8; 15]), LN_10, &[LN_10]), ["panic"]);
    assert_eq!(words(&mut after([2.0; 15]), LN_10, &[LN_10]), ["healthy"]);
    assert_eq!(words(&mut after([0.8; 15]), LN_10, &[2.1529]), ["healthy"]);
    assert_eq!(words(&mut after([0.8; 15]), LN_10, &[2.1530]), ["panic"]);
    assert_eq!(words(&mut after([0.8; 9]), LN_10, &[LN_10]), ["healthy"]);

    let vocabulary = f64::from(50_257).ln();
    assert_eq!(words(&mut after([4.0; 15]), vocabulary, &[10.2]), ["panic"]);
    assert_eq!(words(&mut after([4.0; 15]), vocabulary, &[10.0]), ["healthy"]);
}

#[test]
fn a_loss_that_isnt_finite_panics_at_any_time_and_leaves_the_streak() {
    assert_eq!(words(&mut LossMonitor::default(), LN_10, &[f64::NAN]), ["panic"]);
    assert_eq!(words(&mut LossMonitor::default(), LN_10, &[f64::INFINITY]), ["panic"]);

    let words = words(&mut calm(), LN_10, &[50.0, f64::NAN, 50.0, 50.0]);
    assert_eq!(words, ["suspect", "panic", "suspect", "panic"]);
}

proptest! {
    /// For any losses, the memory holds finite losses only, no more than the window, and no run of anomalies
    /// shorter than required makes a divergence panic.
    #[test]
    fn the_memory_stays_healthy(losses in prop::collection::vec(prop_oneof![0.0..3.0f64, 0.0..1e9f64, Just(f64::NAN)], 0..80)) {
        let mut monitor = LossMonitor::default();
        let mut anomalies = 0;
        for loss in losses {
            let verdict = monitor.judge(loss, LN_10);
            prop_assert!(monitor.history.len() <= 20);
            prop_assert!(monitor.history.iter().all(|loss| loss.is_finite()));
            match verdict {
                LossVerdict::Healthy => anomalies = 0,
                LossVerdict::Suspect(_) => anomalies += 1,
                LossVerdict::Panic(alarm) if alarm.kind == AlarmKind::Divergence => prop_assert!(anomalies >= 2),
                LossVerdict::Panic(_) => {}
            }
        }
    }
}
