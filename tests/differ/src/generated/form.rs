//! An instruction on a vector: each thread loads its operands, executes it, and stores the result.

use crate::kernel::{Kernel, Launch};

/// Threads, and so elements.
const THREADS: usize = 192;

/// One instruction, or a few.
pub struct Form {
    /// As the results call it.
    pub name: String,
    /// With `D`, `E` (two results), `A`, `B`, `C` for the registers, `PA` for A's address, `P` for a predicate.
    pub body: String,
    /// Type of D.
    pub result: &'static str,
    /// Types of A, B, C.
    pub operands: Vec<&'static str>,
    /// How D is compared (see `data`), and A.
    pub rule: &'static str,
    /// Other data than the type's edge cases, for A.
    pub data: Option<&'static str>,
    /// The same with its number of elements.
    pub whole_data: Option<String>,
    /// `.target`, where sm_90 will not do.
    pub target: &'static str,
}

impl Form {
    /// `op D, A, B, C;`
    pub fn new(op: impl Into<String>, result: &'static str, operands: &[&'static str]) -> Form {
        let op = op.into();
        let names = ["A", "B", "C"];
        let list = names[..operands.len()].join(", ");
        Form::with(op.clone(), format!("{op} D, {list};"), result, operands)
    }

    /// Any body.
    pub fn with(
        name: impl Into<String>,
        body: impl Into<String>,
        result: &'static str,
        operands: &[&'static str],
    ) -> Form {
        Form {
            name: name.into(),
            body: body.into(),
            result,
            operands: operands.to_vec(),
            rule: "",
            data: None,
            whole_data: None,
            target: "sm_90",
        }
    }

    /// With that rule.
    pub fn close(mut self, rule: &'static str) -> Form {
        self.rule = rule;
        self
    }

    /// With that kind of data for A.
    pub fn on(mut self, data: &'static str) -> Form {
        self.data = Some(data);
        self
    }

    /// With that word for A's buffer.
    pub fn on_all(mut self, data: impl Into<String>) -> Form {
        self.whole_data = Some(data.into());
        self
    }

    /// The kernel.
    pub fn kernel(&self) -> Kernel {
        let bits = |ty: &str| bytes(ty) * 8;
        let mut load = String::new();
        let mut registers = format!(".reg .b{} D, E;", bits(self.result));
        let mut parameters = String::new();
        let mut args = vec![format!(
            "fill[{}]{}",
            THREADS * bytes(self.result),
            self.rule
        )];
        for (n, ty) in self.operands.iter().enumerate() {
            let name = ["A", "B", "C"][n];
            let (b, size) = (bits(ty), bytes(ty));
            registers += &format!(" .reg .b{b} {name}; .reg .b64 P{name};");
            parameters += &format!(", .param .u64 p{name}");
            load += &format!(
                "ld.param.u64 P{name}, [p{name}]; mad.wide.u32 P{name}, %r1, {size}, P{name}; ld.global.b{b} {name}, [P{name}];\n"
            );
            // Other lengths have other contents.
            let data = match (n, self.data) {
                (0, Some(data)) => data.to_string(),
                _ => edges(ty).to_string(),
            };
            let per = if ty.ends_with("x2") { 2 } else { 1 };
            args.push(match (n, &self.whole_data) {
                (0, Some(whole)) => whole.clone(),
                _ => format!("{data}[{}]", per * (THREADS + n)),
            });
        }
        let ptx = format!(
            ".version 8.6\n.target {target}\n.address_size 64\n.visible .entry k(.param .u64 out{parameters}) {{
  .reg .b32 %r<4>; .reg .b64 %d<4>; .reg .pred P, Q; {registers}
  mov.u32 %r1, %tid.x; ld.param.u64 %d1, [out]; mad.wide.u32 %d1, %r1, {size}, %d1;
  {load}  {body}
  st.global.b{b} [%d1], D; ret;
}}
",
            target = self.target,
            size = bytes(self.result),
            b = bits(self.result),
            body = self.body,
        );
        Kernel {
            name: self.name.clone(),
            number: 0,
            ptx,
            launch: Launch::of_one_block(THREADS as u32, args),
        }
    }
}

/// Bytes of a type's register.
fn bytes(ty: &str) -> usize {
    match ty {
        "u16" | "s16" | "b16" | "f16" | "bf16" | "e4m3x2" | "e5m2x2" => 2,
        "u64" | "s64" | "b64" | "f64" => 8,
        _ => 4,
    }
}

/// Data with the ends of the type's range.
fn edges(ty: &str) -> &'static str {
    match ty {
        "u16" | "s16" | "b16" => "edgeu16",
        "u64" | "s64" | "b64" => "edgeu64",
        "f32" | "tf32" => "edgef32",
        "f64" => "edgef64",
        "f16" | "f16x2" => "edgef16",
        "bf16" | "bf16x2" => "edgebf16",
        "u16x2" | "s16x2" => "edgeu16",
        "e4m3x2" | "e5m2x2" => "u8",
        _ => "edgeu32",
    }
}
