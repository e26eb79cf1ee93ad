//! The driver API, as far as it is needed, through the raw calls.

use crate::kernel::{Launch, Map, dims};
use anyhow::{Result, bail};
use cuda_lazy::ext::{
    CUlaunchAttribute, CUlaunchConfig, CUtensorMap, cuLaunchKernelEx, cuTensorMapEncodeIm2col,
    cuTensorMapEncodeTiled,
};
use cust_raw::*;
use std::ffi::{CString, c_void};
use std::ptr::{null, null_mut};

/// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`
const MAX_DYNAMIC: u32 = 8;
/// What a block may have of dynamic shared memory without asking.
const DEFAULT_DYNAMIC: u32 = 48 << 10;

/// A device with a context.
pub struct Device {
    /// With the driver's version.
    pub name: String,
}

/// Device memory.
pub struct Buffer {
    /// Where it lies.
    pub address: u64,
    /// What it held at first.
    pub before: Vec<u8>,
}

/// A loaded module.
#[derive(Clone, Copy)]
pub struct Module(CUmodule);

fn check(what: &str, result: CUresult) -> Result<()> {
    match result as i32 {
        0 => Ok(()),
        code => bail!("{what}: error {code}"),
    }
}

impl Device {
    /// The first device.
    pub fn new() -> Result<Device> {
        let mut device = 0;
        let mut context = null_mut();
        let mut name = [0u8; 128];
        let mut version = 0;
        // SAFETY: the results are locals.
        unsafe {
            check("cuInit", cuInit(0))?;
            check("cuDeviceGet", cuDeviceGet(&mut device, 0))?;
            check("cuCtxCreate", cuCtxCreate_v2(&mut context, 0, device))?;
            check(
                "cuDeviceGetName",
                cuDeviceGetName(name.as_mut_ptr().cast(), 128, device),
            )?;
            check("cuDriverGetVersion", cuDriverGetVersion(&mut version))?;
        }
        let end = name.iter().position(|&b| b == 0).unwrap_or(0);
        let name = String::from_utf8_lossy(&name[..end]);
        Ok(Device {
            name: format!("{name}, CUDA {}.{}", version / 1000, version % 1000 / 10),
        })
    }

    /// Compiles and loads a module, or says why not.
    pub fn load(&self, ptx: &str) -> Result<Module, (i32, String)> {
        let text = CString::new(ptx).map_err(|_| (1, "a zero byte in the text".to_string()))?;
        let mut module = null_mut();
        let mut log = vec![0u8; 4096];
        let mut keys = [
            CUjit_option_enum::CU_JIT_ERROR_LOG_BUFFER,
            CUjit_option_enum::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ];
        let mut values = [log.as_mut_ptr().cast::<c_void>(), log.len() as *mut c_void];
        // SAFETY: the text is NUL-terminated, and there are as many values as keys.
        let code = unsafe {
            cuModuleLoadDataEx(
                &mut module,
                text.as_ptr().cast(),
                2,
                keys.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        } as i32;
        if code == 0 {
            return Ok(Module(module));
        }
        let end = log.iter().position(|&b| b == 0).unwrap_or(0);
        Err((code, String::from_utf8_lossy(&log[..end]).into_owned()))
    }

    /// Where a variable of the module's lies.
    pub fn symbol(&self, module: Module, name: &str) -> Result<u64> {
        let name = CString::new(name)?;
        let (mut address, mut bytes) = (0, 0);
        // SAFETY: the module is loaded, the name is NUL-terminated, and the results are locals.
        let found =
            unsafe { cuModuleGetGlobal_v2(&mut address, &mut bytes, module.0, name.as_ptr()) };
        check("cuModuleGetGlobal", found)?;
        Ok(address)
    }

    /// Unloads it.
    pub fn unload(&self, module: Module) {
        // SAFETY: it is loaded, and none of its kernels runs.
        let _ = unsafe { cuModuleUnload(module.0) };
    }

    /// Device memory with those bytes.
    pub fn buffer(&self, bytes: &[u8]) -> Result<Buffer> {
        let mut address = 0;
        let len = bytes.len().max(1);
        // SAFETY: the memory is as long as what is copied.
        unsafe {
            check("cuMemAlloc", cuMemAlloc_v2(&mut address, len))?;
            if !bytes.is_empty() {
                check(
                    "cuMemcpyHtoD",
                    cuMemcpyHtoD_v2(address, bytes.as_ptr().cast(), bytes.len()),
                )?;
            }
        }
        Ok(Buffer {
            address,
            before: bytes.to_vec(),
        })
    }

    /// Its bytes.
    pub fn read(&self, buffer: &Buffer) -> Result<Vec<u8>> {
        let mut bytes = vec![0; buffer.before.len()];
        // SAFETY: the memory is as long as what is copied.
        unsafe {
            check(
                "cuMemcpyDtoH",
                cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), buffer.address, bytes.len()),
            )?;
        }
        Ok(bytes)
    }

    /// Frees it.
    pub fn free(&self, buffer: &Buffer) {
        // SAFETY: allocated by `buffer`, and nothing that uses it runs.
        let _ = unsafe { cuMemFree_v2(buffer.address) };
    }

    /// A tensor map's 128 bytes, or why the driver makes none.
    pub fn tensor_map(&self, map: &Map, address: u64) -> Result<Result<Vec<u8>, i32>> {
        let mut out = CUtensorMap { opaque: [0; 16] };
        let rank = map.extents.len();
        let steps = if map.steps.is_empty() {
            vec![1; rank]
        } else {
            map.steps.clone()
        };
        let boxes_fit = match &map.windows {
            Some(w) => w.lower.len() + 2 == rank && w.upper.len() + 2 == rank,
            None => map.boxes.len() == rank,
        };
        if !boxes_fit || steps.len() != rank || map.strides.len() + 1 < rank {
            bail!("a tensor map's lists have different lengths");
        }
        // A tensor of one dimension has no strides; the driver wants an address all the same.
        let mut strides = map.strides.clone();
        strides.push(0);
        // SAFETY: the lists have `rank` elements (corners two less), checked above.
        let status = unsafe {
            match &map.windows {
                None => cuTensorMapEncodeTiled(
                    &mut out,
                    map.ty,
                    rank as u32,
                    address as *mut c_void,
                    map.extents.as_ptr(),
                    strides.as_ptr(),
                    map.boxes.as_ptr(),
                    steps.as_ptr(),
                    0,
                    map.swizzle,
                    0,
                    map.fill,
                ),
                Some(w) => cuTensorMapEncodeIm2col(
                    &mut out,
                    map.ty,
                    rank as u32,
                    address as *mut c_void,
                    map.extents.as_ptr(),
                    strides.as_ptr(),
                    w.lower.as_ptr(),
                    w.upper.as_ptr(),
                    w.channels,
                    w.pixels,
                    steps.as_ptr(),
                    0,
                    map.swizzle,
                    0,
                    map.fill,
                ),
            }
        };
        let bytes = || out.opaque.iter().flat_map(|w| w.to_le_bytes()).collect();
        Ok(status.result().map(|()| bytes()))
    }

    /// Launches a kernel and waits for it; the driver's answer.
    pub fn launch(&self, module: Module, launch: &Launch, values: &mut [Vec<u8>]) -> Result<i32> {
        let name = CString::new(launch.kernel.as_str())?;
        let mut function = null_mut();
        // SAFETY: the name is NUL-terminated.
        let found = unsafe { cuModuleGetFunction(&mut function, module.0, name.as_ptr()) };
        check("cuModuleGetFunction", found)?;
        if launch.shared > DEFAULT_DYNAMIC {
            let shared = launch.shared as i32;
            // SAFETY: the function is the module's; the attribute is one that exists.
            let set = unsafe {
                cuFuncSetAttribute(
                    function,
                    std::mem::transmute::<u32, CUfunction_attribute>(MAX_DYNAMIC),
                    shared,
                )
            };
            check("cuFuncSetAttribute", set)?;
        }
        if launch.stack > 0 {
            // SAFETY: a limit of the current context.
            let set =
                unsafe { cuCtxSetLimit(CUlimit_enum::CU_LIMIT_STACK_SIZE, launch.stack as usize) };
            check("cuCtxSetLimit", set)?;
        }
        let mut attributes = Vec::new();
        if !launch.cluster.is_empty() {
            let [x, y, z] = dims(&launch.cluster);
            attributes.push(CUlaunchAttribute::cluster(x, y, z));
        }
        if launch.cooperative {
            attributes.push(CUlaunchAttribute::cooperative());
        }
        let ([gx, gy, gz], [bx, by, bz]) = (dims(&launch.grid), dims(&launch.block));
        let config = CUlaunchConfig {
            gridDimX: gx,
            gridDimY: gy,
            gridDimZ: gz,
            blockDimX: bx,
            blockDimY: by,
            blockDimZ: bz,
            sharedMemBytes: launch.shared,
            hStream: null_mut(),
            attrs: if attributes.is_empty() {
                null::<CUlaunchAttribute>().cast_mut()
            } else {
                attributes.as_mut_ptr()
            },
            numAttrs: attributes.len() as u32,
        };
        let mut pointers: Vec<*mut c_void> =
            values.iter_mut().map(|v| v.as_mut_ptr().cast()).collect();
        // SAFETY: one pointer for each parameter, to as many bytes as the list says.
        let launched =
            unsafe { cuLaunchKernelEx(&config, function, pointers.as_mut_ptr(), null_mut()) };
        if let Err(code) = launched.result() {
            return Ok(code);
        }
        // SAFETY: a context is current.
        Ok(unsafe { cuCtxSynchronize() } as i32)
    }
}
