//! Events: marks in streams, with the simulated time at which they were reached.

use super::api::{Out, Session, driver_api};
use super::codes::{Answer, Code};
use super::queue::{OpId, Work};
use super::state::{Driver, Event, Handle, Record};

/// `CU_EVENT_DISABLE_TIMING`.
pub(super) const NO_TIMING: u32 = 2;
/// `CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS`.
const FLAGS: u32 = 7;

/// A stream has come to a record.
pub(super) fn recorded(driver: &mut Driver, event: Handle, op: OpId) {
    let now = driver.now();
    if let Some(record) = driver
        .events
        .get_mut(&event)
        .and_then(|event| event.record.as_mut())
        && record.op == op
    {
        record.time = Some(now);
    }
}

fn record(session: &mut Session, event: Handle, stream: Handle, flags: u32) -> Answer {
    let (driver, context) = session.healthy()?;
    driver.event(event)?;
    let own = driver.stream(context, stream)?;
    if let Some((capture, own)) = driver.capture_of(own).zip(own) {
        return driver.capture_record(capture, own, event, flags);
    }
    let op = driver.submit(context, stream, Work::Record { event }, &[])?;
    let event = driver.event(event)?;
    event.captured = None;
    event.record = Some(Record {
        op,
        time: None,
        kernel: None,
    });
    Ok(())
}

/// The operation to wait for or to ask about, and the context whose errors count.
fn pending(session: &mut Session, event: Handle) -> Answer<(Vec<OpId>, Handle)> {
    let (driver, _) = session.healthy()?;
    driver.refuse_captured_event(event)?;
    let event = driver.event(event)?;
    Ok((
        event.record.map(|record| record.op).into_iter().collect(),
        event.context,
    ))
}

fn elapsed(session: &mut Session, milliseconds: &Out<f32>, start: Handle, end: Handle) -> Answer {
    milliseconds.require()?;
    let (driver, _) = session.healthy()?;
    let mut times = [0; 2];
    for (event, time) in [start, end].into_iter().zip(&mut times) {
        driver.refuse_captured_event(event)?;
        let Event { flags, record, .. } = driver.event(event)?;
        let record = record
            .filter(|_| *flags & NO_TIMING == 0)
            .ok_or(Code::INVALID_HANDLE)?;
        *time = record.time.ok_or(Code::NOT_READY)?;
    }
    let [start, end] = times;
    milliseconds.set((end as f64 - start as f64) as f32 / 1e6)
}

driver_api! {
    fn cuEventCreate(s, event: Out<Handle>, flags: u32) {
        event.require()?;
        let (driver, context) = s.healthy()?;
        // An event for other processes has no time.
        if flags & !FLAGS != 0 || flags & 4 != 0 && flags & NO_TIMING == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let handle = driver.new_handle();
        driver.events.insert(handle, Event { context, flags, record: None, captured: None });
        event.set(handle)
    }
    fn cuEventRecord(s, event: Handle, stream: Handle) { record(s, event, stream, 0) }
    fn cuEventRecordWithFlags(s, event: Handle, stream: Handle, flags: u32) { record(s, event, stream, flags) }
    fn cuEventQuery(s, event: Handle) {
        let (ops, context) = pending(s, event)?;
        s.driver()?.refuse_unsafe()?;
        if s.poll(context, &ops)? { Ok(()) } else { Err(Code::NOT_READY) }
    }
    fn cuEventSynchronize(s, event: Handle) {
        let (ops, context) = pending(s, event)?;
        s.wait(context, &ops)
    }
    fn cuEventElapsedTime(s, milliseconds: Out<f32>, start: Handle, end: Handle) {
        elapsed(s, &milliseconds, start, end)
    }
    fn cuEventElapsedTime_v2(s, milliseconds: Out<f32>, start: Handle, end: Handle) {
        elapsed(s, &milliseconds, start, end)
    }
    fn cuEventDestroy_v2(s, event: Handle) {
        let driver = s.driver()?;
        let gone = driver.events.remove(&event).ok_or(Code::INVALID_HANDLE)?;
        // Gone it is, also in a context that has failed.
        driver.health(gone.context)
    }
}
