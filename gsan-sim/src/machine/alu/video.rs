//! Video instructions: sums, differences, extremes, shifts, products and comparisons of words, halves and bytes, one at a
//! time (`vadd`) or two or four side by side (`vadd2`, `vadd4`), with a second operation on what comes out.
//!
//! What an instruction does, its parts included, is a word of 64 bits, the fourth operand of the function.
//!
//! No GPU since Kepler has the scalar ones; ptxas makes several instructions of each, and what these compute is not always what
//! the manual says (34 bits, saturated, then merged or compared). Here is what an H200 leaves (`tests/differ`):
//!
//! | where | the manual | ptxas |
//! |---|---|---|
//! | unsigned sum or difference, `.sat` | its upper end | wraps there; negative is zero |
//! | `.sat` into a byte or half | both ends | one end: the upper one is also what is negative, or was |
//! | shift, `.sat` into a byte or half | as above | saturates the word, then merges its lowest bits |
//! | into `.h1` | the result's lower half | its upper half |
//! | `.min`, `.max` behind an unsigned sum or difference | compares unsigned numbers | one with bit 31 is larger than all |
//! | `.min`, `.max` behind others | the result as 32 bits | as 64 bits |
//! | `vmad`, `.sat` or scaled | unsigned words are | words are signed; without a sign `.sat` takes the sum for signed, too |

use super::{Alu, Func, Mods, three_and_word};
use crate::machine::ty::Ty;

/// The first operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum First {
    Add,
    Sub,
    Difference,
    Min,
    Max,
    Average,
    ShiftLeft,
    ShiftRight,
    Product,
    Compare,
}

/// What becomes of its result, and the third operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Second {
    /// The result stands alone, or takes the place of a part of the third operand.
    Merge,
    Add,
    Min,
    Max,
}

/// A part of a word: the lowest bit, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    low: u32,
    bits: u32,
}

impl Part {
    /// All of it.
    pub const WHOLE: Part = Part { low: 0, bits: 32 };

    /// `b0` to `b3`, `h0`, `h1`.
    pub fn parse(name: &str) -> Option<Part> {
        let (kind, number) = name.split_at_checked(1)?;
        let number = number.parse::<u32>().ok()?;
        let bits = match (kind, number) {
            ("b", 0..=3) => 8,
            ("h", 0..=1) => 16,
            _ => return None,
        };
        Some(Part {
            low: number * bits,
            bits,
        })
    }

    fn mask(self) -> u32 {
        u32::MAX >> (32 - self.bits) << self.low
    }
}

/// Parts of each lane of a packed instruction, from the lowest: of eight bytes, or of four halves.
pub type Choice = [u8; 4];

/// An instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Video {
    first: First,
    second: Second,
    /// Whether result, first and second operand are signed.
    signed: [bool; 3],
    saturates: bool,
    wraps: bool,
    /// Of `vset`: less, equal, greater.
    holds: [bool; 3],
    /// Of `vmad`.
    scale: u32,
    plus_one: bool,
    /// 1, 2 or 4.
    pub lanes: u32,
}

const SCALAR: [(&str, First); 9] = [
    ("vadd", First::Add),
    ("vsub", First::Sub),
    ("vabsdiff", First::Difference),
    ("vmin", First::Min),
    ("vmax", First::Max),
    ("vshl", First::ShiftLeft),
    ("vshr", First::ShiftRight),
    ("vmad", First::Product),
    ("vset", First::Compare),
];
const PACKED: [(&str, First); 7] = [
    ("vadd", First::Add),
    ("vsub", First::Sub),
    ("vabsdiff", First::Difference),
    ("vmin", First::Min),
    ("vmax", First::Max),
    ("vavrg", First::Average),
    ("vset", First::Compare),
];

impl Video {
    /// The instruction of that name, if it is one.
    pub fn parse(opcode: &str, mods: &Mods<'_>) -> Option<Video> {
        let (list, name, lanes) = match opcode.strip_suffix(['2', '4']) {
            Some(name) if opcode.ends_with('2') => (&PACKED[..], name, 2),
            Some(name) => (&PACKED[..], name, 4),
            None => (&SCALAR[..], opcode, 1),
        };
        let &(_, first) = list.iter().find(|(n, _)| *n == name)?;
        let signed: Vec<bool> = mods.types.iter().map(|t| *t == Ty::S32).collect();
        if mods.types.iter().any(|t| !matches!(t, Ty::S32 | Ty::U32)) {
            return None;
        }
        let signed = match (first, &signed[..]) {
            // The result of a comparison has no type.
            (First::Compare, &[a, b]) => [false, a, b],
            (First::Compare, _) => return None,
            (_, &[d, a, b]) => [d, a, b],
            _ => return None,
        };
        let holds = match mods.words.iter().find_map(|w| comparison(w)) {
            Some(holds) => holds,
            None if first == First::Compare => return None,
            None => [false; 3],
        };
        // `vmin.u32.….max` names two of them, the first in its opcode.
        let second = match () {
            _ if mods.has("add") => Second::Add,
            _ if mods.has("min") => Second::Min,
            _ if mods.has("max") => Second::Max,
            _ => Second::Merge,
        };
        let scale = match () {
            _ if mods.has("shr7") => 7,
            _ if mods.has("shr15") => 15,
            _ => 0,
        };
        Some(Video {
            first,
            second,
            signed,
            saturates: mods.has("sat"),
            wraps: mods.has("wrap"),
            holds,
            scale,
            plus_one: mods.has("po"),
            lanes,
        })
    }

    /// Whether it has a third operand in any case.
    pub fn needs_three(&self) -> bool {
        self.lanes > 1 || self.second != Second::Merge || self.first == First::Product
    }

    /// The function, and the word that tells it about a scalar instruction: parts of the result and of the operands, and
    /// which of the operands are negated (of `vmad`).
    pub fn scalar(&self, parts: [Part; 3], negated: [bool; 3]) -> (Alu, u64) {
        let number = |p: Part| u64::from(p.low | p.bits.trailing_zeros() << 5);
        let mut word = self.pack();
        for (i, part) in parts.into_iter().enumerate() {
            word |= number(part) << (24 + 8 * i);
        }
        for (i, n) in negated.into_iter().enumerate() {
            word |= u64::from(n) << (48 + i);
        }
        (
            alu(three_and_word!(|v, a, b, c| evaluate_scalar(v, a, b, c))),
            word,
        )
    }

    /// As [`Video::scalar`], for two or four lanes: which of them have a result, and the lanes' operands.
    pub fn packed(&self, mask: u32, choices: [Choice; 2]) -> (Alu, u64) {
        let mut word = self.pack() | u64::from(mask) << 24;
        for (i, part) in choices.as_flattened().iter().enumerate() {
            word |= u64::from(part & 7) << (28 + 3 * i);
        }
        (
            alu(three_and_word!(|v, a, b, c| evaluate_packed(v, a, b, c))),
            word,
        )
    }

    /// What is common to both, in 24 bits.
    fn pack(&self) -> u64 {
        let bits = |list: &[bool]| list.iter().fold(0, |n, &b| n << 1 | u64::from(b));
        self.first as u64
            | (self.second as u64) << 4
            | bits(&self.signed) << 6
            | bits(&[self.saturates, self.wraps, self.plus_one]) << 9
            | bits(&self.holds) << 12
            | u64::from(self.scale) << 15
            | u64::from(self.lanes) << 19
    }

    fn unpack(word: u64) -> Video {
        let bits = |at: u32| [2, 1, 0].map(|i| word >> (at + i) & 1 == 1);
        let [saturates, wraps, plus_one] = bits(9);
        const FIRST: [First; 10] = [
            First::Add,
            First::Sub,
            First::Difference,
            First::Min,
            First::Max,
            First::Average,
            First::ShiftLeft,
            First::ShiftRight,
            First::Product,
            First::Compare,
        ];
        const SECOND: [Second; 4] = [Second::Merge, Second::Add, Second::Min, Second::Max];
        Video {
            first: FIRST[(word & 15).min(9) as usize],
            second: SECOND[(word >> 4 & 3) as usize],
            signed: bits(6),
            saturates,
            wraps,
            holds: bits(12),
            scale: (word >> 15 & 15) as u32,
            plus_one,
            lanes: (word >> 19 & 7) as u32,
        }
    }

    /// The first operation.
    fn compute(&self, a: i64, b: i64) -> i64 {
        match self.first {
            First::Add => a + b,
            First::Sub => a - b,
            First::Difference => (a - b).abs(),
            First::Min => a.min(b),
            First::Max => a.max(b),
            First::Average => {
                let sum = a + b;
                (sum + i64::from(sum >= 0)) >> 1
            }
            First::ShiftLeft => a << self.distance(b),
            First::ShiftRight => a >> self.distance(b),
            First::Compare => i64::from(self.holds[(a.cmp(&b) as i8 + 1) as usize]),
            First::Product => a.wrapping_mul(b),
        }
    }

    fn distance(&self, b: i64) -> i64 {
        if self.wraps { b & 31 } else { b.clamp(0, 32) }
    }

    /// A lane's result of a packed instruction: the ends of the range of its bits.
    fn saturated(&self, x: i64, bits: u32) -> i64 {
        match (self.saturates, self.signed[0]) {
            (false, _) => x,
            (true, false) => x.clamp(0, (1 << bits) - 1),
            (true, true) => x.clamp(-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        }
    }

    /// A saturated result of a scalar instruction, as wide as the second operation has it.
    fn saturated_alone(&self, exact: i64, bits: u32) -> i64 {
        let signed = self.signed[0];
        let word = |x: i64| {
            if signed {
                x.clamp(i32::MIN.into(), i32::MAX.into())
            } else {
                x.clamp(0, u32::MAX.into())
            }
        };
        match self.first {
            // The manual's 34 bits, and all of the word whatever part is merged.
            First::ShiftLeft | First::ShiftRight => i64::from(word(exact << 30 >> 30) as i32),
            // One end only: what is negative has its bits above the part, too.
            _ if bits < 32 => {
                let most = (1 << (bits - u32::from(signed))) - 1;
                if exact >> 32 == 0 {
                    exact.min(most)
                } else {
                    most
                }
            }
            _ if signed => word(exact),
            _ if exact < 0 => 0,
            First::Add | First::Sub => i64::from(exact as i32),
            _ => exact,
        }
    }

    /// Whether the second operation compares signed numbers: by the type of the result, or of a comparison's first operand.
    fn is_signed(&self) -> bool {
        match self.first {
            First::Compare => self.signed[1],
            _ => self.signed[0],
        }
    }
}

fn alu(func: Func) -> Alu {
    Alu::same(func, 0, Ty::B32)
}

fn comparison(word: &str) -> Option<[bool; 3]> {
    Some(match word {
        "eq" => [false, true, false],
        "ne" => [true, false, true],
        "lt" => [true, false, false],
        "le" => [true, true, false],
        "gt" => [false, false, true],
        "ge" => [false, true, true],
        _ => return None,
    })
}

/// Bits of a word, extended.
fn extract(word: u64, low: u32, bits: u32, signed: bool) -> i64 {
    let up = 64 - bits;
    let bits = word >> low << up;
    if signed {
        bits as i64 >> up
    } else {
        (bits >> up) as i64
    }
}

fn evaluate_scalar(word: u64, a: u32, b: u32, c: u32) -> u32 {
    let v = Video::unpack(word);
    let [d, pa, pb] = [24, 32, 40].map(|at| {
        let number = (word >> at & 0xff) as u32;
        Part {
            low: number & 31,
            bits: 1 << (number >> 5),
        }
    });
    let [_, signed_a, signed_b] = v.signed;
    let x = extract(u64::from(a), pa.low, pa.bits, signed_a);
    let y = extract(u64::from(b), pb.low, pb.bits, signed_b);
    if v.first == First::Product {
        return multiply_add(&v, x, y, c, [48, 49, 50].map(|at| word >> at & 1 == 1));
    }
    let exact = v.compute(x, y);
    let value = match v.first {
        _ if v.saturates => v.saturated_alone(exact, d.bits),
        // Compared below as 32 bits that are extended by their sign, whatever the types.
        First::Add | First::Sub => i64::from(exact as i32),
        _ => exact,
    };
    let result = value as u32;
    let least = |smaller: bool| {
        let less = if v.is_signed() {
            value < i64::from(c as i32)
        } else {
            (value as u64) < u64::from(c)
        };
        if less == smaller { result } else { c }
    };
    match v.second {
        // The upper half is taken from where it goes to.
        Second::Merge if d.low == 16 && d.bits == 16 => result & d.mask() | c & !d.mask(),
        Second::Merge => result << d.low & d.mask() | c & !d.mask(),
        Second::Add => result.wrapping_add(c),
        Second::Min => least(true),
        Second::Max => least(false),
    }
}

fn multiply_add(v: &Video, a: i64, b: i64, c: u32, negated: [bool; 3]) -> u32 {
    let [not_a, not_b, not_c] = negated;
    let signed = v.signed[1] || v.signed[2] || not_a != not_b || not_c;
    // Words are signed whatever their type; so is the third operand.
    let product = i64::from(a as i32) * i64::from(b as i32);
    let (mut product, mut addend) = (product, i64::from(c as i32));
    if !v.plus_one {
        if not_a != not_b {
            product = -product;
        } else if not_c {
            addend = -addend;
        }
    }
    let sum = product + addend + i64::from(v.plus_one);
    let sum = if signed {
        sum >> v.scale
    } else {
        (sum as u64 >> v.scale) as i64
    };
    match (v.saturates, signed) {
        (false, _) => sum as u32,
        (true, true) => sum.clamp(i32::MIN.into(), i32::MAX.into()) as u32,
        (true, false) => sum.clamp(0, u32::MAX.into()) as u32,
    }
}

fn evaluate_packed(word: u64, a: u32, b: u32, c: u32) -> u32 {
    let v = Video::unpack(word);
    let bits = 32 / v.lanes.max(1);
    let both = u64::from(b) << 32 | u64::from(a);
    let mut out = if v.second == Second::Add { c } else { 0 };
    for lane in 0..v.lanes {
        let part = Part {
            low: lane * bits,
            bits,
        };
        if word >> (24 + lane) & 1 == 0 {
            if v.second != Second::Add {
                out |= c & part.mask();
            }
            continue;
        }
        let choice = |operand: u32| (word >> (28 + 3 * (4 * operand + lane)) & 7) as u32;
        let [_, signed_a, signed_b] = v.signed;
        let x = extract(both, choice(0) * bits, bits, signed_a);
        let y = extract(both, choice(1) * bits, bits, signed_b);
        let result = v.saturated(v.compute(x, y), bits) as u32;
        if v.second == Second::Add {
            out = out.wrapping_add(result);
        } else {
            out |= result << part.low & part.mask();
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKED_WHOLE: [Choice; 2] = [[0, 1, 2, 3], [4, 5, 6, 7]];

    fn parse(opcode: &str, words: &[&str]) -> Video {
        Video::parse(opcode, &Mods::new(words)).expect("it is one")
    }

    #[test]
    fn the_word_says_all() {
        for v in [
            parse("vadd", &["s32", "u32", "s32", "sat", "min"]),
            parse("vshr", &["u32", "s32", "u32", "wrap"]),
            parse("vmad", &["u32", "u32", "u32", "po", "sat", "shr15"]),
            parse("vset4", &["s32", "u32", "ge", "add"]),
        ] {
            let word = v.scalar([Part { low: 24, bits: 8 }; 3], [true; 3]).1;
            assert_eq!(Video::unpack(word), v);
            assert_eq!(Video::unpack(v.packed(15, PACKED_WHOLE).1), v);
        }
        assert_eq!(
            Video::parse("vavrg", &Mods::new(&["u32", "u32", "u32"])),
            None
        );
        assert_eq!(Video::parse("vadd", &Mods::new(&["u32", "u32"])), None);
    }

    #[test]
    fn parts_and_merges() {
        let v = parse("vadd", &["u32", "u32", "s32", "sat"]);
        let [b0, h1] = ["b0", "h1"].map(|n| Part::parse(n).expect("a part"));
        // 0xf0 − 1, and saturated at eight bits of 0x1f0.
        let (_, word) = v.scalar([b0, b0, h1], [false; 3]);
        assert_eq!(
            evaluate_scalar(word, 0x1f0, 0xffff_0000, 0x1234_5678),
            0x1234_56ef
        );
        assert_eq!(
            evaluate_scalar(word, 0x1f0, 0x0100_0000, 0x1234_5678),
            0x1234_56ff
        );
        assert_eq!(Part::parse("b4"), None);
        assert_eq!(Part::parse("x"), None);
    }

    /// Each line of the table at the top, with what an H200 leaves.
    #[test]
    fn scalars_are_what_ptxas_makes_of_them() {
        let word = Part::WHOLE;
        let part = |name: &str| Part::parse(name).expect("a part");
        let run = |opcode: &str, words: &[&str], d: Part, a: u32, b: u32, c: u32| {
            let word = parse(opcode, words).scalar([d, word, word], [false; 3]).1;
            evaluate_scalar(word, a, b, c)
        };
        let unsigned = ["u32", "u32", "u32", "sat"];
        let signed = ["s32", "s32", "s32", "sat"];
        assert_eq!(run("vadd", &unsigned, word, u32::MAX, 3, 0), 2);
        assert_eq!(run("vsub", &unsigned, word, 3, 5, 0), 0);
        assert_eq!(
            run("vadd", &signed, word, i32::MAX as u32, 1, 0),
            i32::MAX as u32
        );
        assert_eq!(run("vsub", &unsigned, part("b1"), 3, 5, 0), 0xff00);
        assert_eq!(run("vsub", &signed, part("b1"), 3, 5, 0), 0x7f00);
        assert_eq!(run("vshl", &unsigned, word, 3, 31, 0), u32::MAX);
        // Bits above the 34th are gone.
        assert_eq!(run("vshl", &unsigned, word, 8, 31, 0), 0);
        assert_eq!(run("vshl", &unsigned, word, 4, 31, 0), 0);
        assert_eq!(run("vshl", &unsigned, part("b0"), 0x180, 1, 0), 0);
        assert_eq!(
            run("vadd", &unsigned[..3], part("h1"), 0x1_0005, 0x2_0001, 7),
            0x3_0007
        );
        assert_eq!(
            run(
                "vadd",
                &unsigned[..3],
                part("h0"),
                0x1_0005,
                0x2_0001,
                7 << 16
            ),
            0x7_0006
        );
        let second = |last| ["u32", "u32", "u32", last];
        assert_eq!(run("vsub", &second("min"), word, 3, 5, 1), 1);
        assert_eq!(
            run("vsub", &second("max"), word, 3, 5, u32::MAX),
            -2i32 as u32
        );
        assert_eq!(run("vshl", &second("max"), word, 3, 31, u32::MAX), 1 << 31);
        assert_eq!(run("vmad", &unsigned, word, u32::MAX, 7, 0), 0);
        assert_eq!(run("vmad", &unsigned, word, u32::MAX, u32::MAX, 1), 2);
        assert_eq!(run("vmad", &second("shr7"), word, 256, 1, u32::MAX), 1);
        assert_eq!(
            run(
                "vset",
                &["s32", "u32", "lt", "min"],
                word,
                u32::MAX,
                1,
                -9i32 as u32
            ),
            -9i32 as u32
        );
    }

    #[test]
    fn lanes_do_not_carry() {
        let v = parse("vadd4", &["u32", "u32", "u32"]);
        let (_, word) = v.packed(15, PACKED_WHOLE);
        assert_eq!(
            evaluate_packed(word, 0xff01_ff01, 0x0101_0101, 7),
            0x0002_0002
        );
        let (_, word) = v.packed(0b0101, PACKED_WHOLE);
        assert_eq!(
            evaluate_packed(word, 0xff01_ff01, 0x0101_0101, 0xaabb_ccdd),
            0xaa02_cc02
        );
        let v = parse("vabsdiff4", &["u32", "u32", "u32", "add"]);
        let (_, word) = v.packed(15, PACKED_WHOLE);
        assert_eq!(
            evaluate_packed(word, 0x0a00_0302, 0x0004_0005, 100),
            100 + 10 + 4 + 3 + 3
        );
    }
}
