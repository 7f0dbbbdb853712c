use super::*;

#[test]
fn it_is_that_of_the_literature() {
    // Newcombe 1998, "Two-sided confidence intervals for the single proportion", table I, method 3.
    for (successes, count, low, high) in [
        (81.0, 263, 0.2553, 0.3662),
        (15.0, 148, 0.0624, 0.1605),
        (0.0, 20, 0.0, 0.1611),
        (1.0, 29, 0.0061, 0.1718),
    ] {
        let interval = wilson(successes / count as f64, count);
        assert!((interval.low - low).abs() < 5e-5, "{interval:?}");
        assert!((interval.high - high).abs() < 5e-5, "{interval:?}");
    }
}
