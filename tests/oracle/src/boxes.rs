//! The tensor that lies in each program's memory, and the boxes of it that copies through a tensor map name.
//!
//! It has [`EXTENTS`] words, in rows that begin every [`STRIDE`] bytes from [`AT`] on; the last word of those belongs to no row. A box is [`BOX`]
//! words; what of it lies outside is not accessed, but counts among the bytes that an mbarrier hears of. The hardware takes only
//! boxes that begin at a multiple of four words, and stores none that begins before the tensor does.

use crate::program::{AsyncCopy, Place, Space, Transfer};
use gsan_device::layout::{Order, Scope};

/// Its first byte in the program's checked memory.
pub const AT: u32 = 64;
/// Words of a row, and rows.
pub const EXTENTS: [u32; 2] = [7, 5];
/// Bytes from one row to the next.
pub const STRIDE: u32 = 32;
/// Words of a box's row, and its rows.
pub const BOX: [u32; 2] = [4, 2];

/// Where a box begins: word in the row, and row. Both may lie outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corner {
    /// The word.
    pub x: i32,
    /// The row.
    pub y: i32,
}

impl Corner {
    /// The box whose first row begins at that place, if there is one.
    pub fn at(place: Place) -> Option<Corner> {
        let from = place.offset.checked_sub(AT)?;
        let (x, y) = (from % STRIDE / 4, from / STRIDE);
        let inside = place.space == Space::Checked && x < EXTENTS[0] && y < EXTENTS[1];
        let inside = inside && x % BOX[0] == 0;
        inside.then_some(Corner {
            x: x as i32,
            y: y as i32,
        })
    }

    /// The parts of the box's rows that there are.
    pub fn rows(self) -> impl Iterator<Item = Place> {
        (0..BOX[1] as i32).filter_map(move |row| {
            let y = u32::try_from(self.y + row)
                .ok()
                .filter(|&y| y < EXTENTS[1])?;
            let inside = |x: &u32| (0..EXTENTS[0] as i32).contains(&(self.x + *x as i32));
            let mut words = (0..BOX[0]).filter(inside);
            let first = words.next()?;
            let size = 4 * (1 + words.count() as u32);
            let x = (self.x + first as i32) as u32;
            Some(Place {
                space: Space::Checked,
                offset: AT + STRIDE * y + 4 * x,
                size,
            })
        })
    }
}

impl AsyncCopy {
    /// The bytes of global memory that it touches, each part in one piece.
    pub fn pieces(&self) -> Vec<Place> {
        match self.corner {
            Some(corner) => corner.rows().collect(),
            None => vec![self.place],
        }
    }

    /// Bytes that it moves, those of a box's outside included.
    pub fn bytes(&self) -> u32 {
        match self.corner {
            Some(_) => 4 * BOX[0] * BOX[1],
            None => self.place.size,
        }
    }

    /// The accesses that it is: one of each piece, or of a reduction one of each word.
    pub fn accesses(&self) -> Vec<Place> {
        let words = |piece: Place| {
            (0..piece.size / 4).map(move |n| Place {
                offset: piece.offset + 4 * n,
                size: 4,
                ..piece
            })
        };
        match self.what {
            Transfer::Reduce(_) => self.pieces().into_iter().flat_map(words).collect(),
            _ => self.pieces(),
        }
    }

    /// In what order and scope they are.
    pub fn strength(&self) -> (Order, Scope) {
        match self.what {
            Transfer::Reduce(_) => (Order::Relaxed, Scope::Gpu),
            _ => (Order::Weak, Scope::None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(x: i32, y: i32) -> Vec<(u32, u32)> {
        let rows = Corner { x, y }.rows();
        rows.map(|p| (p.offset, p.size)).collect()
    }

    #[test]
    fn boxes_are_clipped_at_the_tensors_edges() {
        assert_eq!(rows(0, 0), [(64, 16), (96, 16)]);
        assert_eq!(rows(4, 3), [(176, 12), (208, 12)]);
        assert_eq!(rows(0, 4), [(192, 16)]);
        assert_eq!(rows(-1, -1), [(64, 12)]);
        assert_eq!(rows(8, 0), []);
        assert_eq!(rows(0, 5), []);
    }

    #[test]
    fn a_place_is_where_its_box_begins() {
        for offset in (AT..AT + STRIDE * EXTENTS[1]).step_by(16) {
            let place = Place {
                space: Space::Checked,
                offset,
                size: 4,
            };
            let first = Corner::at(place).and_then(|c| c.rows().next());
            assert_eq!(first.map(|p| p.offset), Some(offset));
        }
    }
}
