use super::*;
use crate::prior_art::rewards::fixtures::*;

#[test]
fn harm_done_together_discounts_continuously() {
    let discount = |delta| regression_discount(Some(delta));
    assert_close(discount(-0.5), 0.3648510476127127);
    assert_close(discount(0.0), 1.0);
    assert!((discount(-1e-12) - 1.0).abs() < 1e-9);
    assert_eq!(discount(-1e9), 2.0 / (1.0 + 700.0_f64.exp()));
    assert_close(regression_discount(None), 1.0);
}

#[test]
fn contributions_beyond_what_the_coalition_adds_are_fined() {
    for (c, delta, expected) in [
        (10.0, 1.0, -0.1),
        (20.0, 0.1, -0.3),
        (6.0, 0.05, -0.18),
        (50.0, 1.0, -0.3),
        (4.0, 1.0, 0.0),
        (0.9, 0.01, 0.0),
        (10.0, -0.5, 0.0),
    ] {
        assert_close(ratio_penalty(c, Some(delta)), expected);
    }
    assert_close(ratio_penalty(10.0, None), 0.0);
}
