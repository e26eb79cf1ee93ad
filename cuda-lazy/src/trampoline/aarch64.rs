//! aarch64, AAPCS64 calling convention.
//!
//! `x16` and `x17` are the registers that a linker's veneer may clobber between caller and callee, so no argument is in
//! them. `x8` can hold the address of a result, so it is saved like an argument. `hint #34` is `bti c`. The load from the
//! table acquires: whoever sees the target also sees the library's data that the resolving thread set up.

/// One function's trampoline: jumps through its table entry, or, while that is null, to the slow path with its index.
macro_rules! entry {
    () => {
        "
    hint #34
    adrp x16, {table}+{offset}
    add x16, x16, :lo12:{table}+{offset}
    ldar x16, [x16]
    cbz x16, 2f
    br x16
2:
    mov w17, #{index}
    b {slow}
"
    };
}

/// The slow path: saves what can hold an argument, asks for the target, restores, jumps there.
/// The caller's stack arguments stay where they are, since the frame is gone before the jump.
macro_rules! slow {
    () => {
        "
    stp x29, x30, [sp, #-224]!
    mov x29, sp
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    stp x4, x5, [sp, #48]
    stp x6, x7, [sp, #64]
    str x8, [sp, #80]
    stp q0, q1, [sp, #96]
    stp q2, q3, [sp, #128]
    stp q4, q5, [sp, #160]
    stp q6, q7, [sp, #192]
    mov w0, w17
    bl {resolve}
    mov x16, x0
    ldp x0, x1, [sp, #16]
    ldp x2, x3, [sp, #32]
    ldp x4, x5, [sp, #48]
    ldp x6, x7, [sp, #64]
    ldr x8, [sp, #80]
    ldp q0, q1, [sp, #96]
    ldp q2, q3, [sp, #128]
    ldp q4, q5, [sp, #160]
    ldp q6, q7, [sp, #192]
    ldp x29, x30, [sp], #224
    br x16
"
    };
}

pub(crate) use {entry, slow};
