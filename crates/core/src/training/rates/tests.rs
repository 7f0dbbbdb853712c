use super::*;

fn factors(course: LearningRateCourse, last_growth: impl Fn(u32) -> u32) -> Vec<f64> {
    (1..=5)
        .map(|step| factor(course, step, 5, last_growth(step)))
        .map(|factor| (factor * 1e6).round() / 1e6)
        .collect()
}

#[test]
fn a_cosine_begins_whole_and_ends_at_its_share() {
    let course = LearningRateCourse::Cosine { end: 0.1 };
    assert_eq!(factors(course, |_| 0), [1.0, 0.868_198, 0.55, 0.231_802, 0.1]);
}

#[test]
fn a_cosine_of_one_step_is_whole() {
    assert_eq!(factor(LearningRateCourse::Cosine { end: 0.0 }, 1, 1, 0), 1.0);
}

#[test]
fn a_cosine_after_growth_waits_for_the_last_seed_and_restarts_with_a_late_one() {
    let course = LearningRateCourse::CosineAfterGrowth { end: 0.0 };
    assert_eq!(factors(course, |step| step.min(3)), [1.0, 1.0, 1.0, 0.5, 0.0]);
    assert_eq!(
        factors(course, |step| if step < 4 { 1 } else { 4 }),
        [1.0, 0.853_553, 0.5, 1.0, 0.0]
    );
    assert_eq!(factors(course, |_| 0)[4], 0.0);
}

#[test]
fn a_stepped_rate_falls_by_its_factor_every_n_steps() {
    let course = LearningRateCourse::Step { every: 2, factor: 0.1 };
    assert_eq!(factors(course, |_| 0), [1.0, 1.0, 0.1, 0.1, 0.01]);
}
