//! Tensor maps of a session.

use super::Session;
use crate::error::Result;
use crate::request::Arg;
use crate::tensor::TensorSpec;

impl Session {
    /// A tensor map of the tensor at `address`, for a kernel's parameter of 128 bytes. Copies through it are checked on every
    /// device; those through a map that was made otherwise, or changed in a kernel, are counted
    /// ([`crate::report::Misses::unknown_map`]).
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
}
