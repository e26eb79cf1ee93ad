//! Context-independent libraries and the linker: both are PTX texts that become modules later. Linking several inputs makes
//! one text of them.

use super::Diagnosis;
use super::api::{In, Out, Session, Text, driver_api};
use super::codes::{Answer, Code};
use super::module::{self, JitOptions};
use super::state::{Driver, Handle};
use std::collections::HashMap;

/// `CU_JIT_INPUT_PTX`.
const PTX: u32 = 1;

/// A text, and the modules that were made of it.
pub(super) struct Library {
    text: String,
    modules: HashMap<Handle, Handle>,
    kernels: HashMap<Handle, String>,
}

/// A linker.
#[derive(Default)]
pub(super) struct Link {
    /// Name and text of each input.
    inputs: Vec<(String, String)>,
    /// With a NUL at its end, as the result is read; empty until it is complete.
    result: Vec<u8>,
}

impl Driver {
    /// The context's modules are gone.
    pub(super) fn forget_library_modules(&mut self, context: Handle) {
        for library in self.libraries.values_mut() {
            library.modules.remove(&context);
        }
    }

    fn library(&mut self, library: Handle) -> Answer<&mut Library> {
        self.libraries.get_mut(&library).ok_or(Code::INVALID_HANDLE)
    }

    fn link(&mut self, link: Handle) -> Answer<&mut Link> {
        self.links.get_mut(&link).ok_or(Code::INVALID_HANDLE)
    }
}

/// The library's module in the current context.
fn module_of(session: &mut Session, library: Handle) -> Answer<Handle> {
    let (driver, context) = session.healthy()?;
    let known = driver.library(library)?;
    if let Some(&module) = known.modules.get(&context) {
        return Ok(module);
    }
    let text = known.text.clone();
    let module = module::load_ptx(session, &text, &JitOptions::none())?;
    session
        .driver()?
        .library(library)?
        .modules
        .insert(context, module);
    Ok(module)
}

impl super::state::Driver {
    /// The function of a kernel in a context in which its library has been used.
    pub(super) fn function_of_kernel(&mut self, context: Handle, kernel: Handle) -> Answer<Handle> {
        let mut libraries = self.libraries.values();
        let found = libraries.find_map(|library| {
            let name = library.kernels.get(&kernel)?.clone();
            Some((*library.modules.get(&context)?, name))
        });
        let (module, name) = found.ok_or(Code::INVALID_HANDLE)?;
        self.find_function(module, &name)
    }
}

fn add_input(
    session: &mut Session,
    link: Handle,
    kind: u32,
    name: String,
    text: Vec<u8>,
) -> Answer {
    let link = session.driver()?.link(link)?;
    if kind != PTX || !link.result.is_empty() {
        return Err(Code::NOT_SUPPORTED);
    }
    let mut text = String::from_utf8(text).map_err(|_| Code::INVALID_IMAGE)?;
    text.truncate(text.trim_end_matches('\0').len());
    if text.is_empty() {
        return Err(Code::INVALID_IMAGE);
    }
    link.inputs.push((name, text));
    Ok(())
}

fn complete(session: &mut Session, handle: Handle) -> Answer {
    let link = session.driver()?.link(handle)?;
    if !link.result.is_empty() {
        return Ok(());
    }
    let mut linked = match &link.inputs[..] {
        [] => return Err(Code::INVALID_IMAGE),
        // As it is, so that messages about it name its lines.
        [(_, only)] => only.clone(),
        inputs => {
            let inputs: Vec<(&str, &str)> = inputs
                .iter()
                .map(|(n, t)| (n.as_str(), t.as_str()))
                .collect();
            match gsan_ptx::link::link(&inputs) {
                Ok(text) => text,
                Err(error) => {
                    let message = format!("the modules can't be linked: {error}");
                    session.state().diagnosis = Some(Diagnosis::error(message));
                    return Err(Code::INVALID_PTX);
                }
            }
        }
    };
    linked.push('\0');
    session.driver()?.link(handle)?.result = linked.into_bytes();
    Ok(())
}

driver_api! {
    fn cuLibraryLoadData(
        s, library: Out<Handle>, code: Text, options: In<u32>, values: u64, count: u32,
        _library_options: u64, _library_values: u64, _library_count: u32
    ) {
        library.require()?;
        JitOptions::new(count, options, values)?;
        let text = code.get()?.to_str().map_err(|_| Code::INVALID_IMAGE)?.to_owned();
        let driver = s.driver()?;
        let handle = driver.new_handle();
        driver.libraries.insert(handle, Library { text, modules: HashMap::new(), kernels: HashMap::new() });
        library.set(handle)
    }
    fn cuLibraryUnload(s, library: Handle) {
        let modules: Vec<(Handle, Handle)> = s.driver()?.library(library)?.modules.drain().collect();
        for (context, module) in modules {
            let _ = s.wait_for_all(context);
            s.driver()?.unload(module);
        }
        s.driver()?.libraries.remove(&library);
        Ok(())
    }
    fn cuLibraryGetKernel(s, kernel: Out<Handle>, library: Handle, name: Text) {
        kernel.require()?;
        let name = name.utf8()?;
        let module = module_of(s, library)?;
        let driver = s.driver()?;
        driver.find_function(module, name)?;
        let known = driver.library(library)?.kernels.iter().find(|(_, known)| *known == name).map(|(&handle, _)| handle);
        let handle = known.unwrap_or_else(|| driver.new_handle());
        driver.library(library)?.kernels.insert(handle, name.to_owned());
        kernel.set(handle)
    }
    fn cuLibraryGetModule(s, module: Out<Handle>, library: Handle) {
        module.require()?;
        module.set(module_of(s, library)?)
    }
    fn cuLibraryGetGlobal(s, address: Out<u64>, bytes: Out<usize>, library: Handle, name: Text) {
        let module = module_of(s, library)?;
        module::global(s, &address, &bytes, module, &name)
    }
    fn cuKernelGetFunction(s, function: Out<Handle>, kernel: Handle) {
        function.require()?;
        let found = s.driver()?.libraries.iter().find_map(|(&library, what)| {
            what.kernels.get(&kernel).map(|name| (library, name.clone()))
        });
        let (library, name) = found.ok_or(Code::INVALID_HANDLE)?;
        let module = module_of(s, library)?;
        function.set(s.driver()?.find_function(module, &name)?)
    }

    fn cuLinkCreate_v2(s, count: u32, options: In<u32>, values: u64, link: Out<Handle>) {
        link.require()?;
        JitOptions::new(count, options, values)?;
        let (driver, _) = s.healthy()?;
        let handle = driver.new_handle();
        driver.links.insert(handle, Link::default());
        link.set(handle)
    }
    fn cuLinkAddData_v2(
        s, link: Handle, kind: u32, data: In<u8>, len: usize, name: Text, _count: u32, _options: In<u32>, _values: u64
    ) {
        let text = (0..len).map(|index| data.at(index)).collect::<Answer<Vec<u8>>>()?;
        let name = name.utf8().unwrap_or("input").to_owned();
        add_input(s, link, kind, name, text)
    }
    fn cuLinkAddFile_v2(s, link: Handle, kind: u32, path: Text, _count: u32, _options: In<u32>, _values: u64) {
        let path = path.utf8()?;
        let text = std::fs::read(path).map_err(|_| Code::FILE_NOT_FOUND)?;
        add_input(s, link, kind, path.to_owned(), text)
    }
    fn cuLinkComplete(s, link: Handle, image: Out<*const u8>, len: Out<usize>) {
        image.require()?;
        complete(s, link)?;
        let link = s.driver()?.link(link)?;
        len.set_if_wanted(link.result.len());
        // Stays until the linker is destroyed, and nothing is added after this.
        image.set(link.result.as_ptr())
    }
    fn cuLinkDestroy(s, link: Handle) {
        s.driver()?.links.remove(&link).map(|_| ()).ok_or(Code::INVALID_HANDLE)
    }
}
