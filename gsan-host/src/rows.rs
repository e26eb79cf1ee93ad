//! Memory for clock rows, and the joins that the host's calls on paper (`clocks.rs`) need on the device.
//!
//! A row's memory goes back to its pool when nobody refers to it any more: no stream, event or host frontier, and no
//! launch that may still run. It is used again as late as possible: a device thread may still hold the address of the
//! row that its last block inherited, and what it finds there must at least be a row.

use crate::clocks::{Clocks, Frontier, Row};
use crate::driver::{Device, DeviceMemory, Function, Stream, copy_async, fill_async};
use crate::error::Result;
use cuda_lazy::ext::CUlaunchConfig;
use gsan_device::layout::Handover;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// One device's row memory.
pub(crate) struct RowPool {
    device: Rc<Device>,
    row_bytes: u64,
    /// Never used.
    fresh: RefCell<Vec<u64>>,
    /// Used before, oldest first.
    free: RefCell<VecDeque<u64>>,
    slabs: RefCell<Vec<DeviceMemory>>,
    /// All zero, never written: what the first launches inherit.
    zero: u64,
}

/// A row's memory; goes back to the pool when dropped.
pub(crate) struct Storage {
    pool: Rc<RowPool>,
    /// Its address.
    pub(crate) address: u64,
}

impl Drop for Storage {
    fn drop(&mut self) {
        self.pool.free.borrow_mut().push_back(self.address);
    }
}

/// A row in memory.
pub(crate) type StoredRow = Row<Storage>;

impl RowPool {
    /// A pool of rows of `num_threads` epochs.
    pub(crate) fn new(device: &Rc<Device>, num_threads: u32) -> Result<Rc<RowPool>> {
        let row_bytes = Handover::row_bytes(num_threads).next_multiple_of(256);
        let zero = DeviceMemory::zeroed(device, row_bytes)?;
        let address = zero.address;
        Ok(Rc::new(RowPool {
            device: device.clone(),
            row_bytes,
            fresh: RefCell::default(),
            free: RefCell::default(),
            slabs: RefCell::new(vec![zero]),
            zero: address,
        }))
    }

    /// The row that the first launches inherit.
    pub(crate) fn beginning(&self) -> u64 {
        self.zero
    }

    /// How many free rows are kept before one is used again.
    fn quarantine(&self) -> usize {
        const BYTES: u64 = 64 << 20;
        (BYTES / self.row_bytes).clamp(64, 4096) as usize
    }

    fn take(self: &Rc<Self>) -> Result<Storage> {
        const SLAB: u64 = 64;
        let mut free = self.free.borrow_mut();
        if free.len() > self.quarantine()
            && let Some(address) = free.pop_front()
        {
            return Ok(Storage {
                pool: self.clone(),
                address,
            });
        }
        let mut fresh = self.fresh.borrow_mut();
        let address = match fresh.pop() {
            Some(address) => address,
            None => {
                let slab = DeviceMemory::new(&self.device, SLAB * self.row_bytes)?;
                let address = slab.address;
                fresh.extend((1..SLAB).map(|i| address + i * self.row_bytes));
                self.slabs.borrow_mut().push(slab);
                address
            }
        };
        Ok(Storage {
            pool: self.clone(),
            address,
        })
    }
}

/// Issues `to[i] = max(to[i], from[i])` for `n` epochs: the runtime's `__gsan_join_rows(dst, src, n)`.
fn join(function: Function, to: u64, from: u64, n: u32, stream: &Stream) -> Result<()> {
    const THREADS: u32 = 256;
    stream.enter()?;
    let mut params = [
        to.to_le_bytes().to_vec(),
        from.to_le_bytes().to_vec(),
        n.to_le_bytes().to_vec(),
    ];
    let config = CUlaunchConfig {
        gridDimX: n.div_ceil(THREADS).clamp(1, 64),
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: THREADS,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        hStream: stream.raw(),
        attrs: std::ptr::null_mut(),
        numAttrs: 0,
    };
    // SAFETY: the caller's function is the join kernel, whose parameters are these, of a module that stays loaded; the
    // stream is alive and its context was just entered.
    unsafe { function.launch(config, &mut [], &mut params) }
}

/// The rows of one launch: kept until the launch is over.
pub(crate) struct LaunchRows {
    /// Address of what it inherits.
    pub(crate) base: u64,
    /// Address of what it publishes.
    pub(crate) out: u64,
    /// Address of what it knows once it has waited for the launch before; 0: it knows that from the start.
    pub(crate) wait: u64,
    /// Whether the launch before may tell it to begin with another row ([`Handover`]).
    pub(crate) chained: bool,
    // Inputs, the base and the out row.
    _kept: Vec<Rc<StoredRow>>,
    // Other devices' rows, copied for a join.
    _copies: Vec<Storage>,
}

/// Makes the rows for a launch on `stream` (number `index`), in the stream: a base row out of everything it inherits,
/// and an out row that starts as a copy of it. From then on the stream knows the out row. `joiner` is the join kernel on
/// this device; it may be missing where at most one row is inherited.
pub(crate) fn rows_for_launch(
    clocks: &mut Clocks<Storage>,
    pool: &Rc<RowPool>,
    index: usize,
    stream: &Stream,
    num_threads: u32,
    joiner: Option<Function>,
) -> Result<LaunchRows> {
    let bytes = 4 * u64::from(num_threads);
    let inherited = clocks.issue(index);
    let mut kept = inherited.rows().to_vec();
    let mut copies = Vec::new();
    let mut knew = inherited.rows().first().cloned();
    let base = match inherited.rows() {
        [] => pool.zero,
        // A row of another device is copied here, so that the kernel reads near memory.
        [row] if Rc::ptr_eq(&row.storage.pool, pool) => row.storage.address,
        [first, rest @ ..] => {
            let joined = pool.take()?;
            let address = joined.address;
            copy_async(address, first.storage.address, bytes, stream)?;
            for row in rest {
                let Some(function) = joiner else { continue };
                if Rc::ptr_eq(&row.storage.pool, pool) {
                    join(function, address, row.storage.address, num_threads, stream)?;
                } else {
                    let near = pool.take()?;
                    copy_async(near.address, row.storage.address, bytes, stream)?;
                    join(function, address, near.address, num_threads, stream)?;
                    copies.push(near);
                }
            }
            let joined = clocks.publish(index, joined, &inherited);
            knew = Some(joined.clone());
            kept.push(joined);
            address
        }
    };
    let out = pool.take()?;
    let out_address = out.address;
    copy_async(out_address, base, bytes, stream)?;
    let inherited = clocks.issue(index);
    let row = clocks.publish(index, out, &inherited);
    clocks.kernel_issued(index, knew, row.clone());
    kept.push(row);
    Ok(LaunchRows {
        base,
        out: out_address,
        wait: 0,
        chained: false,
        _kept: kept,
        _copies: copies,
    })
}

/// The same for a launch that may start before the one before it in the stream has ended. Nothing may come between the two in
/// the stream, so its out row, and what is behind it, is zero at first, which `aside`, another stream, makes it; the host waits for that. `None`:
/// something has to be done in the stream first, and it is an ordinary launch.
pub(crate) fn rows_for_dependent(
    clocks: &mut Clocks<Storage>,
    pool: &Rc<RowPool>,
    index: usize,
    aside: &Stream,
    num_threads: u32,
) -> Result<Option<LaunchRows>> {
    let Some(dependence) = clocks.dependence(index) else {
        return Ok(None);
    };
    let mut kept = vec![dependence.wait.clone()];
    kept.extend(dependence.base.clone());
    kept.extend(dependence.handed.iter().cloned());
    if !kept.iter().all(|r| Rc::ptr_eq(&r.storage.pool, pool)) {
        return Ok(None);
    }
    let base = dependence.base.as_deref();
    let base_address = base.map_or(pool.zero, |row| row.storage.address);
    let wait_address = dependence.wait.storage.address;
    let chained = !dependence.handed.is_empty();
    let out = pool.take()?;
    let out_address = out.address;
    fill_async(out_address, 0, Handover::row_bytes(num_threads), aside)?;
    let row = clocks.publish_dependent(index, out, base);
    kept.push(row.clone());
    clocks.dependent_issued(index, dependence, row);
    Ok(Some(LaunchRows {
        base: base_address,
        out: out_address,
        wait: wait_address,
        chained,
        _kept: kept,
        _copies: Vec::new(),
    }))
}

/// What the stream's next launch would inherit, for inspection: the rows' addresses.
pub(crate) fn addresses(frontier: &Frontier<Storage>) -> Vec<u64> {
    frontier
        .rows()
        .iter()
        .map(|row| row.storage.address)
        .collect()
}
