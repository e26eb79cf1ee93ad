//! Arrays, texture objects and surface objects. An array is memory like any other, rows and slices one behind the other;
//! mipmaps, cube maps and block-compressed formats are not there.

use super::api::{In, Out, Session, driver_api};
use super::codes::{Answer, Code};
use super::state::{Driver, Handle};
use crate::machine::texture::{Channel, Edge, Image, Texture};
use std::collections::HashMap;
use std::sync::Arc;

/// `CUDA_ARRAY3D_LAYERED`.
const LAYERED: u32 = 1;
/// `CUDA_ARRAY3D_SURFACE_LDST`, `CUDA_ARRAY3D_TEXTURE_GATHER`, and the first: what is understood.
const FLAGS: u32 = LAYERED | 2 | 8;

/// More bytes, rows or columns than any memory has.
const MOST: u64 = 1 << 40;

/// What the driver knows of them.
#[derive(Default)]
pub(super) struct Images {
    /// How each was asked for, and where it lies.
    arrays: HashMap<Handle, (Array3D, Image)>,
    /// What objects were made of.
    objects: HashMap<Handle, (Resource, Option<Description>)>,
}

/// `CUDA_ARRAY_DESCRIPTOR`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Array2D {
    width: usize,
    height: usize,
    format: u32,
    channels: u32,
}

/// `CUDA_ARRAY3D_DESCRIPTOR`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Array3D {
    width: usize,
    height: usize,
    depth: usize,
    format: u32,
    channels: u32,
    flags: u32,
}

/// `CUDA_RESOURCE_DESC`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Resource {
    kind: u32,
    /// An array; or an address, format and channels, bytes or width, height, pitch.
    words: [u64; 16],
    flags: u32,
}

/// `CUDA_TEXTURE_DESC`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Description {
    edges: [u32; 3],
    filter: u32,
    flags: u32,
    anisotropy: u32,
    mipmap_filter: u32,
    bias: f32,
    levels: [f32; 2],
    border: [f32; 4],
    reserved: [i32; 12],
}

const _: () = assert!(size_of::<Array2D>() == 24 && size_of::<Array3D>() == 40);
const _: () = assert!(size_of::<Resource>() == 144 && size_of::<Description>() == 104);

fn channel(format: u32, channels: u64) -> Answer<Channel> {
    if !matches!(channels, 1 | 2 | 4) {
        return Err(Code::INVALID_VALUE);
    }
    Channel::of_driver(format).ok_or(Code::INVALID_VALUE)
}

impl Driver {
    /// The image in an array.
    pub(super) fn image(&self, array: Handle) -> Answer<Image> {
        self.array(array).map(|(_, image)| image)
    }

    fn array(&self, array: Handle) -> Answer<(Array3D, Image)> {
        let found = self.images.arrays.get(&array).copied();
        // An array goes with its context.
        let found = found.filter(|(_, image)| self.allocations.contains_key(&image.address));
        found.ok_or(Code::INVALID_HANDLE)
    }

    fn new_array(&mut self, context: Handle, what: Array3D) -> Answer<Handle> {
        let channel = channel(what.format, u64::from(what.channels))?;
        if what.flags & !FLAGS != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        let layered = what.flags & LAYERED != 0;
        let extents = [what.width, what.height, what.depth].map(|n| n as u64);
        if extents.iter().any(|&n| n > MOST) || what.width == 0 || layered && what.depth == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let texel = channel.bytes() * u64::from(what.channels);
        let sizes = extents.map(|n| n.max(1));
        let pitch = sizes[0].checked_mul(texel).ok_or(Code::INVALID_VALUE)?;
        let slice = pitch.checked_mul(sizes[1]).ok_or(Code::INVALID_VALUE)?;
        let len = slice.checked_mul(sizes[2]).filter(|&n| n < MOST);
        let len = len.ok_or(Code::OUT_OF_MEMORY)?;
        let address = self.allocate_device(context, len as usize)?;
        let handle = self.new_handle();
        let image = Image {
            address,
            extents,
            layered,
            pitch,
            slice,
            channel,
            channels: u64::from(what.channels),
        };
        self.images.arrays.insert(handle, (what, image));
        Ok(handle)
    }

    fn resource(&self, what: &Resource) -> Answer<(Image, bool)> {
        let [first, second, third, height, pitch, ..] = what.words;
        let linear = |extents: [u64; 3], pitch: u64| -> Answer<Image> {
            let channels = second >> 32;
            if extents.iter().any(|&n| n > MOST) {
                return Err(Code::INVALID_VALUE);
            }
            Ok(Image {
                address: first,
                extents,
                layered: false,
                pitch,
                slice: 0,
                channel: channel(second as u32, channels)?,
                channels,
            })
        };
        match what.kind {
            0 => Ok((self.image(first)?, false)),
            2 => {
                let mut image = linear([third, 0, 0], 0)?;
                image.extents[0] = third / image.texel();
                Ok((image, true))
            }
            3 => Ok((linear([third, height, 0], pitch)?, false)),
            1 => Err(Code::NOT_SUPPORTED),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    fn new_object(&mut self, texture: Texture, what: Resource, how: Option<Description>) -> Handle {
        let handle = self.new_handle();
        self.images.objects.insert(handle, (what, how));
        let textures = &mut self.machine.memory_mut().textures;
        textures.insert(handle, Arc::new(texture));
        handle
    }

    fn object(&self, handle: Handle) -> Answer<(Resource, Option<Description>)> {
        let found = self.images.objects.get(&handle).copied();
        found.ok_or(Code::INVALID_VALUE)
    }

    fn drop_object(&mut self, handle: Handle) -> Answer {
        self.images.objects.remove(&handle);
        let gone = self.machine.memory_mut().textures.remove(&handle);
        gone.map(|_| ()).ok_or(Code::INVALID_VALUE)
    }
}

fn new_texture(
    session: &mut Session,
    what: &In<Resource>,
    how: &In<Description>,
) -> Answer<Handle> {
    let (driver, _) = session.healthy()?;
    let what = what.get()?;
    let (image, plain) = driver.resource(&what)?;
    let how = how.get()?;
    let edge = |n: u32| {
        Ok(match n {
            0 => Edge::Wrap,
            1 => Edge::Clamp,
            2 => Edge::Mirror,
            3 => Edge::Border,
            _ => return Err(Code::INVALID_VALUE),
        })
    };
    let [x, y, z] = how.edges;
    // Read as integers, normalised coordinates, sRGB.
    let (integers, normalized) = (how.flags & 1 != 0, how.flags & 2 != 0);
    if how.flags & 0x10 != 0 {
        return Err(Code::NOT_SUPPORTED);
    }
    let texture = Texture {
        image,
        edges: [edge(x)?, edge(y)?, edge(z)?],
        linear: how.filter == 1,
        normalized,
        integers,
        // Linear memory has no edges: nothing is outside of it.
        border: if plain { [0.0; 4] } else { how.border },
        plain,
    };
    // Integers may be filtered, says an H200's driver; no read of them says what it then gives.
    if how.filter > 1 || texture.linear && plain {
        return Err(Code::INVALID_VALUE);
    }
    Ok(driver.new_object(texture, what, Some(how)))
}

fn new_surface(session: &mut Session, what: &In<Resource>) -> Answer<Handle> {
    let (driver, _) = session.healthy()?;
    let what = what.get()?;
    if what.kind != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let (image, _) = driver.resource(&what)?;
    let texture = Texture {
        image,
        edges: [Edge::Border; 3],
        linear: false,
        normalized: false,
        integers: true,
        border: [0.0; 4],
        plain: true,
    };
    Ok(driver.new_object(texture, what, None))
}

driver_api! {
    fn cuArrayCreate_v2(s, array: Out<Handle>, what: In<Array2D>) {
        array.require()?;
        let (driver, context) = s.healthy()?;
        let Array2D { width, height, format, channels } = what.get()?;
        array.set(driver.new_array(context, Array3D { width, height, depth: 0, format, channels, flags: 0 })?)
    }
    fn cuArray3DCreate_v2(s, array: Out<Handle>, what: In<Array3D>) {
        array.require()?;
        let (driver, context) = s.healthy()?;
        array.set(driver.new_array(context, what.get()?)?)
    }
    fn cuArrayGetDescriptor_v2(s, what: Out<Array2D>, array: Handle) {
        what.require()?;
        let (Array3D { width, height, format, channels, .. }, _) = s.healthy()?.0.array(array)?;
        what.set(Array2D { width, height, format, channels })
    }
    fn cuArray3DGetDescriptor_v2(s, what: Out<Array3D>, array: Handle) {
        what.require()?;
        what.set(s.healthy()?.0.array(array)?.0)
    }
    fn cuArrayDestroy(s, array: Handle) {
        let (driver, context) = s.healthy()?;
        let image = driver.image(array)?;
        s.wait_for_all(context)?;
        let driver = s.driver()?;
        if driver.images.arrays.remove(&array).is_some() {
            super::memory::free_now(driver, image.address);
        }
        Ok(())
    }
    fn cuTexObjectCreate(s, object: Out<Handle>, what: In<Resource>, how: In<Description>, view: u64) {
        object.require()?;
        if view != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        object.set(new_texture(s, &what, &how)?)
    }
    fn cuTexObjectGetResourceDesc(s, what: Out<Resource>, object: Handle) {
        what.require()?;
        what.set(s.healthy()?.0.object(object)?.0)
    }
    fn cuTexObjectGetTextureDesc(s, how: Out<Description>, object: Handle) {
        how.require()?;
        how.set(s.healthy()?.0.object(object)?.1.ok_or(Code::INVALID_VALUE)?)
    }
    fn cuSurfObjectGetResourceDesc(s, what: Out<Resource>, object: Handle) {
        what.require()?;
        what.set(s.healthy()?.0.object(object)?.0)
    }
    fn cuTexObjectDestroy(s, object: Handle) { s.healthy()?.0.drop_object(object) }
    fn cuSurfObjectCreate(s, object: Out<Handle>, what: In<Resource>) {
        object.require()?;
        object.set(new_surface(s, &what)?)
    }
    fn cuSurfObjectDestroy(s, object: Handle) { s.healthy()?.0.drop_object(object) }
}
