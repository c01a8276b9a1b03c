//! What every runtime must do, as tests that any implementation of [`Runtime`](springtide_driver::Runtime) can be held
//! against.
//!
//! An adapter's tests write `runtime_tests!(single, multi);`: two functions, one that makes a runtime whose tasks run on
//! the thread that is in `block_on`, and one that makes a runtime with two threads of its own. Every rule becomes a
//! `#[test]` over each of them; the last rules run the real thing, a master, a node and clients, on the runtime.
//!
//! No rule sleeps or measures how fast something is. A rule that is broken by waiting for ever ends after
//! [`PATIENCE`] where a thread can watch it.
#![forbid(unsafe_code)]

mod help;
pub mod lane;
pub mod life;
pub mod pool;
pub mod ready;
pub mod tasks;
pub mod timer;

pub use help::PATIENCE;

/// One `#[test]` for each rule, over the runtimes that `$single` and `$multi` (`fn() -> impl Runtime`) make.
#[macro_export]
macro_rules! runtime_tests {
    ($single:expr, $multi:expr) => {
        mod single {
            use super::*;
            $crate::runtime_tests!(@rules $single);
        }
        mod multi {
            use super::*;
            $crate::runtime_tests!(@rules $multi);
            $crate::runtime_tests!(@each $multi, tasks: a_task_that_blocks_its_thread_holds_up_nobody_else);
            $crate::runtime_tests!(@each $multi, life: the_last_clone_may_go_inside_a_task);
        }
    };
    (@rules $make:expr) => {
        $crate::runtime_tests!(@each $make, timer:
            a_timer_ends_when_its_moment_came, many_timers_end_none_of_them_early, a_dropped_timer_wakes_nobody,
            a_timer_wakes_whoever_asked_last, an_earlier_timer_is_not_held_up);
        $crate::runtime_tests!(@each $make, ready:
            every_byte_is_seen_though_each_wake_up_reads_one, directions_are_apart,
            readiness_stays_until_something_would_block, what_comes_while_it_would_block_is_not_lost,
            a_full_pipe_is_ready_again_once_it_was_emptied, a_closed_peer_makes_both_directions_ready,
            a_descriptor_closes_with_its_readiness_and_its_number_may_come_back, readiness_moves_between_tasks);
        $crate::runtime_tests!(@each $make, tasks:
            tasks_run_and_are_waited_for_even_if_they_panic, a_task_runs_on_without_its_handle,
            wakes_from_other_threads_are_not_lost, a_task_that_wakes_itself_lets_others_run,
            a_task_is_dropped_when_it_ends_and_late_wakes_do_nothing, many_tasks_wait_for_one_another,
            block_on_drops_what_it_ran, two_threads_may_block_at_once);
        $crate::runtime_tests!(@each $make, life:
            tasks_left_are_dropped_with_the_runtime, a_handle_of_a_task_left_ends);
        $crate::runtime_tests!(@each $make, lane:
            tasks_transfer_over_attended_lanes, an_attended_lane_serves_blocked_callers_and_fences);
        $crate::runtime_tests!(@each $make, pool:
            values_come_back_over_tcp, values_come_back_over_shared_memory, a_blocking_client_beside_tasks);
    };
    (@each $make:expr, $group:ident: $($rule:ident),*) => {$(
        #[test]
        fn $rule() {
            $crate::$group::$rule($make);
        }
    )*};
}
