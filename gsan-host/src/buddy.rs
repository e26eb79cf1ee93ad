//! A buddy tree over a range of addresses: it decides where buffers go, and knows nothing of memory.
//!
//! Every node is a power-of-two range and knows the largest free range below it. A search goes to the child whose
//! largest free range is the smaller one that suffices (the left one of equals); a free leaf is split, its left half
//! taken, as long as half of it still suffices. Freeing merges upward.

/// A tree over `[base, base + size)`.
#[derive(Debug)]
pub(crate) struct Buddy {
    base: u64,
    size: u64,
    leaf: u64,
    root: Node,
    live: usize,
}

#[derive(Debug)]
enum Node {
    Free,
    Used,
    Split {
        left: Box<Node>,
        right: Box<Node>,
        largest: u64,
    },
}

impl Node {
    /// The largest free range in this node of `size` bytes.
    fn largest(&self, size: u64) -> u64 {
        match self {
            Node::Free => size,
            Node::Used => 0,
            Node::Split { largest, .. } => *largest,
        }
    }
}

impl Buddy {
    /// An empty tree. `size` and `leaf` (the smallest range given out) are powers of two, `leaf <= size`.
    pub(crate) fn new(base: u64, size: u64, leaf: u64) -> Buddy {
        debug_assert!(size.is_power_of_two() && leaf.is_power_of_two() && leaf <= size);
        Buddy {
            base,
            size,
            leaf,
            root: Node::Free,
            live: 0,
        }
    }

    /// Takes a range of at least `bytes` bytes and returns its first address. The range is the smallest power of two that
    /// holds them, aligned to its size.
    pub(crate) fn take(&mut self, bytes: u64) -> Option<u64> {
        let wanted = self.range(bytes)?;
        let (size, base) = (self.size, self.base);
        let offset = Self::take_in(&mut self.root, size, wanted)?;
        self.live += 1;
        Some(base + offset)
    }

    /// The size of the range that `bytes` bytes take; `None` if it exceeds the tree or is empty.
    pub(crate) fn range(&self, bytes: u64) -> Option<u64> {
        if bytes == 0 || bytes > self.size {
            return None;
        }
        Some(bytes.checked_next_power_of_two()?.max(self.leaf))
    }

    fn take_in(node: &mut Node, size: u64, wanted: u64) -> Option<u64> {
        if node.largest(size) < wanted {
            return None;
        }
        let half = size / 2;
        if matches!(node, Node::Free) {
            if half < wanted {
                *node = Node::Used;
                return Some(0);
            }
            *node = Node::Split {
                left: Box::new(Node::Free),
                right: Box::new(Node::Free),
                largest: half,
            };
        }
        let Node::Split {
            left,
            right,
            largest,
        } = node
        else {
            return None;
        };
        let (l, r) = (left.largest(half), right.largest(half));
        let go_left = l >= wanted && (r < wanted || l <= r);
        let offset = if go_left {
            Self::take_in(left, half, wanted)?
        } else {
            half + Self::take_in(right, half, wanted)?
        };
        *largest = left.largest(half).max(right.largest(half));
        Some(offset)
    }

    /// Gives a range back. False, and nothing changed, if `address` is not the start of a taken one.
    pub(crate) fn give_back(&mut self, address: u64) -> bool {
        let Some(offset) = address.checked_sub(self.base).filter(|&o| o < self.size) else {
            return false;
        };
        let done = Self::give_back_in(&mut self.root, self.size, offset);
        self.live -= usize::from(done);
        done
    }

    fn give_back_in(node: &mut Node, size: u64, offset: u64) -> bool {
        match node {
            Node::Free => false,
            Node::Used => {
                if offset == 0 {
                    *node = Node::Free;
                }
                offset == 0
            }
            Node::Split {
                left,
                right,
                largest,
            } => {
                let half = size / 2;
                let (child, offset) = if offset < half {
                    (&mut *left, offset)
                } else {
                    (&mut *right, offset - half)
                };
                if !Self::give_back_in(child, half, offset) {
                    return false;
                }
                if matches!((&**left, &**right), (Node::Free, Node::Free)) {
                    *node = Node::Free;
                } else {
                    *largest = left.largest(half).max(right.largest(half));
                }
                true
            }
        }
    }

    /// The largest free range.
    pub(crate) fn largest_free(&self) -> u64 {
        self.root.largest(self.size)
    }

    /// Whether nothing is taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// The range's first address.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// The range's size.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const BASE: u64 = 1 << 40;

    #[test]
    fn nothing_comes_of_zero_or_too_many_bytes() {
        let mut tree = Buddy::new(BASE, 1 << 10, 1 << 4);
        assert_eq!(tree.take(0), None);
        assert_eq!(tree.take((1 << 10) + 1), None);
        assert_eq!(tree.take(u64::MAX), None);
        assert!(tree.is_empty());
        assert_eq!(tree.take(1 << 10), Some(BASE));
        assert_eq!(tree.take(1), None);
    }

    #[test]
    fn a_freed_range_is_reused_exactly_also_with_a_later_one_live() {
        let mut tree = Buddy::new(BASE, 1 << 20, 1 << 12);
        let first = tree.take(1 << 12).unwrap();
        assert_eq!(first, BASE);
        let second = tree.take(1 << 12).unwrap();
        assert!(first < second);
        assert!(tree.give_back(first));
        assert_eq!(tree.take(1 << 12), Some(first));
    }

    #[test]
    fn both_siblings_freed_make_room_for_more_than_one() {
        let mut tree = Buddy::new(BASE, 1 << 13, 1 << 12);
        let (a, b) = (tree.take(1 << 12).unwrap(), tree.take(1 << 12).unwrap());
        assert!(tree.give_back(a) && tree.give_back(b));
        assert_eq!(tree.take((1 << 12) + 1), Some(a));
    }

    #[test]
    fn an_odd_size_takes_the_next_power_of_two() {
        let mut tree = Buddy::new(BASE, 1 << 30, 2 << 20);
        assert_eq!(tree.range((4 << 20) + 1), Some(8 << 20));
        let p = tree.take((4 << 20) + 1).unwrap();
        assert!(tree.give_back(p));
        assert_eq!(tree.largest_free(), 1 << 30);
    }

    #[test]
    fn interior_foreign_and_doubly_freed_addresses_change_nothing() {
        let mut tree = Buddy::new(BASE, 1 << 20, 1 << 12);
        let p = tree.take(1 << 14).unwrap();
        for wrong in [
            0,
            1,
            BASE - 1,
            p + 1,
            p + (1 << 12),
            p + (1 << 14),
            BASE + (1 << 20),
            u64::MAX,
        ] {
            assert!(!tree.give_back(wrong), "{wrong:#x}");
        }
        assert!(!tree.is_empty());
        assert!(tree.give_back(p) && !tree.give_back(p));
        assert!(tree.is_empty());
    }

    /// The same rules, said plainly: all free power-of-two ranges in a list; the smallest that suffices, lowest first.
    struct Naive {
        free: Vec<(u64, u64)>,
        used: BTreeMap<u64, u64>,
        size: u64,
        leaf: u64,
    }

    impl Naive {
        fn largest(&self) -> u64 {
            self.free.iter().map(|f| f.1).max().unwrap_or(0)
        }

        fn take(&mut self, bytes: u64, at: u64) {
            let wanted = bytes.next_power_of_two().max(self.leaf);
            // Splits the free range that holds the answer, down to its size.
            let i = self
                .free
                .iter()
                .position(|&(a, s)| a <= at && at < a + s)
                .expect("the answer is free");
            let (mut start, mut size) = self.free.remove(i);
            while size > wanted {
                size /= 2;
                if at < start + size {
                    self.free.push((start + size, size));
                } else {
                    self.free.push((start, size));
                    start += size;
                }
            }
            assert_eq!((start, size), (at, wanted), "aligned to its size");
            self.used.insert(at, wanted);
        }

        fn give_back(&mut self, at: u64) -> bool {
            let Some(mut size) = self.used.remove(&at) else {
                return false;
            };
            let mut start = at;
            while size < self.size {
                let sibling = ((start - BASE) ^ size) + BASE;
                let Some(i) = self.free.iter().position(|&f| f == (sibling, size)) else {
                    break;
                };
                self.free.remove(i);
                start = start.min(sibling);
                size *= 2;
            }
            self.free.push((start, size));
            true
        }
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_list_of_free_ranges(
            steps in prop::collection::vec((any::<bool>(), 1u64..3000, any::<prop::sample::Index>()), 1..200)
        ) {
            let (size, leaf) = (1u64 << 13, 1u64 << 5);
            let mut tree = Buddy::new(BASE, size, leaf);
            let mut naive = Naive { free: vec![(BASE, size)], used: BTreeMap::new(), size, leaf };
            for (take, bytes, pick) in steps {
                if take {
                    let wanted = bytes.next_power_of_two().max(leaf);
                    match tree.take(bytes) {
                        Some(at) => naive.take(bytes, at),
                        None => prop_assert!(naive.largest() < wanted),
                    }
                } else if !naive.used.is_empty() {
                    let at = *pick.get(&naive.used.keys().copied().collect::<Vec<_>>());
                    prop_assert!(!tree.give_back(at + 1));
                    prop_assert!(tree.give_back(at) && naive.give_back(at));
                    prop_assert!(!tree.give_back(at));
                }
                prop_assert_eq!(tree.largest_free(), naive.largest());
                prop_assert_eq!(tree.is_empty(), naive.used.is_empty());
            }
        }
    }

    #[test]
    fn the_smaller_range_that_suffices_is_taken_first() {
        let mut tree = Buddy::new(BASE, 1 << 12, 1);
        let p = tree.take(1 << 10).unwrap();
        let q = tree.take(1 << 10).unwrap();
        let r = tree.take(1 << 10).unwrap();
        assert_eq!((p, q, r), (BASE, BASE + (1 << 10), BASE + (1 << 11)));
        assert!(tree.give_back(p) && tree.give_back(q));
        // The left half is free as a whole; the right one has only a quarter left, which suffices.
        assert_eq!(tree.take(1 << 9), Some(r + (1 << 10)));
        // Of equals the left one.
        assert_eq!(tree.take(1 << 11), Some(BASE));
    }
}
