//! What is decided when all functions have been read: whose hooks stay.

use super::function::Walker;
use super::{InstrumentError, Unsupported, graph};
use crate::ast::{Item, Module};

const BLIND: &str = "no access of this kernel is checked: it bounds its registers (.maxnreg, .minnctapersm) and changes them \
                     (setmaxnreg), and ptxas assembles no calls in such a kernel (C7600); compile it without the bound to have it checked";
const SILENCED: &str = "no access of this function is checked, nor what it synchronises, because it may be called by a kernel that \
                        bounds its registers (.maxnreg, .minnctapersm) and changes them (setmaxnreg), in which ptxas assembles no calls: \
                        findings behind it may be wrong";

impl Walker<'_, '_> {
    /// `part`: the module will be linked with others.
    pub(super) fn finish(
        &mut self,
        module: &Module<'_>,
        part: bool,
    ) -> Result<(), InstrumentError> {
        let aliases = module
            .items
            .iter()
            .any(|item| matches!(item, Item::Other { name, .. } if *name == ".alias"));
        let verdict = graph::decide(&self.nodes, part, aliases);
        if let Some(kernel) = verdict.unlinkable {
            let kernel = self.nodes[kernel].name.to_string();
            return Err(InstrumentError::Unlinkable { kernel });
        }
        let mut gone = Vec::new();
        for (i, trace) in self.traces.iter().enumerate() {
            let keep = verdict.keep[i];
            if !keep {
                self.emit.edits.remove(trace.edits.clone());
                self.out.stats.take_back(trace.hooks);
                gone.extend_from_slice(&self.block.notes[trace.notes.clone()]);
            }
            if self.nodes[i].entry
                && let Some(entry) = self.out.entries.get_mut(trace.entry)
            {
                entry.hooks = keep;
                entry.intra_block &= keep;
            }
        }
        let mut gone = gone.into_iter().peekable();
        let mut index = 0..;
        self.out.unsupported.retain(|_| {
            gone.next_if_eq(&index.next().unwrap_or(usize::MAX))
                .is_none()
        });
        let listed = self.out.unsupported.len();
        for (list, why) in [(&verdict.blind, BLIND), (&verdict.silenced, SILENCED)] {
            for &i in list {
                let kind = if self.nodes[i].entry {
                    ".entry"
                } else {
                    ".func"
                };
                self.out.unsupported.push(Unsupported {
                    ptx_line: self.traces[i].ptx_line,
                    text: format!("{kind} {}", self.nodes[i].name),
                    why: why.to_string(),
                    function: self.nodes[i].name.into(),
                    places: Vec::new(),
                    partly: false,
                });
            }
        }
        if verdict.silenced.iter().any(|&i| self.traces[i].barriers) {
            self.block.blind_function = true;
        }
        self.out.blind_function = self.block.blind_function;
        self.list_externs();
        if self.out.unsupported.len() > listed {
            self.out.unsupported.sort_by_key(|u| u.ptx_line);
        }
        Ok(())
    }
}
