//! The detector's state in words: which launch, block and line an epoch in the shadow stands for.
//!
//! [`crate::Session`]'s `describe_…` calls read the state; here it is decoded. What has been forgotten (an overwritten
//! snapshot, a tenant that the history no longer has) is `None`, never guessed.

pub use crate::in_block::{BarrierView, BlockView, WarpView, in_block};

use crate::catalogue::{Catalogue, HostOperation};
use crate::cell_format::CellFormat;
use crate::records;
use crate::report::Side;
use gsan_device::layout::{
    Access, Epoch, Op, Order, PartialClock, RaceSide, ScalarClock, Scope, ShadowCell, Snapshot,
    SyncClock, Tenant, ThreadState, WideCell, WideRecord,
};

/// What the shadow keeps of one word.
#[derive(Debug, Clone, PartialEq)]
pub struct WordView {
    /// Address of the word.
    pub address: u64,
    /// Name of the buffer or variable that holds it.
    pub buffer: Option<String>,
    /// Bytes from its start.
    pub offset: Option<u64>,
    /// The cell's format.
    pub format: CellFormat,
    /// The accesses that the cell keeps, in its order.
    pub accesses: Vec<AccessView>,
    /// What a strong read of the word would acquire.
    pub release: Option<ReleaseView>,
    /// Reads so far, saturating.
    pub reads: u16,
    /// An access that the cell had no room for was dropped since the word was last written whole (`wide` only).
    pub dropped: bool,
}

impl WordView {
    /// Whether the cell is as it was when the memory was handed out.
    pub fn is_empty(&self) -> bool {
        self.accesses.is_empty() && self.release.is_none() && self.reads == 0 && !self.dropped
    }
}

/// One access in a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct AccessView {
    /// Logical thread.
    pub thread: u32,
    /// Its epoch then; `None` where only a snapshot knew it that has been overwritten.
    pub epoch: Option<Epoch>,
    /// Who that was and what it did.
    pub side: Side,
    /// Bytes of the word, one bit each; all four where the format keeps none.
    pub bytes: u8,
    /// Bytes of one element; `None` where the format keeps none.
    pub element_size: Option<u32>,
    /// It read through the non-coherent path (`ld.global.nc`).
    pub non_coherent: bool,
    /// It has observed the word's last write, or (a write) was observed.
    pub observed: bool,
}

/// A published clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseView {
    /// The logical thread that published it.
    pub thread: u32,
    /// Index in that thread's ring since the beginning.
    pub token: u32,
    /// Who can acquire it.
    pub scope: Scope,
    /// What it publishes; `None`: the ring has gone round since.
    pub snapshot: Option<SnapshotView>,
}

/// What a release publishes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotView {
    /// The entries that are not zero: logical thread and epoch.
    pub clock: Vec<(u32, Epoch)>,
    /// What is known of single warps beyond that.
    pub warps: Vec<WarpClock>,
    /// Clocks of releases that the publisher had not acquired itself were joined in.
    pub joined: bool,
}

/// Of one warp of a block more is known than of its other warps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WarpClock {
    /// The block's logical thread.
    pub thread: u32,
    /// Warp of the block.
    pub warp: u32,
    /// Everything up to here.
    pub epoch: Epoch,
}

/// A logical thread.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadView {
    /// Its index in a clock.
    pub id: u32,
    /// Device that it belongs to.
    pub device: u32,
    /// Multiprocessor.
    pub sm: u32,
    /// Residency slot of the multiprocessor.
    pub slot: u32,
    /// As the device has it.
    pub state: ThreadState,
    /// Its clock's entries that are not zero, its own epoch included.
    pub clock: Vec<(u32, Epoch)>,
    /// What it knows of single warps of other blocks beyond that.
    pub warps: Vec<WarpClock>,
    /// Who used the slot, the latest first, as far back as the history goes.
    pub tenants: Vec<TenantView>,
}

/// One tenancy of a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantView {
    /// Its first epoch; the tenancy ends where the next one begins.
    pub start_epoch: Epoch,
    /// The launch, unless the host did it.
    pub launch: Option<u32>,
    /// Kernel, or what the host did.
    pub kernel: Option<String>,
    /// Block index; `None` for the host, and where several blocks shared the slot.
    pub block: Option<[u32; 3]>,
    /// Several blocks shared the slot then: nobody can say whose an epoch was.
    pub shared: bool,
}

/// What the decoder asks the device.
pub(crate) trait State {
    type Error;
    /// The thread's tenants, latest first.
    fn tenants(&mut self, thread: u32) -> Result<Vec<Tenant>, Self::Error>;
    /// The snapshot that the thread's ring has at the token's place, with its clock; `None`: no such thread.
    fn snapshot(
        &mut self,
        thread: u32,
        token: u32,
    ) -> Result<Option<(Snapshot, Vec<Epoch>)>, Self::Error>;
    /// The thread's newest token.
    fn newest_token(&mut self, thread: u32) -> Result<u32, Self::Error>;
}

/// The entries that are not zero.
pub(crate) fn nonzero(clock: &[Epoch]) -> Vec<(u32, Epoch)> {
    let all = clock.iter().copied().enumerate();
    all.filter(|&(_, epoch)| epoch != 0)
        .map(|(thread, epoch)| (thread as u32, epoch))
        .collect()
}

/// The entries that say something.
pub(crate) fn partials(all: &[PartialClock]) -> Vec<WarpClock> {
    let some = all.iter().filter(|p| !p.is_empty());
    some.map(|p| WarpClock {
        thread: p.thread(),
        warp: p.warp(),
        epoch: p.epoch(),
    })
    .collect()
}

/// A word without anything in its cell.
pub(crate) fn empty_word(address: u64, format: CellFormat, names: &Catalogue) -> WordView {
    let memory = names.memory_at(address, None);
    WordView {
        address,
        buffer: memory.map(|(name, _)| name.to_string()),
        offset: memory.map(|(_, offset)| offset),
        format,
        accesses: Vec::new(),
        release: None,
        reads: 0,
        dropped: false,
    }
}

/// Decodes a `wide` cell.
pub(crate) fn wide<S: State>(
    address: u64,
    cell: &WideCell,
    state: &mut S,
    names: &Catalogue,
) -> Result<WordView, S::Error> {
    let mut word = empty_word(address, CellFormat::Wide, names);
    for record in cell.records.iter().filter(|r| !r.is_empty()) {
        word.accesses.push(wide_access(record, state, names)?);
    }
    let sync: SyncClock = cell.sync;
    if !sync.is_empty() {
        let (thread, token) = (sync.thread(), sync.token());
        word.release = Some(ReleaseView {
            thread,
            token,
            scope: sync.scope(),
            snapshot: intact(state, thread, token)?.map(|(s, clock)| published(&s, &clock)),
        });
    }
    word.reads = cell.num_reads;
    word.dropped = u32::from(cell.state) << 16 & WideCell::DROPPED != 0;
    Ok(word)
}

fn wide_access<S: State>(
    record: &WideRecord,
    state: &mut S,
    names: &Catalogue,
) -> Result<AccessView, S::Error> {
    let who = Who {
        thread: record.thread(),
        epoch: Some(record.epoch()),
        op: record.op(),
        site: record.site(),
        linear: Some(record.linear()),
    };
    Ok(AccessView {
        thread: who.thread,
        epoch: who.epoch,
        side: who.side(state, names)?,
        bytes: record.mask() as u8,
        element_size: Some(record.op().size()),
        non_coherent: record.op().is_non_coherent(),
        observed: record.is_observed(),
    })
}

/// Decodes a `reference` cell.
pub(crate) fn reference<S: State>(
    address: u64,
    cell: &ShadowCell,
    state: &mut S,
    names: &Catalogue,
) -> Result<WordView, S::Error> {
    let mut word = empty_word(address, CellFormat::Reference, names);
    let write = cell.write;
    if write.is_release() {
        // The cell keeps the token's low half; the newest one with that half is the one that an acquire takes.
        let head = state.newest_token(write.thread())?;
        let token = head.wrapping_sub(head.wrapping_sub(write.epoch()) & 0xffff);
        let found = intact(state, write.thread(), token)?;
        let wrote = match &found {
            // The offer of a compare-and-swap that has failed names no write.
            Some((snapshot, _)) if snapshot.epoch == 0 => None,
            Some((snapshot, _)) => Some((snapshot.event, Some(snapshot.epoch))),
            None => Some((write, None)),
        };
        if let Some((event, epoch)) = wrote {
            let access = scalar_access(event, epoch, Access::Store, state, names)?;
            word.accesses.push(access);
        }
        word.release = Some(ReleaseView {
            thread: write.thread(),
            token,
            scope: write.scope(),
            snapshot: found.map(|(s, clock)| published(&s, &clock)),
        });
    } else if !write.is_empty() {
        let epoch = Some(write.epoch());
        let access = scalar_access(write, epoch, Access::Store, state, names)?;
        word.accesses.push(access);
    }
    for read in cell.reads.iter().filter(|r| !r.plain().is_empty()) {
        let epoch = Some(read.epoch());
        let mut access = scalar_access(read.plain(), epoch, Access::Load, state, names)?;
        access.observed = read.is_observed();
        word.accesses.push(access);
    }
    word.reads = cell.num_reads;
    Ok(word)
}

fn scalar_access<S: State>(
    clock: ScalarClock,
    epoch: Option<Epoch>,
    access: Access,
    state: &mut S,
    names: &Catalogue,
) -> Result<AccessView, S::Error> {
    let scope = clock.scope();
    let who = Who {
        thread: clock.thread(),
        epoch,
        op: Op::new(access, 0, Order::Weak, scope),
        site: None,
        linear: None,
    };
    let mut side = who.side(state, names)?;
    if scope != Scope::None {
        // An atomic, whose order the cell does not keep.
        side.order = None;
    }
    Ok(AccessView {
        thread: who.thread,
        epoch,
        side,
        bytes: 15,
        element_size: None,
        non_coherent: false,
        observed: false,
    })
}

/// An access as a cell knows it.
struct Who {
    thread: u32,
    epoch: Option<Epoch>,
    op: Op,
    site: Option<u32>,
    linear: Option<u32>,
}

impl Who {
    /// With the slot's tenant then, as the device does for the earlier side of a race.
    fn side<S: State>(&self, state: &mut S, names: &Catalogue) -> Result<Side, S::Error> {
        let mut raw = RaceSide {
            op: self.op,
            slot: self.thread,
            known: RaceSide::OP,
            ..RaceSide::default()
        };
        let tenant = match self.epoch {
            Some(epoch) => tenant_at(&state.tenants(self.thread)?, epoch),
            None => None,
        };
        if let Some(tenant) = tenant {
            raw.known |= RaceSide::LAUNCH | RaceSide::BLOCK;
            raw.launch_id = tenant.launch_id;
            raw.block = tenant.block;
            if let Some(site) = self.site {
                raw.known |= RaceSide::SITE;
                (raw.site, raw.module_id) = (site, tenant.module_id);
            }
            if let Some(linear) = self.linear {
                raw.known |= RaceSide::LINEAR_THREAD;
                raw.thread = [linear, 0, 0];
            }
        }
        Ok(records::side(&raw, names))
    }
}

/// The tenant whose epoch it was, if it was alone; `tenants` are the latest first.
fn tenant_at(tenants: &[Tenant], epoch: Epoch) -> Option<Tenant> {
    let found = tenants.iter().find(|t| t.start_epoch <= epoch)?;
    Some(*found).filter(|t| t.shared == 0)
}

/// The snapshot of that token, if the ring still has it.
fn intact<S: State>(
    state: &mut S,
    thread: u32,
    token: u32,
) -> Result<Option<(Snapshot, Vec<Epoch>)>, S::Error> {
    let found = state.snapshot(thread, token)?;
    Ok(found.filter(|(snapshot, _)| snapshot.token == token))
}

fn published(snapshot: &Snapshot, clock: &[Epoch]) -> SnapshotView {
    SnapshotView {
        clock: nonzero(clock),
        warps: partials(&snapshot.partials),
        joined: snapshot.joined != 0,
    }
}

/// The history as it is read: entries by place in the ring, `count` tenancies so far. Latest first.
pub(crate) fn in_order(ring: &[Tenant], count: u32) -> Vec<Tenant> {
    let kept = count.min(ring.len() as u32);
    let entry = |n: u32| ring.get(n as usize % ring.len().max(1)).copied();
    (1..=kept)
        .filter_map(|i| entry(count.wrapping_sub(i)))
        .filter(|t| t.start_epoch != 0)
        .collect()
}

/// A tenancy in words.
pub(crate) fn tenant(raw: &Tenant, names: &Catalogue) -> TenantView {
    let shared = raw.shared != 0;
    let view = |launch, kernel, block| TenantView {
        start_epoch: raw.start_epoch,
        launch,
        kernel,
        block,
        shared,
    };
    if shared {
        return view(None, None, None);
    }
    if let Some((operation, launches)) = HostOperation::of_id(raw.launch_id)
        && launches as usize <= names.launches.len()
    {
        return view(None, Some(operation.word().to_string()), None);
    }
    let info = names.launches.get(raw.launch_id as usize);
    view(
        Some(raw.launch_id),
        info.map(|l| l.kernel.clone()),
        Some(raw.block),
    )
}

#[cfg(test)]
#[path = "inspection_tests.rs"]
mod tests;
