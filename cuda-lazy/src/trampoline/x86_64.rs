//! x86-64, System V calling convention.
//!
//! `r11` is the one register that belongs neither to the arguments nor to the callee: both pieces use no other.

/// One function's trampoline: jumps through its table entry, or, while that is null, to the slow path with its index.
macro_rules! entry {
    () => {
        "
    endbr64
    mov r11, qword ptr [rip + {table} + {offset}]
    test r11, r11
    je 2f
    jmp r11
2:
    mov r11d, {index}
    jmp {slow}
"
    };
}

/// The slow path: saves what can hold an argument, asks for the target, restores, jumps there.
/// The caller's stack arguments stay where they are, since the frame is gone before the jump.
macro_rules! slow {
    () => {
        "
    push rbp
    mov rbp, rsp
    sub rsp, 192
    mov qword ptr [rsp], rdi
    mov qword ptr [rsp + 8], rsi
    mov qword ptr [rsp + 16], rdx
    mov qword ptr [rsp + 24], rcx
    mov qword ptr [rsp + 32], r8
    mov qword ptr [rsp + 40], r9
    mov qword ptr [rsp + 48], rax
    movaps xmmword ptr [rsp + 64], xmm0
    movaps xmmword ptr [rsp + 80], xmm1
    movaps xmmword ptr [rsp + 96], xmm2
    movaps xmmword ptr [rsp + 112], xmm3
    movaps xmmword ptr [rsp + 128], xmm4
    movaps xmmword ptr [rsp + 144], xmm5
    movaps xmmword ptr [rsp + 160], xmm6
    movaps xmmword ptr [rsp + 176], xmm7
    mov edi, r11d
    call {resolve}
    mov r11, rax
    mov rdi, qword ptr [rsp]
    mov rsi, qword ptr [rsp + 8]
    mov rdx, qword ptr [rsp + 16]
    mov rcx, qword ptr [rsp + 24]
    mov r8, qword ptr [rsp + 32]
    mov r9, qword ptr [rsp + 40]
    mov rax, qword ptr [rsp + 48]
    movaps xmm0, xmmword ptr [rsp + 64]
    movaps xmm1, xmmword ptr [rsp + 80]
    movaps xmm2, xmmword ptr [rsp + 96]
    movaps xmm3, xmmword ptr [rsp + 112]
    movaps xmm4, xmmword ptr [rsp + 128]
    movaps xmm5, xmmword ptr [rsp + 144]
    movaps xmm6, xmmword ptr [rsp + 160]
    movaps xmm7, xmmword ptr [rsp + 176]
    leave
    jmp r11
"
    };
}

pub(crate) use {entry, slow};
