//! What the hooks are told: the operation word, and the names of the runtime's functions.
//!
//! [`OpWord`] has the bits of `gsan_device::layout::Op`. This crate does not depend on gsan-device, so that it can be
//! used alone; gsan-host, which depends on both, asserts that the two agree.

/// What an instruction does to memory. The numbers are part of [`OpWord`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Access {
    /// Reads.
    Load = 0,
    /// Writes.
    Store = 1,
    /// Reads and writes in one step.
    Rmw = 2,
    /// Reads, and writes if the comparison holds.
    Cas = 3,
    /// No access: a fence.
    Fence = 4,
}

/// The ordering of an operation. The numbers are part of [`OpWord`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Order {
    Weak = 0,
    Relaxed = 1,
    Acquire = 2,
    Release = 3,
    AcqRel = 4,
    Sc = 5,
}

/// Who an operation synchronises with. The numbers are part of [`OpWord`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Scope {
    None = 0,
    Cta = 1,
    Cluster = 2,
    Gpu = 3,
    Sys = 4,
}

/// The `op` argument of every hook.
///
/// | bits | field |
/// |---|---|
/// | 0–9 | size in bytes |
/// | 10–12 | [`Access`] |
/// | 13–15 | [`Order`] |
/// | 16–18 | [`Scope`] |
/// | 19 | `volatile` |
/// | 20 | non-coherent (`ld.global.nc`) |
/// | 21 | the address is generic |
/// | 22–24 | log2 of the number of elements: vectors and packed types are sets of scalar accesses |
/// | 25 | carried out later: `cp.async`, until its thread has waited |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OpWord(pub u32);

impl OpWord {
    /// The `volatile` bit.
    pub const VOLATILE: u32 = 1 << 19;
    /// The non-coherent bit.
    pub const NON_COHERENT: u32 = 1 << 20;
    /// The generic-address bit.
    pub const GENERIC: u32 = 1 << 21;
    /// The bit of what is carried out later.
    pub const ASYNCHRONOUS: u32 = 1 << 25;

    /// Builds the word; `size` below 1024.
    pub const fn new(access: Access, size: u32, order: Order, scope: Scope) -> OpWord {
        OpWord((size & 0x3ff) | (access as u32) << 10 | (order as u32) << 13 | (scope as u32) << 16)
    }

    /// The same with another size.
    pub const fn with_size(self, size: u32) -> OpWord {
        OpWord(self.0 & !0x3ff | size & 0x3ff)
    }

    /// Sets the number of elements, a power of two up to 128.
    pub const fn elements(self, elements: u32) -> OpWord {
        OpWord(self.0 & !(7 << 22) | (elements.trailing_zeros() & 7) << 22)
    }

    /// Sets further bits.
    pub const fn with(self, bits: u32, set: bool) -> OpWord {
        if set { OpWord(self.0 | bits) } else { self }
    }

    /// Size in bytes.
    pub const fn size(self) -> u32 {
        self.0 & 0x3ff
    }

    /// What it does.
    pub const fn access(self) -> Access {
        match (self.0 >> 10) & 7 {
            0 => Access::Load,
            1 => Access::Store,
            2 => Access::Rmw,
            3 => Access::Cas,
            _ => Access::Fence,
        }
    }

    /// Its ordering.
    pub const fn order(self) -> Order {
        match (self.0 >> 13) & 7 {
            0 => Order::Weak,
            1 => Order::Relaxed,
            2 => Order::Acquire,
            3 => Order::Release,
            4 => Order::AcqRel,
            _ => Order::Sc,
        }
    }

    /// Its scope.
    pub const fn scope(self) -> Scope {
        match (self.0 >> 16) & 7 {
            0 => Scope::None,
            1 => Scope::Cta,
            2 => Scope::Cluster,
            3 => Scope::Gpu,
            _ => Scope::Sys,
        }
    }

    /// Whether one of the given bits is set.
    pub const fn has(self, bits: u32) -> bool {
        self.0 & bits != 0
    }
}

const _: () = {
    let word = OpWord::new(Access::Cas, 16, Order::Sc, Scope::Sys);
    assert!(word.0 == 16 | 3 << 10 | 5 << 13 | 4 << 16);
    assert!(
        word.size() == 16
            && word.access() as u8 == 3
            && word.order() as u8 == 5
            && word.scope() as u8 == 4
    );
};

/// Some of the runtime's functions: those that a text calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hooks(u32);

impl Hooks {
    /// All that [`names`] knows.
    pub fn all() -> Hooks {
        let mut all = Hooks::default();
        names::ALL.iter().for_each(|name| all.insert(name));
        all
    }

    /// Adds the function of that name; other names are no hooks.
    pub fn insert(&mut self, name: &str) {
        let place = names::ALL.iter().position(|known| *known == name);
        debug_assert!(place.is_some(), "{name} is not in names::ALL");
        self.0 |= place.map_or(0, |place| 1 << place);
    }

    /// Adds those of another set.
    pub fn add(&mut self, others: Hooks) {
        self.0 |= others.0;
    }

    /// Whether the function of that name is one of them.
    pub fn contains(self, name: &str) -> bool {
        self.names().any(|known| known == name)
    }

    /// Their names.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let chosen = move |&(place, _): &(usize, &&str)| self.0 & 1 << place != 0;
        names::ALL
            .iter()
            .enumerate()
            .filter(chosen)
            .map(|(_, name)| *name)
    }
}

/// The runtime's functions and variables, as ARCHITECTURE.md's table has them.
pub mod names {
    /// Begins every name of the runtime.
    pub const PREFIX: &str = "__gsan_";
    /// The variable that the host fills in; its presence says that a module is linked with the runtime already.
    pub const MODULE: &str = "__gsan_module";
    /// The hidden last parameter of every kernel.
    pub const LAUNCH: &str = "__gsan_launch";
    /// `(b64 launch)`
    pub const BLOCK_ENTER: &str = "__gsan_block_enter";
    /// `() -> b64 state`
    pub const STATE: &str = "__gsan_state";
    /// `(b64 state, b64 addr, b32 op, b32 site)`
    pub const ACCESS: &str = "__gsan_access";
    /// `(b64 state, b64 addr, b32 op, b32 site) -> b64 ctx`
    pub const SYNC_BEFORE: &str = "__gsan_sync_before";
    /// `(b64 state, b64 addr, b32 op, b32 site, b64 ctx, b32 success)`
    pub const SYNC_AFTER: &str = "__gsan_sync_after";
    /// `(b64 state, b32 op)`
    pub const FENCE: &str = "__gsan_fence";
    /// `()`
    pub const EXIT: &str = "__gsan_exit";
    /// `() -> b32 bytes`
    pub const DYNAMIC_SIZE: &str = "__gsan_dynamic_size";
    /// `(b64 state, b32 id, b32 count)`
    pub const BARRIER_BEFORE: &str = "__gsan_barrier_before";
    /// `(b64 state, b32 id, b32 count)`
    pub const BARRIER_AFTER: &str = "__gsan_barrier_after";
    /// `(b64 state)`
    pub const BLOCK_SYNC: &str = "__gsan_block_sync";
    /// What a runtime defines that finds races inside of blocks, all of them or none.
    pub const INTRA_BLOCK: [&str; 3] = [BARRIER_BEFORE, BARRIER_AFTER, BLOCK_SYNC];
    /// `(b64 state)`: before an arrival at the cluster's barrier
    pub const CLUSTER_ARRIVE: &str = "__gsan_cluster_arrive";
    /// `(b64 state)`: before a strong write to shared memory that other blocks of the cluster may read
    pub const CLUSTER_RELEASE: &str = "__gsan_cluster_release";
    /// `(b64 state)`: after waiting for the cluster, and after a strong read of shared memory that its other blocks may have
    /// written. It includes [`BLOCK_SYNC`].
    pub const CLUSTER_ACQUIRE: &str = "__gsan_cluster_acquire";
    /// What a runtime defines that follows clusters, all of them or none.
    pub const CLUSTER: [&str; 3] = [CLUSTER_ARRIVE, CLUSTER_RELEASE, CLUSTER_ACQUIRE];
    /// `(b64 state)`: after `griddepcontrol.wait`; a runtime need not have it.
    pub const GRID_WAIT: &str = "__gsan_grid_wait";
    /// `(b64 state)`: before `griddepcontrol.launch_dependents`; a runtime need not have it.
    pub const LAUNCH_DEPENDENTS: &str = "__gsan_launch_dependents";
    /// `(b64 state, b64 addr, b32 op, b32 site, b32 bytes, b32 barrier)`: before a bulk copy
    pub const COPY: &str = "__gsan_copy";
    /// `(b64 state, b64 map, b32 op, b32 site, b32 shape, b32 barrier, b32 c0, b32 c1, b32 c2, b32 c3, b32 c4)`: before a bulk
    /// copy through a tensor map; `shape` is [`COPY_ROWS`] for four rows
    pub const COPY_TENSOR: &str = "__gsan_copy_tensor";
    /// In the shape of [`COPY_TENSOR`].
    pub const COPY_ROWS: u32 = 1 << 8;
    /// `(b64 state, b64 map, b32 op, b32 site, b64 offsets, b32 barrier, b32 c0, b32 c1, b32 c2, b32 c3, b32 c4)`: before one of
    /// windows (`.im2col`); `offsets` are 16 bits each
    pub const COPY_WINDOWS: &str = "__gsan_copy_windows";
    /// `(b64 state, b64 addr, b32 op, b32 site, b32 bytes, b32 mask)`: before one to global memory that leaves bytes out
    pub const COPY_MASKED: &str = "__gsan_copy_masked";
    /// `(b64 state)`: after `cp.async.bulk.commit_group`
    pub const COPY_COMMIT: &str = "__gsan_copy_commit";
    /// `(b64 state, b32 groups)`: after `cp.async.bulk.wait_group`
    pub const COPY_WAIT: &str = "__gsan_copy_wait";
    /// `(b64 state)`: before [`EXIT`] in modules with bulk copies
    pub const COPY_LEAVE: &str = "__gsan_copy_leave";
    /// `(b64 state, b32 phase)`: after a successful wait for an mbarrier's phase: the barrier's shared address, [`PHASE`], the parity
    /// in bit 0, or [`ANY_PARITY`]; 0: any. So [`COPY`] and [`COPY_TENSOR`] name the one that a read completes on (0: not followed).
    pub const COPY_WAITED: &str = "__gsan_copy_waited";
    /// `(b64 state)`: after a wait for `cp.async`s, and before [`EXIT`] in modules with some
    pub const COPY_LANDED: &str = "__gsan_copy_landed";
    /// In the name of an mbarrier's phase.
    pub const PHASE: u32 = 2;
    /// In the name of a phase that was waited for: of either parity.
    pub const ANY_PARITY: u32 = 4;
    /// What a runtime defines that follows bulk copies, all of them or none.
    pub const COPIES: [&str; 9] = [
        COPY,
        COPY_TENSOR,
        COPY_WINDOWS,
        COPY_MASKED,
        COPY_COMMIT,
        COPY_WAIT,
        COPY_WAITED,
        COPY_LANDED,
        COPY_LEAVE,
    ];
    /// `(b64 state, b64 addr, b32 op, b32 site) -> b64 ctx`: before an access of multicast memory
    pub const MULTIMEM: &str = "__gsan_multimem";
    /// `(b64 state, b64 addr, b32 op, b32 site, b64 ctx)`: after a strong read of it
    pub const MULTIMEM_AFTER: &str = "__gsan_multimem_after";
    /// What a runtime defines that knows of multicast memory, both of them or none.
    pub const MULTICAST: [&str; 2] = [MULTIMEM, MULTIMEM_AFTER];
    /// Every other function above: what a runtime must define.
    pub const FUNCTIONS: [&str; 8] = [
        BLOCK_ENTER,
        STATE,
        ACCESS,
        SYNC_BEFORE,
        SYNC_AFTER,
        FENCE,
        EXIT,
        DYNAMIC_SIZE,
    ];
    /// Every function above.
    pub const ALL: [&str; 27] = {
        let groups: [&[&str]; 5] = [&FUNCTIONS, &INTRA_BLOCK, &CLUSTER, &COPIES, &MULTICAST];
        let mut all = [GRID_WAIT; 27];
        all[1] = LAUNCH_DEPENDENTS;
        let mut count = 2;
        let mut group = 0;
        while group < groups.len() {
            let mut member = 0;
            while member < groups[group].len() {
                all[count] = groups[group][member];
                count += 1;
                member += 1;
            }
            group += 1;
        }
        assert!(count == all.len());
        all
    };
}
