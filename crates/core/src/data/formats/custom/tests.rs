use super::*;

/// Four images of 1x2 pixels in two classes.
pub fn four() -> CustomImages {
    let (images, labels) = (vec![0, 1, 1, 0, 0, 1, 1, 0].into(), vec![0, 1, 0, 1]);
    CustomImages {
        height: 1,
        width: 2,
        channels: 1,
        scale: 1.0,
        train: Part { images, labels },
        val: None,
        test: None,
    }
}

fn message(images: CustomImages) -> String {
    found("four", images).unwrap_err().to_string()
}

#[test]
fn a_set_is_known_by_its_name() {
    let found = found("four", four()).unwrap();

    assert_eq!((found.format.as_str(), found.train.part), ("four", four().train));
}

#[test]
fn images_that_do_not_fit_their_sizes_are_refused_by_part() {
    // Sizes beyond any memory are refused too.
    let mut huge = four();
    (huge.width, huge.height) = (usize::MAX, usize::MAX);
    assert!(message(huge).contains("8 bytes and 4 labels"));
    let (images, labels) = (vec![0; 7].into(), vec![0; 4]);
    let short = Part { images, labels };
    insta::assert_snapshot!(message(CustomImages { val: Some(short.clone()), ..four() }), @"data 'four' of the application: the validation part has 7 bytes and 4 labels, where 4 1x2 images of 1 channel take 8 bytes; correct what it returns");
    insta::assert_snapshot!(message(CustomImages { train: short, ..four() }), @"data 'four' of the application: the train part has 7 bytes and 4 labels, where 4 1x2 images of 1 channel take 8 bytes; correct what it returns");
    insta::assert_snapshot!(message(CustomImages { height: 0, train: Part::default(), ..four() }), @"data 'four' of the application: the train part has 0x2 images of 1 channel, which hold nothing; correct what it returns");
    insta::assert_snapshot!(message(CustomImages { scale: 0.0, ..four() }), @"data 'four' of the application: the train part has a scale of 0; valid: more than 0; correct what it returns");
}
