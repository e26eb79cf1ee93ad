//! Driver calls and types that cust_raw 0.11 (CUDA 11.4) lacks.
//!
//! They return [`Status`], not cust_raw's `CUresult`: that is a Rust enum, and a newer driver may answer a code that it
//! does not have. For the same reason enumerations are plain integers here, with their values as constants.

#![allow(non_camel_case_types, non_snake_case)]

use cust_raw::{
    CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction, CUmemGenericAllocationHandle, CUmodule,
    CUresult, CUstream,
};
use std::ffi::{c_char, c_int, c_uint, c_void};

/// What a driver call answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
#[must_use = "a failed driver call is silent otherwise"]
pub struct Status(pub c_int);

impl Status {
    /// `CUDA_SUCCESS`.
    pub const SUCCESS: Status = Status(0);

    /// Success, or the code.
    pub const fn result(self) -> Result<(), c_int> {
        match self.0 {
            0 => Ok(()),
            code => Err(code),
        }
    }

    /// As cust_raw's enum; a code that it does not have becomes `CUDA_ERROR_UNKNOWN`.
    pub fn as_cu_result(self) -> CUresult {
        use CUresult::*;
        const KNOWN: &[CUresult] = &[
            CUDA_SUCCESS,
            CUDA_ERROR_INVALID_VALUE,
            CUDA_ERROR_OUT_OF_MEMORY,
            CUDA_ERROR_NOT_INITIALIZED,
            CUDA_ERROR_DEINITIALIZED,
            CUDA_ERROR_NO_DEVICE,
            CUDA_ERROR_INVALID_DEVICE,
            CUDA_ERROR_INVALID_IMAGE,
            CUDA_ERROR_INVALID_CONTEXT,
            CUDA_ERROR_MAP_FAILED,
            CUDA_ERROR_UNMAP_FAILED,
            CUDA_ERROR_ALREADY_MAPPED,
            CUDA_ERROR_NOT_MAPPED,
            CUDA_ERROR_INVALID_PTX,
            CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
            CUDA_ERROR_FILE_NOT_FOUND,
            CUDA_ERROR_INVALID_HANDLE,
            CUDA_ERROR_ILLEGAL_STATE,
            CUDA_ERROR_NOT_FOUND,
            CUDA_ERROR_NOT_READY,
            CUDA_ERROR_ILLEGAL_ADDRESS,
            CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
            CUDA_ERROR_LAUNCH_TIMEOUT,
            CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED,
            CUDA_ERROR_PEER_ACCESS_NOT_ENABLED,
            CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE,
            CUDA_ERROR_CONTEXT_IS_DESTROYED,
            CUDA_ERROR_ASSERT,
            CUDA_ERROR_HARDWARE_STACK_ERROR,
            CUDA_ERROR_ILLEGAL_INSTRUCTION,
            CUDA_ERROR_MISALIGNED_ADDRESS,
            CUDA_ERROR_INVALID_ADDRESS_SPACE,
            CUDA_ERROR_INVALID_PC,
            CUDA_ERROR_LAUNCH_FAILED,
            CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
            CUDA_ERROR_NOT_PERMITTED,
            CUDA_ERROR_NOT_SUPPORTED,
        ];
        KNOWN
            .iter()
            .copied()
            .find(|known| *known as i64 == i64::from(self.0))
            .unwrap_or(CUDA_ERROR_UNKNOWN)
    }
}

/// A property of a launch beyond its shape.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct CUlaunchAttribute {
    /// One of [`launch_attribute`]'s numbers.
    pub id: c_uint,
    /// Keeps the value 8-byte aligned.
    pub pad: [c_char; 4],
    /// A C union of 64 bytes; the part that `id` names counts.
    pub value: [u64; 8],
}

/// The ids of [`CUlaunchAttribute`].
pub mod launch_attribute {
    /// No effect.
    pub const IGNORE: u32 = 0;
    /// `int`: all blocks are resident at once.
    pub const COOPERATIVE: u32 = 2;
    /// Three `unsigned`: the cluster's shape in blocks.
    pub const CLUSTER_DIMENSION: u32 = 4;
    /// `int`: may start before its predecessor in the stream has ended (programmatic dependent launch).
    pub const PROGRAMMATIC_STREAM_SERIALIZATION: u32 = 6;
    /// An event that is recorded once all blocks have let dependents start.
    pub const PROGRAMMATIC_EVENT: u32 = 7;
    /// `int`: priority.
    pub const PRIORITY: u32 = 8;
}

impl CUlaunchAttribute {
    const fn of_int(id: c_uint, value: u32) -> CUlaunchAttribute {
        // Little-endian, like every host that a CUDA driver exists for: the union's first int is the low half.
        CUlaunchAttribute {
            id,
            pad: [0; 4],
            value: [value as u64, 0, 0, 0, 0, 0, 0, 0],
        }
    }

    /// A cooperative launch.
    pub const fn cooperative() -> CUlaunchAttribute {
        Self::of_int(launch_attribute::COOPERATIVE, 1)
    }

    /// So many bytes of the launch's dynamic shared memory are the user's, and those behind them are gsan's: the simulator then
    /// lets only the functions of gsan's runtime access those. Without effect on a real driver.
    pub const fn user_dynamic_shared(bytes: u32) -> CUlaunchAttribute {
        let [low, high] = gsan_sim::driver::USER_SHARED;
        let value = [
            low as u64 | (high as u64) << 32,
            bytes as u64,
            0,
            0,
            0,
            0,
            0,
            0,
        ];
        CUlaunchAttribute {
            id: launch_attribute::IGNORE,
            pad: [0; 4],
            value,
        }
    }

    /// Clusters of this shape.
    pub const fn cluster(x: u32, y: u32, z: u32) -> CUlaunchAttribute {
        let value = [x as u64 | (y as u64) << 32, z as u64, 0, 0, 0, 0, 0, 0];
        CUlaunchAttribute {
            id: launch_attribute::CLUSTER_DIMENSION,
            pad: [0; 4],
            value,
        }
    }

    /// Programmatic dependent launch on the predecessor in the stream.
    pub const fn programmatic_stream_serialization() -> CUlaunchAttribute {
        Self::of_int(launch_attribute::PROGRAMMATIC_STREAM_SERIALIZATION, 1)
    }

    /// An event, without time, that is recorded once all blocks have let dependents start: what waits for it may start before
    /// the kernel has ended.
    pub fn programmatic_event(event: CUevent) -> CUlaunchAttribute {
        CUlaunchAttribute {
            id: launch_attribute::PROGRAMMATIC_EVENT,
            pad: [0; 4],
            value: [event as u64, 0, 0, 0, 0, 0, 0, 0],
        }
    }
}

/// The shape of a launch, with attributes.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct CUlaunchConfig {
    /// Blocks.
    pub gridDimX: c_uint,
    /// Blocks.
    pub gridDimY: c_uint,
    /// Blocks.
    pub gridDimZ: c_uint,
    /// Threads of a block.
    pub blockDimX: c_uint,
    /// Threads of a block.
    pub blockDimY: c_uint,
    /// Threads of a block.
    pub blockDimZ: c_uint,
    /// Dynamic shared memory of a block.
    pub sharedMemBytes: c_uint,
    /// Where it is queued.
    pub hStream: CUstream,
    /// The attributes, `numAttrs` of them.
    pub attrs: *mut CUlaunchAttribute,
    /// How many attributes.
    pub numAttrs: c_uint,
}

/// A tensor map for the bulk copy engine: opaque.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct CUtensorMap {
    /// Known to the driver alone.
    pub opaque: [u64; 16],
}

/// What a multicast object is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct CUmulticastObjectProp {
    /// Devices of its team.
    pub numDevices: c_uint,
    /// Bytes of each device.
    pub size: usize,
    /// Ways to hand it to another process.
    pub handleTypes: u64,
    /// Zero.
    pub flags: u64,
}

/// A module that is loaded per context on demand.
pub type CUlibrary = *mut c_void;
/// A kernel of a [`CUlibrary`].
pub type CUkernel = *mut c_void;

const _: () = {
    assert!(size_of::<CUlaunchAttribute>() == 72);
    assert!(core::mem::offset_of!(CUlaunchAttribute, value) == 8);
    assert!(size_of::<CUlaunchConfig>() == 56);
    assert!(core::mem::offset_of!(CUlaunchConfig, hStream) == 32);
    assert!(size_of::<CUtensorMap>() == 128);
    assert!(size_of::<CUmulticastObjectProp>() == 32);
};

unsafe extern "C" {
    /// A launch with attributes (clusters, cooperative, programmatic dependent).
    pub fn cuLaunchKernelEx(
        config: *const CUlaunchConfig,
        f: CUfunction,
        kernelParams: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> Status;

    /// How many clusters of this launch the device holds at once.
    pub fn cuOccupancyMaxActiveClusters(
        numClusters: *mut c_int,
        func: CUfunction,
        config: *const CUlaunchConfig,
    ) -> Status;

    /// The largest cluster that this kernel can be launched with.
    pub fn cuOccupancyMaxPotentialClusterSize(
        clusterSize: *mut c_int,
        func: CUfunction,
        config: *const CUlaunchConfig,
    ) -> Status;

    /// A kernel's name as the module has it.
    pub fn cuFuncGetName(name: *mut *const c_char, hfunc: CUfunction) -> Status;

    /// Offset and size of a kernel's parameter; `CUDA_ERROR_INVALID_VALUE` past the last.
    pub fn cuFuncGetParamInfo(
        func: CUfunction,
        paramIndex: usize,
        paramOffset: *mut usize,
        paramSize: *mut usize,
    ) -> Status;

    /// How many kernels a module has.
    pub fn cuModuleGetFunctionCount(count: *mut c_uint, module: CUmodule) -> Status;

    /// The first `numFunctions` kernels of a module.
    pub fn cuModuleEnumerateFunctions(
        functions: *mut CUfunction,
        numFunctions: c_uint,
        module: CUmodule,
    ) -> Status;

    /// A driver function by its plain name and the version whose behaviour is wanted.
    pub fn cuGetProcAddress_v2(
        symbol: *const c_char,
        pfn: *mut *mut c_void,
        cudaVersion: c_int,
        flags: u64,
        symbolStatus: *mut c_int,
    ) -> Status;

    /// A stream's number, unique in the process.
    pub fn cuStreamGetId(hStream: CUstream, streamId: *mut u64) -> Status;

    /// A context's number, unique in the process.
    pub fn cuCtxGetId(ctx: CUcontext, ctxId: *mut u64) -> Status;

    /// A tensor map for tiled copies.
    pub fn cuTensorMapEncodeTiled(
        tensorMap: *mut CUtensorMap,
        tensorDataType: c_int,
        tensorRank: u32,
        globalAddress: *mut c_void,
        globalDim: *const u64,
        globalStrides: *const u64,
        boxDim: *const u32,
        elementStrides: *const u32,
        interleave: c_int,
        swizzle: c_int,
        l2Promotion: c_int,
        oobFill: c_int,
    ) -> Status;

    /// A tensor map for copies that gather a convolution's windows.
    pub fn cuTensorMapEncodeIm2col(
        tensorMap: *mut CUtensorMap,
        tensorDataType: c_int,
        tensorRank: u32,
        globalAddress: *mut c_void,
        globalDim: *const u64,
        globalStrides: *const u64,
        pixelBoxLowerCorner: *const c_int,
        pixelBoxUpperCorner: *const c_int,
        channelsPerPixel: u32,
        pixelsPerColumn: u32,
        elementStrides: *const u32,
        interleave: c_int,
        swizzle: c_int,
        l2Promotion: c_int,
        oobFill: c_int,
    ) -> Status;

    /// Another base address in a tensor map.
    pub fn cuTensorMapReplaceAddress(
        tensorMap: *mut CUtensorMap,
        globalAddress: *mut c_void,
    ) -> Status;

    /// A multicast object: memory of several devices, to be mapped at one address.
    pub fn cuMulticastCreate(
        mcHandle: *mut CUmemGenericAllocationHandle,
        prop: *const CUmulticastObjectProp,
    ) -> Status;

    /// Puts a device into its team; all of them come before any memory.
    pub fn cuMulticastAddDevice(mcHandle: CUmemGenericAllocationHandle, dev: CUdevice) -> Status;

    /// Binds memory of a device.
    pub fn cuMulticastBindMem(
        mcHandle: CUmemGenericAllocationHandle,
        mcOffset: usize,
        memHandle: CUmemGenericAllocationHandle,
        memOffset: usize,
        size: usize,
        flags: u64,
    ) -> Status;

    /// Binds memory by the address at which it is mapped.
    pub fn cuMulticastBindAddr(
        mcHandle: CUmemGenericAllocationHandle,
        mcOffset: usize,
        memptr: CUdeviceptr,
        size: usize,
        flags: u64,
    ) -> Status;

    /// Takes a device's memory out again.
    pub fn cuMulticastUnbind(
        mcHandle: CUmemGenericAllocationHandle,
        dev: CUdevice,
        mcOffset: usize,
        size: usize,
    ) -> Status;

    /// What sizes and offsets are multiples of.
    pub fn cuMulticastGetGranularity(
        granularity: *mut usize,
        prop: *const CUmulticastObjectProp,
        option: c_uint,
    ) -> Status;

    /// Loads PTX or a binary, for whichever contexts come to use it.
    pub fn cuLibraryLoadData(
        library: *mut CUlibrary,
        code: *const c_void,
        jitOptions: *mut c_int,
        jitOptionsValues: *mut *mut c_void,
        numJitOptions: c_uint,
        libraryOptions: *mut c_int,
        libraryOptionValues: *mut *mut c_void,
        numLibraryOptions: c_uint,
    ) -> Status;

    /// Unloads it.
    pub fn cuLibraryUnload(library: CUlibrary) -> Status;

    /// A kernel by name.
    pub fn cuLibraryGetKernel(
        pKernel: *mut CUkernel,
        library: CUlibrary,
        name: *const c_char,
    ) -> Status;

    /// The library's module in the current context.
    pub fn cuLibraryGetModule(pMod: *mut CUmodule, library: CUlibrary) -> Status;

    /// A global variable by name, in the current context.
    pub fn cuLibraryGetGlobal(
        dptr: *mut CUdeviceptr,
        bytes: *mut usize,
        library: CUlibrary,
        name: *const c_char,
    ) -> Status;

    /// The kernel's function in the current context.
    pub fn cuKernelGetFunction(pFunc: *mut CUfunction, kernel: CUkernel) -> Status;

    /// The device of a stream-ordered call's context.
    pub fn cuCtxGetDevice_v2(device: *mut CUdevice, ctx: CUcontext) -> Status;
}

/// `CU_FUNC_ATTRIBUTE_*` numbers beyond cust's `FunctionAttribute`, for `cuFuncGetAttribute`/`cuFuncSetAttribute`.
pub mod function_attribute {
    /// The limit of dynamic shared memory; above 48 KiB only after setting this.
    pub const MAX_DYNAMIC_SHARED_SIZE_BYTES: u32 = 8;
    /// Carve-out of the L1 cache, in percent.
    pub const PREFERRED_SHARED_MEMORY_CARVEOUT: u32 = 9;
    /// Whether the kernel must be launched in clusters.
    pub const CLUSTER_SIZE_MUST_BE_SET: u32 = 10;
    /// Whether clusters above 8 blocks are allowed.
    pub const NON_PORTABLE_CLUSTER_SIZE_ALLOWED: u32 = 14;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_lie_as_in_the_c_union() {
        let cluster = CUlaunchAttribute::cluster(2, 3, 4);
        // SAFETY: plain integers, read at their own size within the 64 bytes.
        let ints: [u32; 16] = unsafe { core::mem::transmute(cluster.value) };
        assert_eq!(ints[..4], [2, 3, 4, 0]);
        assert_eq!(CUlaunchAttribute::cooperative().value[0], 1);
    }

    #[test]
    fn unknown_codes_become_unknown() {
        assert_eq!(
            Status(719).as_cu_result(),
            CUresult::CUDA_ERROR_LAUNCH_FAILED
        );
        assert_eq!(Status(0).as_cu_result(), CUresult::CUDA_SUCCESS);
        assert_eq!(Status(4711).as_cu_result(), CUresult::CUDA_ERROR_UNKNOWN);
        assert_eq!(Status(912).result(), Err(912));
    }
}
