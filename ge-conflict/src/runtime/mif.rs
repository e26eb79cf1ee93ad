//! Which streams still use a block, as each stream knows it: one row of bits per observing stream.

/// The most streams that a row has bits for.
pub const MAX_STREAMS: usize = 64;

/// The rows of one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mif {
    rows: Vec<u64>,
}

impl Mif {
    /// Rows for that many streams (at most 64), all empty.
    pub fn new(streams: usize) -> Mif {
        Mif {
            rows: vec![0; streams.min(MAX_STREAMS)],
        }
    }

    /// Number of streams.
    pub fn streams(&self) -> usize {
        self.rows.len()
    }

    /// From `row`'s point of view, `stream` uses the block.
    pub fn set(&mut self, row: usize, stream: usize) {
        if stream < self.rows.len()
            && let Some(r) = self.rows.get_mut(row)
        {
            *r |= 1 << stream;
        }
    }

    /// From everybody's point of view, `stream` uses the block.
    pub fn set_all(&mut self, stream: usize) {
        (0..self.rows.len()).for_each(|row| self.set(row, stream));
    }

    /// From `row`'s point of view, everybody uses the block. Sixty-four streams fill the row: the observed implementation
    /// shifts by the number of streams there, which is undefined.
    pub fn set_maintained_all(&mut self, row: usize) {
        let n = self.rows.len();
        if let Some(r) = self.rows.get_mut(row) {
            *r = if n >= 64 { u64::MAX } else { (1 << n) - 1 };
        }
    }

    /// From `row`'s point of view, `stream` is done.
    pub fn clear(&mut self, row: usize, stream: usize) {
        if stream < self.rows.len()
            && let Some(r) = self.rows.get_mut(row)
        {
            *r &= !(1 << stream);
        }
    }

    /// `dst` learns what `src` knows to be done.
    pub fn merge_cleared(&mut self, src: usize, dst: usize) {
        if let Some(s) = self.rows.get(src).copied()
            && let Some(d) = self.rows.get_mut(dst)
        {
            *d &= s;
        }
    }

    /// Whether `stream` uses the block, from `row`'s point of view.
    pub fn is_set(&self, row: usize, stream: usize) -> bool {
        stream < self.rows.len() && self.rows.get(row).is_some_and(|r| r & 1 << stream != 0)
    }

    /// Whether anybody, the observer included, uses the block.
    pub fn is_any_set(&self, row: usize) -> bool {
        self.rows.get(row).is_some_and(|r| *r != 0)
    }

    /// Nobody uses it.
    pub fn reset(&mut self) {
        self.rows.fill(0);
    }
}

/// The mask of streams that a recycled block has been sent to when it has been sent to all: every stream but its owner.
pub fn all_sent(streams: usize, owner: usize) -> u64 {
    let all = if streams >= 64 {
        u64::MAX
    } else {
        (1 << streams) - 1
    };
    if owner < 64 { all & !(1 << owner) } else { all }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_toggles() {
        let mut m = Mif::new(8);
        m.set(0, 1);
        assert!(m.is_set(0, 1) && !m.is_set(1, 0) && m.is_any_set(0));
        m.clear(0, 1);
        assert!(!m.is_set(0, 1) && !m.is_any_set(0));
    }

    #[test]
    fn a_full_row_does_not_fill_an_empty_one() {
        let mut m = Mif::new(8);
        m.set_maintained_all(0);
        m.merge_cleared(0, 1);
        assert!(!m.is_any_set(1));
        m.merge_cleared(1, 0);
        assert!(!m.is_any_set(0));
    }

    #[test]
    fn sixty_four_streams_fit() {
        let mut m = Mif::new(64);
        m.set_maintained_all(3);
        assert!((0..64).all(|s| m.is_set(3, s)));
        assert_eq!(all_sent(64, 63), u64::MAX >> 1);
    }

    #[test]
    fn the_owner_is_sent_nothing() {
        assert_eq!(all_sent(4, 0), 0b1110);
        assert_eq!(all_sent(4, 1), 0b1101);
    }
}
