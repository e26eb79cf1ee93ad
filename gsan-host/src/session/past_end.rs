//! Accesses behind the end of a buffer, where the mapping goes on: no fault shows them, but the cells there are cleared with
//! the buffer's own, so whatever they hold came from such an access.

use super::{Checked, Session};
use crate::inspection::AccessView;
use crate::report::PastEnd;
use gsan_device::layout::WORD;

/// Bytes behind a buffer that are looked at. Most mistakes are by one element or by one row.
const NEAR: u64 = 64 << 10;

impl Session {
    /// One entry for each buffer and place in the program. The devices are quiet; what cannot be read is left out.
    pub(super) fn past_ends(&self, checked: &Checked) -> Vec<PastEnd> {
        let mut found = Vec::new();
        for (address, bytes) in self.reserved() {
            // The last word may be the buffer's in part.
            let end = (address + bytes).next_multiple_of(WORD);
            let mapped = address + checked.reservation.mapped_for(address, bytes);
            let near = mapped.saturating_sub(end).min(NEAR);
            let (true, Some(cell)) = (near >= WORD, checked.reservation.layout().cell(end)) else {
                continue;
            };
            let Ok(words) = self.decode(checked, end, cell, near / WORD) else {
                continue;
            };
            let names = self.names();
            let Some(name) = names.live_around(address).map(str::to_string) else {
                continue;
            };
            for word in words {
                let past = word.address - (address + bytes);
                for access in &word.accesses {
                    note(&mut found, &name, past, access);
                }
            }
        }
        found
    }
}

/// Adds a word to the entry of its place, or makes one.
fn note(found: &mut Vec<PastEnd>, buffer: &str, past: u64, access: &AccessView) {
    let side = &access.side;
    let known = found.iter_mut().find(|p| {
        p.buffer == buffer && (&p.access.kernel, &p.access.site) == (&side.kernel, &side.site)
    });
    match known {
        Some(known) => known.words += 1,
        None => found.push(PastEnd {
            buffer: buffer.into(),
            past,
            words: 1,
            access: side.clone(),
        }),
    }
}
