use std::convert::Infallible;

use super::*;

const REQUEST: DataRequest = DataRequest {
    params: "",
    folder: None,
};

/// Four images of 1x2 pixels in two classes.
fn four() -> CustomImages {
    CustomImages {
        height: 1,
        width: 2,
        channels: 1,
        scale: 1.0,
        train: Part {
            images: vec![0, 1, 1, 0, 0, 1, 1, 0].into(),
            labels: vec![0, 1, 0, 1],
        },
        val: None,
        test: None,
    }
}

fn sets(images: CustomImages) -> DataRegistry {
    let mut sets = DataRegistry::default();
    let give = move |_: &DataRequest| Ok::<_, Infallible>(images.clone());
    sets.register("four", "four images", give).unwrap();
    sets
}

fn load<'a>(sets: &'a DataRegistry, name: &str) -> Result<(&'a str, CustomImages), DataError> {
    sets.load(&DataName(name.into()), &REQUEST)
}

#[test]
fn a_set_is_found_in_either_case_and_keeps_the_name_that_it_was_registered_by() {
    assert_eq!(load(&sets(four()), "FOUR").unwrap(), ("four", four()));
}

#[test]
fn a_name_is_given_once() {
    let mut sets = sets(four());

    let error = sets.register("Four", "again", |_: &DataRequest| Ok::<_, Infallible>(four()));

    insta::assert_snapshot!(error.unwrap_err(), @"there is a data set of the name `Four` already; register yours under another");
}

#[test]
fn an_unknown_name_is_told_with_those_that_are_known() {
    insta::assert_snapshot!(load(&sets(four()), "five").unwrap_err(), @"no data set is registered as `five`; valid: four");
    insta::assert_snapshot!(load(&DataRegistry::default(), "five").unwrap_err(), @"no data set is registered as `five`; valid: none, as none is registered");
}

#[test]
fn what_a_set_says_and_what_it_fails_with_arrives() {
    let mut sets = DataRegistry::default();
    let fail = |request: &DataRequest| Err::<CustomImages, _>(format!("no such colour: {}", request.params));
    sets.register("colours", "by colour", fail).unwrap();
    let request = DataRequest {
        params: "mauve",
        folder: None,
    };

    let error = sets.load(&DataName("colours".into()), &request).unwrap_err();

    insta::assert_snapshot!(error, @"data 'colours': the application could not provide it (no such colour: mauve); see task.data.params");
}
