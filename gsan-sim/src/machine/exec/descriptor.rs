//! Matrices in shared memory, as `wgmma` and `tcgen05` see them through a 64-bit descriptor.
//!
//! A matrix is made of *atoms*: 8 lines of 16, 32, 64 or 128 bytes. A line runs along K, or, where the matrix is
//! transposed, along M or N. Within an atom the 16-byte pieces of a line are permuted by the line's number (the swizzle),
//! which the hardware takes from the address. Two strides lead from an atom to its neighbours.

use super::{Exec, Halt};
use crate::machine::element::Element;
use crate::machine::ir::Space;

/// The fields that both descriptors share. In bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptor {
    pub start: u64,
    pub leading: u64,
    pub stride: u64,
    /// The number of the line at which the swizzle begins.
    pub base: u64,
    /// Bytes of a line: 16 (nothing is permuted), 32, 64, 128.
    pub line: u64,
}

impl Descriptor {
    /// Of `wgmma`.
    pub fn wgmma(bits: u64) -> Descriptor {
        let field = |shift: u32| (bits >> shift & 0x3fff) << 4;
        Descriptor {
            start: field(0),
            leading: field(16),
            stride: field(32),
            base: bits >> 49 & 7,
            line: [16, 128, 64, 32][(bits >> 62) as usize],
        }
    }

    /// Of `tcgen05`, which numbers the swizzles otherwise.
    pub fn tcgen05(bits: u64) -> Result<Descriptor, Halt> {
        let line = match bits >> 61 {
            0 => 16,
            2 => 128,
            4 => 64,
            6 => 32,
            other => {
                return Err(Halt::Unsupported(format!(
                    "matrix descriptor with swizzle mode {other}"
                )));
            }
        };
        Ok(Descriptor {
            line,
            ..Descriptor::wgmma(bits)
        })
    }

    /// Address of the byte at (`i` along M or N, `k`), both counted in elements of `bits` bits.
    pub fn address(&self, i: u64, k: u64, bits: u32, transposed: bool) -> u64 {
        let bytes = u64::from(bits);
        let offset = if transposed {
            let byte = i * bytes / 8;
            let (across, along) = if self.line == 16 {
                (self.stride, self.leading)
            } else {
                (self.leading, self.stride)
            };
            byte % self.line + byte / self.line * across + k % 8 * self.line + k / 8 * along
        } else {
            let byte = k * bytes / 8;
            // Without swizzle, the next 16 bytes of a line lie in the next atom.
            let along = if self.line == 16 { self.leading } else { 16 };
            i % 8 * self.line + i / 8 * self.stride + byte / 16 * along + byte % 16
        };
        self.swizzle(self.start.wrapping_add(offset))
    }

    fn swizzle(&self, address: u64) -> u64 {
        let mask = self.line / 16 - 1;
        address ^ ((address >> 7).wrapping_sub(self.base) & mask) << 4
    }
}

impl Exec<'_> {
    /// The values of `count` lines of `depth` elements from `first` on, line by line.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn described(
        &self,
        d: Descriptor,
        element: Element,
        first: usize,
        count: usize,
        depth: usize,
        transposed: bool,
        negate: bool,
    ) -> Result<Vec<f64>, Halt> {
        let sign = if negate { -1.0 } else { 1.0 };
        let mut out = Vec::with_capacity(count * depth);
        for i in first..first + count {
            for k in 0..depth {
                let bits = self.described_one(d, element, [i as u64, k as u64], transposed)?;
                out.push(sign * element.decode(bits));
            }
        }
        Ok(out)
    }

    /// An element's bits, as a register has them.
    fn described_one(
        &self,
        d: Descriptor,
        element: Element,
        [i, k]: [u64; 2],
        transposed: bool,
    ) -> Result<u64, Halt> {
        let (bits, narrow) = (element.bits(), element.narrow());
        if bits >= 8 && narrow == bits {
            let address = d.address(i, k, bits, transposed);
            return self.shared_word(address, u64::from(bits / 8));
        }
        if transposed {
            return Err(Halt::Unsupported(
                "a transposed matrix of elements of four or six bits".to_string(),
            ));
        }
        // Of those that become bytes 16 lie together, followed by nothing up to 16 bytes.
        let (first, container) = if bits == 8 { (k % 16, 8) } else { (0, bits) };
        let at = match first {
            0 => k * u64::from(bits) % 8,
            n => n * u64::from(narrow),
        };
        let address = d.address(i, k - first, container, false) + at / 8;
        let mut word = self.shared_word(address, 1)?;
        if at % 8 + u64::from(narrow) > 8 {
            word |= self.shared_word(address + 1, 1)? << 8;
        }
        let found = word >> (at % 8) & ((1 << narrow) - 1);
        // Four bits lie in the middle of eight.
        Ok(found << if element == Element::E2m1Wide { 2 } else { 0 })
    }

    /// A little-endian word of at most 8 bytes of the block's own shared memory.
    fn shared_word(&self, address: u64, bytes: u64) -> Result<u64, Halt> {
        match self.locate(Space::Shared, address, bytes)? {
            super::data::Place::Shared(slot, at) => {
                let mut word = [0; 8];
                let memory = &self.shared[slot][at as usize..][..bytes as usize];
                word[..bytes as usize].copy_from_slice(memory);
                Ok(u64::from_le_bytes(word))
            }
            _ => Ok(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CUTLASS's atom of 8 × 64 halves with `Swizzle<3, 4, 3>`: piece p of line r lies at piece p ^ r.
    #[test]
    fn lines_of_128_bytes_are_permuted() {
        let d = Descriptor {
            start: 0x2000,
            leading: 16,
            stride: 1024,
            base: 0,
            line: 128,
        };
        assert_eq!(d.address(0, 8, 16, false), 0x2000 + 16);
        assert_eq!(d.address(3, 0, 16, false), 0x2000 + 3 * 128 + 3 * 16);
        assert_eq!(d.address(3, 9, 16, false), 0x2000 + 3 * 128 + 2 * 16 + 2);
        assert_eq!(
            d.address(11, 0, 16, false),
            0x2000 + 1024 + 3 * 128 + 3 * 16
        );
        // A descriptor that starts 32 bytes into the atom sees the same permutation.
        let next = Descriptor { start: 0x2020, ..d };
        assert_eq!(next.address(3, 0, 16, false), d.address(3, 16, 16, false));
    }

    #[test]
    fn the_word_is_taken_apart() {
        let bits = 0x123 | 0x45 << 16 | 0x67 << 32 | 5 << 49 | 2 << 62;
        assert_eq!(
            Descriptor::wgmma(bits),
            Descriptor {
                start: 0x1230,
                leading: 0x450,
                stride: 0x670,
                base: 5,
                line: 64
            }
        );
    }

    #[test]
    fn without_swizzle_both_strides_count() {
        let d = Descriptor {
            start: 0x400,
            leading: 128,
            stride: 256,
            base: 0,
            line: 16,
        };
        // Along K: the second core matrix of 8 × 16 bytes is `leading` away, the next 8 rows `stride`.
        assert_eq!(d.address(9, 8, 16, false), 0x400 + 256 + 16 + 128);
        // Along M: 8 elements make a line, the next 8 are `stride` away, the next 8 of K `leading`.
        assert_eq!(d.address(9, 10, 16, true), 0x400 + 256 + 2 + 2 * 16 + 128);
    }
}
