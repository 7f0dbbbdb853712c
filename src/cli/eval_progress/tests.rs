use super::*;

const WORK: Work = Work {
    entrants: 5,
    seeds: 3,
    episodes: 16,
    steps: 60,
    env_steps_per_s: Some(62.4),
};

#[test]
fn the_amount_of_work_is_said_with_an_estimate_where_there_is_one() {
    let told = "5 players x 3 seeds x 16 episodes x 60 steps: 14400 env-steps\n\
                about 3m51s at the run's own 62.4 env-steps/s";
    assert_eq!(WORK.describe(), told);
    let unknown = Work {
        seeds: 1,
        env_steps_per_s: None,
        ..WORK
    };
    assert!(unknown.describe().contains("x 1 seed x"));
    assert!(unknown.describe().contains("no speed of the run is recorded"));
}
