//! Sets of members of one action head, as bits of a word.

use std::fmt;
use std::ops::{BitAnd, Not};

/// Some of at most 64 members, by index.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Choices(u64);

impl Choices {
    /// No member.
    pub const NONE: Self = Self(0);
    /// Members that one word can hold.
    pub const CAPACITY: usize = u64::BITS as usize;

    /// Returns the members `0..count`.
    ///
    /// # Panics
    /// If `count` is over 64.
    pub const fn first_n(count: usize) -> Self {
        assert!(count <= Self::CAPACITY, "an action head has at most 64 members");
        if count == Self::CAPACITY {
            Self(u64::MAX)
        } else {
            Self((1 << count) - 1)
        }
    }

    /// Returns the set of one member.
    ///
    /// # Panics
    /// If `member` is 64 or more.
    pub const fn only(member: usize) -> Self {
        assert!(member < Self::CAPACITY, "an action head has at most 64 members");
        Self(1 << member)
    }

    /// The set without one member, which need not be in it.
    ///
    /// # Panics
    /// If `member` is 64 or more.
    pub const fn without(self, member: usize) -> Self {
        Self(self.0 & !Self::only(member).0)
    }

    /// Returns whether `member` is in the set. False for any `member` of 64 or more.
    pub const fn contains(self, member: usize) -> bool {
        member < Self::CAPACITY && self.0 >> member & 1 == 1
    }

    /// Number of members, 0 to 64.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Returns whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The lowest member.
    pub fn lowest(self) -> Option<usize> {
        (!self.is_empty()).then(|| self.0.trailing_zeros() as usize)
    }

    /// The one member, if there is exactly one.
    pub fn single(self) -> Option<usize> {
        (self.len() == 1).then(|| self.0.trailing_zeros() as usize)
    }

    /// Members, ascending.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..Self::CAPACITY).filter(move |&member| self.contains(member))
    }
}

impl FromIterator<usize> for Choices {
    /// Panics on a member of 64 or more.
    fn from_iter<I: IntoIterator<Item = usize>>(members: I) -> Self {
        members
            .into_iter()
            .fold(Self::NONE, |set, member| Self(set.0 | Self::only(member).0))
    }
}

impl BitAnd for Choices {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl Not for Choices {
    type Output = Self;

    fn not(self) -> Self {
        Self(!self.0)
    }
}

impl fmt::Debug for Choices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests;
