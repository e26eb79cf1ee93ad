//! Reading what the user names, and keeping it from being overwritten.

use crate::failure::{Failure, Result};
use std::io::Read;
use std::path::Path;

/// No input is larger: devices that never end must not fill the memory.
const MOST: u64 = 4 << 30;

/// All bytes of a file.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    let failed =
        |e: std::io::Error| Failure::input(format_args!("cannot read {}: {e}", path.display()));
    let bytes = at_most(path, MOST).map_err(failed)?;
    if bytes.len() as u64 > MOST {
        return Err(Failure::input(format_args!(
            "{} is larger than {} GiB",
            path.display(),
            MOST >> 30
        )));
    }
    Ok(bytes)
}

/// The first bytes of a file, one more than `most` if there are more.
pub fn at_most(path: &Path, most: u64) -> std::io::Result<Vec<u8>> {
    let file = std::fs::File::open(path)?;
    let known = file.metadata()?.len().min(most);
    let mut bytes = Vec::with_capacity(usize::try_from(known).unwrap_or_default());
    file.take(most + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A result must not take the place of what it was made from.
pub fn not_over<'a>(
    option: &str,
    out: &Path,
    mut inputs: impl Iterator<Item = &'a Path>,
) -> Result<()> {
    let Ok(out_file) = std::fs::canonicalize(out) else {
        return Ok(());
    };
    // Devices can be read and written.
    let same = |input: &Path| {
        out_file.is_file() && std::fs::canonicalize(input).is_ok_and(|i| i == out_file)
    };
    match inputs.find(|input| same(input)) {
        Some(_) => Err(Failure::input(format_args!(
            "{option} {}: that is the input; give the output another name",
            out.display()
        ))),
        None => Ok(()),
    }
}
