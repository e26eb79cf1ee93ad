//! What is decided when all functions have been read: whose hooks stay.

use super::function::Walker;
use super::{InstrumentError, Options, Unsupported, graph};
use crate::ast::{Item, Module};
use crate::tokens::{Kind, Tokens};
use std::collections::HashSet;

const BLIND: &str = "no access of this kernel is checked: it bounds its registers (.maxnreg, .minnctapersm) and changes them \
                     (setmaxnreg), and ptxas assembles no calls in such a kernel (C7600); compile it without the bound to have it checked";
const SILENCED: &str = "no access of this function is checked, nor what it synchronises, because it may be called by a kernel that \
                        bounds its registers (.maxnreg, .minnctapersm) and changes them (setmaxnreg), in which ptxas assembles no calls: \
                        findings behind it may be wrong";

impl Walker<'_, '_> {
    pub(super) fn finish(
        &mut self,
        module: &Module<'_>,
        options: &Options<'_>,
    ) -> Result<(), InstrumentError> {
        let aliases = aliases(module, self.text);
        let verdict = graph::decide(
            &self.nodes,
            options.part,
            !aliases.is_empty(),
            options.apart,
        );
        if let Some(kernel) = verdict.unlinkable {
            let kernel = self.nodes[kernel].name.to_string();
            return Err(InstrumentError::Unlinkable { kernel });
        }
        let (mut gone, mut sizes) = (Vec::new(), Vec::new());
        for (i, trace) in self.traces.iter_mut().enumerate() {
            let keep = verdict.keep[i];
            if keep {
                self.out.needs.calls.add(trace.calls);
                self.out.needs.room(trace.room);
            } else {
                self.emit.edits.remove(trace.edits.clone());
                self.out.stats.take_back(trace.hooks);
                gone.extend_from_slice(&self.block.notes[trace.notes.clone()]);
                sizes.extend(trace.size_read.take());
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
        self.out
            .unsupported
            .extend(sizes.into_iter().map(|entry| *entry));
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
        self.list_externs(&aliases);
        if self.out.unsupported.len() > listed {
            self.out.unsupported.sort_by_key(|u| u.ptx_line);
        }
        Ok(())
    }
}

/// The new names of `.alias NEW, OLD;`.
fn aliases<'m>(module: &Module<'_>, text: &'m str) -> HashSet<&'m str> {
    let directives = module.items.iter().filter_map(|item| match item {
        Item::Other { name, span } if *name == ".alias" => Some(&text[span.clone()]),
        _ => None,
    });
    directives
        .filter_map(|directive| {
            let tokens = Tokens::new(directive);
            let name = (0..tokens.len()).find(|&i| tokens.kind(i) == Kind::Ident)?;
            Some(tokens.text(name))
        })
        .collect()
}
