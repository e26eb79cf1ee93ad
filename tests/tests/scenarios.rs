//! Every scenario behaves as its `[expect]` says, over all of its schedules.

use gsan_tests::{Gsan, exit, scenario};

fn behaves_as_it_says(name: &str) {
    Gsan::run(&scenario::path(name))
        .finish()
        .expect(exit::CLEAN);
}

macro_rules! scenarios {
    ($($name:ident,)*) => {
        $(
            #[test]
            fn $name() {
                behaves_as_it_says(stringify!($name));
            }
        )*

        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

scenarios! {
    atomic_ref_fixed,
    atomic_ref_racy,
    bfs_fixed,
    bfs_racy,
    bfs_racy_lines,
    block_edge_fixed,
    block_edge_racy,
    block_edge_racy_lines,
    compaction_fixed,
    compaction_racy,
    dependent_early_racy,
    dependent_event_fixed,
    dependent_many_fixed,
    dependent_never_racy,
    dependent_older_fixed,
    dependent_ordinary_fixed,
    dependent_three_racy,
    dependent_wait_fixed,
    dropped_ordering_fixed,
    dropped_ordering_racy,
    ending_budget,
    ending_deadlock,
    ending_null,
    ending_off_the_end,
    ending_trap,
    flag_handoff_fixed,
    flag_handoff_racy,
    grid_barrier_fixed,
    grid_barrier_racy,
    grid_sync_fixed,
    grid_sync_racy,
    grid_sync_racy_lines,
    histogram_fixed,
    histogram_racy,
    init_accumulate_fixed,
    init_accumulate_racy,
    init_accumulate_racy_lines,
    large_parameter_fixed,
    large_parameter_racy,
    last_block_fixed,
    last_block_racy,
    linked_lock_fixed,
    linked_lock_plain_fixed,
    linked_lock_plain_racy,
    linked_lock_racy,
    linked_sum_fixed,
    linked_sum_plain_fixed,
    linked_sum_plain_racy,
    linked_sum_racy,
    lock_list_fixed,
    lock_list_racy,
    look_back_fixed,
    look_back_racy,
    managed_counter_fixed,
    managed_counter_racy,
    missing_atomic_fixed,
    missing_atomic_racy,
    module_counter_fixed,
    module_counter_racy,
    module_static_fixed,
    module_static_racy,
    pinned_mailbox_fixed,
    pinned_mailbox_racy,
    raise_fixed,
    raise_racy,
    reverse_fixed,
    reverse_off,
    reverse_racy,
    separate_fixed,
    separate_racy,
    shape_many_blocks,
    shape_one_block_per_sm,
    shape_shared_slots,
    shape_small_ring,
    spin_lock_fixed,
    spin_lock_racy,
    split_k_fixed,
    split_k_racy,
    stale_nc_fixed,
    stale_nc_off,
    stale_nc_racy,
    stencil_fixed,
    stencil_racy,
    stencil_racy_lines,
    streams_blocking,
    streams_copy_event,
    streams_copy_target_unordered,
    streams_copy_unordered,
    streams_default,
    streams_device_synchronize,
    streams_event,
    streams_event_late,
    streams_join,
    streams_memset_event,
    streams_memset_first_unordered,
    streams_memset_same,
    streams_memset_unordered,
    streams_read_back_event,
    streams_read_back_host_blocking,
    streams_read_back_host_synchronize,
    streams_read_back_host_unordered,
    streams_read_back_unordered,
    streams_reuse,
    streams_same,
    streams_synchronize,
    streams_unordered,
    streams_unordered_lines,
    volatile_flag_fixed,
    volatile_flag_racy,
    work_queue_fixed,
    work_queue_racy,
    wrong_scope_fixed,
    wrong_scope_racy,
}

#[test]
fn no_scenario_is_left_out() {
    let files: Vec<String> = scenario::all().into_iter().map(|(name, _)| name).collect();
    assert_eq!(files, NAMES);
}
