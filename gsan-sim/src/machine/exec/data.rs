//! Loads, stores, and where an address leads.

use super::{Exec, Failed, Flow, Halt, LOCAL_WINDOW, SHARED_WINDOW, WINDOW, set_predicate, write};
use crate::machine::alu::lanes;
use crate::machine::ir::{Addr, Base, Mem, Op, Space, Window};
use crate::machine::memory::MemoryFault;
use crate::machine::state::{Frame, Warp};
use crate::machine::stop::FaultKind;
use crate::machine::ty::{Row, extend};

/// Where an address leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Global(u64),
    /// Shared memory of the block in that slot, and the byte in it (the reserved bytes not counted).
    Shared(usize, u64),
    /// Byte of the thread's local memory.
    Local(u64),
}

impl From<MemoryFault> for Halt {
    fn from(f: MemoryFault) -> Halt {
        Halt::fault(f.kind, f.address)
    }
}

impl Exec<'_> {
    /// Memory and address instructions.
    pub(super) fn data(
        &mut self,
        warp: &mut Warp,
        pc: u32,
        mask: u32,
        fresh: bool,
    ) -> Result<Flow, Failed> {
        let program = self.program;
        let frame = warp.groups[warp.current].frame;
        match &program.code[pc as usize].op {
            Op::Load {
                space,
                mem,
                d,
                addr,
            } => {
                if *space != Space::Local
                    && !fresh
                    && let Some(flow) = self.preempted(warp)
                {
                    return Ok(flow);
                }
                let mut out = [0; 32];
                if *space == Space::Local
                    && let Base::Frame = addr.base
                {
                    self.load_frame(warp, frame, addr.offset, *mem, mask, &mut out)?;
                } else {
                    let addresses = self.addresses(warp, frame, *addr);
                    self.load_row(
                        warp,
                        *space,
                        &addresses,
                        *mem,
                        u64::from(mem.bytes),
                        mask,
                        &mut out,
                    )?;
                }
                write(warp, frame, *d, &out, mask);
            }
            Op::Store {
                space,
                mem,
                addr,
                a,
            } => {
                if *space != Space::Local
                    && !fresh
                    && let Some(flow) = self.preempted(warp)
                {
                    return Ok(flow);
                }
                let values = *self.row(warp, frame, *a);
                if *space == Space::Local
                    && let Base::Frame = addr.base
                {
                    self.store_frame(warp, frame, addr.offset, *mem, mask, &values)?;
                } else {
                    let addresses = self.addresses(warp, frame, *addr);
                    self.store_row(
                        warp,
                        *space,
                        &addresses,
                        *mem,
                        u64::from(mem.bytes),
                        mask,
                        &values,
                    )?;
                }
            }
            Op::LoadVector {
                space,
                mem,
                addr,
                d,
            } => {
                if *space != Space::Local
                    && !fresh
                    && let Some(flow) = self.preempted(warp)
                {
                    return Ok(flow);
                }
                let mut addresses = self.addresses(warp, frame, *addr);
                let total = u64::from(mem.bytes) * d.len() as u64;
                let mut align = total;
                // The address register may be among the targets: it is read once, above.
                for &d in d.iter() {
                    let mut out = [0; 32];
                    self.load_row(warp, *space, &addresses, *mem, align, mask, &mut out)?;
                    write(warp, frame, d, &out, mask);
                    align = u64::from(mem.bytes);
                    addresses
                        .iter_mut()
                        .for_each(|a| *a = a.wrapping_add(align));
                }
            }
            Op::StoreVector {
                space,
                mem,
                addr,
                a,
            } => {
                if *space != Space::Local
                    && !fresh
                    && let Some(flow) = self.preempted(warp)
                {
                    return Ok(flow);
                }
                let mut addresses = self.addresses(warp, frame, *addr);
                let mut align = u64::from(mem.bytes) * a.len() as u64;
                for &a in a.iter() {
                    let values = *self.row(warp, frame, a);
                    self.store_row(warp, *space, &addresses, *mem, align, mask, &values)?;
                    align = u64::from(mem.bytes);
                    addresses
                        .iter_mut()
                        .for_each(|a| *a = a.wrapping_add(align));
                }
            }
            Op::LoadParam { mem, offset, d } => {
                let mut at = *offset as usize;
                for &d in d.iter() {
                    let n = usize::from(mem.bytes);
                    let Some(bytes) = self.grid.params.get(at..at + n) else {
                        return Err((
                            Halt::fault(FaultKind::OutOfBounds, at as u64),
                            mask.trailing_zeros(),
                        ));
                    };
                    let mut word = [0; 8];
                    word[..n].copy_from_slice(bytes);
                    let value = widen(u64::from_le_bytes(word), *mem);
                    write(warp, frame, d, &[value; 32], mask);
                    at += n;
                }
            }
            Op::Atomic(op) => {
                if op.space != Space::Local
                    && !fresh
                    && let Some(flow) = self.preempted(warp)
                {
                    return Ok(flow);
                }
                self.atomic(warp, mask, op)?;
            }
            Op::Multimem(op) => {
                if !fresh && let Some(flow) = self.preempted(warp) {
                    return Ok(flow);
                }
                self.multimem(warp, mask, op)?;
            }
            Op::Copy(op) => {
                if !fresh && let Some(flow) = self.preempted(warp) {
                    return Ok(flow);
                }
                if !self.takes_off(warp, pc, mask) {
                    self.copy(warp, mask, op)?;
                }
            }
            Op::Fill { space, addr, size } => {
                let addresses = self.addresses(warp, frame, *addr);
                let sizes = *self.row(warp, frame, *size);
                lanes!(mask, l, {
                    let at = |h: Halt| (h, l as u32);
                    let (address, size) = (addresses[l], sizes[l]);
                    if !size.is_multiple_of(8) || size > 1 << 24 {
                        return Err(at(Halt::illegal(format!("st.bulk of {size} bytes"))));
                    }
                    Self::aligned(address, 8).map_err(at)?;
                    for i in (0..size).step_by(8) {
                        let to = address.wrapping_add(i);
                        self.store_lane(warp, *space, to, 8, 0, l).map_err(at)?;
                    }
                });
            }
            Op::Tensor(op) => {
                if !fresh && let Some(flow) = self.preempted(warp) {
                    return Ok(flow);
                }
                if !self.takes_off(warp, pc, mask) {
                    self.tensor_copy(warp, mask, op)?;
                }
            }
            Op::Mbarrier(op) => return self.mbarrier(warp, mask, op),
            Op::TryCancel(op) => self.try_cancel(warp, mask, op)?,
            Op::AddressOf { d, addr } => {
                let out = self.addresses(warp, frame, *addr);
                write(warp, frame, *d, &out, mask);
            }
            Op::ParamAddress { d, a, to } => {
                let start = self.grid.param_address;
                let out = self.row(warp, frame, *a).map(|x| {
                    if *to {
                        x.wrapping_sub(start)
                    } else {
                        x.wrapping_add(start)
                    }
                });
                write(warp, frame, *d, &out, mask);
            }
            Op::Convert { d, a, space, to } => {
                let base = if *space == Space::Local {
                    LOCAL_WINDOW
                } else {
                    SHARED_WINDOW
                };
                let to = *to;
                let out = self.row(warp, frame, *a).map(|x| {
                    if to {
                        x.wrapping_sub(base)
                    } else {
                        x.wrapping_add(base)
                    }
                });
                write(warp, frame, *d, &out, mask);
            }
            Op::IsSpace { d, a, space } => {
                let addresses = *self.row(warp, frame, *a);
                let mut holds = 0;
                lanes!(
                    mask,
                    l,
                    holds |= u32::from(self.is_in(addresses[l], *space)) << l
                );
                set_predicate(warp, frame, *d, holds, mask);
            }
            Op::MapShared {
                d,
                a,
                rank,
                generic,
            } => {
                let (a, ranks) = (*self.row(warp, frame, *a), *self.row(warp, frame, *rank));
                let mut out = [0; 32];
                lanes!(mask, l, {
                    if ranks[l] >= u64::from(self.grid.cluster_size()) {
                        return Err((
                            Halt::illegal(format!("cluster rank {} of mapa", ranks[l])),
                            l as u32,
                        ));
                    }
                    out[l] = (a[l] & 0xff_ffff)
                        | (ranks[l] + 1) << 24
                        | if *generic { SHARED_WINDOW } else { 0 };
                });
                write(warp, frame, *d, &out, mask);
            }
            Op::SharedRank { d, a } => {
                let own = u64::from(self.block.rank);
                let out = self
                    .row(warp, frame, *a)
                    .map(|a| (a >> 24 & 0xff).checked_sub(1).unwrap_or(own));
                write(warp, frame, *d, &out, mask);
            }
            _ => {}
        }
        Ok(Flow::Next)
    }

    fn is_in(&self, address: u64, space: Window) -> bool {
        let shared = address.wrapping_sub(SHARED_WINDOW) < WINDOW;
        let local = address.wrapping_sub(LOCAL_WINDOW) < WINDOW;
        match space {
            Window::Shared => {
                let rank = address.wrapping_sub(SHARED_WINDOW) >> 24;
                shared && (rank == 0 || rank == u64::from(self.block.rank) + 1)
            }
            Window::SharedCluster => shared,
            Window::Local => local,
            Window::Param => {
                let start = self.grid.param_address;
                start != 0 && address.wrapping_sub(start) < self.grid.params.len().max(1) as u64
            }
            Window::Const => self.is_constant(address),
            Window::Global => {
                !shared
                    && !local
                    && !self.is_in(address, Window::Param)
                    && !self.is_constant(address)
            }
        }
    }

    /// Constants lie in regions of the machine's own that nobody may write.
    fn is_constant(&self, address: u64) -> bool {
        self.memory.is_constant(address) && !self.is_in(address, Window::Param)
    }

    /// The addresses of an operand, lane by lane.
    #[inline]
    pub(super) fn addresses(&self, warp: &Warp, frame: Frame, addr: Addr) -> Row {
        match addr.base {
            Base::Value(s) => {
                let mut row = *self.row(warp, frame, s);
                row.iter_mut()
                    .for_each(|x| *x = x.wrapping_add_signed(addr.offset));
                row
            }
            Base::Frame => [u64::from(frame.local).wrapping_add_signed(addr.offset); 32],
            Base::Dynamic(align) => {
                let start = (self.config.reserved_shared + self.grid.static_shared)
                    .next_multiple_of(align.max(1));
                [u64::from(start).wrapping_add_signed(addr.offset); 32]
            }
        }
    }

    /// Bytes of a block's shared memory that the function at hand may access: behind the user's part lie words of gsan's runtime.
    fn visible_shared(&self) -> u32 {
        let function = self.program.functions.get(self.function as usize);
        if function.is_some_and(|f| f.runtime) {
            self.grid.shared_bytes()
        } else {
            self.grid.user_shared
        }
    }

    /// Where an access of `len` bytes at an address of that space leads.
    pub(super) fn locate(&self, space: Space, address: u64, len: u64) -> Result<Place, Halt> {
        let in_shared = |offset: u64| {
            let rank = offset >> 24 & 0xff;
            let slot = match rank {
                0 => Some(&Some(self.block_slot)),
                r => self.cluster.blocks.get(r as usize - 1),
            };
            let reserved = u64::from(self.config.reserved_shared);
            let fault = Halt::fault(FaultKind::SharedOutOfBounds, address);
            let slot = match slot {
                Some(&Some(slot)) => slot,
                Some(None) => return Err(self.block_gone(rank as u32 - 1, address)),
                None => return Err(fault),
            };
            let room = self.shared[slot].len() as u64;
            let own = u64::from(self.grid.shared_bytes()).min(room);
            let visible = u64::from(self.visible_shared()).min(own);
            let offset_in_block = offset & 0xff_ffff;
            match offset_in_block.checked_sub(reserved) {
                Some(at) if offset < WINDOW && at + len <= visible => Ok(Place::Shared(slot, at)),
                // The system's part lies behind the block's, where the program asks for its address.
                None if offset_in_block + len <= reserved
                    && own + offset_in_block + len <= room =>
                {
                    Ok(Place::Shared(slot, own + offset_in_block))
                }
                _ => Err(fault),
            }
        };
        match space {
            Space::Global => Ok(Place::Global(address)),
            Space::Const if self.is_constant(address) => Ok(Place::Global(address)),
            Space::Const => Err(wrong_space(
                address,
                "ld.const of what is no constant of the module: use ld.global, or ld with a generic address",
            )),
            Space::Shared if self.is_foreign(address) => Err(wrong_space(
                address,
                "shared::cta, which .shared means, is the block's own memory: use .shared::cluster for another block's, and cvta.to.shared \
                 for a generic address",
            )),
            Space::Shared | Space::SharedCluster => in_shared(address),
            Space::Local => self.local(address, len),
            Space::Generic => {
                if address.wrapping_sub(SHARED_WINDOW) < WINDOW {
                    in_shared(address - SHARED_WINDOW)
                } else if address.wrapping_sub(LOCAL_WINDOW) < WINDOW {
                    self.local(address - LOCAL_WINDOW, len)
                } else {
                    Ok(Place::Global(address))
                }
            }
        }
    }

    /// Whether it is an address of another block of the cluster, or a generic one.
    fn is_foreign(&self, address: u64) -> bool {
        let block = address >> 24;
        let of_cluster = (1..=u64::from(self.grid.cluster_size())).contains(&block);
        of_cluster && block != u64::from(self.block.rank) + 1 || address >> 32 != 0
    }

    #[cold]
    fn block_gone(&self, rank: u32, address: u64) -> Halt {
        let detail = format!(
            "block {rank} of the cluster has exited: keep it until the last access, with barrier.cluster"
        );
        Halt::of(FaultKind::ClusterBlockGone, address, detail)
    }

    fn local(&self, address: u64, len: u64) -> Result<Place, Halt> {
        if address
            .checked_add(len)
            .is_some_and(|end| end <= u64::from(self.config.max_local_per_thread))
        {
            Ok(Place::Local(address))
        } else {
            Err(Halt::fault(FaultKind::LocalOutOfBounds, address))
        }
    }

    fn aligned(address: u64, align: u64) -> Result<(), Halt> {
        if address & (align.max(1).next_power_of_two() - 1) == 0 {
            Ok(())
        } else {
            Err(Halt::fault(FaultKind::Misaligned, address))
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn load_row(
        &mut self,
        warp: &Warp,
        space: Space,
        addresses: &Row,
        mem: Mem,
        align: u64,
        mask: u32,
        out: &mut Row,
    ) -> Result<(), Failed> {
        if self.weak.is_some() {
            self.weak_row(warp, space, addresses, mem.bytes, align, mask, out)?;
        } else {
            match mem.bytes {
                1 => self.load_width::<1>(warp, space, addresses, align, mask, out)?,
                2 => self.load_width::<2>(warp, space, addresses, align, mask, out)?,
                4 => self.load_width::<4>(warp, space, addresses, align, mask, out)?,
                _ => self.load_width::<8>(warp, space, addresses, align, mask, out)?,
            }
        }
        if mem.signed {
            out.iter_mut().for_each(|x| *x = widen(*x, mem));
        }
        Ok(())
    }

    fn load_width<const N: usize>(
        &mut self,
        warp: &Warp,
        space: Space,
        addresses: &Row,
        align: u64,
        mask: u32,
        out: &mut Row,
    ) -> Result<(), Failed> {
        let low = align.max(1).next_power_of_two() - 1;
        if space == Space::Shared {
            let memory = &self.shared[self.block_slot][..self.visible_shared() as usize];
            let reserved = u64::from(self.config.reserved_shared);
            let mut done = true;
            lanes!(mask, l, {
                let at = addresses[l].wrapping_sub(reserved) as usize;
                match memory.get(at..at.wrapping_add(N)) {
                    Some(bytes) if addresses[l] & low == 0 => out[l] = word(bytes),
                    _ => done = false,
                }
            });
            if done {
                return Ok(());
            }
        }
        let device = self.block.device;
        let generic = space == Space::Generic;
        let global = generic || space == Space::Global;
        lanes!(mask, l, {
            let address = addresses[l];
            let at = |h: Halt| (h, l as u32);
            if address & low != 0 {
                return Err(at(Halt::fault(FaultKind::Misaligned, address)));
            }
            if global && (!generic || address.wrapping_sub(SHARED_WINDOW) >= 2 * WINDOW) {
                let ptr = self
                    .memory
                    .access(device, address, N as u64, false)
                    .map_err(|f| at(no_global(f)))?;
                // SAFETY: `access` grants that many bytes.
                out[l] = unsafe { read_host(ptr, N as u8) };
            } else {
                out[l] = self
                    .load_lane(warp, space, address, N as u8, l)
                    .map_err(at)?;
            }
        });
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    fn store_row(
        &mut self,
        warp: &mut Warp,
        space: Space,
        addresses: &Row,
        mem: Mem,
        align: u64,
        mask: u32,
        values: &Row,
    ) -> Result<(), Failed> {
        let low = align.max(1).next_power_of_two() - 1;
        let device = self.block.device;
        let generic = space == Space::Generic;
        let global = generic || space == Space::Global;
        lanes!(mask, l, {
            let address = addresses[l];
            let at = |h: Halt| (h, l as u32);
            if address & low != 0 {
                return Err(at(Halt::fault(FaultKind::Misaligned, address)));
            }
            if global
                && (!generic || address.wrapping_sub(SHARED_WINDOW) >= 2 * WINDOW)
                && self.weak.is_none()
            {
                let ptr = self
                    .memory
                    .access(device, address, u64::from(mem.bytes), true)
                    .map_err(|f| at(no_global(f)))?;
                // SAFETY: `access` grants that many bytes.
                unsafe { write_host(ptr, mem.bytes, values[l]) };
            } else {
                self.store_lane(warp, space, address, mem.bytes, values[l], l)
                    .map_err(at)?;
            }
        });
        Ok(())
    }

    /// Writes one lane's value.
    pub(super) fn store_lane(
        &mut self,
        warp: &mut Warp,
        space: Space,
        address: u64,
        bytes: u8,
        value: u64,
        lane: usize,
    ) -> Result<(), Halt> {
        let place = self.locate(space, address, u64::from(bytes))?;
        if self.weak.is_some() && self.weak_store(warp.index, place, bytes, value, lane)? {
            return Ok(());
        }
        match place {
            Place::Global(a) => {
                let ptr = self
                    .memory
                    .access(self.block.device, a, u64::from(bytes), true)
                    .map_err(no_global)?;
                // SAFETY: `access` grants that many bytes.
                unsafe { write_host(ptr, bytes, value) };
            }
            Place::Shared(slot, a) => write_slice(&mut self.shared[slot], a, bytes, value),
            Place::Local(a) => write_local(warp, a, bytes, value, lane),
        }
        Ok(())
    }

    /// Reads one lane's value.
    pub(super) fn load_lane(
        &mut self,
        warp: &Warp,
        space: Space,
        address: u64,
        bytes: u8,
        lane: usize,
    ) -> Result<u64, Halt> {
        let place = self.locate(space, address, u64::from(bytes))?;
        if self.weak.is_some()
            && let Some(value) = self.weak_load(warp.index, place, bytes)?
        {
            return Ok(value);
        }
        Ok(match place {
            Place::Global(a) => {
                let ptr = self
                    .memory
                    .access(self.block.device, a, u64::from(bytes), false)
                    .map_err(no_global)?;
                // SAFETY: `access` grants that many bytes.
                unsafe { read_host(ptr, bytes) }
            }
            Place::Shared(slot, a) => read_slice(&self.shared[slot], a, bytes),
            Place::Local(a) => read_local(warp, a, bytes, lane),
        })
    }

    /// The frame's own variables at constant offsets: parameters of calls, mostly. Whole rows at a time.
    fn load_frame(
        &mut self,
        warp: &mut Warp,
        frame: Frame,
        offset: i64,
        mem: Mem,
        mask: u32,
        out: &mut Row,
    ) -> Result<(), Failed> {
        let a = u64::from(frame.local).wrapping_add_signed(offset);
        let bytes = u64::from(mem.bytes);
        Self::aligned(a, bytes).map_err(|h| (h, mask.trailing_zeros()))?;
        self.local(a, bytes)
            .map_err(|h| (h, mask.trailing_zeros()))?;
        match warp.local.get((a >> 3) as usize) {
            Some(row) if mem.bytes == 8 => *out = *row,
            Some(row) => {
                let shift = 8 * (a & 7);
                *out = row.map(|x| widen(x >> shift & mask_of(mem.bytes), mem));
            }
            None => *out = [0; 32],
        }
        Ok(())
    }

    fn store_frame(
        &mut self,
        warp: &mut Warp,
        frame: Frame,
        offset: i64,
        mem: Mem,
        mask: u32,
        values: &Row,
    ) -> Result<(), Failed> {
        let a = u64::from(frame.local).wrapping_add_signed(offset);
        let bytes = u64::from(mem.bytes);
        Self::aligned(a, bytes).map_err(|h| (h, mask.trailing_zeros()))?;
        self.local(a, bytes)
            .map_err(|h| (h, mask.trailing_zeros()))?;
        grow_local(warp, a + bytes);
        let row = &mut warp.local[(a >> 3) as usize];
        let shift = 8 * (a & 7);
        let keep = mask_of(mem.bytes) << shift;
        lanes!(
            mask,
            l,
            row[l] = (row[l] & !keep) | (values[l] << shift & keep)
        );
        Ok(())
    }
}

#[cold]
fn wrong_space(address: u64, detail: &str) -> Halt {
    Halt::of(FaultKind::WrongSpace, address, detail)
}

/// Why an instruction on global memory finds nothing there.
#[cold]
pub(super) fn no_global(fault: MemoryFault) -> Halt {
    let in_window = |window: u64| fault.address.wrapping_sub(window) < WINDOW;
    let what = match fault.kind {
        FaultKind::OutOfBounds if in_window(SHARED_WINDOW) => "shared",
        FaultKind::OutOfBounds if in_window(LOCAL_WINDOW) => "local",
        _ => return fault.into(),
    };
    let detail = format!(
        "a .global instruction on a generic address of {what} memory: use the instruction without a state space, or .{what} behind cvta.to.{what}"
    );
    Halt::of(FaultKind::WrongSpace, fault.address, detail)
}

fn mask_of(bytes: u8) -> u64 {
    u64::MAX >> (64 - 8 * u32::from(bytes.clamp(1, 8)))
}

fn widen(value: u64, mem: Mem) -> u64 {
    if mem.signed {
        extend(value, u32::from(mem.bytes), true, u32::from(mem.register))
    } else {
        value
    }
}

/// Makes room up to byte `end` of local memory.
pub fn grow_local(warp: &mut Warp, end: u64) {
    let rows = end.div_ceil(8) as usize;
    if warp.local.len() < rows {
        warp.local.resize(rows.next_multiple_of(16), [0; 32]);
    }
}

/// # Safety
/// `ptr` must be valid for `bytes` bytes.
#[inline(always)]
unsafe fn read_host(ptr: *const u8, bytes: u8) -> u64 {
    // SAFETY: the caller's promise.
    unsafe {
        match bytes {
            1 => u64::from(ptr.read()),
            2 => u64::from(ptr.cast::<u16>().read_unaligned()),
            4 => u64::from(ptr.cast::<u32>().read_unaligned()),
            _ => ptr.cast::<u64>().read_unaligned(),
        }
    }
}

/// # Safety
/// `ptr` must be valid for `bytes` bytes.
#[inline(always)]
unsafe fn write_host(ptr: *mut u8, bytes: u8, value: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        match bytes {
            1 => ptr.write(value as u8),
            2 => ptr.cast::<u16>().write_unaligned(value as u16),
            4 => ptr.cast::<u32>().write_unaligned(value as u32),
            _ => ptr.cast::<u64>().write_unaligned(value),
        }
    }
}

/// The little-endian word in 1, 2, 4 or 8 bytes. (Not by way of an array of eight: the narrow store before the wide load stalls.)
#[inline(always)]
fn word(bytes: &[u8]) -> u64 {
    match *bytes {
        [a] => u64::from(a),
        [a, b] => u64::from(u16::from_le_bytes([a, b])),
        [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => 0,
    }
}

fn read_slice(memory: &[u8], at: u64, bytes: u8) -> u64 {
    let at = at as usize;
    memory
        .get(at..at.wrapping_add(usize::from(bytes.min(8))))
        .map_or(0, word)
}

fn write_slice(memory: &mut [u8], at: u64, bytes: u8, value: u64) {
    let n = usize::from(bytes.min(8));
    if let Some(to) = memory.get_mut(at as usize..at as usize + n) {
        to.copy_from_slice(&value.to_le_bytes()[..n]);
    }
}

/// Reads local memory byte-wise where the value crosses a word.
pub fn read_local(warp: &Warp, at: u64, bytes: u8, lane: usize) -> u64 {
    let word = |i: u64| warp.local.get(i as usize).map_or(0, |r| r[lane]);
    let shift = 8 * (at & 7);
    let low = word(at >> 3) >> shift;
    let value = if shift == 0 {
        low
    } else {
        low | word((at >> 3) + 1) << (64 - shift)
    };
    value & mask_of(bytes)
}

/// Writes local memory.
pub fn write_local(warp: &mut Warp, at: u64, bytes: u8, value: u64, lane: usize) {
    grow_local(warp, at + u64::from(bytes));
    for i in 0..u64::from(bytes.min(8)) {
        let (row, shift) = (((at + i) >> 3) as usize, 8 * ((at + i) & 7));
        let word = &mut warp.local[row][lane];
        *word = (*word & !(0xff << shift)) | (value >> (8 * i) & 0xff) << shift;
    }
}
