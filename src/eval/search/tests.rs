use super::*;

fn search() -> Search {
    Search {
        seed: 43,
        schedules: None,
        blueprints: ["conv_light", "norm", "attention"].map(String::from).to_vec(),
    }
}

#[test]
fn schedules_are_drawn_alike_from_equal_seeds_and_fit_into_the_episode() {
    let allowed = ActionSpace {
        tempo: Some(vec![Tempo::Fast]),
        ..ActionSpace::default()
    };
    let drawn: Vec<_> = (0..200).map(|index| search().draw(index, 3, 60, &allowed)).collect();

    assert_eq!(drawn[7], search().draw(7, 3, 60, &allowed));
    for schedule in &drawn {
        let growths = schedule.max_growths.unwrap();
        assert!((1..=3).contains(&growths) && schedule.period >= 1 && growths * schedule.period <= 60);
        assert_eq!(schedule.blueprints.len(), growths as usize);
        assert_eq!(schedule.tempo, Tempo::Fast);
    }
    for growths in [1, 2, 3] {
        let of_size = drawn.iter().filter(|one| one.max_growths == Some(growths));
        assert!(of_size.count() > 40, "all sizes are tried");
    }
}

#[test]
fn the_seed_of_the_search_is_none_of_the_evaluation() {
    assert_eq!(Search::seed_next_to(42, &[42]), 43);
    assert_eq!(Search::seed_next_to(42, &[43, 44, 1]), 45);
    assert_eq!(Search::seed_next_to(u64::MAX, &[0]), 1);
}
