//! Streams and what is put into them besides kernels and copies.

use super::api::{Out, driver_api};
use super::codes::{Answer, Code};
use super::queue::{HostFunction, Work};
use super::state::{Driver, Handle, Stream, Tail};
use std::ffi::{c_int, c_void};

/// `CU_STREAM_NON_BLOCKING`: does not wait for the legacy default stream, nor that for it.
const NON_BLOCKING: u32 = 1;
/// Lower numbers come first.
const GREATEST_PRIORITY: i32 = -5;
const LEAST_PRIORITY: i32 = 0;

fn create(
    driver: &mut Driver,
    context: Handle,
    stream: &Out<Handle>,
    flags: u32,
    priority: i32,
) -> Answer {
    stream.require()?;
    if flags & !NON_BLOCKING != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let priority = priority.clamp(GREATEST_PRIORITY, LEAST_PRIORITY);
    let handle = driver.new_handle();
    driver.streams.insert(
        handle,
        Stream {
            context,
            flags,
            priority,
            tail: Tail::default(),
        },
    );
    stream.set(handle)
}

/// A function pointer of the caller's, which may be null.
type PlainFunction = Option<extern "C" fn(*mut c_void)>;
type Callback = Option<extern "C" fn(*mut c_void, c_int, *mut c_void)>;

driver_api! {
    fn cuCtxGetStreamPriorityRange(s, least: Out<i32>, greatest: Out<i32>) {
        s.current()?;
        least.set_if_wanted(LEAST_PRIORITY);
        greatest.set_if_wanted(GREATEST_PRIORITY);
        Ok(())
    }
    fn cuStreamCreate(s, stream: Out<Handle>, flags: u32) {
        let (driver, context) = s.healthy()?;
        create(driver, context, &stream, flags, 0)
    }
    fn cuStreamCreateWithPriority(s, stream: Out<Handle>, flags: u32, priority: i32) {
        let (driver, context) = s.healthy()?;
        create(driver, context, &stream, flags, priority)
    }
    fn cuStreamGetPriority(s, stream: Handle, priority: Out<i32>) {
        let (driver, context) = s.healthy()?;
        let stream = driver.stream(context, stream)?;
        priority.set(stream.and_then(|stream| driver.streams.get(&stream)).map_or(0, |stream| stream.priority))
    }
    fn cuStreamGetFlags(s, stream: Handle, flags: Out<u32>) {
        let (driver, context) = s.healthy()?;
        let stream = driver.stream(context, stream)?;
        flags.set(stream.and_then(|stream| driver.streams.get(&stream)).map_or(0, |stream| stream.flags))
    }
    fn cuStreamGetCtx(s, stream: Handle, of: Out<Handle>) {
        let (driver, context) = s.healthy()?;
        let stream = driver.stream(context, stream)?;
        of.set(stream.and_then(|stream| driver.streams.get(&stream)).map_or(context, |stream| stream.context))
    }
    fn cuStreamGetId(s, stream: Handle, id: Out<u64>) {
        let (driver, context) = s.healthy()?;
        // A context's legacy stream goes by the context's number, which no stream has.
        id.set(driver.stream(context, stream)?.unwrap_or(context))
    }
    fn cuStreamWaitEvent(s, stream: Handle, event: Handle, flags: u32) {
        let (driver, context) = s.healthy()?;
        if flags > 1 {
            return Err(Code::INVALID_VALUE);
        }
        let own = driver.stream(context, stream)?;
        if driver.capture_wait(context, own, event, flags)? {
            return Ok(());
        }
        // What was recorded so far counts; a later record does not change what this waits for.
        let Some(record) = driver.event(event)?.record else {
            return Ok(());
        };
        driver.submit(context, stream, Work::Join, &[record.op])?;
        driver.tail_mut(context, own)?.trigger = record.kernel;
        Ok(())
    }
    fn cuLaunchHostFunc(s, stream: Handle, function: PlainFunction, data: *mut c_void) {
        let (driver, context) = s.healthy()?;
        let function = HostFunction::Plain(function.ok_or(Code::INVALID_VALUE)?);
        driver.submit(context, stream, Work::Host { function, data: data as usize }, &[]).map(|_| ())
    }
    fn cuStreamAddCallback(s, stream: Handle, function: Callback, data: *mut c_void, flags: u32) {
        let (driver, context) = s.healthy()?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let function = HostFunction::Callback(function.ok_or(Code::INVALID_VALUE)?, stream);
        let own = driver.stream(context, stream)?;
        driver.refuse_captured(context, own)?;
        driver.submit(context, stream, Work::Host { function, data: data as usize }, &[]).map(|_| ())
    }
    fn cuStreamQuery(s, stream: Handle) {
        let (driver, context) = s.healthy()?;
        let (tail, of) = (driver.tail(context, stream)?, driver.context_of_stream(context, stream)?);
        if s.poll(of, &tail)? { Ok(()) } else { Err(Code::NOT_READY) }
    }
    fn cuStreamSynchronize(s, stream: Handle) {
        let (driver, context) = s.healthy()?;
        let (tail, of) = (driver.tail(context, stream)?, driver.context_of_stream(context, stream)?);
        s.wait(of, &tail)
    }
    fn cuStreamDestroy_v2(s, stream: Handle) {
        // Also in a context that has failed, so that destructors come to their end.
        let driver = s.driver()?;
        let gone = driver.streams.remove(&stream).ok_or(Code::INVALID_HANDLE)?;
        driver.drop_orphaned_captures();
        if let (true, Some(last)) = (gone.is_blocking(), gone.tail.last)
            && let Some(context) = driver.contexts.get_mut(&gone.context)
        {
            context.orphans.push(last);
        }
        driver.health(gone.context)
    }
}

impl Driver {
    /// Whose errors a stream's work has.
    fn context_of_stream(&mut self, context: Handle, stream: Handle) -> Answer<Handle> {
        Ok(match self.stream(context, stream)? {
            Some(stream) => {
                self.streams
                    .get(&stream)
                    .ok_or(Code::INVALID_HANDLE)?
                    .context
            }
            None => context,
        })
    }
}
