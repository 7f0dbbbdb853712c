use super::*;

fn no_memory() -> Failure {
    TorchError::OutOfMemory("tried to allocate 8 bytes".into()).into()
}

/// Evaluates chunks of at most `room` samples, and says which.
fn evaluated(samples: i64, chunk: i64, room: i64) -> (Vec<(i64, i64)>, bool) {
    let mut done = Vec::new();
    let outcome = in_chunks(samples, chunk, |first, count| {
        if count > room {
            return Err(no_memory());
        }
        done.push((first, count));
        Ok(())
    });
    (done, outcome.is_ok())
}

#[test]
fn a_batch_is_evaluated_in_chunks_that_cover_it_once() {
    assert_eq!(evaluated(10, 4, 4), (vec![(0, 4), (4, 4), (8, 2)], true));
}

#[test]
fn a_chunk_without_room_is_halved_once_and_nothing_is_counted_twice() {
    assert_eq!(evaluated(10, 8, 4), (vec![(0, 4), (4, 4), (8, 2)], true));
    assert_eq!(evaluated(10, 8, 3), (vec![], false));
}

#[test]
fn other_failures_arent_a_reason_to_try_again() {
    let mut calls = 0;
    let outcome = in_chunks(10, 5, |_, _| {
        calls += 1;
        Err(Failure::message("broken"))
    });
    assert_eq!((outcome.unwrap_err().to_string().as_str(), calls), ("broken", 1));
}
