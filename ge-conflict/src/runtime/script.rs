//! `gsan graph run-time FILE`: a script of what streams do with blocks, one step a line, and what becomes of each block.
//!
//! ```text
//! streams 2
//! malloc 0 64        # -> block 0
//! access 0 0 1       # block 0: stream 0 hands it to stream 1
//! free 0 0           # block 0, stream 0
//! sync 0 0 1         # block 0: stream 1 learns what stream 0 knows
//! event 0 1          # everything on stream 0's list, to stream 1
//! reuse 0,0|1,2      # pairs of inputs and outputs that share
//! addresses 16,32 16,0,32
//! ```

use super::block::{Pools, Recycle};
use super::reuse;
use crate::io::ReadError;
use serde::Serialize;

/// What a step did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The line.
    pub line: usize,
    /// The step as written.
    pub step: String,
    /// What came of it.
    pub result: String,
    /// Whether it was refused.
    pub refused: bool,
}

/// Runs a script.
pub fn run(file: &str, text: &str) -> Result<Vec<Step>, ReadError> {
    let mut pools = Pools::new(1);
    let mut pairs = Vec::new();
    let mut out = Vec::new();
    for (n, raw) in text.lines().enumerate() {
        let line = raw.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let fail = |at: usize, what: &str| {
            // Words are slices of the line, so their place is a difference of addresses' offsets.
            let column = words
                .get(at)
                .and_then(|w| raw.find(w))
                .map_or(raw.len(), |b| raw[..b].chars().count())
                + 1;
            ReadError {
                file: file.to_owned(),
                line: n + 1,
                column,
                what: what.to_owned(),
            }
        };
        let number = |at: usize, what: &str| -> Result<usize, ReadError> {
            words
                .get(at)
                .and_then(|w| w.parse().ok())
                .ok_or_else(|| fail(at, &format!("expected {what}")))
        };
        let addresses = |at: usize| -> Result<Vec<u64>, ReadError> {
            let list = words
                .get(at)
                .copied()
                .unwrap_or_default()
                .split(',')
                .filter(|s| !s.is_empty());
            list.map(|s| {
                s.parse()
                    .map_err(|_| fail(at, "expected addresses with commas between"))
            })
            .collect()
        };
        let said = |r: Result<Recycle, super::block::BlockError>| match r {
            Ok(Recycle::None) => (String::from("in use"), false),
            Ok(Recycle::Birth) => (String::from("birth recycle: the memory is free"), false),
            Ok(Recycle::Borrow) => (
                String::from("borrow recycle: this stream may use it"),
                false,
            ),
            Ok(Recycle::Local) => (String::from("local recycle: others still use it"), false),
            Err(e) => (e.to_string(), true),
        };
        let (result, refused) = match words[0] {
            "streams" => {
                let count = number(1, "a number of streams")?;
                if !(1..=super::mif::MAX_STREAMS).contains(&count) {
                    return Err(fail(1, "expected 1 to 64 streams"));
                }
                pools = Pools::new(count);
                (format!("{count} streams"), false)
            }
            "malloc" => match pools.malloc(number(1, "a stream")?, number(2, "a size")? as u64) {
                Ok(id) => (format!("block {id}"), false),
                Err(e) => (e.to_string(), true),
            },
            "access" => {
                match pools.new_access(
                    number(1, "a block")?,
                    number(2, "a stream")?,
                    number(3, "a stream")?,
                ) {
                    Ok(()) => (String::from("in use"), false),
                    Err(e) => (e.to_string(), true),
                }
            }
            "free" => said(pools.free(number(1, "a block")?, number(2, "a stream")?)),
            "sync" => said(pools.sync(
                number(1, "a block")?,
                number(2, "a stream")?,
                number(3, "a stream")?,
            )),
            "event" => match pools.event(number(1, "a stream")?, number(2, "a stream")?) {
                Ok(list) => {
                    let list: Vec<String> = list
                        .into_iter()
                        .map(|(b, r)| format!("block {b}: {}", said(Ok(r)).0))
                        .collect();
                    (
                        if list.is_empty() {
                            "nothing to send".to_owned()
                        } else {
                            list.join("; ")
                        },
                        false,
                    )
                }
                Err(e) => (e.to_string(), true),
            },
            "reuse" => {
                pairs = reuse::parse(words.get(1).copied().unwrap_or_default());
                (format!("{} pairs", pairs.len()), false)
            }
            "addresses" => match reuse::check_addresses(&pairs, &addresses(1)?, &addresses(2)?) {
                Ok(()) => (String::from("as built"), false),
                Err(e) => (format!("{}: {e}", e.code()), true),
            },
            _ => {
                return Err(fail(
                    0,
                    "expected streams, malloc, access, free, sync, event, reuse or addresses",
                ));
            }
        };
        out.push(Step {
            line: n + 1,
            step: line.to_owned(),
            result,
            refused,
        });
    }
    if out.is_empty() {
        return Err(ReadError {
            file: file.to_owned(),
            line: 1,
            column: 1,
            what: "expected steps (streams, malloc, access, …), found none".to_owned(),
        });
    }
    Ok(out)
}
