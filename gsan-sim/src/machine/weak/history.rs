//! The writes of one unit of coherence (a word of 8 bytes, or half of it) that somebody may still read.

use super::strength::{Scope, Who};
use super::view::Release;

/// One write.
#[derive(Debug, Clone)]
pub struct Message {
    /// Its place in the word's coherence order.
    pub stamp: u64,
    /// The step from which on everybody sees it.
    pub expires: u64,
    /// The whole word after it, as far as [`History::known`] says.
    pub content: u64,
    /// The bytes that it wrote.
    pub bytes: u8,
    pub who: Who,
    /// `None`: a weak store.
    pub scope: Option<Scope>,
    /// Nothing may come between it and the one before it.
    pub rmw: bool,
    /// The instruction and lane that wrote it.
    pub by: u64,
    /// What an acquire that reads it comes to know.
    pub releases: Vec<Release>,
}

/// A word's writes in coherence order. The first one may stand for all that was before.
#[derive(Debug, Clone)]
pub struct History {
    pub messages: Vec<Message>,
    /// Bytes that the messages' contents hold; the others have not been written lately.
    pub known: u8,
    /// Everybody sees this write or a later one.
    pub floor: u64,
}

/// The bits of the bytes of a mask.
pub fn bits(bytes: u8) -> u64 {
    (0..8).fold(0, |m, i| {
        m | if bytes >> i & 1 == 1 {
            0xff << (8 * i)
        } else {
            0
        }
    })
}

impl History {
    /// One write: what memory holds.
    pub fn new() -> History {
        History {
            messages: vec![Message {
                stamp: 0,
                expires: 0,
                content: 0,
                bytes: 0,
                who: Who::default(),
                scope: None,
                rmw: false,
                by: u64::MAX,
                releases: Vec::new(),
            }],
            known: 0,
            floor: 0,
        }
    }

    pub fn last(&self) -> &Message {
        &self.messages[self.messages.len() - 1]
    }

    /// Whether memory holds what the last write left there. Otherwise somebody wrote around the history: the host.
    pub fn agrees(&self, memory: u64, bytes: u8) -> bool {
        (self.last().content ^ memory) & bits(bytes & self.known) == 0
    }

    /// Takes bytes from memory that no write of the history has changed.
    pub fn learn(&mut self, memory: u64, bytes: u8) {
        let new = bits(bytes & !self.known);
        if new != 0 {
            for m in &mut self.messages {
                m.content = m.content & !new | memory & new;
            }
            self.known |= bytes;
        }
    }

    /// The oldest write that may be read by who knows that one.
    pub fn first(&self, known: u64) -> usize {
        let floor = self.floor.max(known);
        let first = self.messages.partition_point(|m| m.stamp < floor);
        first.min(self.messages.len() - 1)
    }

    /// The write that the bytes come from, for who reads the word as of `at`: `None` if it is older than all, or more than one.
    pub fn source(&self, at: usize, bytes: u8) -> Option<&Message> {
        let m = self.messages[..=at]
            .iter()
            .rev()
            .find(|m| m.bytes & bytes != 0)?;
        (m.bytes & bytes == bytes).then_some(m)
    }

    /// The earliest place for a write of those bytes that may not come before `first`: later ones must overwrite it wholly,
    /// and none may be half of a read-modify-write with its predecessor.
    pub fn earliest(&self, first: usize, bytes: u8) -> usize {
        let mut at = self.messages.len();
        while at > first + 1 {
            let next = &self.messages[at - 1];
            if next.bytes != bytes || next.rmw || next.stamp - self.messages[at - 2].stamp < 2 {
                break;
            }
            at -= 1;
        }
        at
    }

    /// Whether a read-modify-write of those bytes may come right behind that write.
    pub fn may_follow(&self, at: usize, bytes: u8) -> bool {
        self.messages.get(at + 1).is_none_or(|next| {
            next.bytes == bytes && !next.rmw && next.stamp - self.messages[at].stamp >= 2
        })
    }

    /// The place right behind that write, or behind all; never before the first.
    pub fn place_behind(&self, stamp: u64) -> usize {
        match self.messages.binary_search_by_key(&stamp, |m| m.stamp) {
            Ok(at) => at + 1,
            Err(_) => self.messages.len(),
        }
    }

    /// From now on everybody sees that write. True: the history says nothing any more.
    pub fn expire(&mut self, stamp: u64, now: u64) -> bool {
        if self
            .messages
            .binary_search_by_key(&stamp, |m| m.stamp)
            .is_err()
        {
            return false;
        }
        self.floor = self.floor.max(stamp);
        let first = self.first(0);
        let mut at = 0;
        // Those that are not readable any more are kept while an acquire may need them: another write has changed other bytes.
        self.messages.retain(|m| {
            at += 1;
            at > first || m.expires > now
        });
        self.messages.len() == 1 && self.last().expires <= now
    }
}
