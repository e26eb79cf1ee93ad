//! Volta's `mma.m8n8k4` on halves: four products at once, each by eight lanes: 4 × q to 4 × q + 3, and those 16 further on.

use super::{Exec, write};
use crate::machine::element::{Element, Product};
use crate::machine::ir::MatrixOp;
use crate::machine::state::Warp;
use crate::machine::ty::Row;

/// Where an element lies: which of the product's eight lanes, and which of the lane's elements.
type Place = (usize, usize);

/// Of A, by row and K; of B, by column and K. `along`: a lane has the elements along K (A by rows, B by columns).
fn operand(along: bool, line: usize, k: usize) -> Place {
    if along {
        (line, k)
    } else {
        (line / 4 * 4 + k, line % 4)
    }
}

/// Of C and D.
fn sum(element: Element, row: usize, column: usize) -> Place {
    if element == Element::F16 {
        return (row, column);
    }
    // A lane has two rows' pairs of neighbours, and the same of the other four columns.
    let lane = row / 4 * 4 + row % 2 + column % 4 / 2 * 2;
    (lane, column / 4 * 4 + row % 4 / 2 * 2 + column % 2)
}

fn lane(product: usize, member: usize) -> usize {
    4 * product + member % 4 + member / 4 * 16
}

/// An element of a fragment.
fn value(registers: &[Row], element: Element, product: usize, (member, i): Place) -> f64 {
    let per = element.per_register();
    let bits = registers[i / per][lane(product, member)] >> (element.bits() as usize * (i % per));
    element.decode(bits & element.mask())
}

impl Exec<'_> {
    pub(super) fn four_products(&mut self, warp: &mut Warp, op: &MatrixOp) {
        let MatrixOp::FourProducts {
            product: p,
            along,
            d,
            a,
            b,
            c,
        } = op
        else {
            return;
        };
        let frame = warp.groups[warp.current].frame;
        let [a, b, c] = [a, b, c].map(|list| self.rows(warp, frame, list));
        let Product { c: from, d: to, .. } = *p;
        let mut out = vec![[0u64; 32]; d.len()];
        for q in 0..4 {
            let lines = |registers: &[Row], along: bool| -> Vec<f64> {
                let place = |i: usize| operand(along, i / 4, i % 4);
                (0..32)
                    .map(|i| value(registers, Element::F16, q, place(i)))
                    .collect()
            };
            p.compute(
                &lines(&a, along[0]),
                &lines(&b, along[1]),
                |m, n| value(&c, from, q, sum(from, m, n)),
                |m, n, bits| {
                    let (member, i) = sum(to, m, n);
                    let per = to.per_register();
                    out[i / per][lane(q, member)] |= bits << (to.bits() as usize * (i % per));
                },
            );
        }
        for (&d, row) in d.iter().zip(&out) {
            write(warp, frame, d, row, u32::MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_element_has_a_place_of_its_own() {
        for along in [false, true] {
            let places: HashSet<Place> = (0..32).map(|i| operand(along, i / 4, i % 4)).collect();
            assert!(places.len() == 32 && places.iter().all(|p| p.0 < 8 && p.1 < 4));
        }
        for element in [Element::F16, Element::F32] {
            let places: HashSet<Place> = (0..64).map(|i| sum(element, i / 8, i % 8)).collect();
            assert!(places.len() == 64 && places.iter().all(|p| p.0 < 8 && p.1 < 8));
        }
        let lanes: HashSet<usize> = (0..32).map(|i| lane(i / 8, i % 8)).collect();
        assert_eq!(lanes.len(), 32);
    }
}
