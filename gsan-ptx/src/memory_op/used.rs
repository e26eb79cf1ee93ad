//! Loads and stores that leave out a part of what they span: elements that are named `_`, and bytes that the pragma
//! `used_bytes_mask` says nobody looks at.

use super::MemoryOp;
use crate::ast::{Instruction, Operand};
use crate::hook::{Access, OpWord};

/// A run of elements, or of bytes inside of one, that an access touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Bytes from the access's address on.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
    /// How many elements: a power of two, as the hooks' word needs it.
    pub elements: u32,
}

impl Piece {
    /// The hooks' word for this piece of what `word` is for.
    pub fn word(&self, word: OpWord) -> OpWord {
        word.with_size(self.size).elements(self.elements)
    }
}

/// A strong access has a hook behind it, and what the one before it has returned must be kept for each piece: vectors of eight
/// come in four at most.
pub const MOST_STRONG: usize = 4;

impl MemoryOp<'_, '_> {
    /// The pieces that it touches, in order.
    pub fn pieces(&self) -> impl Iterator<Item = Piece> + use<> {
        let whole = Piece {
            offset: 0,
            size: self.size,
            elements: self.elements,
        };
        let mut left = self.used;
        let element = self.size / self.elements.max(1);
        let mut first = left.is_none().then_some(whole);
        std::iter::from_fn(move || first.take().or_else(|| take_piece(left.as_mut()?, element)))
    }

    /// The same access, of which only these bytes are used.
    pub fn only(mut self, bytes: u32) -> Self {
        if self.access == Access::Load && self.copy.is_none() {
            self.leave_out(bytes);
        }
        self
    }

    /// Nothing of it is used.
    pub fn is_empty(&self) -> bool {
        self.used == Some(0)
    }

    pub(super) fn leave_out(&mut self, bytes: u32) {
        let Some(all) = all_bytes(self.size) else {
            return;
        };
        let mut used = self.used.unwrap_or(all) & bytes;
        if self.is_strong() {
            // An element of it is one access, and even one that nobody looks at may synchronise.
            used = whole_elements(used, self.size / self.elements.max(1));
            if used == 0 {
                return;
            }
        }
        let before = self.used;
        self.used = (used != all).then_some(used);
        if self.is_strong() && self.pieces().count() > MOST_STRONG {
            self.used = before;
        }
    }
}

/// The bytes of a vector operand's elements that are not `_`; all for anything else.
pub(super) fn named_elements(instruction: &Instruction<'_>, load: bool, size: u32) -> u32 {
    let all = all_bytes(size).unwrap_or(u32::MAX);
    let Some(Operand::Vector(list)) = instruction.operands.get(usize::from(!load)) else {
        return all;
    };
    let lanes = list.len() as u32;
    if lanes == 0 || !size.is_multiple_of(lanes) || size > 32 {
        return all;
    }
    let element = size / lanes;
    let sinks = list.iter().zip(0..).filter(|(o, _)| **o == Operand::Sink);
    sinks.fold(all, |used, (_, lane)| {
        used & !(ones(element) << (lane * element))
    })
}

/// A mask of so many bytes; `None` for more than it has bits.
fn all_bytes(size: u32) -> Option<u32> {
    (size <= 32).then(|| ones(size))
}

fn ones(n: u32) -> u32 {
    u32::MAX.checked_shl(n).map_or(u32::MAX, |rest| !rest)
}

/// Takes in all bytes of the elements of which one is there.
fn whole_elements(used: u32, element: u32) -> u32 {
    let starts = (0..32u32).step_by(element.max(1) as usize);
    let masks = starts.map(|at| ones(element) << at);
    masks.filter(|m| used & m != 0).fold(0, |all, m| all | m)
}

/// Cuts the first piece off.
fn take_piece(left: &mut u32, element: u32) -> Option<Piece> {
    if *left == 0 {
        return None;
    }
    let offset = left.trailing_zeros();
    let run = (*left >> offset).trailing_ones();
    let element = element.max(1);
    let (size, elements) = if offset.is_multiple_of(element) && run >= element {
        let elements = power_of_two(run / element);
        (elements * element, elements)
    } else {
        // A part of an element: aligned, as a scalar access is.
        let to_the_next = element - offset % element;
        let size = power_of_two(run.min(to_the_next));
        (size.min(1 << offset.trailing_zeros().min(5)), 1)
    };
    *left &= !(ones(size) << offset);
    Some(Piece {
        offset,
        size,
        elements,
    })
}

/// The largest power of two up to `n`, which is not 0.
fn power_of_two(n: u32) -> u32 {
    1 << n.ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(mut used: u32, element: u32) -> Vec<(u32, u32, u32)> {
        let next = || take_piece(&mut used, element).map(|p| (p.offset, p.size, p.elements));
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn pieces_are_powers_of_two() {
        assert_eq!(pieces(0xfff, 4), [(0, 8, 2), (8, 4, 1)]);
        assert_eq!(
            pieces(0x0f0f_f00f, 4),
            [(0, 4, 1), (12, 8, 2), (24, 4, 1)],
            "runs may begin anywhere"
        );
        assert_eq!(
            pieces(0x7e, 4),
            [(1, 1, 1), (2, 2, 1), (4, 2, 1), (6, 1, 1)]
        );
        assert_eq!(pieces(u32::MAX, 8), [(0, 32, 4)]);
        assert_eq!(pieces(1 << 31, 1), [(31, 1, 1)]);
    }

    #[test]
    fn pieces_cover_exactly_what_is_used() {
        let mut x = 0x9e37_79b9_u32;
        for element in [1, 2, 4, 8, 16] {
            for _ in 0..2000 {
                x ^= x << 13;
                x ^= x >> 17;
                x ^= x << 5;
                let mut covered = 0u32;
                for (offset, size, elements) in pieces(x, element) {
                    let mask = ones(size) << offset;
                    assert_eq!(covered & mask, 0, "{x:x}");
                    covered |= mask;
                    assert!(elements.is_power_of_two() && (size / elements).is_power_of_two());
                    assert!(size / elements == element || elements == 1 && size < element);
                    assert!(offset.is_multiple_of(size / elements));
                }
                assert_eq!(covered, x);
            }
        }
    }

    #[test]
    fn no_vector_of_eight_comes_in_more_pieces_than_a_strong_access_may() {
        for lanes in 1..=0xff_u32 {
            let used = (0..8)
                .filter(|i| lanes >> i & 1 == 1)
                .fold(0, |all, i| all | 0xf << (4 * i));
            assert!(pieces(used, 4).len() <= MOST_STRONG);
        }
        assert_eq!(whole_elements(0x0100_0002, 4), 0x0f00_000f);
        assert_eq!(
            (ones(0), ones(5), ones(32), all_bytes(33)),
            (0, 31, u32::MAX, None)
        );
    }
}
