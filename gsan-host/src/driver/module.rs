//! Loaded modules and their functions.

use super::{Device, SUCCESS, check, check_code, error_name, failure};
use crate::error::{Error, Result};
use crate::prepare::Input;
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

/// What the driver's compiler says of a mistake, and the options that make it say so.
struct Log {
    text: Vec<u8>,
    options: [Option_; 3],
    values: [*mut c_void; 3],
}

impl Log {
    const BYTES: usize = 16 << 10;

    fn new() -> Log {
        let mut text = vec![0u8; Log::BYTES];
        Log {
            options: [
                Option_::CU_JIT_ERROR_LOG_BUFFER,
                Option_::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                Option_::CU_JIT_GENERATE_LINE_INFO,
            ],
            // Numbers travel in the pointer's place.
            values: [
                text.as_mut_ptr().cast(),
                (Log::BYTES - 1) as *mut c_void,
                std::ptr::without_provenance_mut(1),
            ],
            text,
        }
    }

    fn said(&self) -> String {
        let end = self.text.iter().position(|&b| b == 0);
        let said = String::from_utf8_lossy(&self.text[..end.unwrap_or(Log::BYTES)]);
        said.trim_end().to_string()
    }

    /// What was said, or else what the simulator knows.
    fn text(&self) -> String {
        let said = self.said();
        match cuda_lazy::diagnosis().filter(|_| said.is_empty()) {
            Some(diagnosis) => diagnosis.message,
            None => said,
        }
    }
}

/// A module, or the call that failed and the driver's number.
type Answer = std::result::Result<sys::CUmodule, (&'static str, u32)>;

/// Loads an image into the current context.
fn load(image: &[u8], log: &mut Log) -> Answer {
    let mut raw: sys::CUmodule = std::ptr::null_mut();
    // SAFETY: the image is a NUL-terminated text or came from the driver's linker, the lists have three entries, the log has
    // the length that it is said to have, and all outlive the call.
    let code = unsafe {
        sys::cuModuleLoadDataEx(
            &mut raw,
            image.as_ptr().cast(),
            log.options.len() as u32,
            log.options.as_mut_ptr(),
            log.values.as_mut_ptr(),
        )
    } as u32;
    if code != SUCCESS {
        return Err(("cuModuleLoadDataEx", code));
    }
    Ok(raw)
}

/// A text as the driver takes it.
struct Image {
    name: CString,
    text: CString,
    registers: Option<u32>,
}

/// Links modules and loads the result.
fn link(modules: &[Image], log: &mut Log) -> Answer {
    let mut linker: sys::CUlinkState = std::ptr::null_mut();
    // SAFETY: as in `load`; the log lives until the linker is destroyed, and `linker` is a valid place for the answer.
    let created = unsafe {
        sys::cuLinkCreate_v2(
            log.options.len() as u32,
            log.options.as_mut_ptr(),
            log.values.as_mut_ptr(),
            &mut linker,
        )
    } as u32;
    if created != SUCCESS {
        return Err(("cuLinkCreate", created));
    }
    let linked = (|| {
        for Image {
            name,
            text,
            registers,
        } in modules
        {
            // Numbers travel in the pointer's place.
            let number = registers.unwrap_or_default() as usize;
            let mut option = Option_::CU_JIT_MAX_REGISTERS;
            let mut value: *mut c_void = std::ptr::without_provenance_mut(number);
            // SAFETY: name and text are NUL-terminated, the length counts the zero as PTX inputs want it; the lists of options have
            // one entry, or are not looked at.
            let added = unsafe {
                sys::cuLinkAddData_v2(
                    linker,
                    sys::CUjitInputType::CU_JIT_INPUT_PTX,
                    text.as_ptr().cast_mut().cast(),
                    text.as_bytes_with_nul().len(),
                    name.as_ptr(),
                    u32::from(registers.is_some()),
                    &mut option,
                    &mut value,
                )
            } as u32;
            if added != SUCCESS {
                return Err(("cuLinkAddData", added));
            }
        }
        let (mut image, mut bytes) = (std::ptr::null_mut(), 0);
        // SAFETY: both are valid places for the answers.
        let complete = unsafe { sys::cuLinkComplete(linker, &mut image, &mut bytes) } as u32;
        if complete != SUCCESS {
            return Err(("cuLinkComplete", complete));
        }
        // SAFETY: the linker answered with an image of that length, which it keeps until it is destroyed.
        let image = unsafe { std::slice::from_raw_parts(image.cast::<u8>(), bytes) };
        // Other options: those of the linker still point to the log.
        load(image, &mut Log::new())
    })();
    // SAFETY: the linker was created above and is not used again; a module does not need it.
    unsafe { sys::cuLinkDestroy(linker) };
    linked
}

impl Module {
    /// Compiles and loads PTX; several texts are linked. `name` and `instrumented` are for the error.
    pub(crate) fn load(
        device: &Rc<Device>,
        name: &str,
        modules: &[Input],
        instrumented: bool,
    ) -> Result<Module> {
        device.enter()?;
        let mut images = Vec::with_capacity(modules.len());
        for input in modules {
            let no_zero = |text: &str| {
                CString::new(text).map_err(|_| Error::Instrument {
                    module: input.name.clone(),
                    message: "the text contains a zero byte".into(),
                })
            };
            images.push(Image {
                name: no_zero(&input.name)?,
                text: no_zero(&input.text)?,
                registers: input.registers,
            });
        }
        let mut log = Log::new();
        let loaded = match &images[..] {
            [image] => load(image.text.to_bytes_with_nul(), &mut log),
            images => link(images, &mut log),
        };
        match loaded {
            Ok(raw) => Ok(Module {
                device: device.clone(),
                raw,
            }),
            // A linker's mistakes have all sorts of numbers, but it says what they are.
            Err((_, code)) if is_refusal(code) || !log.said().is_empty() => Err(Error::Load {
                module: name.into(),
                name: error_name(code),
                log: log.text(),
                instrumented,
            }),
            Err((call, code)) => Err(failure(call, code)),
        }
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
