//! What gives findings their names: modules with their sites, launches, buffers. Shared with the watchdog.

use crate::report::{Instrumentation, LaunchInfo, Site, UnsupportedInstruction};
use std::collections::HashMap;

/// An operation of the host that is checked like a launch. It has an id as launches have, and no entry among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostOperation {
    Memset = 0,
    Copy = 1,
    ReadBack = 2,
    Write = 3,
}

impl HostOperation {
    /// Tells its ids from those of launches; below it two bits of what it is, and how many launches were issued before.
    const BIT: u32 = 1 << 31;
    const LAUNCHES: u32 = (1 << 29) - 1;

    /// The id of such an operation after so many launches.
    pub(crate) fn id(self, launches: u32) -> u32 {
        Self::BIT | (self as u32) << 29 | launches.min(Self::LAUNCHES)
    }

    /// What the id says: the operation, and how many launches were issued before it.
    pub(crate) fn of_id(id: u32) -> Option<(HostOperation, u32)> {
        use HostOperation::*;
        let what = [Memset, Copy, ReadBack, Write][(id >> 29 & 3) as usize];
        (id & Self::BIT != 0).then_some((what, id & Self::LAUNCHES))
    }

    /// What reports call it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            HostOperation::Memset => "memset",
            HostOperation::Copy => "copy",
            HostOperation::ReadBack => "read back",
            HostOperation::Write => "write",
        }
    }
}

/// A module as reports need it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ModuleNames {
    pub(crate) name: String,
    /// By site number.
    pub(crate) sites: Vec<Site>,
    pub(crate) unsupported: Vec<UnsupportedInstruction>,
    pub(crate) instrumented_sites: u64,
    pub(crate) instrumentation: Option<Instrumentation>,
    /// Of a hand-linked module: each kernel's source file.
    pub(crate) linked_files: HashMap<String, String>,
}

/// A named piece of memory: a buffer, or a module's variable.
#[derive(Debug, Clone)]
struct Named {
    name: String,
    address: u64,
    bytes: u64,
    /// Launches issued before it came to be.
    from_launch: u32,
    /// Launches issued before it was freed.
    until_launch: Option<u32>,
}

impl Named {
    fn holds(&self, address: u64) -> bool {
        address >= self.address && address - self.address < self.bytes
    }

    /// `id` is a launch's or an operation's.
    fn lived_at(&self, id: u32) -> bool {
        match HostOperation::of_id(id) {
            // It came before the next launch.
            Some((_, launches)) => {
                self.from_launch <= launches && self.until_launch.is_none_or(|u| launches <= u)
            }
            None => self.from_launch <= id && self.until_launch.is_none_or(|until| id < until),
        }
    }
}

/// All names of a session.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    pub(crate) modules: Vec<ModuleNames>,
    pub(crate) launches: Vec<LaunchInfo>,
    named: Vec<Named>,
}

impl Catalogue {
    /// A buffer or variable comes to be.
    pub(crate) fn add_memory(&mut self, name: &str, address: u64, bytes: u64) {
        let from_launch = self.launches.len() as u32;
        self.named.push(Named {
            name: name.into(),
            address,
            bytes,
            from_launch,
            until_launch: None,
        });
    }

    /// The buffer that starts at `address` is freed.
    pub(crate) fn remove_memory(&mut self, address: u64) {
        let now = self.launches.len() as u32;
        let live = |n: &&mut Named| n.address == address && n.until_launch.is_none();
        if let Some(named) = self.named.iter_mut().rev().find(live) {
            named.until_launch = Some(now);
        }
    }

    /// Name of the memory that held `address` when `launch` was issued, and the offset in it. Where the launch is not
    /// known, what lies there now or lay there last.
    pub(crate) fn memory_at(&self, address: u64, launch: Option<u32>) -> Option<(&str, u64)> {
        let candidates = || self.named.iter().rev().filter(|n| n.holds(address));
        let exact = launch.and_then(|launch| candidates().find(|n| n.lived_at(launch)));
        let found = exact.or_else(|| candidates().next())?;
        Some((&found.name, address - found.address))
    }

    /// The live memory that ends last before `address`, and how far behind its end that is.
    pub(crate) fn before(&self, address: u64) -> Option<(&str, u64)> {
        let past = |n: &Named| address.checked_sub(n.address)?.checked_sub(n.bytes);
        let live = self.named.iter().filter(|n| n.until_launch.is_none());
        let (past, name) = live
            .filter_map(|n| Some((past(n)?, &n.name)))
            .min_by_key(|&(past, _)| past)?;
        Some((name, past))
    }

    /// Name of the live memory around `address`.
    pub(crate) fn live_around(&self, address: u64) -> Option<&str> {
        let live = self
            .named
            .iter()
            .rev()
            .find(|n| n.until_launch.is_none() && n.holds(address))?;
        Some(&live.name)
    }

    /// A site of a module.
    pub(crate) fn site(&self, module: u32, site: u32) -> Option<&Site> {
        self.modules.get(module as usize)?.sites.get(site as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(catalogue: &mut Catalogue) {
        let id = catalogue.launches.len() as u32;
        catalogue.launches.push(LaunchInfo {
            id,
            kernel: "k".into(),
            module: "m".into(),
            grid: [1; 3],
            block: [1; 3],
            stream: None,
        });
    }

    #[test]
    fn an_operations_id_says_what_it_was_and_when() {
        use HostOperation::*;
        for what in [Memset, Copy, ReadBack, Write] {
            for launches in [0, 1, 99_999, HostOperation::LAUNCHES] {
                assert_eq!(
                    HostOperation::of_id(what.id(launches)),
                    Some((what, launches))
                );
                assert_eq!(HostOperation::of_id(launches), None);
            }
            assert!(HostOperation::of_id(what.id(u32::MAX)).is_some_and(|(w, _)| w == what));
        }
    }

    #[test]
    fn reused_memory_has_the_name_that_it_had_at_the_launch() {
        let mut c = Catalogue::default();
        c.add_memory("first", 1000, 100);
        launch(&mut c);
        c.remove_memory(1000);
        launch(&mut c);
        c.add_memory("second", 1000, 50);
        launch(&mut c);
        assert_eq!(c.memory_at(1010, Some(0)), Some(("first", 10)));
        assert_eq!(c.memory_at(1010, Some(2)), Some(("second", 10)));
        let memset = |launches| HostOperation::Memset.id(launches);
        assert_eq!(c.memory_at(1010, Some(memset(0))), Some(("first", 10)));
        assert_eq!(c.memory_at(1010, Some(memset(1))), Some(("first", 10)));
        assert_eq!(c.memory_at(1010, Some(memset(2))), Some(("second", 10)));
        // Nothing lived there: what lies there now.
        assert_eq!(c.memory_at(1010, Some(1)), Some(("second", 10)));
        assert_eq!(c.memory_at(1099, None), Some(("first", 99)));
        assert_eq!(c.memory_at(1100, None), None);
        assert_eq!(c.memory_at(999, Some(0)), None);
        assert_eq!(c.live_around(1049), Some("second"));
        assert_eq!(c.live_around(1050), None);
    }
}
