//! A PTX file of any size, made of kernels as compilers write them.

use gsan_ptx::ast::{Item, Module};
use std::fmt::Write;

/// Where the kernels come from: CUDA C++ and Rust, all of them without functions and variables of their own.
const PARTS: [&str; 5] = [
    include_str!("../kernels/ptx/throughput.ptx"),
    include_str!("../../tests/kernels/cuda/ptx/compaction.ptx"),
    include_str!("../../tests/kernels/cuda/ptx/volatile_flag.ptx"),
    include_str!("../../tests/kernels/rust/ptx/histogram.ptx"),
    include_str!("../../tests/kernels/rust/ptx/spin_lock.ptx"),
];

/// A module of at least `bytes` bytes that every version of the parser takes: kernels repeated under new names.
pub fn generate(bytes: usize) -> String {
    let parts: Vec<(&str, Module<'_>)> = PARTS
        .iter()
        .filter_map(|text| gsan_ptx::parse(text).ok().map(|m| (*text, m)))
        .collect();
    let mut out = String::with_capacity(bytes + (1 << 16));
    out.push_str(".version 9.0\n.target sm_80\n.address_size 64\n\n");
    let mut number = 0;
    while out.len() < bytes && !parts.is_empty() {
        for (text, module) in &parts {
            for item in &module.items {
                if let Item::Function(f) = item {
                    // The name stands once; parameters and labels are the function's own.
                    out.push_str(&text[f.span.start..f.name_end]);
                    let _ = write!(out, "_{number}");
                    out.push_str(&text[f.name_end..f.span.end]);
                    out.push_str("\n\n");
                    number += 1;
                }
            }
        }
    }
    for index in 1..=16 {
        let _ = writeln!(out, "\t.file\t{index} \"large/part{index}.cu\"");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_are_kernels_only() {
        for text in PARTS {
            let module = gsan_ptx::parse(text).unwrap();
            for item in &module.items {
                match item {
                    Item::Function(f) => assert!(f.entry, "{}", f.name),
                    Item::Variable(v) => panic!("{}", v.name),
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn it_is_large_and_can_be_instrumented() {
        let text = generate(200_000);
        assert!(text.len() >= 200_000);
        let options =
            gsan_ptx::Options::new(gsan_host::CellFormat::Wide.built_in_runtime(), "large.ptx");
        let done = gsan_ptx::instrument(&text, &options).unwrap();
        assert!(done.sites.len() > 500, "{}", done.sites.len());
        assert!(
            done.unsupported.is_empty(),
            "{:?}",
            done.unsupported.first()
        );
        let mut names: Vec<_> = done.entries.iter().map(|e| e.name.clone()).collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
