//! Loaded modules and their functions.

use super::{Device, check, check_code, error_name};
use crate::error::{Error, Result};
use cuda_lazy::ext::{CUlaunchAttribute, CUlaunchConfig, cuLaunchKernelEx};
use cust::sys::{self, CUfunction_attribute as Attribute, CUjit_option as Option_};
use std::ffi::{CString, c_void};
use std::rc::Rc;

/// A module in one device's context.
pub(crate) struct Module {
    device: Rc<Device>,
    raw: sys::CUmodule,
}

/// A kernel of a module; valid while the module is.
#[derive(Clone, Copy)]
pub(crate) struct Function(sys::CUfunction);

impl Module {
    /// Compiles and loads PTX; `name` and `instrumented` are for the error.
    pub(crate) fn load(
        device: &Rc<Device>,
        name: &str,
        ptx: &str,
        instrumented: bool,
    ) -> Result<Module> {
        const LOG_BYTES: usize = 16 << 10;
        device.enter()?;
        let Ok(image) = CString::new(ptx) else {
            return Err(Error::Instrument {
                module: name.into(),
                message: "the text contains a zero byte".into(),
            });
        };
        let mut log = vec![0u8; LOG_BYTES];
        let mut options = [
            Option_::CU_JIT_ERROR_LOG_BUFFER,
            Option_::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
            Option_::CU_JIT_GENERATE_LINE_INFO,
        ];
        // Numbers travel in the pointer's place.
        let mut values: [*mut c_void; 3] = [
            log.as_mut_ptr().cast(),
            (LOG_BYTES - 1) as *mut c_void,
            std::ptr::without_provenance_mut(1),
        ];
        let mut raw: sys::CUmodule = std::ptr::null_mut();
        // SAFETY: the image is NUL-terminated, the lists have three entries, the log has the length that it is said to have,
        // and all outlive the call.
        let code = unsafe {
            sys::cuModuleLoadDataEx(
                &mut raw,
                image.as_ptr().cast(),
                options.len() as u32,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        } as u32;
        if is_refusal(code) {
            let end = log.iter().position(|&b| b == 0).unwrap_or(log.len());
            let mut log = String::from_utf8_lossy(&log[..end]).trim_end().to_string();
            if let Some(diagnosis) = cuda_lazy::diagnosis().filter(|_| log.is_empty()) {
                log = diagnosis.message;
            }
            return Err(Error::Load {
                module: name.into(),
                name: error_name(code),
                log,
                instrumented,
            });
        }
        Ok(Module {
            device: device.clone(),
            raw,
        })
    }

    /// A kernel by name; `None` if there is none.
    pub(crate) fn function(&self, name: &str) -> Result<Option<Function>> {
        const NOT_FOUND: u32 = 500;
        self.device.enter()?;
        let Ok(name) = CString::new(name) else {
            return Ok(None);
        };
        let mut raw: sys::CUfunction = std::ptr::null_mut();
        // SAFETY: the module lives, the name is NUL-terminated, `raw` is a valid place for the answer.
        let code = unsafe { sys::cuModuleGetFunction(&mut raw, self.raw, name.as_ptr()) } as u32;
        if code == NOT_FOUND {
            return Ok(None);
        }
        check_code("cuModuleGetFunction", code)?;
        Ok(Some(Function(raw)))
    }

    /// Address and size of a global variable; `None` if the compiler kept none of that name.
    pub(crate) fn global(&self, name: &str) -> Result<Option<(u64, u64)>> {
        const NOT_FOUND: u32 = 500;
        self.device.enter()?;
        let Ok(name) = CString::new(name) else {
            return Ok(None);
        };
        let (mut address, mut bytes) = (0, 0);
        // SAFETY: the module lives, the name is NUL-terminated, both places are valid.
        let code =
            unsafe { sys::cuModuleGetGlobal_v2(&mut address, &mut bytes, self.raw, name.as_ptr()) }
                as u32;
        if code == NOT_FOUND {
            return Ok(None);
        }
        check_code("cuModuleGetGlobal", code)?;
        Ok(Some((address, bytes as u64)))
    }
}

/// The codes that are about the text, not about the device: invalid image, no binary for the device, invalid PTX,
/// compiler missing, unsupported version, compilation disabled, invalid source, unresolved symbols.
fn is_refusal(code: u32) -> bool {
    matches!(code, 200 | 209 | 218 | 221..=223 | 300 | 302 | 303)
}

impl Drop for Module {
    fn drop(&mut self) {
        if self.device.enter().is_ok() {
            // SAFETY: loaded by us and unloaded once.
            let _ = unsafe { sys::cuModuleUnload(self.raw) };
        }
    }
}

impl Function {
    /// An attribute as a count.
    pub(crate) fn number(self, attribute: Attribute) -> Result<u32> {
        let mut value = 0;
        // SAFETY: `value` is a valid place for the answer; the caller keeps the module.
        check("cuFuncGetAttribute", unsafe {
            sys::cuFuncGetAttribute(&mut value, attribute, self.0)
        })?;
        Ok(u32::try_from(value).unwrap_or(0))
    }

    /// Allows this much dynamic shared memory, or tells that the driver does not.
    pub(crate) fn allow_dynamic_shared(self, bytes: u32) -> Result<()> {
        let attribute = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let value = i32::try_from(bytes).unwrap_or(i32::MAX);
        // SAFETY: plain numbers; the caller keeps the module.
        check("cuFuncSetAttribute", unsafe {
            sys::cuFuncSetAttribute(self.0, attribute, value)
        })
    }

    /// How many blocks of this shape one multiprocessor holds.
    pub(crate) fn blocks_per_sm(self, threads: u32, dynamic_shared: u32) -> Result<u32> {
        let mut blocks = 0;
        let threads = i32::try_from(threads).unwrap_or(i32::MAX);
        // SAFETY: `blocks` is a valid place for the answer; the caller keeps the module.
        check("cuOccupancyMaxActiveBlocksPerMultiprocessor", unsafe {
            sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &mut blocks,
                self.0,
                threads,
                dynamic_shared as usize,
            )
        })?;
        Ok(u32::try_from(blocks).unwrap_or(0))
    }

    /// Issues the kernel. `params` are the parameters' bytes, in order, of the sizes that the kernel declares.
    ///
    /// # Safety
    /// * The function's module is loaded, and the stream of `config` is alive and of the same context, which is current.
    /// * `params` has one entry per parameter of the kernel, each at least as long as it.
    pub(crate) unsafe fn launch(
        self,
        mut config: CUlaunchConfig,
        attributes: &mut [CUlaunchAttribute],
        params: &mut [Vec<u8>],
    ) -> Result<()> {
        let mut pointers: Vec<*mut c_void> =
            params.iter_mut().map(|p| p.as_mut_ptr().cast()).collect();
        if attributes.is_empty() {
            // The plain call, for the sake of older drivers.
            // SAFETY: by the caller's promise; the lists outlive the call, which copies them.
            return check("cuLaunchKernel", unsafe {
                sys::cuLaunchKernel(
                    self.0,
                    config.gridDimX,
                    config.gridDimY,
                    config.gridDimZ,
                    config.blockDimX,
                    config.blockDimY,
                    config.blockDimZ,
                    config.sharedMemBytes,
                    config.hStream,
                    pointers.as_mut_ptr(),
                    std::ptr::null_mut(),
                )
            });
        }
        config.attrs = attributes.as_mut_ptr();
        config.numAttrs = attributes.len() as u32;
        // SAFETY: as above; the attributes outlive the call too.
        let status = unsafe {
            cuLaunchKernelEx(&config, self.0, pointers.as_mut_ptr(), std::ptr::null_mut())
        };
        check_code("cuLaunchKernelEx", status.0 as u32)
    }
}
