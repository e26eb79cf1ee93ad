//! Which reader's slot a further read replaces: reservoir sampling, so that early and late readers are as likely to be
//! kept.

use crate::layout::ShadowCell;

/// The slot to replace, or none; `n` reads came before this one. Reproducible from the reader's own counter and the seed.
#[inline]
pub fn replaced_slot(counter: u32, thread: u32, seed: u32, n: u32) -> Option<u32> {
    if n == 0 {
        return None;
    }
    let r = below(n, counter, thread, seed);
    if r < ShadowCell::READS as u32 {
        Some(r)
    } else {
        None
    }
}

/// A number below `n` (0 for `n` = 0), reproducible from the reader's own counter and the seed.
#[inline]
pub fn below(n: u32, counter: u32, thread: u32, seed: u32) -> u32 {
    draw(counter, thread, seed).checked_rem(n).unwrap_or(0)
}

/// A number that is the same for the same arguments.
#[inline]
pub fn draw(counter: u32, thread: u32, seed: u32) -> u32 {
    murmur3(counter, thread, seed)
}

/// Murmur3, 32 bits, over two words (Austin Appleby's public-domain algorithm).
fn murmur3(a: u32, b: u32, seed: u32) -> u32 {
    let mut h = seed;
    for word in [a, b] {
        let k = word
            .wrapping_mul(0xcc9e_2d51)
            .rotate_left(15)
            .wrapping_mul(0x1b87_3593);
        h = (h ^ k)
            .rotate_left(13)
            .wrapping_mul(5)
            .wrapping_add(0xe654_6b64);
    }
    h ^= 8;
    h = (h ^ h >> 16).wrapping_mul(0x85eb_ca6b);
    h = (h ^ h >> 13).wrapping_mul(0xc2b2_ae35);
    h ^ h >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn murmur3_matches_the_published_vectors() {
        // "test" and "1234" as one 8-byte key would need the byte form; these are MurmurHash3_x86_32 of two
        // little-endian words, computed with the reference implementation's steps written out by hand.
        assert_eq!(murmur3(0, 0, 0), 0x63852afc);
        assert_ne!(murmur3(1, 0, 0), murmur3(0, 1, 0));
    }

    #[test]
    fn every_reader_is_kept_about_as_often() {
        // 16 readers, 4 slots: each is kept with probability about 1/4.
        let mut kept = [0u32; 16];
        for seed in 0..4000 {
            let mut slots = [0usize, 1, 2, 3];
            for reader in 4..16u32 {
                if let Some(slot) = replaced_slot(0, reader, seed, reader + 1) {
                    slots[slot as usize] = reader as usize;
                }
            }
            slots.iter().for_each(|&r| kept[r] += 1);
        }
        for (reader, &count) in kept.iter().enumerate() {
            assert!(
                (800..1200).contains(&count),
                "reader {reader} kept {count} times of 4000"
            );
        }
    }
}
