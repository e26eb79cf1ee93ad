//! Matrix instructions: `ldmatrix`, `stmatrix`, `mma.sync`, `wmma`, `wgmma`.

use gsan_ptx::ast::{Instruction, Operand};

use super::data::space;
use super::function::{Decoded, Decoder};
use super::operand::{invalid, unsupported};
use crate::machine::alu::Mods;
use crate::machine::element::{Element, Product};
use crate::machine::exec::sparse;
use crate::machine::ir::{GroupProduct, MatrixOp, Op, PredSrc, Reg, Scales, Space, Src};
use crate::machine::ty::Ty;

/// `m16n8k32` as three numbers.
fn shape(words: &[&str]) -> Option<[usize; 3]> {
    words.iter().find_map(|w| {
        let (m, rest) = w.strip_prefix('m')?.split_once('n')?;
        let (n, k) = rest.split_once('k')?;
        Some([m.parse().ok()?, n.parse().ok()?, k.parse().ok()?])
    })
}

/// The element types, in the order of the text.
fn elements(words: &[&str]) -> Vec<Element> {
    words.iter().filter_map(|w| Element::parse(w)).collect()
}

/// Bits of a register that holds elements of a type: `f64` has its own.
fn register_type(element: Element) -> Ty {
    match element {
        Element::F64 => Ty::F64,
        Element::F32 => Ty::F32,
        _ => Ty::B32,
    }
}

/// Elements that a fragment of A or B in `wmma` has room for: f16 always has eight registers, more than it needs.
fn wmma_room(element: Element, elements: usize) -> usize {
    if element == Element::F16 {
        8 * 32 * element.per_register()
    } else {
        elements
    }
}

/// Accumulators that go with operands of a type.
fn is_sum(operand: Element, sum: Element) -> bool {
    match operand {
        Element::F16 | Element::E4m3 | Element::E5m2 => {
            matches!(sum, Element::F16 | Element::F32)
        }
        Element::E2m1Wide | Element::E2m3 | Element::E3m2 => {
            matches!(sum, Element::F16 | Element::F32)
        }
        Element::E2m1 => sum == Element::F32,
        Element::Bf16 | Element::Tf32 => sum == Element::F32,
        Element::F64 => sum == Element::F64,
        Element::S8 | Element::U8 | Element::S4 | Element::U4 | Element::B1 => sum == Element::S32,
        Element::F32 | Element::S32 => false,
    }
}

/// What `ldmatrix` and `stmatrix` move.
#[derive(Clone, Copy)]
enum Moved {
    Halves {
        transposed: bool,
    },
    /// 16 rows of them, or 8.
    Bytes {
        square: bool,
        bits: u32,
    },
}

impl Moved {
    fn parse(load: bool, mods: &Mods<'_>) -> Option<Moved> {
        let shape = mods.words.iter().find(|w| w.starts_with('m'))?;
        let transposed = mods.has("trans");
        let bits = match () {
            _ if mods.has("b4x16_p64") => 4,
            _ if mods.has("b6x16_p32") => 6,
            _ => 8,
        };
        match (load, *shape, bits) {
            (_, "m8n8", 8) if mods.ty() == Some(Ty::B16) => Some(Moved::Halves { transposed }),
            (false, "m16n8", 8) if transposed && mods.ty() == Some(Ty::B8) => Some(Moved::Bytes {
                square: false,
                bits,
            }),
            (true, "m16n16", 8) if transposed && mods.ty() == Some(Ty::B8) => {
                Some(Moved::Bytes { square: true, bits })
            }
            (true, "m16n16", 4 | 6) if transposed => Some(Moved::Bytes { square: true, bits }),
            (true, "m8n16", 4 | 6) if !transposed => Some(Moved::Bytes {
                square: false,
                bits,
            }),
            _ => None,
        }
    }

    /// Registers for one matrix.
    fn registers(self) -> usize {
        match self {
            Moved::Bytes { square: true, .. } => 2,
            _ => 1,
        }
    }
}

impl<'a> Decoder<'_, 'a> {
    /// Decodes a matrix instruction.
    pub fn matrix(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<()> {
        match i.opcode {
            "mma" => self.mma(i, mods),
            "wmma" => self.wmma(i, mods),
            "wgmma" => self.wgmma(i, mods),
            "movmatrix" => {
                if !mods.has("m8n8") || !mods.has("trans") || mods.ty() != Some(Ty::B16) {
                    return unsupported("");
                }
                let d = self.target(self.operand(i, 0)?)?.slot;
                let a = self.source(self.operand(i, 1)?, Ty::B32)?;
                self.emit(Op::Matrix(Box::new(MatrixOp::Transpose { d, a })));
                Ok(())
            }
            _ => self.move_matrices(i, mods),
        }
    }

    fn move_matrices(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<()> {
        let load = i.opcode == "ldmatrix";
        let Some(form) = Moved::parse(load, mods) else {
            return unsupported("");
        };
        let count = ["x1", "x2", "x4"]
            .iter()
            .position(|w| mods.has(w))
            .map(|n| form.registers() << n);
        let space = space(mods.words).unwrap_or(Space::Generic);
        let (mut d, mut a): (Box<[Reg]>, Box<[Src]>) = Default::default();
        if load {
            d = self.slots(self.operand(i, 0)?, Ty::B32)?;
        } else {
            a = self.sources(self.operand(i, 1)?, Ty::B32)?.into();
        }
        // Four matrices of 16 rows would take more lanes than there are.
        if Some(d.len().max(a.len())) != count || count > Some(4) {
            return unsupported("number of registers");
        }
        let addr = self.memory_operand(i, usize::from(load))?;
        self.emit(Op::Matrix(Box::new(match form {
            Moved::Halves { transposed } if load => MatrixOp::Load {
                d,
                space,
                addr,
                transposed,
            },
            Moved::Halves { transposed } => MatrixOp::Store {
                a,
                space,
                addr,
                transposed,
            },
            Moved::Bytes { square, bits } if load => MatrixOp::LoadBytes {
                d,
                space,
                addr,
                square,
                bits,
            },
            Moved::Bytes { .. } => MatrixOp::StoreBytes { a, space, addr },
        })));
        Ok(())
    }

    fn slots(&mut self, operand: &Operand<'a>, ty: Ty) -> Decoded<Box<[Reg]>> {
        Ok(self.targets(operand, ty)?.iter().map(|r| r.slot).collect())
    }

    fn mma(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<()> {
        let mut types = elements(mods.words);
        let kind = mods.words.iter().find_map(|w| w.strip_prefix("kind::"));
        match kind {
            None | Some("mxf4" | "mxf4nvf4") => {}
            // Every element takes eight bits.
            Some("f8f6f4" | "mxf8f6f4") => {
                for ty in types.iter_mut().filter(|ty| **ty == Element::E2m1) {
                    *ty = Element::E2m1Wide;
                }
            }
            Some(_) => return unsupported(""),
        }
        let (Some([rows, columns, depth]), &[d, a, b, c]) = (shape(mods.words), &types[..]) else {
            return unsupported("");
        };
        if ([rows, columns, depth], a, b) == ([8, 8, 4], Element::F16, Element::F16) {
            return self.four_products(i, mods, c, d);
        }
        let whole = (depth * a.bits() as usize).is_multiple_of(128) || a == Element::F64;
        if !matches!((rows, columns), (8 | 16, 8))
            || !whole
            || !mods.has("row")
            || !mods.has("col")
            || kind.is_none() && (a == Element::E2m1 || b == Element::E2m1)
        {
            return unsupported("");
        }
        let product = Product {
            rows,
            columns,
            depth,
            a,
            b,
            c,
            d,
            saturate: mods.has("satfinite"),
            xor: mods.has("xor"),
        };
        let sparse = mods.has("sp") || mods.has("sp::ordered_metadata");
        let there = if sparse { depth / 2 } else { depth };
        let fragments = [rows * there, depth * columns, rows * columns];
        let (metadata, next) = if sparse {
            (Some(self.metadata(i, 4, &product)?), 6)
        } else {
            (None, 4)
        };
        let scales = self.scales(i, mods, next)?;
        if scales.is_some() && (sparse || rows != 16) {
            return unsupported("");
        }
        self.multiply(i, product, false, fragments, metadata, scales)
    }

    /// Volta's form, which has its own fragments.
    fn four_products(
        &mut self,
        i: &Instruction<'a>,
        mods: &Mods<'_>,
        c: Element,
        d: Element,
    ) -> Decoded<()> {
        let layouts: Vec<bool> = mods
            .words
            .iter()
            .filter(|w| matches!(**w, "row" | "col"))
            .map(|w| *w == "row")
            .collect();
        let &[by_row_a, by_row_b] = &layouts[..] else {
            return unsupported("");
        };
        if !is_sum(Element::F16, c) || !is_sum(Element::F16, d) {
            return unsupported("");
        }
        let product = Product {
            rows: 8,
            columns: 8,
            depth: 4,
            a: Element::F16,
            b: Element::F16,
            c,
            d,
            saturate: false,
            xor: false,
        };
        let to = self.slots(self.operand(i, 0)?, register_type(d))?;
        let a = self.sources(self.operand(i, 1)?, Ty::B32)?;
        let b = self.sources(self.operand(i, 2)?, Ty::B32)?;
        let from = self.sources(self.operand(i, 3)?, register_type(c))?;
        let sums = |element: Element| 8 / element.per_register();
        if [to.len(), a.len(), b.len(), from.len()] != [sums(d), 2, 2, sums(c)] {
            return unsupported("number of registers");
        }
        self.emit(Op::Matrix(Box::new(MatrixOp::FourProducts {
            product,
            along: [by_row_a, !by_row_b],
            d: to,
            a: a.into(),
            b: b.into(),
            c: from.into(),
        })));
        Ok(())
    }

    /// The operands of `.block_scale`, from that one on: for A and for B the data and `{byte, lanes}`.
    fn scales(
        &mut self,
        i: &Instruction<'a>,
        mods: &Mods<'_>,
        first: usize,
    ) -> Decoded<Option<Box<Scales>>> {
        if !mods.has("block_scale") {
            return Ok(None);
        }
        let count = mods
            .words
            .iter()
            .find_map(|w| match w.strip_prefix("scale_vec::")? {
                "1X" => Some(1),
                "2X" => Some(2),
                "4X" => Some(4),
                _ => None,
            });
        let powers = mods.has("ue8m0");
        let blocks = match (count, mods.has("kind::mxf8f6f4"), powers) {
            (Some(n), _, _) => n,
            // What the kind has, where nothing is said.
            (None, true, _) => 1,
            (None, false, true) => 2,
            (None, false, false) => 4,
        };
        if !powers && !mods.has("ue4m3") {
            return unsupported("");
        }
        let mut sides = [[0; 3]; 2];
        for (n, side) in sides.iter_mut().enumerate() {
            let data = self.source(self.operand(i, first + 2 * n)?, Ty::B32)?;
            let ids = self.sources(self.operand(i, first + 2 * n + 1)?, Ty::U16)?;
            let [byte, lanes] = ids[..] else {
                return unsupported("number of operands");
            };
            *side = [data, byte, lanes];
        }
        let [a, b] = sides;
        Ok(Some(Box::new(Scales {
            blocks,
            powers,
            a,
            b,
        })))
    }

    /// The operands that say where the elements of a sparse matrix lie, from that one on.
    fn metadata(
        &mut self,
        i: &Instruction<'a>,
        first: usize,
        product: &Product,
    ) -> Decoded<(Src, u32)> {
        let holders = sparse::holders(product);
        if product.rows != 16
            || !matches!(product.a.bits(), 4..=32)
            || !matches!(holders, 1 | 2 | 4)
        {
            return unsupported("");
        }
        let metadata = self.source(self.operand(i, first)?, Ty::B32)?;
        match self.operand(i, first + 1)? {
            Operand::Int(n @ 0..=3) if (*n as usize + 1) * holders <= 4 => {
                Ok((metadata, *n as u32))
            }
            _ => invalid("a sparsity selector that there is not"),
        }
    }

    fn wmma(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<()> {
        let Some([rows, columns, depth]) = shape(mods.words) else {
            return unsupported("");
        };
        if !matches!((rows, columns), (16, 16) | (8, 32) | (32, 8) | (8, 8)) {
            return unsupported("");
        }
        let types = elements(mods.words);
        if mods.has("mma") {
            let (d, a, b, c) = match types[..] {
                [d, a, b, c] => (d, a, b, c),
                [d, c] => (d, Element::F16, Element::F16, c),
                _ => return unsupported(""),
            };
            let product = Product {
                rows,
                columns,
                depth,
                a,
                b,
                c,
                d,
                saturate: mods.has("satfinite"),
                xor: mods.has("xor"),
            };
            let fragments = [
                wmma_room(a, rows * depth),
                wmma_room(b, depth * columns),
                rows * columns,
            ];
            return self.multiply(i, product, true, fragments, None, None);
        }
        let ([element], store) = (&types[..], mods.has("store")) else {
            return unsupported("");
        };
        let part = ["a", "b", "c", "d"].into_iter().find(|w| mods.has(w));
        let (rows, columns) = match part {
            Some("a") => (rows, depth),
            Some("b") => (depth, columns),
            Some(_) => (rows, columns),
            None => return unsupported(""),
        };
        let room = match part {
            Some("a" | "b") => wmma_room(*element, rows * columns),
            _ => rows * columns,
        };
        let by_column = mods.has("col");
        let (list, address) = if store { (1, 0) } else { (0, 1) };
        let registers: Box<[u32]> = if store {
            self.sources(self.operand(i, list)?, register_type(*element))?
                .into()
        } else {
            self.slots(self.operand(i, list)?, register_type(*element))?
        };
        if registers.len() * 32 * element.per_register() != room {
            return unsupported("number of registers");
        }
        let addr = self.memory_operand(i, address)?;
        let stride = match i.operands.get(2) {
            Some(o) => self.source(o, Ty::U32)?,
            None => self.constant(if by_column { rows } else { columns } as u64),
        };
        self.emit(Op::Matrix(Box::new(MatrixOp::Tile {
            store,
            rows,
            columns,
            element: *element,
            by_column,
            space: space(mods.words).unwrap_or(Space::Generic),
            addr,
            stride,
            registers,
        })));
        Ok(())
    }

    /// `d, a, b, c` of `mma` and `wmma.mma`, with that many elements each.
    fn multiply(
        &mut self,
        i: &Instruction<'a>,
        product: Product,
        wmma: bool,
        fragments: [usize; 3],
        metadata: Option<(Src, u32)>,
        scales: Option<Box<Scales>>,
    ) -> Decoded<()> {
        let Product { a, b, c, d, .. } = product;
        if !is_sum(a, d) || !is_sum(b, c) || a.bits() != b.bits() {
            return unsupported("");
        }
        let to = self.slots(self.operand(i, 0)?, register_type(d))?;
        let mut from: Vec<Vec<Src>> = Vec::new();
        for (n, element) in [a, b, c].into_iter().enumerate() {
            from.push(self.sources(self.operand(i, n + 1)?, register_type(element))?);
        }
        let fits = |registers: usize, element: Element, elements: usize| {
            registers * 32 * element.per_register() == elements
        };
        let [in_a, in_b, in_c] = fragments;
        if !fits(to.len(), d, in_c)
            || !fits(from[0].len(), a, in_a)
            || !fits(from[1].len(), b, in_b)
            || !fits(from[2].len(), c, in_c)
        {
            return unsupported("number of registers");
        }
        let mut from = from.into_iter().map(Vec::into_boxed_slice);
        let mut next = || from.next().unwrap_or_default();
        self.emit(Op::Matrix(Box::new(MatrixOp::Multiply {
            product,
            wmma,
            d: to,
            a: next(),
            b: next(),
            c: next(),
            metadata,
            scales,
        })));
        Ok(())
    }

    fn wgmma(&mut self, i: &Instruction<'a>, mods: &Mods<'_>) -> Decoded<()> {
        if mods.has("fence") {
            self.emit(Op::Nop);
            return Ok(());
        }
        if mods.has("commit_group") {
            self.emit(Op::Matrix(Box::new(MatrixOp::GroupCommit)));
            return Ok(());
        }
        if mods.has("wait_group") {
            let Operand::Int(n) = self.operand(i, 0)? else {
                return unsupported("a count that is no constant");
            };
            let pending = (*n).clamp(0, 7) as u32;
            self.emit(Op::Matrix(Box::new(MatrixOp::GroupWait(pending))));
            return Ok(());
        }
        let types = elements(mods.words);
        let (Some([64, columns, depth]), &[d, a, b]) = (shape(mods.words), &types[..]) else {
            return unsupported("");
        };
        let is_sparse = mods.has("sp");
        let bits = if is_sparse { 512 } else { 256 };
        if !mods.has("mma_async")
            || depth * a.bits() as usize != bits
            || !columns.is_multiple_of(8)
            || !(8..=256).contains(&columns)
            || !is_sum(a, d)
            || !is_sum(b, d)
            || a.bits() != b.bits()
        {
            return unsupported("");
        }
        let to = self.slots(self.operand(i, 0)?, register_type(d))?;
        if to.len() * 2 * d.per_register() != columns {
            return unsupported("number of registers");
        }
        let from = match self.operand(i, 1)? {
            list @ Operand::Vector(_) => {
                let from = self.sources(list, Ty::B32)?;
                if from.len() != 4 {
                    return unsupported("number of registers");
                }
                from
            }
            descriptor => vec![self.source(descriptor, Ty::B64)?],
        };
        let right = self.source(self.operand(i, 2)?, Ty::B64)?;
        let product = Product {
            rows: 16,
            columns,
            depth,
            a,
            b,
            c: d,
            d,
            saturate: mods.has("satfinite"),
            xor: false,
        };
        let (metadata, next) = if is_sparse {
            (Some(self.metadata(i, 3, &product)?), 5)
        } else {
            (None, 3)
        };
        let accumulate = match i.operands.get(next) {
            Some(o) => self.predicate_source(o)?,
            None => PredSrc::TRUE,
        };
        let mut immediates = Vec::new();
        for o in i.operands.iter().skip(next + 1) {
            match o {
                Operand::Int(n) => immediates.push(*n),
                _ => return unsupported("an operand that is no constant"),
            }
        }
        // Floats: the signs of A and B; 16-bit types: whether A (from shared memory) and B are transposed.
        let negate = match immediates[..] {
            [] => [false; 2],
            [a, b, ..] => [a == -1, b == -1],
            [_] => return unsupported("number of operands"),
        };
        let transposed = match immediates.get(2..).unwrap_or_default() {
            [] => [false; 2],
            [b] => [false, *b == 1],
            [a, b] => [*a == 1, *b == 1],
            _ => return unsupported("number of operands"),
        };
        self.emit(Op::Matrix(Box::new(MatrixOp::Group(GroupProduct {
            product,
            metadata,
            d: to,
            a: from.into(),
            b: right,
            accumulate,
            negate,
            transposed,
        }))));
        Ok(())
    }
}
