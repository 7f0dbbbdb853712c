use super::*;

#[test]
fn members_are_listed_in_ascending_order() {
    let set: Choices = [5, 0, 63].into_iter().collect();
    assert_eq!(set.iter().collect::<Vec<_>>(), [0, 5, 63]);
    assert_eq!((set.len(), set.lowest(), set.single()), (3, Some(0), None));
    assert!(!set.contains(64));
}

#[test]
fn a_full_word_and_an_empty_one() {
    assert_eq!(Choices::first_n(64).len(), 64);
    assert_eq!(Choices::first_n(0), Choices::NONE);
    assert_eq!(Choices::NONE.lowest(), None);
    assert_eq!((!Choices::only(0) & Choices::first_n(2)).single(), Some(1));
}
