use super::*;

#[test]
fn threads_keep_their_own_numbers_when_others_set_theirs_later() {
    let of_two = NonZero::new(2).expect("two");
    std::thread::spawn(move || {
        set_intra_op_threads(of_two).expect("set");
        let in_worker = std::thread::spawn(|| {
            set_intra_op_threads(NonZero::<u16>::MIN).expect("set");
            tch::get_num_threads()
        })
        .join()
        .expect("worker");

        assert_eq!(in_worker, 1);
        assert_eq!(tch::get_num_threads(), 2);
    })
    .join()
    .expect("thread");
}
