//! Calls that were inlined, from `.section .debug_info`.
//!
//! LLVM (rustc, clang) writes no `inlined_at` to its `.loc`s: with full debugging information the chain of calls stands
//! in DWARF alone, as ranges between labels of the code. Read are DWARF 2 to 4, subprograms and inlined subroutines with
//! `low_pc` and `high_pc`. What is damaged, or newer, ends the reading: the lines of `.loc` remain.

use super::debug_str::string_at;
use super::section::Section;
use std::collections::HashMap;
use std::sync::Arc;

/// The sections of a module that this is made from.
#[derive(Default, Clone)]
pub(crate) struct DebugTexts<'a> {
    /// `.debug_str`
    pub(crate) strings: Vec<&'a str>,
    /// `.debug_info`
    pub(crate) info: Vec<&'a str>,
    /// `.debug_abbrev`
    pub(crate) abbreviations: Vec<&'a str>,
}

/// A function's code inside of another's.
#[derive(Debug)]
pub(super) struct Inlined {
    /// How many inlined calls it stands in, itself included.
    pub(super) depth: u32,
    /// File, line and column of the call.
    pub(super) call: (u32, u32, u32),
    /// The inlined function, as the linker names it.
    pub(super) function: Option<Arc<str>>,
}

/// All inlined calls of a module, and the labels where they begin and end.
#[derive(Default)]
pub(super) struct DebugInfo<'a> {
    pub(super) calls: Vec<Inlined>,
    pub(super) begins: HashMap<&'a str, Vec<u32>>,
    pub(super) ends: HashMap<&'a str, Vec<u32>>,
}

const SUBPROGRAM: u64 = 0x2e;
const INLINED: u64 = 0x1d;

const NAME: u64 = 0x03;
const LOW_PC: u64 = 0x11;
const HIGH_PC: u64 = 0x12;
const ORIGIN: u64 = 0x31;
const SPECIFICATION: u64 = 0x47;
const CALL_COLUMN: u64 = 0x57;
const CALL_FILE: u64 = 0x58;
const CALL_LINE: u64 = 0x59;
const LINKAGE_NAME: u64 = 0x6e;
const OLD_LINKAGE_NAME: u64 = 0x2007;

/// Code → tag, whether it has children, its attributes with their forms.
type Abbreviations = HashMap<u64, (u64, bool, Vec<(u64, u64)>)>;

impl<'a> DebugInfo<'a> {
    pub(super) fn read(texts: &DebugTexts<'a>) -> DebugInfo<'a> {
        let mut found = DebugInfo::default();
        if texts.info.is_empty() || texts.abbreviations.is_empty() {
            return found;
        }
        let info = Section::read(&texts.info);
        let abbreviations = Section::read(&texts.abbreviations);
        let strings = Section::read(&texts.strings);
        let mut reader = Reader {
            info: &info,
            strings: &strings,
            at: 0,
            wide: false,
        };
        let mut names = HashMap::new();
        let mut origins = Vec::new();
        while reader
            .unit(&abbreviations, &mut found, &mut names, &mut origins)
            .is_some()
        {}
        for (call, origin) in found.calls.iter_mut().zip(origins) {
            call.function = name_of(&names, origin);
        }
        found
    }
}

/// A function's names, by the offset of its entry.
#[derive(Default)]
struct Named {
    linkage: Option<Arc<str>>,
    plain: Option<Arc<str>>,
    /// Another entry that has the names.
    see: Option<usize>,
}

fn name_of(names: &HashMap<usize, Named>, origin: Option<usize>) -> Option<Arc<str>> {
    let mut at = origin?;
    for _ in 0..8 {
        let named = names.get(&at)?;
        if let Some(name) = named.linkage.as_ref().or(named.plain.as_ref()) {
            return Some(name.clone());
        }
        at = named.see?;
    }
    None
}

struct Reader<'s, 'a> {
    info: &'s Section<'a>,
    strings: &'s Section<'a>,
    at: usize,
    /// 64-bit DWARF.
    wide: bool,
}

/// The value of an attribute.
enum Value<'a> {
    Number(u64),
    Label(&'a str),
    Text(Option<Arc<str>>),
    Other,
}

impl<'a> Reader<'_, 'a> {
    fn number(&mut self, bytes: usize) -> Option<u64> {
        let found = self.info.bytes.get(self.at..self.at.checked_add(bytes)?)?;
        let mut value = [0u8; 8];
        value[..bytes].copy_from_slice(found);
        self.at += bytes;
        Some(u64::from_le_bytes(value))
    }

    fn leb(&mut self) -> Option<u64> {
        let (value, at) = leb(&self.info.bytes, self.at)?;
        self.at = at;
        Some(value)
    }

    fn skip(&mut self, bytes: u64) -> Option<()> {
        self.at = self.at.checked_add(usize::try_from(bytes).ok()?)?;
        (self.at <= self.info.bytes.len()).then_some(())
    }

    /// One compilation unit; `None` at the end, or where it can't be read.
    fn unit(
        &mut self,
        abbreviations: &Section<'a>,
        found: &mut DebugInfo<'a>,
        names: &mut HashMap<usize, Named>,
        origins: &mut Vec<Option<usize>>,
    ) -> Option<()> {
        let unit = self.at;
        let mut length = self.number(4)?;
        self.wide = length == 0xffff_ffff;
        if self.wide {
            length = self.number(8)?;
        }
        let end = self.at.checked_add(usize::try_from(length).ok()?)?;
        let version = self.number(2)?;
        if !(2..=4).contains(&version) {
            return None;
        }
        // `.debug_abbrev`, or a label in it: its offset.
        let reference = self.info.reference(self.at);
        let number = self.number(if self.wide { 8 } else { 4 })?;
        let offset = reference
            .and_then(|label| abbreviations.labels.get(label).copied())
            .unwrap_or(usize::try_from(number).ok()?);
        let table = abbreviation_table(&abbreviations.bytes, offset)?;
        let address_size = self.number(1)? as usize;

        // For each open entry: whether it counts as an inlined call.
        let mut open: Vec<bool> = Vec::new();
        let end = end.min(self.info.bytes.len());
        while self.at < end {
            let entry = self.at;
            let code = self.leb()?;
            if code == 0 {
                open.pop();
                continue;
            }
            let (tag, children, attributes) = table.get(&code)?;
            let (mut low, mut high, mut call) = (None, None, (0, 0, 0));
            let mut named = Named::default();
            for &(attribute, form) in attributes {
                let value = self.value(form, unit, address_size)?;
                let small = |n: u64| u32::try_from(n).unwrap_or(0);
                match (attribute, value) {
                    (NAME, Value::Text(text)) => named.plain = text,
                    (LINKAGE_NAME | OLD_LINKAGE_NAME, Value::Text(text)) => named.linkage = text,
                    (LOW_PC, Value::Label(label)) => low = Some(label),
                    (HIGH_PC, Value::Label(label)) => high = Some(label),
                    (ORIGIN | SPECIFICATION, Value::Number(n)) => {
                        named.see = usize::try_from(n).ok();
                    }
                    (CALL_FILE, Value::Number(n)) => call.0 = small(n),
                    (CALL_LINE, Value::Number(n)) => call.1 = small(n),
                    (CALL_COLUMN, Value::Number(n)) => call.2 = small(n),
                    _ => {}
                }
            }
            let inlined = *tag == INLINED;
            if inlined && let (Some(low), Some(high)) = (low, high) {
                let index = u32::try_from(found.calls.len()).ok()?;
                if low != high {
                    found.begins.entry(low).or_default().push(index);
                    found.ends.entry(high).or_default().push(index);
                }
                let depth = open.iter().filter(|is| **is).count() as u32 + 1;
                found.calls.push(Inlined {
                    depth,
                    call,
                    function: None,
                });
                origins.push(named.see);
            } else if *tag == SUBPROGRAM {
                names.insert(entry, named);
            }
            if *children {
                // No compiler nests this deep, and each entry looks at all that are open.
                if open.len() > 256 {
                    return None;
                }
                open.push(inlined);
            }
        }
        self.at = end;
        Some(())
    }

    fn value(&mut self, form: u64, unit: usize, address_size: usize) -> Option<Value<'a>> {
        let number = |n: Option<u64>| n.map(Value::Number);
        let inside = |n: Option<u64>| n.map(|n| Value::Number(n.saturating_add(unit as u64)));
        let offset_size = if self.wide { 8 } else { 4 };
        match form {
            0x01 => {
                let label = self.info.reference(self.at);
                self.skip(address_size as u64)?;
                Some(label.map_or(Value::Other, Value::Label))
            }
            0x0b => number(self.number(1)),
            0x05 => number(self.number(2)),
            0x06 => number(self.number(4)),
            0x07 => number(self.number(8)),
            0x0d | 0x0f => number(self.leb()),
            0x0c => number(self.number(1)),
            0x19 => Some(Value::Other),
            0x17 => number(self.number(offset_size)),
            0x10 => number(self.number(offset_size)),
            0x11 => inside(self.number(1)),
            0x12 => inside(self.number(2)),
            0x13 => inside(self.number(4)),
            0x14 => inside(self.number(8)),
            0x15 => inside(self.leb()),
            0x08 => {
                let rest = self.info.bytes.get(self.at..)?;
                let length = rest.iter().position(|&b| b == 0)?;
                let text = string_at(&self.info.bytes, self.at);
                self.at += length + 1;
                Some(Value::Text(text))
            }
            0x0e => {
                let label = self.info.reference(self.at);
                let offset = usize::try_from(self.number(offset_size)?).ok()?;
                let at = label
                    .and_then(|l| self.strings.labels.get(l).copied())
                    .unwrap_or(offset);
                Some(Value::Text(string_at(&self.strings.bytes, at)))
            }
            0x0a => self.block(|r| r.number(1)),
            0x03 => self.block(|r| r.number(2)),
            0x04 => self.block(|r| r.number(4)),
            0x09 | 0x18 => self.block(Reader::leb),
            _ => None,
        }
    }

    fn block(&mut self, length: impl FnOnce(&mut Self) -> Option<u64>) -> Option<Value<'a>> {
        let length = length(self)?;
        self.skip(length)?;
        Some(Value::Other)
    }
}

fn leb(bytes: &[u8], mut at: usize) -> Option<(u64, usize)> {
    let (mut value, mut shift) = (0u64, 0);
    loop {
        let byte = *bytes.get(at)?;
        at += 1;
        if shift < 64 {
            value |= u64::from(byte & 0x7f) << shift;
        }
        shift += 7;
        if byte & 0x80 == 0 {
            return Some((value, at));
        }
    }
}

fn abbreviation_table(bytes: &[u8], mut at: usize) -> Option<Abbreviations> {
    let mut table = HashMap::new();
    loop {
        let (code, next) = leb(bytes, at)?;
        at = next;
        if code == 0 {
            return Some(table);
        }
        let (tag, next) = leb(bytes, at)?;
        let children = *bytes.get(next)? != 0;
        at = next + 1;
        let mut attributes = Vec::new();
        loop {
            let (attribute, next) = leb(bytes, at)?;
            let (form, next) = leb(bytes, next)?;
            at = next;
            if attribute == 0 && form == 0 {
                break;
            }
            attributes.push((attribute, form));
        }
        table.insert(code, (tag, children, attributes));
    }
}
