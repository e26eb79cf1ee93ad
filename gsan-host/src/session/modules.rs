//! Modules: instrumenting, loading, and shadow for their variables.

use super::Session;
use crate::catalogue::ModuleNames;
use crate::cell_format::CellFormat;
use crate::driver::{Device, DeviceMemory, Function, Module, copy_from_host, copy_to_host};
use crate::error::{Error, Result};
use crate::launch_plan::KernelFacts;
use crate::prepare::{self, Input, Kernel, Prepared};
use crate::report::{RaceClass, Site};
use crate::request::{KernelInfo, ModuleId};
use bytemuck::Zeroable;
use cust::sys::{CUdevice_attribute, CUfunction_attribute as Attribute};
use gsan_device::layout::{LAYOUT_VERSION, ModuleState, Range, WORD};
use std::collections::HashMap;
use std::rc::Rc;

/// A module, loaded on every device.
pub(super) struct LoadedModule {
    name: String,
    /// The user's texts, to compare with where instrumentation makes a launch impossible.
    plain_texts: Vec<Input>,
    kernels: Vec<Rc<Kernel>>,
    infos: Vec<KernelInfo>,
    /// The user's variables in global memory.
    variables: Vec<String>,
    parts: Vec<Part>,
}

/// One device's part of a module. Kernels that use it must have ended before it is dropped.
struct Part {
    functions: HashMap<String, LoadedFunction>,
    plain: Option<Module>,
    module: Module,
    ranges: Vec<Range>,
    // The cells of its variables.
    _cells: Vec<DeviceMemory>,
}

#[derive(Clone, Copy)]
pub(super) struct LoadedFunction {
    pub(super) function: Function,
    pub(super) facts: KernelFacts,
    /// Dynamic shared memory that it has been allowed.
    pub(super) allowed: u32,
}

impl LoadedModule {
    pub(super) fn kernel(&self, name: &str) -> Result<Rc<Kernel>> {
        let found = self.kernels.iter().find(|k| k.info.name == name);
        found.cloned().ok_or_else(|| Error::UnknownKernel {
            module: self.name.clone(),
            kernel: name.into(),
            known: self.infos.iter().map(|k| k.name.clone()).collect(),
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Where a kernel begins in the PTX.
    pub(super) fn beginning(&self, kernel: &str) -> Option<Site> {
        let declares = |line: &str| {
            let name = line.split(".entry").nth(1)?.trim_start();
            let rest = name.strip_prefix(kernel)?;
            let goes_on = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
            (!rest.starts_with(goes_on)).then_some(())
        };
        self.plain_texts.iter().find_map(|plain| {
            let line = 1 + plain.text.lines().position(|l| declares(l).is_some())? as u32;
            Some(Site {
                file: plain.name.clone(),
                line,
                column: None,
                ptx_line: line,
                function: kernel.to_string(),
                inlined_at: Vec::new(),
                called_from: Vec::new(),
                near: Vec::new(),
            })
        })
    }

    /// A kernel on a device, with what the driver says of it.
    pub(super) fn function(&mut self, device: u32, name: &str) -> Result<&mut LoadedFunction> {
        let missing = || Error::UnknownKernel {
            module: self.name.clone(),
            kernel: name.into(),
            known: Vec::new(),
        };
        let Some(part) = self.parts.get_mut(device as usize) else {
            return Err(missing());
        };
        if !part.functions.contains_key(name) {
            let function = part.module.function(name)?.ok_or_else(missing)?;
            let loaded = LoadedFunction {
                function,
                facts: facts(function)?,
                allowed: 0,
            };
            part.functions.insert(name.to_string(), loaded);
        }
        part.functions
            .get_mut(name)
            .ok_or_else(|| Error::UnknownKernel {
                module: self.name.clone(),
                kernel: name.into(),
                known: Vec::new(),
            })
    }

    /// A function of the instrumented module that is not the user's, if it has it.
    pub(super) fn own_function(&self, device: u32, name: &str) -> Option<Function> {
        self.parts
            .get(device as usize)?
            .module
            .function(name)
            .ok()?
    }

    /// The kernel as the user wrote it, loaded for comparison only; `None` where that fails too.
    pub(super) fn plain(
        &mut self,
        owner: &Rc<Device>,
        device: u32,
        kernel: &str,
    ) -> Option<(Function, KernelFacts)> {
        let part = self.parts.get_mut(device as usize)?;
        if part.plain.is_none() {
            part.plain = Module::load(owner, &self.name, &self.plain_texts, false).ok();
        }
        let function = part.plain.as_ref()?.function(kernel).ok()??;
        Some((function, facts(function).ok()?))
    }
}

fn facts(function: Function) -> Result<KernelFacts> {
    Ok(KernelFacts {
        threads_per_block: function.number(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        registers: function.number(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
        static_shared: function.number(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
    })
}

impl Session {
    /// Instruments a PTX module (unless the session does not) and loads it on every device. `name` (its file name) is what
    /// reports call it.
    pub fn load_module(&mut self, name: &str, ptx: &str) -> Result<ModuleId> {
        self.load_linked(name, &[(name, ptx)])
    }

    /// Links PTX modules, each given as (file) name and text, into one program, which is loaded like a module. Each is instrumented by
    /// itself; the driver links what comes of them.
    pub fn load_linked(&mut self, name: &str, modules: &[(&str, &str)]) -> Result<ModuleId> {
        let _armed = self.begin_compiling()?;
        let prepared = if self.checked.is_some() {
            let on = |class| !self.classes_off.contains(&class);
            let (intra_block, stale_nc) = (on(RaceClass::IntraBlock), on(RaceClass::StaleNc));
            prepare::instrumented(name, modules, &self.runtime, intra_block, stale_nc)?
        } else {
            prepare::plain(modules)?
        };
        let id = ModuleId(self.modules.len() as u32);
        let mut parts = Vec::new();
        for device in 0..self.devices.len() as u32 {
            let part = self.load_part(name, &prepared, device);
            parts.push(self.noted(part)?);
        }
        self.names().modules.push(ModuleNames {
            name: name.into(),
            sites: prepared.sites,
            unsupported: prepared.unsupported,
            instrumented_sites: prepared.instrumented_sites,
            instrumentation: prepared.instrumentation,
            linked_files: prepared.linked_files,
        });
        for (device, part) in parts.iter().enumerate() {
            for variable in &prepared.variables {
                if let Some((address, bytes)) = part
                    .module
                    .global(variable)?
                    .filter(|&(_, bytes)| bytes > 0)
                {
                    self.add_variable(variable, address, bytes, device as u32);
                }
            }
        }
        let has_variables = parts.iter().any(|p| !p.ranges.is_empty());
        let kernels: Vec<Rc<Kernel>> = prepared.kernels.into_iter().map(Rc::new).collect();
        let infos = kernels.iter().map(|k| k.info.clone()).collect();
        self.modules.push(LoadedModule {
            name: name.into(),
            plain_texts: modules
                .iter()
                .map(|(name, text)| Input::new(name, *text))
                .collect(),
            kernels,
            infos,
            variables: prepared.variables,
            parts,
        });
        let published = self.publish_ranges(has_variables);
        self.noted(published)?;
        Ok(id)
    }

    fn load_part(&self, name: &str, prepared: &Prepared, index: u32) -> Result<Part> {
        let device = self.device(index)?;
        let module = Module::load(device, name, &prepared.texts, self.checked.is_some())?;
        let mut ranges = Vec::new();
        let mut cells = Vec::new();
        if let Some(checked) = &self.checked {
            tell_module(
                device,
                &module,
                checked.runtime.devices[index as usize].address(),
                !prepared.kernels.is_empty(),
                checked.reservation.layout().format,
            )?;
            for variable in &prepared.variables {
                let Some((start, size)) = module.global(variable)?.filter(|&(_, size)| size > 0)
                else {
                    continue;
                };
                let words = (start + size).div_ceil(WORD) - start / WORD;
                let shadow = DeviceMemory::zeroed(
                    device,
                    words * checked.reservation.layout().format.cell_bytes(),
                )?;
                ranges.push(Range {
                    start,
                    size,
                    shadow: shadow.address,
                });
                cells.push(shadow);
            }
        }
        Ok(Part {
            functions: HashMap::new(),
            plain: None,
            module,
            ranges,
            _cells: cells,
        })
    }

    /// Gives every device the sorted table of all modules' variables. The host waits, for nothing that runs may look at a
    /// table that changes, and non-blocking streams don't wait for the writes on their own.
    fn publish_ranges(&mut self, changed: bool) -> Result<()> {
        for index in 0..self.devices.len() as u32 {
            if self.checked.is_none() {
                continue;
            }
            self.wait_for_device(index)?;
            if !changed {
                continue;
            }
            let parts = self
                .modules
                .iter()
                .filter_map(|m| m.parts.get(index as usize));
            let mut all: Vec<Range> = parts.flat_map(|p| p.ranges.iter().copied()).collect();
            all.sort_by_key(|r| r.start);
            if let Some(checked) = &mut self.checked {
                checked.runtime.devices[index as usize].set_ranges(&all)?;
            }
            self.wait_for_device(index)?;
        }
        Ok(())
    }

    /// The range of the variable that holds `address`, of whichever module and device.
    pub(super) fn variable_range(&self, address: u64) -> Option<Range> {
        let mut all = self.modules.iter().flat_map(|m| &m.parts);
        all.find_map(|part| {
            let holds = |r: &&Range| address >= r.start && address - r.start < r.size;
            part.ranges.iter().find(holds).copied()
        })
    }

    /// The module's kernels with their parameters.
    pub fn kernels(&self, module: ModuleId) -> Result<&[KernelInfo]> {
        let loaded = self
            .modules
            .get(module.0 as usize)
            .ok_or(Error::UnknownModule(module))?;
        Ok(&loaded.infos)
    }

    /// The names of a module's `.global` variables.
    pub fn variables(&self, module: ModuleId) -> Result<&[String]> {
        let loaded = self
            .modules
            .get(module.0 as usize)
            .ok_or(Error::UnknownModule(module))?;
        Ok(&loaded.variables)
    }

    /// Address and bytes of a module's `.global` variable on a device; `None` if it has none of that name.
    pub fn variable(
        &self,
        module: ModuleId,
        name: &str,
        device: u32,
    ) -> Result<Option<(u64, u64)>> {
        let loaded = self
            .modules
            .get(module.0 as usize)
            .ok_or(Error::UnknownModule(module))?;
        self.device(device)?;
        match loaded.parts.get(device as usize) {
            Some(part) => part.module.global(name),
            None => Ok(None),
        }
    }
}

/// Fills in `__gsan_module`, after a look at the layout that it was built with.
pub(super) fn tell_module(
    device: &Rc<Device>,
    module: &Module,
    global: u64,
    needed: bool,
    format: CellFormat,
) -> Result<()> {
    let Some((address, bytes)) = module.global(gsan_ptx::hook::names::MODULE)? else {
        // A module without kernels may have lost it to the compiler.
        return if needed {
            Err(Error::LayoutVersion {
                found: 0,
                expected: LAYOUT_VERSION,
            })
        } else {
            Ok(())
        };
    };
    // Another version's may be shorter; the version itself has been there from the first.
    let mut found = ModuleState::zeroed();
    let known = (bytes as usize).min(size_of::<ModuleState>());
    copy_to_host(
        device,
        &mut bytemuck::bytes_of_mut(&mut found)[..known],
        address,
    )?;
    if found.version != LAYOUT_VERSION {
        return Err(Error::LayoutVersion {
            found: found.version,
            expected: LAYOUT_VERSION,
        });
    }
    if u64::from(found.cell) != format.cell_bytes() {
        return Err(Error::OtherCellFormat {
            wanted: format.name(),
        });
    }
    let reserved_shared = device
        .number(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK)
        .unwrap_or(0);
    let state = ModuleState {
        global,
        reserved_shared,
        ..found
    };
    copy_from_host(device, address, bytemuck::bytes_of(&state))
}
