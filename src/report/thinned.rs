//! A series that never grows beyond a number of items: once it is full, every other item goes, and from then on every other
//! one is taken. The first and the newest are always there.

/// Keeps at most `CAPACITY` items of a series of any length, two or more, in addition to the newest.
#[derive(Clone, Debug, PartialEq)]
pub struct Thinned<T, const CAPACITY: usize> {
    items: Vec<T>,
    newest: Option<T>,
    stride: u64,
    seen: u64,
}

impl<T, const CAPACITY: usize> Default for Thinned<T, CAPACITY> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            newest: None,
            stride: 1,
            seen: 0,
        }
    }
}

impl<T, const CAPACITY: usize> Thinned<T, CAPACITY> {
    /// Takes the next item.
    pub fn push(&mut self, item: T) {
        let is_due = self.seen.is_multiple_of(self.stride);
        self.seen += 1;
        if !is_due {
            self.newest = Some(item);
            return;
        }
        self.newest = None;
        self.items.push(item);
        if self.items.len() > CAPACITY {
            let mut index = 0;
            self.stride *= 2;
            let is_newest_kept = self.items.len() % 2 == 1;
            self.newest = (!is_newest_kept).then(|| self.items.pop()).flatten();
            self.items.retain(|_| {
                index += 1;
                index % 2 == 1
            });
        }
    }

    /// The kept items, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + Clone {
        self.items.iter().chain(&self.newest)
    }

    /// The one that came last.
    pub fn last(&self) -> Option<&T> {
        self.iter().next_back()
    }

    /// The number of items that came, kept or not.
    pub const fn seen(&self) -> u64 {
        self.seen
    }
}

#[cfg(test)]
mod tests;
