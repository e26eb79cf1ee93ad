//! What a warp, a release or a barrier knows: for each word of memory the oldest write that may still be read.

use rustc_hash::FxHashMap;
use std::sync::Arc;

use super::strength::{Scope, Who};

/// A write that must be seen: its place in the word's coherence order, and the step from which on everybody sees it.
#[derive(Debug, Clone, Copy)]
struct Seen {
    stamp: u64,
    expires: u64,
}

#[derive(Debug, Clone, Default)]
struct Entries {
    words: FxHashMap<u64, Seen>,
    /// The latest step at which an entry expires: from then on the view says nothing.
    until: u64,
    /// Size at which dead entries are looked for.
    prune_at: usize,
}

/// A set of writes. Cloning is cheap.
#[derive(Debug, Clone, Default)]
pub struct View(Arc<Entries>);

impl View {
    /// The oldest write of a word that may be read.
    pub fn floor(&self, word: u64) -> u64 {
        self.0.words.get(&word).map_or(0, |s| s.stamp)
    }

    /// The step from which on everybody sees all of it.
    pub fn until(&self) -> u64 {
        self.0.until
    }

    pub fn is_dead(&self, now: u64) -> bool {
        self.0.until <= now
    }

    pub fn is(&self, other: &View) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The entries, to change them; those that say nothing any more are left out of a copy.
    fn own(&mut self, now: u64) -> &mut Entries {
        if Arc::get_mut(&mut self.0).is_none() {
            let live = self.0.words.iter().filter(|(_, s)| s.expires > now);
            self.0 = Arc::new(Entries {
                words: live.map(|(&w, &s)| (w, s)).collect(),
                ..*self.0
            });
        }
        let entries = Arc::make_mut(&mut self.0);
        if entries.words.len() > entries.prune_at {
            entries.words.retain(|_, s| s.expires > now);
            entries.prune_at = 64 + 2 * entries.words.len();
        }
        entries
    }

    /// Adds a write.
    pub fn raise(&mut self, word: u64, stamp: u64, expires: u64, now: u64) {
        if expires <= now || self.floor(word) >= stamp {
            return;
        }
        let entries = self.own(now);
        entries.words.insert(word, Seen { stamp, expires });
        entries.until = entries.until.max(expires);
    }

    /// Adds all that another knows.
    pub fn join(&mut self, other: &View, now: u64) {
        if other.is_dead(now) || self.is(other) {
            return;
        }
        if self.is_dead(now) {
            *self = other.clone();
            return;
        }
        let entries = self.own(now);
        for (&word, &seen) in other.0.words.iter().filter(|(_, s)| s.expires > now) {
            let mine = entries.words.entry(word).or_insert(seen);
            if mine.stamp < seen.stamp {
                *mine = seen;
            }
        }
        entries.until = entries.until.max(other.0.until);
    }
}

/// What a release published: the view, by whom, and how far.
#[derive(Debug, Clone)]
pub struct Release {
    pub who: Who,
    pub scope: Scope,
    pub view: View,
}

impl Release {
    /// Whether both are the same knowledge by the same operation.
    pub fn is(&self, other: &Release) -> bool {
        self.scope == other.scope && self.who == other.who && self.view.is(&other.view)
    }

    /// Whether an acquire of that scope by that warp synchronises with it.
    pub fn reaches(&self, who: Who, scope: Scope) -> bool {
        super::strength::morally_strong(self.who, self.scope, who, scope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_only_grow_until_their_entries_expire() {
        let mut a = View::default();
        a.raise(8, 5, 100, 0);
        a.raise(8, 3, 100, 0);
        assert_eq!((a.floor(8), a.floor(16)), (5, 0));
        let before = a.clone();
        a.raise(16, 7, 200, 0);
        assert_eq!(before.floor(16), 0);
        let mut b = View::default();
        b.raise(8, 9, 50, 0);
        b.join(&a, 10);
        assert_eq!((b.floor(8), b.floor(16), b.until()), (9, 7, 200));
        assert!(!b.is_dead(199) && b.is_dead(200));
        // Joining something dead adds nothing.
        let mut c = View::default();
        c.join(&b, 200);
        assert_eq!(c.floor(16), 0);
    }
}
