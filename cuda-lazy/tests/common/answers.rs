//! What a driver answers to right and wrong calls, one line each, the same code for a GPU and for the simulated one.
//!
//! `cargo run -p cuda-lazy --example answers` prints them. `tests/answers.h200.txt` is what an H200 said; the test
//! `answers` compares the simulated driver with it. Only calls that a real driver survives: no wild handles.

use cuda_lazy::ext::{self, CUlaunchAttribute, CUlaunchConfig};
use cust_raw::*;
use std::ffi::{CString, c_void};
use std::fmt::Write;
use std::ptr::null_mut;

const PTX: &str = include_str!("../kernels.ptx");
const GRANULE: usize = 2 << 20;

/// The lines as they grow.
struct Lines(String);

impl Lines {
    fn say(&mut self, what: &str, answer: impl Answer) {
        let _ = writeln!(self.0, "{what}: {}", answer.code());
    }
}

trait Answer {
    fn code(self) -> i32;
}

impl Answer for CUresult {
    fn code(self) -> i32 {
        self as i32
    }
}

impl Answer for ext::Status {
    fn code(self) -> i32 {
        self.0
    }
}

/// A current primary context with the test's module.
struct Setup {
    module: CUmodule,
}

impl Setup {
    fn new() -> Setup {
        let (mut context, mut module) = (null_mut(), null_mut());
        let text = CString::new(PTX).expect("no NUL in it");
        // SAFETY: results are locals, the text ends with a NUL.
        unsafe {
            assert_eq!(
                cuDevicePrimaryCtxRetain(&mut context, 0),
                CUresult::CUDA_SUCCESS
            );
            assert_eq!(cuCtxSetCurrent(context), CUresult::CUDA_SUCCESS);
            assert_eq!(
                cuModuleLoadData(&mut module, text.as_ptr().cast()),
                CUresult::CUDA_SUCCESS
            );
        }
        Setup { module }
    }

    fn function(&self, name: &str) -> CUfunction {
        let name = CString::new(name).expect("no NUL in it");
        let mut function = null_mut();
        // SAFETY: the result is a local.
        let found = unsafe { cuModuleGetFunction(&mut function, self.module, name.as_ptr()) };
        // A context that has failed says so here already; then the launch is told of no kernel.
        if found == CUresult::CUDA_SUCCESS {
            function
        } else {
            null_mut()
        }
    }

    fn launch(&self, name: &str, grid: u32, block: u32, shared: u32, argument: u64) -> CUresult {
        let mut arguments = [(&raw const argument) as *mut c_void];
        let function = self.function(name);
        let at = arguments.as_mut_ptr();
        // SAFETY: every kernel that is launched with this takes one address, or nothing.
        unsafe {
            cuLaunchKernel(
                function,
                grid,
                1,
                1,
                block,
                1,
                1,
                shared,
                null_mut(),
                at,
                null_mut(),
            )
        }
    }

    fn launch_with(
        &self,
        name: &str,
        grid: u32,
        attribute: CUlaunchAttribute,
        argument: u64,
    ) -> ext::Status {
        let mut attributes = [attribute];
        let config = CUlaunchConfig {
            gridDimX: grid,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: 32,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: 0,
            hStream: null_mut(),
            attrs: attributes.as_mut_ptr(),
            numAttrs: 1,
        };
        let mut arguments = [(&raw const argument) as *mut c_void];
        // SAFETY: as above.
        unsafe {
            ext::cuLaunchKernelEx(
                &config,
                self.function(name),
                arguments.as_mut_ptr(),
                null_mut(),
            )
        }
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        // SAFETY: no pointers.
        unsafe {
            cuDevicePrimaryCtxRelease_v2(0);
            cuCtxSetCurrent(null_mut());
        }
    }
}

/// Kernels that fail, and what they are given.
pub const FAILURES: [(&str, u64); 4] = [
    ("traps", 0),
    ("stores", 0),
    ("stores", 0x10_0000),
    ("stores", 0x7f00_0000_0001),
];

/// What is answered after one of them. A GPU's driver is of no use to the process afterwards.
pub fn after(kernel: &str, argument: u64) -> String {
    let mut lines = Lines(String::new());
    failure(&mut lines, kernel, argument);
    lines.0
}

/// Everything else. The driver must be initialised.
pub fn answers() -> String {
    let mut lines = Lines(String::new());
    memory(&mut lines);
    mapping(&mut lines);
    modules(&mut lines);
    launches(&mut lines);
    streams(&mut lines);
    contexts(&mut lines);
    lines.0
}

fn memory(lines: &mut Lines) {
    let _setup = Setup::new();
    let mut word = 0u32;
    let local = (&raw mut word).cast::<c_void>();
    // SAFETY: results are locals, sizes are theirs; a driver looks wrong addresses up.
    unsafe {
        let mut memory = 0;
        lines.say("allocate nothing", cuMemAlloc_v2(&mut memory, 0));
        lines.say("allocate to null", cuMemAlloc_v2(null_mut(), 16));
        lines.say("allocate too much", cuMemAlloc_v2(&mut memory, 1 << 60));
        lines.say("allocate", cuMemAlloc_v2(&mut memory, 4 << 20));
        lines.say(
            "copy past the end",
            cuMemcpyDtoH_v2(local, memory + (4 << 20) - 2, 4),
        );
        lines.say("copy nothing", cuMemcpyDtoH_v2(local, memory, 0));
        lines.say("copy to null", cuMemcpyDtoH_v2(null_mut(), memory, 4));
        lines.say("fill misaligned", cuMemsetD32_v2(memory + 2, 0, 1));
        lines.say("fill past the end", cuMemsetD8_v2(memory, 0, (4 << 20) + 1));
        lines.say("fill", cuMemsetD8_v2(memory, 7, 4 << 20));
        lines.say("free its middle", cuMemFree_v2(memory + 512));
        lines.say(
            "free device memory as pinned",
            cuMemFreeHost(memory as *mut c_void),
        );
        lines.say("free", cuMemFree_v2(memory));
        lines.say("free twice", cuMemFree_v2(memory));
        lines.say("free null", cuMemFree_v2(0));
        let mut pinned = null_mut();
        lines.say("pin nothing", cuMemHostAlloc(&mut pinned, 0, 0));
        lines.say("pin with odd flags", cuMemHostAlloc(&mut pinned, 64, 0x80));
        lines.say("pin", cuMemHostAlloc(&mut pinned, 64, 2));
        let (mut device, mut flags) = (0, 0);
        lines.say(
            "pinned: device pointer",
            cuMemHostGetDevicePointer_v2(&mut device, pinned, 0),
        );
        lines.say(
            "pinned: same address",
            if device == pinned as u64 {
                CUresult::CUDA_SUCCESS
            } else {
                CUresult::CUDA_ERROR_UNKNOWN
            },
        );
        lines.say("pinned: flags", cuMemHostGetFlags(&mut flags, pinned));
        lines.say("pinned: free", cuMemFreeHost(pinned));
        let mut kind = 0u64;
        let attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
        lines.say(
            "attribute of a local's address",
            cuPointerGetAttribute((&raw mut kind).cast(), attribute, local as u64),
        );
        let mut host = vec![0u8; 1 << 16];
        let at = host.as_mut_ptr();
        lines.say("register", cuMemHostRegister_v2(at.cast(), 1 << 16, 0));
        lines.say(
            "register again",
            cuMemHostRegister_v2(at.cast(), 1 << 16, 0),
        );
        lines.say("unregister", cuMemHostUnregister(at.cast()));
        lines.say("unregister again", cuMemHostUnregister(at.cast()));
        lines.say(
            "allocate managed with odd flags",
            cuMemAllocManaged(&mut memory, 64, 8),
        );
        lines.say("allocate managed", cuMemAllocManaged(&mut memory, 64, 1));
        lines.say("free managed", cuMemFree_v2(memory));
        lines.say(
            "allocate in a stream",
            cuMemAllocAsync(&mut memory, 64, null_mut()),
        );
        lines.say("free in a stream", cuMemFreeAsync(memory, null_mut()));
        lines.say("synchronize", cuCtxSynchronize());
        let mut value = 0;
        for attribute in [
            1u32, 8, 10, 12, 75, 76, 78, 81, 82, 83, 95, 97, 102, 103, 111, 120,
        ] {
            let raw = std::mem::transmute::<u32, CUdevice_attribute>(attribute.min(115));
            // Above 115, cust_raw has no name; the number alone matters.
            if attribute <= 115 {
                let _ = cuDeviceGetAttribute(&mut value, raw, 0);
                let _ = writeln!(lines.0, "device attribute {attribute}: {value}");
            }
        }
    }
}

fn mapping(lines: &mut Lines) {
    let _setup = Setup::new();
    // SAFETY: results are locals; a driver looks wrong addresses up.
    unsafe {
        let mut properties: CUmemAllocationProp = std::mem::zeroed();
        properties.type_ = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
        let posix = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        properties.requestedHandleTypes = posix;
        let (mut at, mut memory, mut granularity) = (0, 0, 0);
        let minimum = CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
        lines.say(
            "granularity",
            cuMemGetAllocationGranularity(&mut granularity, &properties, minimum),
        );
        let _ = writeln!(lines.0, "granularity is {granularity}");
        lines.say(
            "reserve an odd size",
            cuMemAddressReserve(&mut at, 100, 0, 0, 0),
        );
        lines.say("reserve", cuMemAddressReserve(&mut at, 1 << 40, 0, 0, 0));
        lines.say(
            "create an odd size",
            cuMemCreate(&mut memory, 100, &properties, 0),
        );
        lines.say(
            "create",
            cuMemCreate(&mut memory, 2 * GRANULE, &properties, 0),
        );
        lines.say(
            "map at an odd address",
            cuMemMap(at + 3, 2 * GRANULE, 0, memory, 0),
        );
        lines.say(
            "map beyond the memory",
            cuMemMap(at, 4 * GRANULE, 0, memory, 0),
        );
        lines.say("map", cuMemMap(at, 2 * GRANULE, 0, memory, 0));
        lines.say("map there again", cuMemMap(at, 2 * GRANULE, 0, memory, 0));
        lines.say("fill without access", cuMemsetD8_v2(at, 1, 16));
        let access = CUmemAccessDesc {
            location: properties.location,
            flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        lines.say(
            "give access to half",
            cuMemSetAccess(at, GRANULE, &access, 1),
        );
        lines.say("give access", cuMemSetAccess(at, 2 * GRANULE, &access, 1));
        let mut flags = 0;
        lines.say(
            "access",
            cuMemGetAccess(&mut flags, &properties.location, at),
        );
        let _ = writeln!(lines.0, "access is {flags}");
        lines.say("fill", cuMemsetD8_v2(at, 1, 16));
        let (mut fd, mut second) = (-1i32, 0);
        lines.say(
            "export",
            cuMemExportToShareableHandle((&raw mut fd).cast(), memory, posix, 0),
        );
        lines.say(
            "import",
            cuMemImportFromShareableHandle(&mut second, fd as usize as *mut c_void, posix),
        );
        lines.say(
            "map elsewhere",
            cuMemMap(at + (1 << 30), 2 * GRANULE, 0, second, 0),
        );
        lines.say("release", cuMemRelease(memory));
        lines.say("release the other", cuMemRelease(second));
        lines.say(
            "free addresses that are mapped",
            cuMemAddressFree(at, 1 << 40),
        );
        lines.say("unmap half", cuMemUnmap(at, GRANULE));
        lines.say("unmap", cuMemUnmap(at, 2 * GRANULE));
        lines.say("unmap again", cuMemUnmap(at, 2 * GRANULE));
        lines.say("unmap the other", cuMemUnmap(at + (1 << 30), 2 * GRANULE));
        lines.say("free half of the addresses", cuMemAddressFree(at, 1 << 39));
        lines.say("free the addresses", cuMemAddressFree(at, 1 << 40));
    }
}

fn modules(lines: &mut Lines) {
    let setup = Setup::new();
    let mut module = null_mut();
    // SAFETY: texts end with a NUL, results are locals.
    unsafe {
        let mut load = |text: &std::ffi::CStr| cuModuleLoadData(&mut module, text.as_ptr().cast());
        lines.say(
            "load words",
            load(c".version 7.0\n.target sm_70\n.address_size 64\nthis is no PTX"),
        );
        lines.say(
            "load too new a version",
            load(c".version 99.0\n.target sm_70\n.address_size 64\n"),
        );
        lines.say(
            "load no file",
            cuModuleLoad(&mut module, c"/no/such/file".as_ptr()),
        );
        let mut function = null_mut();
        lines.say(
            "no such kernel",
            cuModuleGetFunction(&mut function, setup.module, c"none".as_ptr()),
        );
        let (mut at, mut len) = (0, 0);
        lines.say(
            "variable",
            cuModuleGetGlobal_v2(&mut at, &mut len, setup.module, c"counter".as_ptr()),
        );
        let _ = writeln!(lines.0, "variable has {len} bytes");
        lines.say(
            "no such variable",
            cuModuleGetGlobal_v2(&mut at, &mut len, setup.module, c"none".as_ptr()),
        );
        let (mut offset, mut size) = (0, 0);
        let add = setup.function("add");
        lines.say(
            "parameter",
            ext::cuFuncGetParamInfo(add, 3, &mut offset, &mut size),
        );
        let _ = writeln!(lines.0, "parameter is at {offset}, {size} bytes");
        lines.say(
            "no such parameter",
            ext::cuFuncGetParamInfo(add, 4, &mut offset, &mut size),
        );
        for attribute in [0u32, 1, 5, 8] {
            let raw = std::mem::transmute::<u32, CUfunction_attribute>(attribute);
            let mut value = 0;
            let _ = cuFuncGetAttribute(&mut value, raw, setup.function("small"));
            let _ = writeln!(lines.0, "attribute {attribute} of a small kernel: {value}");
        }
    }
}

fn launches(lines: &mut Lines) {
    let setup = Setup::new();
    let most = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    // SAFETY: results are locals; kernels get what they take.
    unsafe {
        let mut word = 0;
        lines.say("allocate", cuMemAlloc_v2(&mut word, 4));
        lines.say("launch no block", setup.launch("count", 0, 32, 0, word));
        lines.say("launch no thread", setup.launch("count", 1, 0, 0, word));
        lines.say(
            "launch 1025 threads",
            setup.launch("count", 1, 1025, 0, word),
        );
        lines.say(
            "launch more than .maxntid",
            setup.launch("small", 1, 65, 0, word),
        );
        lines.say(
            "launch 48 KiB",
            setup.launch("dynamic_size", 1, 32, 48 << 10, word),
        );
        lines.say(
            "launch 48 KiB and 4",
            setup.launch("dynamic_size", 1, 32, (48 << 10) + 4, word),
        );
        let function = setup.function("dynamic_size");
        lines.say(
            "ask for too much",
            cuFuncSetAttribute(function, most, 232_449),
        );
        lines.say(
            "ask for the most",
            cuFuncSetAttribute(function, most, 232_448),
        );
        lines.say(
            "launch the most",
            setup.launch("dynamic_size", 1, 32, 232_448, word),
        );
        lines.say("synchronize", cuCtxSynchronize());
        let count = setup.function("count");
        let none = null_mut();
        lines.say(
            "launch without parameters",
            cuLaunchKernel(count, 1, 1, 1, 1, 1, 1, 0, none, null_mut(), null_mut()),
        );
        lines.say(
            "launch null",
            cuLaunchKernel(
                null_mut(),
                1,
                1,
                1,
                1,
                1,
                1,
                0,
                none,
                null_mut(),
                null_mut(),
            ),
        );
        lines.say(
            "launch clusters",
            setup.launch_with("count", 4, CUlaunchAttribute::cluster(2, 1, 1), word),
        );
        lines.say(
            "launch uneven clusters",
            setup.launch_with("count", 3, CUlaunchAttribute::cluster(2, 1, 1), word),
        );
        lines.say(
            "launch huge clusters",
            setup.launch_with("count", 32, CUlaunchAttribute::cluster(32, 1, 1), word),
        );
        lines.say(
            "launch clusters of zero",
            setup.launch_with("count", 4, CUlaunchAttribute::cluster(0, 1, 1), word),
        );
        lines.say(
            "launch cooperatively",
            setup.launch_with("count", 4, CUlaunchAttribute::cooperative(), word),
        );
        lines.say(
            "launch too many cooperatively",
            setup.launch_with("count", 1 << 20, CUlaunchAttribute::cooperative(), word),
        );
        let dependent = CUlaunchAttribute::programmatic_stream_serialization();
        lines.say(
            "launch dependently",
            setup.launch_with("count", 4, dependent, word),
        );
        lines.say("synchronize", cuCtxSynchronize());
        let (mut blocks, mut threads) = (0, 0);
        lines.say(
            "occupancy",
            cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, count, 1024, 0),
        );
        let _ = writeln!(lines.0, "blocks of 1024: {blocks}");
        lines.say(
            "occupancy of 0",
            cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, count, 0, 0),
        );
        lines.say(
            "occupancy of 1025",
            cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, count, 1025, 0),
        );
        lines.say(
            "best block",
            cuOccupancyMaxPotentialBlockSize(&mut blocks, &mut threads, count, None, 0, 0),
        );
    }
}

fn streams(lines: &mut Lines) {
    let _setup = Setup::new();
    let (mut stream, mut event, mut timeless, mut time) = (null_mut(), null_mut(), null_mut(), 0.0);
    // SAFETY: results are locals, handles the driver's own.
    unsafe {
        lines.say("stream with odd flags", cuStreamCreate(&mut stream, 0x80));
        lines.say("stream", cuStreamCreateWithPriority(&mut stream, 1, -100));
        let mut priority = 0;
        lines.say("priority", cuStreamGetPriority(stream, &mut priority));
        let _ = writeln!(lines.0, "priority is {priority}");
        lines.say("query", cuStreamQuery(stream));
        lines.say("query the legacy stream", cuStreamQuery(1usize as CUstream));
        lines.say(
            "query the thread's stream",
            cuStreamQuery(2usize as CUstream),
        );
        lines.say("event with odd flags", cuEventCreate(&mut event, 0x80));
        lines.say(
            "event for other processes with time",
            cuEventCreate(&mut event, 4),
        );
        lines.say("event", cuEventCreate(&mut event, 0));
        lines.say("event without time", cuEventCreate(&mut timeless, 2));
        lines.say(
            "query an event that was never recorded",
            cuEventQuery(event),
        );
        lines.say(
            "wait for an event that was never recorded",
            cuStreamWaitEvent(stream, event, 0),
        );
        lines.say(
            "elapsed of the unrecorded",
            cuEventElapsedTime(&mut time, event, event),
        );
        lines.say("record", cuEventRecord(event, stream));
        lines.say("record", cuEventRecord(timeless, stream));
        lines.say("synchronize", cuEventSynchronize(event));
        lines.say("elapsed", cuEventElapsedTime(&mut time, event, event));
        lines.say(
            "elapsed of the timeless",
            cuEventElapsedTime(&mut time, timeless, event),
        );
        lines.say(
            "no host function",
            cuLaunchHostFunc(stream, None, null_mut()),
        );
        lines.say("destroy", cuStreamDestroy_v2(stream));
        lines.say("destroy", cuEventDestroy_v2(event));
    }
}

/// A kernel fails; what is answered then.
fn failure(lines: &mut Lines, kernel: &str, argument: u64) {
    let setup = Setup::new();
    let (mut stream, mut event, mut memory, mut pinned) = (null_mut(), null_mut(), 0, null_mut());
    let what = format!("{kernel}({argument:#x})");
    // SAFETY: results are locals, handles the driver's own.
    unsafe {
        cuStreamCreate(&mut stream, 1);
        cuEventCreate(&mut event, 0);
        cuMemAlloc_v2(&mut memory, 64);
        cuMemHostAlloc(&mut pinned, 64, 0);
        lines.say(
            &format!("{what}: launch"),
            setup.launch(kernel, 1, 32, 0, argument),
        );
        lines.say(&format!("{what}: synchronize"), cuCtxSynchronize());
        lines.say(&format!("{what}: synchronize again"), cuCtxSynchronize());
        lines.say(
            &format!("{what}: launch another"),
            setup.launch("count", 1, 1, 0, memory),
        );
        lines.say(&format!("{what}: allocate"), cuMemAlloc_v2(&mut memory, 64));
        lines.say(&format!("{what}: query a stream"), cuStreamQuery(stream));
        lines.say(
            &format!("{what}: destroy a stream"),
            cuStreamDestroy_v2(stream),
        );
        lines.say(
            &format!("{what}: destroy an event"),
            cuEventDestroy_v2(event),
        );
        lines.say(&format!("{what}: free"), cuMemFree_v2(memory));
        lines.say(&format!("{what}: free pinned"), cuMemFreeHost(pinned));
        lines.say(&format!("{what}: unload"), cuModuleUnload(setup.module));
        lines.say(&format!("{what}: device"), cuCtxGetDevice(&mut 0));
        lines.say(&format!("{what}: reset"), cuDevicePrimaryCtxReset_v2(0));
    }
    drop(setup);
}

fn contexts(lines: &mut Lines) {
    let (mut context, mut current) = (null_mut(), null_mut());
    // SAFETY: results are locals, handles the driver's own.
    unsafe {
        lines.say("synchronize without context", cuCtxSynchronize());
        lines.say("allocate without context", cuMemAlloc_v2(&mut 0, 64));
        lines.say("no such device", cuDeviceGet(&mut 0, 4096));
        lines.say("pop nothing", cuCtxPopCurrent_v2(&mut current));
        lines.say("create", cuCtxCreate_v2(&mut context, 0, 0));
        lines.say("synchronize", cuCtxSynchronize());
        lines.say("no limit", cuCtxGetLimit(&mut 0, CUlimit::CU_LIMIT_MAX));
        lines.say("destroy", cuCtxDestroy_v2(context));
        lines.say("synchronize after that", cuCtxSynchronize());
        lines.say("current after that", cuCtxGetCurrent(&mut current));
        lines.say("retain", cuDevicePrimaryCtxRetain(&mut context, 0));
        lines.say("set current", cuCtxSetCurrent(context));
        lines.say("destroy the primary", cuCtxDestroy_v2(context));
        lines.say("release", cuDevicePrimaryCtxRelease_v2(0));
        lines.say("synchronize after that", cuCtxSynchronize());
        lines.say("release again", cuDevicePrimaryCtxRelease_v2(0));
        lines.say("initialise with flags", cuInit(1));
    }
}
