//! Launches: shape, attributes and parameters, checked when the call is made as far as a GPU's driver does.

use super::api::{In, Session, bytes, driver_api};
use super::codes::{Answer, Code};
use super::event::NO_TIMING;
use super::state::{Driver, Handle};
use crate::machine::LaunchDesc;

/// `CUlaunchAttribute`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Attribute {
    id: u32,
    pad: u32,
    value: [u32; 16],
}

/// `CUlaunchConfig`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Config {
    grid: [u32; 3],
    block: [u32; 3],
    dynamic: u32,
    stream: Handle,
    attributes: u64,
    count: u32,
}

const _: () = assert!(size_of::<Attribute>() == 72 && size_of::<Config>() == 56);

/// `CU_LAUNCH_ATTRIBUTE_*`.
mod attribute {
    pub(super) const IGNORE: u32 = 0;
    pub(super) const COOPERATIVE: u32 = 2;
    pub(super) const CLUSTER: u32 = 4;
    pub(super) const PROGRAMMATIC_STREAM_SERIALIZATION: u32 = 6;
    pub(super) const PROGRAMMATIC_EVENT: u32 = 7;
    pub(super) const LAUNCH_COMPLETION_EVENT: u32 = 12;
    /// Up to here ids are known; those without a name here are hints, or permit more than they require.
    pub(super) const LAST_KNOWN: u32 = 14;
}

/// How the value of a launch attribute of the kind that drivers ignore begins, if the word behind it says how many bytes of
/// dynamic shared memory, from the start, are the user's. What lies behind is for the functions of gsan's runtime only.
pub const USER_SHARED: [u32; 2] = [0x6e61_7367, 0x7261_6873];

/// The shape of a launch.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) cluster: [u32; 3],
    pub(super) dynamic: u32,
    /// How much of it is the user's: [`USER_SHARED`].
    pub(super) user_dynamic: Option<u32>,
    pub(super) cooperative: bool,
    /// It may start before the kernel before it in the stream has ended.
    pub(super) programmatic: bool,
    /// Events that are recorded when all of its blocks let dependents start, or have ended: a programmatic one, and one that
    /// need only wait until all have started.
    pub(super) events: [Option<Handle>; 2],
}

impl Shape {
    /// Without attributes.
    pub(super) fn plain(grid: [u32; 3], block: [u32; 3], dynamic: u32) -> Shape {
        Shape {
            grid,
            block,
            cluster: [1; 3],
            dynamic,
            user_dynamic: None,
            cooperative: false,
            programmatic: false,
            events: [None; 2],
        }
    }
}

/// A launch that has been checked: all that is left is to run it.
#[derive(Clone)]
pub(super) struct Launch {
    pub(super) function: Handle,
    pub(super) desc: LaunchDesc,
    pub(super) values: Values,
}

/// Where the parameters are in their buffer, for those who ask.
#[derive(Clone)]
pub(super) struct Values {
    offsets: Vec<u32>,
    addresses: Vec<u64>,
}

impl Values {
    /// An array of the parameters' addresses; it stays while this and the buffer do.
    pub(super) fn addresses(&mut self, buffer: &[u8]) -> u64 {
        let base = buffer.as_ptr() as u64;
        self.addresses = self
            .offsets
            .iter()
            .map(|&at| base + u64::from(at))
            .collect();
        self.addresses.as_ptr() as u64
    }
}

impl Config {
    /// With its attributes.
    pub(super) fn shape(&self) -> Answer<Shape> {
        let mut shape = Shape::plain(self.grid, self.block, self.dynamic);
        let attributes = In::<Attribute>::from_address(self.attributes);
        for index in 0..self.count as usize {
            let Attribute { id, value, .. } = attributes.at(index)?;
            match id {
                attribute::IGNORE if value[..2] == USER_SHARED => {
                    shape.user_dynamic = Some(value[2]);
                }
                attribute::COOPERATIVE => shape.cooperative = value[0] != 0,
                attribute::CLUSTER => shape.cluster = [value[0], value[1], value[2]],
                attribute::PROGRAMMATIC_STREAM_SERIALIZATION => shape.programmatic = value[0] != 0,
                attribute::PROGRAMMATIC_EVENT => shape.events[0] = Some(event(value)),
                attribute::LAUNCH_COMPLETION_EVENT => shape.events[1] = Some(event(value)),
                0..=attribute::LAST_KNOWN => {}
                _ => return Err(Code::INVALID_VALUE),
            }
        }
        Ok(shape)
    }
}

/// The event in an attribute's value.
fn event(value: [u32; 16]) -> Handle {
    u64::from(value[0]) | u64::from(value[1]) << 32
}

/// What a GPU's driver refuses at once.
fn check(driver: &Driver, function: Handle, shape: &Shape) -> Answer {
    const MAX_GRID: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];
    const MAX_BLOCK: [u32; 3] = [1024, 1024, 64];
    let within = |sizes: &[u32; 3], most: &[u32; 3]| {
        sizes
            .iter()
            .zip(most)
            .all(|(n, most)| (1..=*most).contains(n))
    };
    if !within(&shape.grid, &MAX_GRID) || !within(&shape.block, &MAX_BLOCK) {
        return Err(Code::INVALID_VALUE);
    }
    let threads: u32 = shape.block.iter().product();
    if threads > 1024 || shape.dynamic > driver.max_dynamic(function)? {
        return Err(Code::INVALID_VALUE);
    }
    let info = driver.info(function)?;
    let other_block = info
        .required_block
        .is_some_and(|required| required != shape.block);
    if other_block || threads > info.max_threads {
        return Err(Code::INVALID_VALUE);
    }
    let held = driver.blocks_per_sm(function, threads, shape.dynamic)?;
    if held == 0 {
        return Err(Code::LAUNCH_OUT_OF_RESOURCES);
    }
    let blocks: u64 = shape.grid.iter().map(|&n| u64::from(n)).product();
    if shape.cooperative && blocks > u64::from(held) * u64::from(driver.machine.config().sms) {
        return Err(Code::COOPERATIVE_LAUNCH_TOO_LARGE);
    }
    let most = if driver.function(function)?.non_portable_cluster {
        16
    } else {
        8
    };
    let cluster = shape
        .cluster
        .iter()
        .try_fold(1u32, |all, &n| all.checked_mul(n));
    let divides = shape
        .grid
        .iter()
        .zip(&shape.cluster)
        .all(|(grid, n)| *n > 0 && grid % n == 0);
    if !divides || cluster.is_none_or(|cluster| cluster > most) {
        return Err(Code::INVALID_CLUSTER_SIZE);
    }
    Ok(())
}

/// The parameter buffer, from an array of pointers to values or from `extra`'s ready-made one.
fn parameters(
    driver: &Driver,
    function: Handle,
    values: &In<u64>,
    extra: &In<u64>,
) -> Answer<Vec<u8>> {
    let info = driver.info(function)?;
    let total = info.param_bytes as usize;
    if !extra.is_null() {
        if !values.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let buffer = ready_made(extra)?;
        // A longer buffer is taken as far as the kernel looks at it.
        return buffer
            .get(..total)
            .map(<[u8]>::to_vec)
            .ok_or(Code::INVALID_VALUE);
    }
    let mut buffer = vec![0; total];
    for (index, &(offset, len)) in info.params.iter().enumerate() {
        let (offset, len) = (offset as usize, len as usize);
        let from = values.at(index)?;
        if from == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let to = buffer
            .get_mut(offset..offset + len)
            .ok_or(Code::INVALID_VALUE)?;
        // SAFETY: the caller hands in a pointer per parameter, to as many bytes as the kernel declares.
        to.copy_from_slice(unsafe { bytes(from, len) });
    }
    Ok(buffer)
}

/// `extra`: pairs of a key and a value, up to the key 0. 1 is the buffer, 2 points to its size.
fn ready_made(extra: &In<u64>) -> Answer<&[u8]> {
    let (mut buffer, mut len) = (0, None);
    let mut index = 0;
    loop {
        match extra.at(index)? {
            0 => break,
            1 => buffer = extra.at(index + 1)?,
            2 => {
                let size = extra.at(index + 1)?;
                len = Some(In::<usize>::from_address(size).get()?);
            }
            _ => return Err(Code::INVALID_VALUE),
        }
        index += 2;
    }
    let len = len.ok_or(Code::INVALID_VALUE)?;
    if buffer == 0 && len > 0 {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: the caller says that its buffer has that many bytes.
    Ok(unsafe { bytes(buffer, len) })
}

impl Driver {
    /// Checks a launch and takes its parameters.
    pub(super) fn prepare_launch(
        &mut self,
        context: Handle,
        function: Handle,
        shape: &Shape,
        values: &In<u64>,
        extra: &In<u64>,
    ) -> Answer<Launch> {
        let known = self.function(function)?;
        let (id, module) = (known.id, known.module);
        if self.module(module)?.context != context {
            return Err(Code::INVALID_HANDLE);
        }
        let mut shape = *shape;
        if shape.cluster == [1; 3]
            && let Some(required) = self.info(function)?.required_cluster
        {
            shape.cluster = required;
        }
        check(self, function, &shape)?;
        for event in shape.events.into_iter().flatten() {
            if self.event(event)?.flags & NO_TIMING == 0 {
                return Err(Code::INVALID_VALUE);
            }
        }
        let params = parameters(self, function, values, extra)?;
        let info = self.info(function)?;
        let offsets = info.params.iter().map(|&(offset, _)| offset).collect();
        Ok(Launch {
            function,
            desc: LaunchDesc {
                device: self.context(context)?.device,
                function: id,
                grid: shape.grid,
                block: shape.block,
                cluster: shape.cluster,
                dynamic_shared: shape.dynamic,
                user_dynamic: shape.user_dynamic,
                params,
                cooperative: shape.cooperative,
            },
            values: Values {
                offsets,
                addresses: Vec::new(),
            },
        })
    }
}

fn launch(
    session: &mut Session,
    function: Handle,
    shape: &Shape,
    stream: Handle,
    values: &In<u64>,
    extra: &In<u64>,
) -> Answer {
    let (driver, context) = session.healthy()?;
    driver.function(function)?;
    driver.stream(context, stream)?;
    let launch = driver.prepare_launch(context, function, shape, values, extra)?;
    driver.submit_launch(context, stream, launch, shape.programmatic, shape.events)
}

driver_api! {
    fn cuLaunchKernel(
        s, function: Handle, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32, block_z: u32,
        dynamic: u32, stream: Handle, values: In<u64>, extra: In<u64>
    ) {
        let shape = Shape::plain([grid_x, grid_y, grid_z], [block_x, block_y, block_z], dynamic);
        launch(s, function, &shape, stream, &values, &extra)
    }
    fn cuLaunchCooperativeKernel(
        s, function: Handle, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32, block_z: u32,
        dynamic: u32, stream: Handle, values: In<u64>
    ) {
        let mut shape = Shape::plain([grid_x, grid_y, grid_z], [block_x, block_y, block_z], dynamic);
        shape.cooperative = true;
        launch(s, function, &shape, stream, &values, &In::from_address(0))
    }
    fn cuLaunchKernelEx(s, config: In<Config>, function: Handle, values: In<u64>, extra: In<u64>) {
        let config = config.get()?;
        launch(s, function, &config.shape()?, config.stream, &values, &extra)
    }
}
