//! Tensor maps of a session.

use super::Session;
use crate::error::{Error, Result};
use crate::request::Arg;
use crate::tensor::TensorSpec;

impl Session {
    /// A tensor map of the tensor at `address`, for a kernel's parameter of 128 bytes. Copies through it are checked on every
    /// device; those through a map that was made otherwise, or changed in a kernel, are counted
    /// ([`crate::report::Misses::unknown_map`]), unless [`Session::note_tensor_map`] tells of it.
    ///
    /// # Errors
    /// Lists that do not fit together, and what the driver refuses.
    pub fn tensor_map(&mut self, address: u64, spec: &TensorSpec) -> Result<Arg> {
        let _armed = self.begin()?;
        self.device(0)?.enter()?;
        let (map, known) = spec.encode(address)?;
        for device in self.checked.iter_mut().flat_map(|c| &mut c.runtime.devices) {
            device.keep_tensor_map(&known)?;
        }
        Ok(Arg::Scalar(bytemuck::bytes_of(&map.opaque).to_vec()))
    }

    /// Tells the session what a map consists of that the program has had the driver make itself (`cuTensorMapEncode…`), or that a
    /// kernel will make with `tensormap.replace`: copies through a map with these 128 bytes are then checked like those of
    /// [`Session::tensor_map`].
    ///
    /// # Errors
    /// Lists that do not fit together, and bytes that are not 128.
    pub fn note_tensor_map(&mut self, map: &[u8], address: u64, spec: &TensorSpec) -> Result<()> {
        let _armed = self.begin()?;
        let bits: Option<[u64; 16]> = <[u8; 128]>::try_from(map).ok().map(bytemuck::cast);
        let known = bits.and_then(|bits| spec.of_bits(bits, address));
        let Some(known) = known else {
            return Err(Error::Configuration(
                "a tensor map has 128 bytes, and lists that fit its number of dimensions".into(),
            ));
        };
        for device in self.checked.iter_mut().flat_map(|c| &mut c.runtime.devices) {
            device.keep_tensor_map(&known)?;
        }
        Ok(())
    }
}
