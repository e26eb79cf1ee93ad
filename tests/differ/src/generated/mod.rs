//! Kernels that nobody wrote: one for each form of an instruction.

mod arithmetic;
mod convert;
mod endings;
mod form;
mod matrix;
mod sparse;
mod tensor;
mod video;
mod volta;
mod warp;
mod windows;

use crate::kernel::Kernel;

/// All of them.
pub fn all() -> Vec<Kernel> {
    let forms = [
        arithmetic::forms(),
        convert::forms(),
        warp::forms(),
        video::forms(),
    ];
    let mut out: Vec<Kernel> = forms.iter().flatten().map(form::Form::kernel).collect();
    out.extend(matrix::kernels());
    out.extend(tensor::kernels());
    out.extend(endings::kernels());
    out
}
