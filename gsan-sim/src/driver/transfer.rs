//! `cuMemcpy*`, `cuMemset*` and the stream memory operations: what is checked and when the caller waits.
//!
//! * A copy is an operation of its stream; one without a stream belongs to the legacy default stream.
//! * Synchronous calls that touch host memory return when they are done; from device to device, and fills of device
//!   memory, only queue, as on a GPU.
//! * Asynchronous copies from pageable host memory take the bytes at once; those to pageable host memory wait.

use super::api::{In, Session, bytes, driver_api};
use super::codes::{Answer, Code};
use super::copy::{Copy, Fill, Place, Side, WaitValue, locate, permitted};
use super::queue::{OpId, Work};
use super::state::{Driver, Handle};
use crate::machine::RegionKind;

/// When a call returns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Synchronous,
    InStream(Handle),
}

impl Mode {
    fn stream(self) -> Handle {
        match self {
            Mode::Synchronous => super::state::LEGACY_STREAM,
            Mode::InStream(stream) => stream,
        }
    }
}

/// What a call says of an address of its: that it must be the device's, or may be either's.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Expect {
    Machine,
    Any,
}

/// Any copy.
fn transfer(session: &mut Session, copy: Copy, expect: (Expect, Expect), mode: Mode) -> Answer {
    let (driver, context) = session.healthy()?;
    if copy.width == 0 || copy.height == 0 || copy.depth == 0 {
        driver.stream(context, mode.stream())?;
        return Ok(());
    }
    let (to, from) = check_copy(driver, &copy, expect)?;
    let captured = driver.is_captured(context, mode.stream())?;
    let memory = driver.machine.memory();
    let on_host = |address| {
        memory
            .region(address)
            .is_none_or(|region| region.kind == RegionKind::Host)
    };
    let touches_host = on_host(copy.to.address) || on_host(copy.from.address);

    // A node of a graph copies what is there when it runs.
    let staged = from == Place::Host
        && to == Place::Machine
        && copy.height == 1
        && copy.depth == 1
        && !captured;
    let work = match (mode, staged) {
        (Mode::InStream(_), true) => {
            let len = usize::try_from(copy.width).map_err(|_| Code::INVALID_VALUE)?;
            // SAFETY: the caller vouches for the source during the call; `locate` has refused null.
            let bytes = unsafe { bytes(copy.from.address, len) }.to_vec();
            Work::Write {
                to: copy.to.address,
                bytes,
            }
        }
        _ => Work::Copy(copy),
    };
    let op = driver.submit(context, mode.stream(), work, &[])?;
    let wait = match mode {
        Mode::Synchronous => touches_host,
        Mode::InStream(_) => !staged && (from == Place::Host || to == Place::Host),
    };
    finish(session, context, op, wait)
}

/// Whether a copy can be done: whose memory its target and its source are.
pub(super) fn check_copy(
    driver: &Driver,
    copy: &Copy,
    expect: (Expect, Expect),
) -> Answer<(Place, Place)> {
    let memory = driver.machine.memory();
    if !copy.is_possible(memory) {
        return Err(Code::INVALID_VALUE);
    }
    let to = locate(memory, copy.to.address, 1).map_err(|_| Code::INVALID_VALUE)?;
    let from = locate(memory, copy.from.address, 1).map_err(|_| Code::INVALID_VALUE)?;
    for (expected, found) in [(expect.0, to), (expect.1, from)] {
        if expected == Expect::Machine && found == Place::Host {
            return Err(Code::INVALID_VALUE);
        }
    }
    Ok((to, from))
}

fn finish(session: &mut Session, context: Handle, op: OpId, wait: bool) -> Answer {
    if wait {
        session.wait(context, &[op])
    } else {
        Ok(())
    }
}

fn linear(
    session: &mut Session,
    to: u64,
    from: u64,
    len: usize,
    expect: (Expect, Expect),
    mode: Mode,
) -> Answer {
    transfer(session, Copy::linear(to, from, len as u64), expect, mode)
}

fn memset(session: &mut Session, fill: Fill, mode: Mode) -> Answer {
    let (driver, context) = session.healthy()?;
    if fill.count == 0 || fill.height == 0 {
        driver.stream(context, mode.stream())?;
        return Ok(());
    }
    check_fill(driver, &fill)?;
    let memory = driver.machine.memory();
    let on_host = memory
        .region(fill.to)
        .is_some_and(|region| region.kind == RegionKind::Host);
    let op = driver.submit(context, mode.stream(), Work::Fill(fill), &[])?;
    finish(session, context, op, mode == Mode::Synchronous && on_host)
}

/// Whether a fill can be done.
pub(super) fn check_fill(driver: &Driver, fill: &Fill) -> Answer {
    let width = fill.pattern.len() as u64;
    let len = fill.count.checked_mul(width).ok_or(Code::INVALID_VALUE)?;
    if !fill.to.is_multiple_of(width) || (fill.height > 1 && fill.pitch < len) {
        return Err(Code::INVALID_VALUE);
    }
    let memory = driver.machine.memory();
    for y in 0..fill.height {
        let row = fill.to.wrapping_add(fill.pitch.wrapping_mul(y));
        if memory.check(row, len).is_err() || !permitted(memory, row, len, true) {
            return Err(Code::INVALID_VALUE);
        }
    }
    Ok(())
}

fn row_of<const N: usize>(to: u64, pattern: [u8; N], count: usize) -> Fill {
    Fill {
        to,
        pattern: pattern.to_vec(),
        count: count as u64,
        pitch: 0,
        height: 1,
    }
}

fn rows_of<const N: usize>(
    to: u64,
    pitch: usize,
    pattern: [u8; N],
    width: usize,
    height: usize,
) -> Fill {
    Fill {
        to,
        pattern: pattern.to_vec(),
        count: width as u64,
        pitch: pitch as u64,
        height: height as u64,
    }
}

/// One end of `CUDA_MEMCPY2D`.
#[derive(Clone, Copy)]
#[repr(C)]
struct End2D {
    x: usize,
    y: usize,
    memory_type: u32,
    host: u64,
    device: u64,
    array: u64,
    pitch: usize,
}

/// `CUDA_MEMCPY2D`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Copy2D {
    from: End2D,
    to: End2D,
    width: usize,
    height: usize,
}

/// One end of `CUDA_MEMCPY3D`.
#[derive(Clone, Copy)]
#[repr(C)]
struct End3D {
    x: usize,
    y: usize,
    z: usize,
    lod: usize,
    memory_type: u32,
    host: u64,
    device: u64,
    array: u64,
    reserved: u64,
    pitch: usize,
    height: usize,
}

/// `CUDA_MEMCPY3D`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Copy3D {
    from: End3D,
    to: End3D,
    width: usize,
    height: usize,
    depth: usize,
}

const _: () = assert!(size_of::<Copy2D>() == 128 && size_of::<Copy3D>() == 200);

impl End2D {
    /// With an array's memory in its place, if it is one.
    fn resolved(mut self, driver: &Driver) -> Answer<End2D> {
        if self.memory_type == ARRAY {
            let image = driver.image(self.array)?;
            self.memory_type = DEVICE;
            (self.device, self.pitch) = (image.address, image.pitch as usize);
        }
        Ok(self)
    }
}

impl End3D {
    /// The same.
    fn resolved(mut self, driver: &Driver) -> Answer<End3D> {
        if self.memory_type == ARRAY {
            let image = driver.image(self.array)?;
            self.memory_type = DEVICE;
            (self.device, self.pitch) = (image.address, image.pitch as usize);
            self.height = image.extents[1].max(1) as usize;
        }
        Ok(self)
    }
}

/// Memory types.
const DEVICE: u32 = 2;
const ARRAY: u32 = 3;

/// The base address by memory type: 1 host, 2 device, 3 array (elsewhere), 4 unified.
fn base(memory_type: u32, host: u64, device: u64) -> Answer<(u64, Expect)> {
    match memory_type {
        1 => Ok((host, Expect::Any)),
        2 => Ok((device, Expect::Machine)),
        3 => Err(Code::NOT_SUPPORTED),
        4 => Ok((device, Expect::Any)),
        _ => Err(Code::INVALID_VALUE),
    }
}

/// A side at an offset of x bytes, y rows and z slices.
fn side(base: u64, [x, y, z]: [usize; 3], pitch: u64, slice: u64) -> Answer<Side> {
    let address = (y as u64)
        .checked_mul(pitch)
        .and_then(|y| y.checked_add((z as u64).checked_mul(slice)?))
        .and_then(|offset| offset.checked_add(x as u64))
        .and_then(|offset| base.checked_add(offset))
        .ok_or(Code::INVALID_VALUE)?;
    Ok(Side {
        address,
        pitch,
        slice,
    })
}

fn copy_2d(session: &mut Session, what: &In<Copy2D>, mode: Mode) -> Answer {
    let Copy2D {
        from,
        to,
        width,
        height,
    } = what.get()?;
    let (driver, _) = session.healthy()?;
    let (from, to) = (from.resolved(driver)?, to.resolved(driver)?);
    let end = |end: End2D| -> Answer<(Side, Expect)> {
        let (base, expect) = base(end.memory_type, end.host, end.device)?;
        let pitch = if end.pitch == 0 { width } else { end.pitch };
        if pitch < width {
            return Err(Code::INVALID_VALUE);
        }
        Ok((side(base, [end.x, end.y, 0], pitch as u64, 0)?, expect))
    };
    let ((from, from_expect), (to, to_expect)) = (end(from)?, end(to)?);
    let copy = Copy {
        to,
        from,
        width: width as u64,
        height: height as u64,
        depth: 1,
    };
    transfer(session, copy, (to_expect, from_expect), mode)
}

impl Copy3D {
    /// The copy, and what is said of its target's and its source's address.
    pub(super) fn parse(self) -> Answer<(Copy, (Expect, Expect))> {
        let Copy3D {
            from,
            to,
            width,
            height,
            depth,
        } = self;
        let end = |end: End3D| -> Answer<(Side, Expect)> {
            let (base, expect) = base(end.memory_type, end.host, end.device)?;
            let pitch = if end.pitch == 0 { width } else { end.pitch } as u64;
            let rows = if end.height == 0 { height } else { end.height } as u64;
            if pitch < width as u64 || rows < height as u64 {
                return Err(Code::INVALID_VALUE);
            }
            let slice = pitch.checked_mul(rows).ok_or(Code::INVALID_VALUE)?;
            Ok((side(base, [end.x, end.y, end.z], pitch, slice)?, expect))
        };
        let ((from, from_expect), (to, to_expect)) = (end(from)?, end(to)?);
        let copy = Copy {
            to,
            from,
            width: width as u64,
            height: height as u64,
            depth: depth as u64,
        };
        Ok((copy, (to_expect, from_expect)))
    }
}

fn copy_3d(session: &mut Session, what: &In<Copy3D>, mode: Mode) -> Answer {
    let mut what = what.get()?;
    let (driver, _) = session.healthy()?;
    (what.from, what.to) = (what.from.resolved(driver)?, what.to.resolved(driver)?);
    let (copy, expect) = what.parse()?;
    transfer(session, copy, expect, mode)
}

/// Byte `offset` of an array.
fn in_array(session: &mut Session, array: Handle, offset: usize) -> Answer<u64> {
    let (driver, _) = session.healthy()?;
    let address = driver.image(array)?.address;
    address
        .checked_add(offset as u64)
        .ok_or(Code::INVALID_VALUE)
}

fn write_value(session: &mut Session, stream: Handle, address: u64, value: &[u8]) -> Answer {
    let (driver, context) = session.healthy()?;
    check_word(driver.machine.memory(), address, value.len())?;
    let work = Work::Write {
        to: address,
        bytes: value.to_vec(),
    };
    driver.submit(context, stream, work, &[]).map(|_| ())
}

fn wait_value(session: &mut Session, stream: Handle, wait: WaitValue) -> Answer {
    let (driver, context) = session.healthy()?;
    check_word(driver.machine.memory(), wait.address, wait.bytes)?;
    driver
        .submit(context, stream, Work::WaitValue(wait), &[])
        .map(|_| ())
}

fn check_word(memory: &crate::machine::Memory, address: u64, bytes: usize) -> Answer {
    if !address.is_multiple_of(bytes as u64) || memory.check(address, bytes as u64).is_err() {
        return Err(Code::INVALID_VALUE);
    }
    Ok(())
}

use Expect::{Any, Machine};
use Mode::{InStream, Synchronous};

driver_api! {
    fn cuMemcpy(s, to: u64, from: u64, len: usize) { linear(s, to, from, len, (Any, Any), Synchronous) }
    fn cuMemcpyAsync(s, to: u64, from: u64, len: usize, stream: Handle) {
        linear(s, to, from, len, (Any, Any), InStream(stream))
    }
    fn cuMemcpyPeer(s, to: u64, _to_context: Handle, from: u64, _from_context: Handle, len: usize) {
        linear(s, to, from, len, (Machine, Machine), Synchronous)
    }
    fn cuMemcpyPeerAsync(s, to: u64, _to_context: Handle, from: u64, _from_context: Handle, len: usize, stream: Handle) {
        linear(s, to, from, len, (Machine, Machine), InStream(stream))
    }
    fn cuMemcpyHtoD_v2(s, to: u64, from: u64, len: usize) {
        linear(s, to, from, len, (Machine, Any), Synchronous)
    }
    fn cuMemcpyHtoDAsync_v2(s, to: u64, from: u64, len: usize, stream: Handle) {
        linear(s, to, from, len, (Machine, Any), InStream(stream))
    }
    fn cuMemcpyDtoH_v2(s, to: u64, from: u64, len: usize) {
        linear(s, to, from, len, (Any, Machine), Synchronous)
    }
    fn cuMemcpyDtoHAsync_v2(s, to: u64, from: u64, len: usize, stream: Handle) {
        linear(s, to, from, len, (Any, Machine), InStream(stream))
    }
    fn cuMemcpyDtoD_v2(s, to: u64, from: u64, len: usize) {
        linear(s, to, from, len, (Machine, Machine), Synchronous)
    }
    fn cuMemcpyDtoDAsync_v2(s, to: u64, from: u64, len: usize, stream: Handle) {
        linear(s, to, from, len, (Machine, Machine), InStream(stream))
    }
    fn cuMemcpyHtoA_v2(s, array: Handle, offset: usize, from: u64, len: usize) {
        let to = in_array(s, array, offset)?;
        linear(s, to, from, len, (Expect::Machine, Any), Synchronous)
    }
    fn cuMemcpyAtoH_v2(s, to: u64, array: Handle, offset: usize, len: usize) {
        let from = in_array(s, array, offset)?;
        linear(s, to, from, len, (Any, Expect::Machine), Synchronous)
    }
    fn cuMemcpyDtoA_v2(s, array: Handle, offset: usize, from: u64, len: usize) {
        let to = in_array(s, array, offset)?;
        linear(s, to, from, len, (Expect::Machine, Expect::Machine), Synchronous)
    }
    fn cuMemcpyAtoD_v2(s, to: u64, array: Handle, offset: usize, len: usize) {
        let from = in_array(s, array, offset)?;
        linear(s, to, from, len, (Expect::Machine, Expect::Machine), Synchronous)
    }
    fn cuMemcpy2D_v2(s, what: In<Copy2D>) { copy_2d(s, &what, Synchronous) }
    fn cuMemcpy2DUnaligned_v2(s, what: In<Copy2D>) { copy_2d(s, &what, Synchronous) }
    fn cuMemcpy2DAsync_v2(s, what: In<Copy2D>, stream: Handle) { copy_2d(s, &what, InStream(stream)) }
    fn cuMemcpy3D_v2(s, what: In<Copy3D>) { copy_3d(s, &what, Synchronous) }
    fn cuMemcpy3DAsync_v2(s, what: In<Copy3D>, stream: Handle) { copy_3d(s, &what, InStream(stream)) }

    fn cuMemsetD8_v2(s, to: u64, value: u8, count: usize) {
        memset(s, row_of(to, value.to_le_bytes(), count), Synchronous)
    }
    fn cuMemsetD16_v2(s, to: u64, value: u16, count: usize) {
        memset(s, row_of(to, value.to_le_bytes(), count), Synchronous)
    }
    fn cuMemsetD32_v2(s, to: u64, value: u32, count: usize) {
        memset(s, row_of(to, value.to_le_bytes(), count), Synchronous)
    }
    fn cuMemsetD8Async(s, to: u64, value: u8, count: usize, stream: Handle) {
        memset(s, row_of(to, value.to_le_bytes(), count), InStream(stream))
    }
    fn cuMemsetD16Async(s, to: u64, value: u16, count: usize, stream: Handle) {
        memset(s, row_of(to, value.to_le_bytes(), count), InStream(stream))
    }
    fn cuMemsetD32Async(s, to: u64, value: u32, count: usize, stream: Handle) {
        memset(s, row_of(to, value.to_le_bytes(), count), InStream(stream))
    }
    fn cuMemsetD2D8_v2(s, to: u64, pitch: usize, value: u8, width: usize, height: usize) {
        memset(s, rows_of(to, pitch, value.to_le_bytes(), width, height), Synchronous)
    }
    fn cuMemsetD2D16_v2(s, to: u64, pitch: usize, value: u16, width: usize, height: usize) {
        memset(s, rows_of(to, pitch, value.to_le_bytes(), width, height), Synchronous)
    }
    fn cuMemsetD2D32_v2(s, to: u64, pitch: usize, value: u32, width: usize, height: usize) {
        memset(s, rows_of(to, pitch, value.to_le_bytes(), width, height), Synchronous)
    }
    fn cuMemsetD2D8Async(s, to: u64, pitch: usize, value: u8, width: usize, height: usize, stream: Handle) {
        memset(s, rows_of(to, pitch, value.to_le_bytes(), width, height), InStream(stream))
    }
    fn cuMemsetD2D16Async(s, to: u64, pitch: usize, value: u16, width: usize, height: usize, stream: Handle) {
        memset(s, rows_of(to, pitch, value.to_le_bytes(), width, height), InStream(stream))
    }
    fn cuMemsetD2D32Async(s, to: u64, pitch: usize, value: u32, width: usize, height: usize, stream: Handle) {
        memset(s, rows_of(to, pitch, value.to_le_bytes(), width, height), InStream(stream))
    }

    fn cuStreamWriteValue32(s, stream: Handle, address: u64, value: u32, _flags: u32) {
        write_value(s, stream, address, &value.to_le_bytes())
    }
    fn cuStreamWriteValue64(s, stream: Handle, address: u64, value: u64, _flags: u32) {
        write_value(s, stream, address, &value.to_le_bytes())
    }
    fn cuStreamWaitValue32(s, stream: Handle, address: u64, value: u32, flags: u32) {
        wait_value(s, stream, WaitValue { address, value: value.into(), bytes: 4, flags })
    }
    fn cuStreamWaitValue64(s, stream: Handle, address: u64, value: u64, flags: u32) {
        wait_value(s, stream, WaitValue { address, value, bytes: 8, flags })
    }
    fn cuStreamWriteValue32_v2(s, stream: Handle, address: u64, value: u32, _flags: u32) {
        write_value(s, stream, address, &value.to_le_bytes())
    }
    fn cuStreamWriteValue64_v2(s, stream: Handle, address: u64, value: u64, _flags: u32) {
        write_value(s, stream, address, &value.to_le_bytes())
    }
    fn cuStreamWaitValue32_v2(s, stream: Handle, address: u64, value: u32, flags: u32) {
        wait_value(s, stream, WaitValue { address, value: value.into(), bytes: 4, flags })
    }
    fn cuStreamWaitValue64_v2(s, stream: Handle, address: u64, value: u64, flags: u32) {
        wait_value(s, stream, WaitValue { address, value, bytes: 8, flags })
    }

    // Hints about where managed memory should be: it is where it is.
    fn cuMemPrefetchAsync(s, address: u64, len: usize, _device: i32, stream: Handle) {
        prefetch(s, address, len, stream)
    }
    fn cuMemAdvise(s, address: u64, len: usize, _advice: u32, _device: i32) { advise(s, address, len) }
}

fn prefetch(session: &mut Session, address: u64, len: usize, stream: Handle) -> Answer {
    advise(session, address, len)?;
    let (driver, context) = session.healthy()?;
    driver.submit(context, stream, Work::Join, &[]).map(|_| ())
}

fn advise(session: &mut Session, address: u64, len: usize) -> Answer {
    let (driver, _) = session.healthy()?;
    match driver.allocation_at(address) {
        Some((start, allocation))
            if allocation.kind == super::state::AllocationKind::Managed
                && len as u64 <= allocation.len - (address - start)
                && len > 0 =>
        {
            Ok(())
        }
        _ => Err(Code::INVALID_VALUE),
    }
}
