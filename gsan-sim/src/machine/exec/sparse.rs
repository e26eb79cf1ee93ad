//! `mma.sp` and `wgmma…sp`: A has two elements of each four (one of two, four of eight), and a metadata register says which.
//!
//! Each chunk of a row has four bits, two places of two bits each: where the first and the second element (of 4-bit types:
//! pair of elements) lie. A chunk of tf32 has two elements, whose places count double. A lane's register describes eight
//! chunks: of types of 16 and more bits four of each of the lane's two rows, of smaller types eight of one row. Of the four
//! lanes that hold rows together, as many have metadata as that takes, counted from the selector on.

use crate::machine::element::{Element, Product};
use crate::machine::ty::Row;

/// Elements of a chunk.
fn chunk(element: Element) -> usize {
    match element.bits() {
        32 => 2,
        4 => 8,
        _ => 4,
    }
}

/// Lanes of four that have metadata.
pub fn holders(p: &Product) -> usize {
    p.depth / chunk(p.a) / 4
}

/// All of A's 16 rows, from those with the elements that are there.
pub fn spread(p: &Product, there: &[f64], metadata: &Row, selector: usize) -> Vec<f64> {
    let mut out = vec![0.0; 16 * p.depth];
    let size = chunk(p.a);
    let first = selector * holders(p);
    for (row, there) in there.chunks_exact(p.depth / 2).take(16).enumerate() {
        for (n, elements) in there.chunks_exact(size / 2).enumerate() {
            let (holder, shift) = if p.a.bits() >= 16 {
                (n / 4, 16 * (row / 8) + 4 * (n % 4))
            } else {
                (row / 8 + 2 * (n / 8), 4 * (n % 8))
            };
            let lane = 4 * (row % 8) + (first + holder) % 4;
            let places = (metadata[lane] >> shift) as usize & 15;
            for (i, &x) in elements.iter().enumerate() {
                out[row * p.depth + n * size + place(places, i, size)] = x;
            }
        }
    }
    out
}

/// Where in its chunk the element lies.
fn place(places: usize, i: usize, size: usize) -> usize {
    match size {
        2 => (places & 3) / 2,
        4 => places >> (2 * i) & 3,
        // Pairs stay together.
        _ => 2 * (places >> (2 * (i / 2)) & 3) + i % 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(a: Element, depth: usize) -> Product {
        Product {
            rows: 16,
            columns: 8,
            depth,
            a,
            b: a,
            c: Element::F32,
            d: Element::F32,
            saturate: false,
            xor: false,
        }
    }

    #[test]
    fn elements_go_where_the_metadata_say() {
        let p = product(Element::F16, 16);
        assert_eq!(holders(&p), 1);
        let there: Vec<f64> = (1..=128).map(f64::from).collect();
        let mut metadata = [0x4444_4444; 32];
        // Row 3 and row 11, selected lane 2: its first chunk at 1 and 3, the other's last at 2 and 3.
        metadata[14] = 0xe444_444d;
        let all = spread(&p, &there, &metadata, 2);
        assert_eq!(all[3 * 16..][..4], [0.0, 25.0, 0.0, 26.0]);
        assert_eq!(all[11 * 16..][12..16], [0.0, 0.0, 95.0, 96.0]);
        assert_eq!(all[..4], [1.0, 2.0, 0.0, 0.0]);
        assert_eq!(all.iter().filter(|x| **x != 0.0).count(), 128);
    }

    #[test]
    fn wide_and_narrow_elements_have_other_chunks() {
        let p = product(Element::Tf32, 8);
        let all = spread(&p, &[7.0; 64], &[0xe4e4_e4e4; 32], 0);
        assert_eq!(all[..8], [7.0, 0.0, 0.0, 7.0, 7.0, 0.0, 0.0, 7.0]);
        let p = product(Element::S4, 64);
        assert_eq!(holders(&p), 2);
        let all = spread(&p, &[1.0; 512], &[0xdddd_dddd; 32], 1);
        assert_eq!(all[..8], [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0]);
        assert_eq!(holders(&product(Element::E4m3, 64)), 4);
    }
}
