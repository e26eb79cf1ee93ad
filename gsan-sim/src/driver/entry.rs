//! Initialisation, versions, error texts, and functions by name.

use super::api::{Out, Session, Text, driver_api};
use super::codes::{Answer, Code, describe};
use super::state::Driver;
use std::ffi::{c_char, c_int};

/// CUDA 13.0.
const VERSION: i32 = 13_000;

/// Rights to memory are kept in 64 bits, one for each device.
const MOST_DEVICES: u32 = 64;

fn init(session: &mut Session) -> Answer {
    let state = session.state();
    if state.driver.is_none() {
        let config = state.config.clone().unwrap_or_else(super::default_config);
        match config.devices {
            0 => return Err(Code::NO_DEVICE),
            1..=MOST_DEVICES => {}
            _ => return Err(Code::INVALID_VALUE),
        }
        state.driver = Some(Driver::new(config, state.next_handle));
    }
    Ok(())
}

fn text(code: c_int, out: &Out<*const c_char>, name: bool) -> Answer {
    out.require()?;
    match describe(code) {
        Some((error, text)) => out.set(if name { error } else { text }.as_ptr()),
        None => {
            out.set(std::ptr::null())?;
            Err(Code::INVALID_VALUE)
        }
    }
}

/// The form of a function that programs of a CUDA version mean by its plain name: `cuMemAlloc` is `cuMemAlloc_v2`.
fn by_plain_name(name: &str, version: c_int) -> Option<*const ()> {
    // These have a `_v2` that takes other arguments, which is meant from a later version on.
    const LATER: [(&str, c_int, &str); 13] = [
        ("cuGetProcAddress", c_int::MAX, ""),
        ("cuGraphAddKernelNode", 12_000, "cuGraphAddKernelNode_v2"),
        (
            "cuGraphKernelNodeGetParams",
            12_000,
            "cuGraphKernelNodeGetParams_v2",
        ),
        (
            "cuGraphKernelNodeSetParams",
            12_000,
            "cuGraphKernelNodeSetParams_v2",
        ),
        (
            "cuGraphExecKernelNodeSetParams",
            12_000,
            "cuGraphExecKernelNodeSetParams_v2",
        ),
        ("cuGraphExecUpdate", 12_000, "cuGraphExecUpdate_v2"),
        ("cuGraphAddNode", 13_000, "cuGraphAddNode_v2"),
        ("cuGraphGetEdges", 13_000, "cuGraphGetEdges_v2"),
        (
            "cuGraphNodeGetDependencies",
            13_000,
            "cuGraphNodeGetDependencies_v2",
        ),
        (
            "cuGraphNodeGetDependentNodes",
            13_000,
            "cuGraphNodeGetDependentNodes_v2",
        ),
        (
            "cuGraphAddDependencies",
            13_000,
            "cuGraphAddDependencies_v2",
        ),
        (
            "cuGraphRemoveDependencies",
            13_000,
            "cuGraphRemoveDependencies_v2",
        ),
        (
            "cuStreamUpdateCaptureDependencies",
            13_000,
            "cuStreamUpdateCaptureDependencies_v2",
        ),
    ];
    if name == "cuStreamGetCaptureInfo" {
        return super::symbol(match version {
            ..12_000 => name,
            12_000..13_000 => "cuStreamGetCaptureInfo_v2",
            _ => "cuStreamGetCaptureInfo_v3",
        });
    }
    if name == "cuGraphInstantiate" && version >= 12_000 {
        return super::symbol("cuGraphInstantiateWithFlags");
    }
    if let Some((_, from, later)) = LATER.iter().find(|(plain, ..)| *plain == name) {
        return super::symbol(if version >= *from { later } else { name });
    }
    super::symbol(&format!("{name}_v2")).or_else(|| super::symbol(name))
}

driver_api! {
    fn cuInit(s, flags: u32) {
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        init(s)
    }
    fn cuDriverGetVersion(_s, version: Out<i32>) { version.set(VERSION) }
    fn cuGetErrorName(_s, code: c_int, name: Out<*const c_char>) { text(code, &name, true) }
    fn cuGetErrorString(_s, code: c_int, string: Out<*const c_char>) { text(code, &string, false) }
    fn cuGetProcAddress(_s, name: Text, function: Out<*const ()>, version: c_int, _flags: u64) {
        function.require()?;
        let found = by_plain_name(name.utf8()?, version);
        function.set(found.unwrap_or(std::ptr::null()))?;
        found.map(|_| ()).ok_or(Code::NOT_FOUND)
    }
    fn cuGetProcAddress_v2(_s, name: Text, function: Out<*const ()>, version: c_int, _flags: u64, status: Out<c_int>) {
        function.require()?;
        let name = name.utf8()?;
        // From 12.0 on the plain name means this function.
        let found = if name == "cuGetProcAddress" && version >= 12_000 {
            super::symbol("cuGetProcAddress_v2")
        } else {
            by_plain_name(name, version)
        };
        // 0 found, 1 not found.
        status.set_if_wanted(found.is_none().into());
        function.set(found.unwrap_or(std::ptr::null()))
    }
}
