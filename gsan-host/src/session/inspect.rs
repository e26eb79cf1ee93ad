//! Looking into the detector's state, for tests and for curious users. Every call waits for the devices first, which
//! orders nothing as far as the checked program is concerned.

use super::Session;
use crate::cell_format::CellFormat;
use crate::driver::copy_to_host;
use crate::error::{Error, Result};
use crate::request::StreamId;
use crate::rows::addresses;
use crate::runtime_state::read;
use gsan_device::layout::{Counters, Epoch, GlobalState, ShadowCell, ThreadState, WideCell};

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
        let layout = checked.reservation.layout();
        let Some(cell) = layout.cell(address) else {
            return Ok(None);
        };
        let device = self.device(0)?;
        Ok(Some(match layout.format {
            CellFormat::Wide => CellState::Wide(read(device, cell)?),
            CellFormat::Reference => CellState::Reference(read(device, cell)?),
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
