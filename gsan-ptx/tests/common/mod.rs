//! The PTX files that tests run over.
#![allow(dead_code, missing_docs)]

use std::path::{Path, PathBuf};

pub const STUB: &str = include_str!("../data/stub_runtime.ptx");

/// The selection that is checked in: name and text.
pub fn selection() -> Vec<(String, String)> {
    let files = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/corpus"));
    assert!(files.len() >= 20, "tests/data/corpus is incomplete");
    files
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus")
}

pub fn has_whole_corpus() -> bool {
    corpus().is_dir()
}

/// The whole corpus beside the repository; says so where it is missing.
pub fn whole_corpus(test: &str) -> Option<Vec<(String, String)>> {
    let folder = corpus();
    if !has_whole_corpus() {
        eprintln!(
            "SKIPPED {test}: {} is not there; only tests/data/corpus was tested",
            folder.display()
        );
        return None;
    }
    let files = read(&folder);
    assert!(
        files.len() >= 70,
        "../shared/corpus has only {} PTX files",
        files.len()
    );
    Some(files)
}

fn read(folder: &Path) -> Vec<(String, String)> {
    files_below(folder, &["ptx"])
}

/// The files of these kinds in a folder and the folders in it, by name: path and text.
pub fn files_below(folder: &Path, kinds: &[&str]) -> Vec<(String, String)> {
    let mut folders = vec![folder.to_path_buf()];
    let mut found: Vec<PathBuf> = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|e| kinds.iter().any(|kind| e == *kind))
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
        .iter()
        .map(|p| (p.display().to_string(), std::fs::read_to_string(p).unwrap()))
        .collect()
}

/// A module around a kernel's body.
pub fn kernel(body: &str) -> String {
    format!(
        ".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n\
         .reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b128 %q<9>; .reg .f32 %f<9>;\n{body}\n}}\n"
    )
}

/// A small generator with a fixed seed (xorshift64*): tests repeat exactly.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// The bodies' statements in order, scopes flattened.
pub fn flat<'m, 'a>(module: &'m gsan_ptx::Module<'a>) -> Vec<&'m gsan_ptx::ast::Statement<'a>> {
    fn walk<'m, 'a>(
        list: &'m [gsan_ptx::ast::Statement<'a>],
        out: &mut Vec<&'m gsan_ptx::ast::Statement<'a>>,
    ) {
        for statement in list {
            out.push(statement);
            if let gsan_ptx::ast::Statement::Block { statements, .. } = statement {
                walk(statements, out);
            }
        }
    }
    let mut out = Vec::new();
    for item in &module.items {
        if let gsan_ptx::ast::Item::Function(f) = item
            && let Some(body) = &f.body
        {
            walk(&body.statements, &mut out);
        }
    }
    out
}
