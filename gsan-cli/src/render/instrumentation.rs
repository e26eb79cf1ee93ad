//! What instrumentation did, and what it left out because it cannot race, in words.

use super::plural;
use gsan_host::report::Instrumentation;

/// A sentence on barriers and the like, and one on what was left out.
pub fn lines(of: &Instrumentation) -> [String; 2] {
    let count = |n: u64, noun: &str| plural(n, noun).replace("accesss", "accesses");
    // Few kernels have any of these.
    let rare = |n: u64, text: String| if n == 0 { String::new() } else { text };
    let clusters = format!(
        "; inside clusters: at {}",
        plural(of.cluster_syncs, "release")
    );
    let non_coherent = format!(", {}", plural(of.non_coherent, "non-coherent load"));
    [
        format!(
            "inside blocks: hooks at {} of {} and at {}{}",
            of.barrier_hooks,
            plural(of.barriers, "barrier"),
            plural(of.block_syncs, "other synchronisation"),
            rare(of.cluster_syncs, clusters)
        ),
        format!(
            "left out: {} to shared, {} to local, {} to parameter, {} to constant memory, {} to the stack or shared memory by generic \
             addresses, {}{}",
            count(of.shared, "access"),
            of.local,
            of.param,
            of.constant,
            of.private_generic,
            plural(of.repeated, "repeated check"),
            rare(of.non_coherent, non_coherent)
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_said_in_its_place() {
        let mut of = Instrumentation {
            barriers: 1,
            barrier_hooks: 2,
            block_syncs: 3,
            cluster_syncs: 0,
            shared: 4,
            local: 5,
            param: 6,
            constant: 7,
            private_generic: 8,
            repeated: 9,
            non_coherent: 0,
        };
        assert_eq!(
            lines(&of),
            [
                "inside blocks: hooks at 2 of 1 barrier and at 3 other synchronisations",
                "left out: 4 accesses to shared, 5 to local, 6 to parameter, 7 to constant memory, 8 to the stack or shared \
                 memory by generic addresses, 9 repeated checks"
            ]
        );
        (of.cluster_syncs, of.non_coherent) = (1, 10);
        let [hooks, left_out] = lines(&of);
        assert!(
            hooks.ends_with("synchronisations; inside clusters: at 1 release"),
            "{hooks}"
        );
        assert!(
            left_out.ends_with("repeated checks, 10 non-coherent loads"),
            "{left_out}"
        );
    }
}
