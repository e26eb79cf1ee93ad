//! Looking into the detector's state, for tests and for curious users. Every call waits for the devices first, which
//! orders nothing as far as the checked program is concerned.

use super::Checked;
use super::Session;
use crate::cell_format::CellFormat;
use crate::driver::{Device, copy_to_host};
use crate::error::{Error, Result};
use crate::inspection::{self, ThreadView, WordView};
use crate::request::StreamId;
use crate::rows::addresses;
use crate::runtime_state::read;
use bytemuck::{Pod, Zeroable};
use gsan_device::layout::{
    Counters, Epoch, GlobalState, ShadowCell, Snapshot, Tenant, ThreadState, WORD, WideCell,
};
use std::collections::HashMap;

/// A logical thread's state with its clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadClock {
    /// The header.
    pub state: ThreadState,
    /// What the thread knows of each logical thread, its own epoch included.
    pub clock: Vec<Epoch>,
}

/// A word's shadow, as the session's format keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellState {
    /// See [`WideCell`].
    Wide(WideCell),
    /// See [`ShadowCell`].
    Reference(ShadowCell),
}

impl Session {
    fn quiet(&mut self) -> Result<()> {
        let _armed = self.begin()?;
        for device in 0..self.devices.len() as u32 {
            let waited = self.wait_for_device(device);
            self.noted(waited)?;
        }
        Ok(())
    }

    /// A buffer's bytes as they are when all work has ended: no access of the checked program, unlike [`Session::read`].
    pub fn contents(&mut self, address: u64, bytes: u64) -> Result<Vec<u8>> {
        self.quiet()?;
        let device = self.bounds(address, bytes)?;
        let mut data = vec![0; bytes as usize];
        let result = copy_to_host(self.device(device)?, &mut data, address);
        self.noted(result)?;
        Ok(data)
    }

    /// The shadow cell of the word that holds `address`; `None` where nothing is checked.
    pub fn shadow_cell(&mut self, address: u64) -> Result<Option<CellState>> {
        self.quiet()?;
        let Some(checked) = &self.checked else {
            return Ok(None);
        };
        let Some(cell) = self.cell_address(checked, address) else {
            return Ok(None);
        };
        let device = self.device(0)?;
        Ok(Some(match checked.reservation.layout().format {
            CellFormat::Wide => CellState::Wide(read(device, cell)?),
            CellFormat::Reference => CellState::Reference(read(device, cell)?),
        }))
    }

    /// Where the cell of the word at `address` is: of a live buffer or of a module's variable.
    fn cell_address(&self, checked: &Checked, address: u64) -> Option<u64> {
        let layout = checked.reservation.layout();
        if layout.cell(address).is_some() {
            // Elsewhere in the reservation nothing is mapped.
            return self.bounds(address, 1).ok().and(layout.cell(address));
        }
        let range = self.variable_range(address)?;
        let words = address / WORD - range.start / WORD;
        Some(range.shadow + words * layout.format.cell_bytes())
    }

    /// The words from `address` on that lie in `bytes` bytes, with what the shadow keeps of them; `None` where nothing is
    /// checked. The range lies in one buffer or variable.
    pub fn describe_words(&mut self, address: u64, bytes: u64) -> Result<Option<Vec<WordView>>> {
        self.quiet()?;
        self.bounds(address, bytes)?;
        let Some(checked) = &self.checked else {
            return Ok(None);
        };
        let Some(cell) = self.cell_address(checked, address) else {
            return Ok(None);
        };
        let first = address / WORD * WORD;
        let count = (address + bytes).div_ceil(WORD) - first / WORD;
        self.decode(checked, first, cell, count).map(Some)
    }

    /// Reads and decodes `count` cells that lie side by side, from `cell`, which is that of the word at `first`.
    pub(super) fn decode(
        &self,
        checked: &Checked,
        first: u64,
        cell: u64,
        count: u64,
    ) -> Result<Vec<WordView>> {
        let device = self.device(0)?;
        let names = self.names();
        let mut state = Reader {
            checked,
            device,
            tenants: HashMap::new(),
        };
        let words = (0..count).map(|n| first + n * WORD);
        match checked.reservation.layout().format {
            CellFormat::Wide => words
                .zip(cells::<WideCell>(device, cell, count)?)
                .map(|(at, cell)| inspection::wide(at, &cell, &mut state, &names))
                .collect(),
            CellFormat::Reference => words
                .zip(cells::<ShadowCell>(device, cell, count)?)
                .map(|(at, cell)| inspection::reference(at, &cell, &mut state, &names))
                .collect(),
        }
    }

    /// Logical thread `id` with its clock and the blocks that have been it; `None` if there is no such thread.
    pub fn describe_thread(&mut self, id: u32) -> Result<Option<ThreadView>> {
        let Some(ThreadClock { state, clock }) = self.thread_state(id)? else {
            return Ok(None);
        };
        let Some(checked) = &self.checked else {
            return Ok(None);
        };
        let shape = checked.runtime.shape;
        let within = id % shape.threads_per_device().max(1);
        let names = self.names();
        let tenants = history(checked, self.device(0)?, id)?;
        Ok(Some(ThreadView {
            id,
            device: id / shape.threads_per_device().max(1),
            sm: within / shape.slots_per_sm.max(1),
            slot: within % shape.slots_per_sm.max(1),
            state,
            clock: inspection::nonzero(&clock),
            // Of a clock that is its launch's, they are what earlier tenants left.
            warps: match state.clock_mode {
                2 => inspection::partials(&state.partials),
                _ => Vec::new(),
            },
            tenants: tenants
                .iter()
                .map(|t| inspection::tenant(t, &names))
                .collect(),
        }))
    }

    /// The state of logical thread `id`; `None` if there is no such thread.
    pub fn thread_state(&mut self, id: u32) -> Result<Option<ThreadClock>> {
        self.quiet()?;
        let device = self.device(0)?;
        let Some(checked) = self
            .checked
            .as_ref()
            .filter(|c| id < c.runtime.shape.num_threads())
        else {
            return Ok(None);
        };
        let num_threads = checked.runtime.shape.num_threads();
        let address = checked.runtime.thread_address(id);
        let state: ThreadState = read(device, address)?;
        // The base row may have been used again since; the clock is exact for threads with a clock of their own.
        let row = match state.clock_mode {
            2 => address + ThreadState::CLOCK,
            _ => state.base_row,
        };
        let mut clock = match row {
            0 => vec![0; num_threads as usize],
            row => self.row(row, num_threads)?,
        };
        if let Some(own) = clock.get_mut(id as usize) {
            *own = state.epoch;
        }
        Ok(Some(ThreadClock { state, clock }))
    }

    /// The clock that the stream's next launch inherits.
    pub fn stream_clock(&mut self, stream: StreamId) -> Result<Vec<Epoch>> {
        self.quiet()?;
        self.slot(stream)?;
        let Some(num_threads) = self.checked.as_ref().map(|c| c.runtime.shape.num_threads()) else {
            return Ok(Vec::new());
        };
        let mut clock = vec![0; num_threads as usize];
        for address in addresses(&self.clocks.issue(stream.0 as usize)) {
            for (known, other) in clock.iter_mut().zip(self.row(address, num_threads)?) {
                *known = other.max(*known);
            }
        }
        Ok(clock)
    }

    fn row(&self, address: u64, num_threads: u32) -> Result<Vec<Epoch>> {
        let mut row = vec![0; num_threads as usize];
        copy_to_host(self.device(0)?, bytemuck::cast_slice_mut(&mut row), address)?;
        Ok(row)
    }

    /// A device's global state; `None` where nothing is checked.
    pub fn global_state(&mut self, device: u32) -> Result<Option<GlobalState>> {
        self.quiet()?;
        self.per_device(device, |d| d.global_state())
    }

    /// A device's tallies; `None` where nothing is checked.
    pub fn counters(&mut self, device: u32) -> Result<Option<Counters>> {
        self.quiet()?;
        self.per_device(device, |d| d.counters())
    }

    fn per_device<T>(
        &self,
        device: u32,
        get: impl FnOnce(&crate::runtime_state::DeviceState) -> Result<T>,
    ) -> Result<Option<T>> {
        let Some(checked) = &self.checked else {
            return Ok(None);
        };
        let count = checked.runtime.devices.len() as u32;
        let state = checked
            .runtime
            .devices
            .get(device as usize)
            .ok_or(Error::NoSuchDevice {
                wanted: device,
                count,
            })?;
        get(state).map(Some)
    }
}

/// Reads what the decoder asks for. The devices are quiet.
struct Reader<'a> {
    checked: &'a Checked,
    device: &'a Device,
    tenants: HashMap<u32, Vec<Tenant>>,
}

impl inspection::State for Reader<'_> {
    type Error = Error;

    fn tenants(&mut self, thread: u32) -> Result<Vec<Tenant>> {
        if let Some(known) = self.tenants.get(&thread) {
            return Ok(known.clone());
        }
        let tenants = history(self.checked, self.device, thread)?;
        self.tenants.insert(thread, tenants.clone());
        Ok(tenants)
    }

    fn snapshot(&mut self, thread: u32, token: u32) -> Result<Option<(Snapshot, Vec<Epoch>)>> {
        let shape = self.checked.runtime.shape;
        let num_threads = shape.num_threads();
        let Some(place) = token.checked_rem(shape.clock_buffer_size) else {
            return Ok(None);
        };
        if thread >= num_threads {
            return Ok(None);
        }
        let address = self.checked.runtime.thread_address(thread)
            + ThreadState::ring_offset(num_threads)
            + u64::from(place) * Snapshot::stride(num_threads);
        let snapshot = read(self.device, address)?;
        let clock = cells(
            self.device,
            address + size_of::<Snapshot>() as u64,
            u64::from(num_threads),
        )?;
        Ok(Some((snapshot, clock)))
    }

    fn newest_token(&mut self, thread: u32) -> Result<u32> {
        if thread >= self.checked.runtime.shape.num_threads() {
            return Ok(0);
        }
        let address = self.checked.runtime.thread_address(thread);
        Ok(read::<ThreadState>(self.device, address)?.ring_head)
    }
}

/// A thread's tenants, latest first; none if there is no such thread.
fn history(checked: &Checked, device: &Device, thread: u32) -> Result<Vec<Tenant>> {
    let shape = checked.runtime.shape;
    if thread >= shape.num_threads() {
        return Ok(Vec::new());
    }
    let address = checked.runtime.thread_address(thread);
    let state: ThreadState = read(device, address)?;
    let at = address + ThreadState::history_offset(shape.num_threads(), shape.clock_buffer_size);
    let ring = cells::<Tenant>(device, at, u64::from(ThreadState::HISTORY))?;
    Ok(inspection::in_order(&ring, state.tenants))
}

/// Reads `count` values that lie side by side.
fn cells<T: Pod + Zeroable>(device: &Device, address: u64, count: u64) -> Result<Vec<T>> {
    let mut values = vec![T::zeroed(); count as usize];
    copy_to_host(device, bytemuck::cast_slice_mut(&mut values), address)?;
    Ok(values)
}
