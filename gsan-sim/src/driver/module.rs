//! Modules: PTX text into the machine, names to handles.

use super::Diagnosis;
use super::api::{In, Out, Session, Text, driver_api};
use super::codes::{Answer, Code};
use super::state::{Driver, Function, Handle, Module};
use crate::machine::FunctionId;
use std::ffi::CString;

/// `CU_JIT_*` options that are looked at.
mod jit {
    pub(super) const INFO_LOG: u32 = 3;
    pub(super) const INFO_LOG_BYTES: u32 = 4;
    pub(super) const ERROR_LOG: u32 = 5;
    pub(super) const ERROR_LOG_BYTES: u32 = 6;
}

/// The caller's options. A value is passed in the pointer's place; sizes are answered there.
pub(super) struct JitOptions {
    count: u32,
    options: In<u32>,
    values: Out<u64>,
    given: In<u64>,
}

impl JitOptions {
    pub(super) fn new(count: u32, options: In<u32>, values: u64) -> Answer<JitOptions> {
        if count > 0 && (options.is_null() || values == 0) {
            return Err(Code::INVALID_VALUE);
        }
        Ok(JitOptions {
            count,
            options,
            values: Out::from_address(values),
            given: In::from_address(values),
        })
    }

    pub(super) fn none() -> JitOptions {
        JitOptions {
            count: 0,
            options: In::from_address(0),
            values: Out::from_address(0),
            given: In::from_address(0),
        }
    }

    fn find(&self, option: u32) -> Option<(usize, u64)> {
        let index = (0..self.count as usize).find(|&index| self.options.at(index) == Ok(option))?;
        Some((index, self.given.at(index).ok()?))
    }

    /// Puts a text into one of the logs, cut to its size.
    fn log(&self, text: &str, buffer: u32, size: u32) {
        let (Some((_, buffer)), Some((size_index, room))) = (self.find(buffer), self.find(size))
        else {
            return;
        };
        // The size is an unsigned int, whatever is in the upper half.
        let room = room as u32 as usize;
        if buffer == 0 || room == 0 {
            return;
        }
        let bytes = &text.as_bytes()[..text.len().min(room - 1)];
        // SAFETY: the caller says that its buffer has `room` bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer as *mut u8, bytes.len());
            (buffer as *mut u8).add(bytes.len()).write(0);
        }
        let _ = self.values.at(size_index).set(bytes.len() as u64);
    }

    fn error(&self, text: &str) {
        self.log(text, jit::ERROR_LOG, jit::ERROR_LOG_BYTES);
    }
}

/// What an image is, by its first bytes.
enum Image {
    Ptx(String),
    Binary(&'static str),
    Empty,
    NotText,
}

fn read_image(image: &Text) -> Answer<Image> {
    let bytes = image.get()?.to_bytes();
    Ok(match bytes {
        [] => Image::Empty,
        [0x7f, b'E', b'L', b'F', ..] => Image::Binary("a cubin"),
        [0x50, 0xed, 0x55, 0xba, ..] | [0xb1, 0x43, 0x62, 0x46, ..] => Image::Binary("a fatbin"),
        text => {
            std::str::from_utf8(text).map_or(Image::NotText, |text| Image::Ptx(text.to_owned()))
        }
    })
}

/// Loads an image into the current context.
pub(super) fn load(session: &mut Session, image: &Text, options: &JitOptions) -> Answer<Handle> {
    session.healthy()?;
    let text = match read_image(image)? {
        Image::Ptx(text) => text,
        Image::Binary(what) => {
            options.error(&format!(
                "the simulated GPU loads PTX text; this is {what}: compile with -ptx"
            ));
            return Err(Code::NO_BINARY_FOR_GPU);
        }
        Image::Empty => {
            options.error("the image is empty");
            return Err(Code::INVALID_IMAGE);
        }
        Image::NotText => {
            options.error("the image is neither PTX text nor a known binary");
            return Err(Code::INVALID_IMAGE);
        }
    };
    load_ptx(session, &text, options)
}

pub(super) fn load_ptx(session: &mut Session, text: &str, options: &JitOptions) -> Answer<Handle> {
    let (driver, context) = session.healthy()?;
    let device = driver.context(context)?.device;
    if let Some(version) = too_new(text) {
        options.error(&format!(
            "PTX version {version} is newer than the simulated driver (9.x)"
        ));
        return Err(Code::UNSUPPORTED_PTX_VERSION);
    }
    match driver.machine.load_module(device, text) {
        Ok(id) => {
            let handle = driver.new_handle();
            driver.modules.insert(handle, Module { context, id });
            options.log("", jit::INFO_LOG, jit::INFO_LOG_BYTES);
            options.log("", jit::ERROR_LOG, jit::ERROR_LOG_BYTES);
            Ok(handle)
        }
        Err(error) => {
            let message = error.to_string();
            options.error(&message);
            session.state().diagnosis = Some(Diagnosis::error(format!(
                "the module was refused: {message}"
            )));
            Err(Code::INVALID_PTX)
        }
    }
}

/// The number after `.version`, if it is one that no driver of CUDA 13 takes.
fn too_new(text: &str) -> Option<&str> {
    let directive = text
        .lines()
        .map(str::trim_start)
        .find_map(|line| line.strip_prefix(".version"))?;
    let version = directive.split_whitespace().next()?;
    let major: u32 = version.split('.').next()?.parse().ok()?;
    (major > 9).then_some(version)
}

impl Driver {
    /// The handle of a module's function; the same one each time.
    pub(super) fn function_handle(&mut self, module: Handle, id: FunctionId) -> Answer<Handle> {
        let known = self
            .functions
            .iter()
            .find(|(_, function)| function.module == module && function.id == id);
        if let Some((&handle, _)) = known {
            return Ok(handle);
        }
        let info = self.machine.function_info(id).ok_or(Code::NOT_FOUND)?;
        let name = CString::new(info.name.as_str()).map_err(|_| Code::NOT_FOUND)?;
        let handle = self.new_handle();
        let function = Function {
            module,
            id,
            name,
            max_dynamic: None,
            carveout: -1,
            non_portable_cluster: false,
        };
        self.functions.insert(handle, function);
        Ok(handle)
    }

    pub(super) fn find_function(&mut self, module: Handle, name: &str) -> Answer<Handle> {
        let id = self.module(module)?.id;
        let function = self.machine.function(id, name).ok_or(Code::NOT_FOUND)?;
        self.function_handle(module, function)
    }

    /// Forgets a module; its work must be done.
    pub(super) fn unload(&mut self, module: Handle) {
        if let Some(gone) = self.modules.remove(&module) {
            self.functions
                .retain(|_, function| function.module != module);
            self.machine.unload_module(gone.id);
        }
    }
}

/// Address and size of a variable.
pub(super) fn global(
    session: &mut Session,
    address: &Out<u64>,
    bytes: &Out<usize>,
    module: Handle,
    name: &Text,
) -> Answer {
    if address.is_null() && bytes.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    let (driver, _) = session.healthy()?;
    let id = driver.module(module)?.id;
    let (at, len) = driver
        .machine
        .global(id, name.utf8()?)
        .ok_or(Code::NOT_FOUND)?;
    address.set_if_wanted(at);
    bytes.set_if_wanted(len as usize);
    Ok(())
}

driver_api! {
    fn cuModuleLoad(s, module: Out<Handle>, file: Text) {
        module.require()?;
        s.healthy()?;
        use std::os::unix::ffi::OsStrExt;
        let path = std::path::Path::new(std::ffi::OsStr::from_bytes(file.get()?.to_bytes()));
        let mut bytes = std::fs::read(path).map_err(|_| Code::FILE_NOT_FOUND)?;
        bytes.push(0);
        module.set(load(s, &Text::from_address(bytes.as_ptr() as u64), &JitOptions::none())?)
    }
    fn cuModuleLoadData(s, module: Out<Handle>, image: Text) {
        module.require()?;
        module.set(load(s, &image, &JitOptions::none())?)
    }
    fn cuModuleLoadDataEx(s, module: Out<Handle>, image: Text, count: u32, options: In<u32>, values: u64) {
        module.require()?;
        let options = JitOptions::new(count, options, values)?;
        module.set(load(s, &image, &options)?)
    }
    fn cuModuleLoadFatBinary(s, module: Out<Handle>, image: Text) {
        module.require()?;
        module.set(load(s, &image, &JitOptions::none())?)
    }
    fn cuModuleUnload(s, module: Handle) {
        let (driver, _) = s.healthy()?;
        let context = driver.module(module)?.context;
        s.wait_for_all(context)?;
        s.driver()?.unload(module);
        Ok(())
    }
    fn cuModuleGetFunction(s, function: Out<Handle>, module: Handle, name: Text) {
        function.require()?;
        let name = name.utf8()?;
        let (driver, _) = s.healthy()?;
        function.set(driver.find_function(module, name)?)
    }
    fn cuModuleGetGlobal_v2(s, address: Out<u64>, bytes: Out<usize>, module: Handle, name: Text) {
        global(s, &address, &bytes, module, &name)
    }
    fn cuModuleGetFunctionCount(s, count: Out<u32>, module: Handle) {
        let (driver, _) = s.healthy()?;
        let id = driver.module(module)?.id;
        count.set(driver.machine.functions(id).len() as u32)
    }
    fn cuModuleEnumerateFunctions(s, functions: Out<Handle>, room: u32, module: Handle) {
        let (driver, _) = s.healthy()?;
        let id = driver.module(module)?.id;
        let ids = driver.machine.functions(id);
        for (index, id) in ids.into_iter().take(room as usize).enumerate() {
            let handle = driver.function_handle(module, id)?;
            functions.at(index).set(handle)?;
        }
        Ok(())
    }
    fn cuModuleGetLoadingMode(s, mode: Out<u32>) {
        s.driver()?;
        // Eager.
        mode.set(1)
    }
}
