use super::*;

fn frame(header: &[u8], body: &[u8]) -> Vec<u8> {
    let (of_header, of_body) = (header.len() as u32, body.len() as u64);
    [&of_header.to_le_bytes()[..], &of_body.to_le_bytes(), header, body].concat()
}

#[test]
fn a_frame_is_lengths_header_and_arrays() {
    let header = br#"{"kind":"step","arrays":[{"name":"actions","dtype":"i64","shape":[1]}]}"#;
    let (request, body) = read(&mut &frame(header, &7i64.to_le_bytes())[..]).unwrap();
    let Request::Step { arrays } = request else {
        panic!("{request:?}")
    };
    assert_eq!(arrays[0].shape, [1]);
    assert_eq!(body, [7, 0, 0, 0, 0, 0, 0, 0]);

    let mut written = Vec::new();
    let mut arrays = Arrays::default();
    arrays.add("rewards", "f64", &[1], 0.5f64.to_le_bytes());
    write(&mut written, &serde_json::json!({ "kind": "step" }), &arrays).unwrap();
    let header = br#"{"kind":"step","arrays":[{"name":"rewards","dtype":"f64","shape":[1]}]}"#;
    assert_eq!(written, frame(header, &[0, 0, 0, 0, 0, 0, 0xE0, 0x3F]));
}

#[test]
fn a_cut_frame_is_the_end_and_a_long_one_is_refused_before_it_is_read() {
    let whole = frame(br#"{"kind":"close"}"#, &[]);
    for length in 0..whole.len() {
        let error = read(&mut &whole[..length]).unwrap_err();
        assert!(error.is_end() && error.is_fatal(), "{length}: {error}");
    }
    let error = read(&mut &[0xFF; 12][..]).unwrap_err();
    assert!(error.is_fatal() && !error.is_end(), "{error}");
}

#[test]
fn after_a_header_that_is_not_understood_the_next_frame_is_read() {
    let unknown = frame(br#"{"kind":"jump"}"#, &[1, 2]);
    let bytes = [unknown, frame(br#"{"kind":"close"}"#, &[])].concat();
    let mut input = &bytes[..];
    let error = read(&mut input).unwrap_err();
    assert!(!error.is_fatal() && error.to_string().contains("jump"), "{error}");
    assert_eq!(read(&mut input).unwrap().0, Request::Close);
}
