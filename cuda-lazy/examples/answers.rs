//! Prints what the driver (the installed one, or with `GSAN_DEVICE=sim` the simulated one) answers to many calls.
//! With a number: what it answers after one of the kernels that fail. With `captures`: while streams are captured.

#[path = "../tests/common/answers.rs"]
mod answers;
#[path = "../tests/common/captures.rs"]
mod captures;

fn main() {
    // SAFETY: no pointers.
    let code = unsafe { cust_raw::cuInit(0) };
    eprintln!(
        "backend: {:?}; cuInit: {}",
        cuda_lazy::backend(),
        code as i32
    );
    let asked = std::env::args().nth(1);
    if asked.as_deref() == Some("captures") {
        print!("{}", captures::captures());
        return;
    }
    match asked.and_then(|number| answers::FAILURES.get(number.parse::<usize>().ok()?)) {
        Some((kernel, argument)) => print!("{}", answers::after(kernel, *argument)),
        None => print!("{}", answers::answers()),
    }
}
